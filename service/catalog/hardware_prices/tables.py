"""The table of hardware prices."""

from typing import Any

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class HardwarePriceRow(CatalogRow):
    """One version of a hardware price; money is exact text in JSON."""

    __tablename__ = "hardware_prices"

    product: Mapped[str] = mapped_column(String(500))
    accelerator_id: Mapped[str] = mapped_column(String(100))
    accelerator_count: Mapped[int] = mapped_column(Integer)
    price: Mapped[dict[str, Any] | None] = mapped_column(Json)
    price_range: Mapped[dict[str, Any] | None] = mapped_column(Json)
    price_per_device: Mapped[dict[str, Any]] = mapped_column(Json)
    includes: Mapped[list[str] | None] = mapped_column(Json)
    as_of: Mapped[str] = mapped_column(String(10))
    doubt: Mapped[str | None] = mapped_column(String(500))
