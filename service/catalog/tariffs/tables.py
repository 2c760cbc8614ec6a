"""The table of tariffs."""

from typing import Any

from sqlalchemy import Float, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class TariffRow(CatalogRow):
    """One version of a tariff; prices are exact text in JSON."""

    __tablename__ = "tariffs"

    utility: Mapped[str | None] = mapped_column(String(500))
    currency_code: Mapped[str] = mapped_column(String(3))
    time_zone: Mapped[str] = mapped_column(String(100))
    revisions: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    holidays: Mapped[list[str]] = mapped_column(Json)
    secondary_loss_factor: Mapped[float] = mapped_column(Float)
    hours_of_use_minimum: Mapped[float] = mapped_column(Float)
    notes: Mapped[list[str]] = mapped_column(Json)
