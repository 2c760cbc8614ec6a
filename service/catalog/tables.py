"""The one row that counts the catalog's changes, and every table of the catalog."""

from datetime import datetime

from sqlalchemy import BigInteger, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.accelerators.tables import AcceleratorRow
from service.catalog.grids.tables import GridRow
from service.catalog.links.tables import LinkRow
from service.catalog.models.tables import ModelRow
from service.catalog.offers.tables import OfferRow
from service.catalog.sites.tables import SiteRow
from service.kit.database import Base, UtcDateTime


class CatalogState(Base):
    """Revision of the catalog, digest of the shipped rows last loaded, and the key of page tokens.

    Every write locks this row first, so writes are serial and revisions have no gaps.
    """

    __tablename__ = "catalog_state"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger)
    shipped_digest: Mapped[str] = mapped_column(String(64))
    page_token_key: Mapped[bytes] = mapped_column(LargeBinary)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


TABLES = (AcceleratorRow, GridRow, LinkRow, ModelRow, OfferRow, SiteRow)
