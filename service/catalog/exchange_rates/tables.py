"""The table of exchange rates."""

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow


class ExchangeRateRow(CatalogRow):
    """One version of an exchange rate; the rate is exact text."""

    __tablename__ = "exchange_rates"

    from_currency_code: Mapped[str] = mapped_column(String(3))
    to_currency_code: Mapped[str] = mapped_column(String(3))
    rate: Mapped[str] = mapped_column(String(32))
    as_of: Mapped[str] = mapped_column(String(10))
