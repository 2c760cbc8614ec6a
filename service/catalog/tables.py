"""What counts the catalog's changes, and every table of the catalog."""

from datetime import datetime

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.accelerators.tables import AcceleratorRow
from service.catalog.exchange_rates.tables import ExchangeRateRow
from service.catalog.grids.tables import GridRow
from service.catalog.links.tables import LinkRow
from service.catalog.models.tables import ModelRow
from service.catalog.offers.tables import OfferRow
from service.catalog.sites.tables import SiteRow
from service.catalog.tariffs.tables import TariffRow
from service.catalog.token_prices.tables import TokenPriceRow
from service.kit.database.engine import Base, UtcDateTime


class CatalogState(Base):
    """How often the rows of one tenant have changed; for the shipped rows also which were loaded last.

    Every write of a tenant locks its row first, so its writes are serial and revisions have no gaps.
    """

    __tablename__ = "catalog_state"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger)
    shipped_digest: Mapped[str] = mapped_column(String(64))
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


NOUN_TABLES = (
    AcceleratorRow,
    ExchangeRateRow,
    GridRow,
    LinkRow,
    ModelRow,
    OfferRow,
    SiteRow,
    TariffRow,
    TokenPriceRow,
)
