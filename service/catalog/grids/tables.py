"""The table of grids."""

from typing import Any

from sqlalchemy import Float, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class GridRow(CatalogRow):
    """One version of a grid."""

    __tablename__ = "grids"

    code: Mapped[str] = mapped_column(String(500))
    kind: Mapped[str] = mapped_column(String(30))
    carbon_intensity_kg_co2e_per_kwh: Mapped[float] = mapped_column(Float)
    data_year: Mapped[int | None] = mapped_column(Integer)
    accounting: Mapped[str] = mapped_column(String(30))
    water_liters_per_kwh: Mapped[float | None] = mapped_column(Float)
    emission_rate: Mapped[str] = mapped_column(String(10))
    greenhouse_gases: Mapped[str] = mapped_column(String(10))
    series: Mapped[dict[str, Any] | None] = mapped_column(Json)
