"""The table of offers."""

from typing import Any

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class OfferRow(CatalogRow):
    """One version of an offer; money is exact text in JSON."""

    __tablename__ = "offers"

    provider: Mapped[str] = mapped_column(String(500))
    region: Mapped[str | None] = mapped_column(String(500))
    zone: Mapped[str | None] = mapped_column(String(500))
    instance_type: Mapped[str | None] = mapped_column(String(500))
    accelerator_id: Mapped[str] = mapped_column(String(100))
    accelerator_count: Mapped[int] = mapped_column(Integer)
    purchase_option: Mapped[str] = mapped_column(String(30))
    price_per_instance_hour: Mapped[dict[str, Any] | None] = mapped_column(Json)
    commitment: Mapped[dict[str, Any] | None] = mapped_column(Json)
    billing_increment_seconds: Mapped[int | None] = mapped_column(Integer)
    minimum_billed_seconds: Mapped[int | None] = mapped_column(Integer)
    includes: Mapped[list[str] | None] = mapped_column(Json)
    effective_price_per_instance_hour: Mapped[dict[str, Any]] = mapped_column(Json)
    price_per_device_hour: Mapped[dict[str, Any]] = mapped_column(Json)
    as_of: Mapped[str] = mapped_column(String(10))
    valid_from: Mapped[str | None] = mapped_column(String(10))
    valid_until: Mapped[str | None] = mapped_column(String(10))
    doubt: Mapped[str | None] = mapped_column(String(500))
