"""The table of token prices."""

from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class TokenPriceRow(CatalogRow):
    """One version of a token price; money is exact text in JSON."""

    __tablename__ = "token_prices"

    provider: Mapped[str] = mapped_column(String(500))
    model_name: Mapped[str] = mapped_column(String(500))
    model_id: Mapped[str | None] = mapped_column(String(100))
    input_price_per_million_tokens: Mapped[dict[str, Any]] = mapped_column(Json)
    output_price_per_million_tokens: Mapped[dict[str, Any]] = mapped_column(Json)
    cached_input_price_per_million_tokens: Mapped[dict[str, Any] | None] = mapped_column(Json)
    as_of: Mapped[str] = mapped_column(String(10))
    doubt: Mapped[str | None] = mapped_column(String(500))
