"""The table of links."""

from typing import Any

from sqlalchemy import Boolean, Float, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class LinkRow(CatalogRow):
    """One version of a link."""

    __tablename__ = "links"

    kind: Mapped[str] = mapped_column(String(30))
    scope: Mapped[str] = mapped_column(String(20))
    bandwidth_bytes_per_second: Mapped[float] = mapped_column(Float)
    bidirectional_bandwidth_bytes_per_second: Mapped[float | None] = mapped_column(Float)
    latency_seconds: Mapped[float | None] = mapped_column(Float)
    joined_count: Mapped[int | None] = mapped_column(Integer)
    torus: Mapped[dict[str, Any] | None] = mapped_column(Json)
    in_network_reduction: Mapped[bool | None] = mapped_column(Boolean)
