"""The table of sites."""

from sqlalchemy import Float, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow


class SiteRow(CatalogRow):
    """One version of a site."""

    __tablename__ = "sites"

    pue: Mapped[float] = mapped_column(Float)
    grid_id: Mapped[str | None] = mapped_column(String(100))
    water_usage_effectiveness_liters_per_kwh: Mapped[float | None] = mapped_column(Float)
    tariff_id: Mapped[str | None] = mapped_column(String(100))
    time_zone: Mapped[str | None] = mapped_column(String(100))
