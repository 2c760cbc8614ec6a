"""The table of accelerators."""

from typing import Any

from sqlalchemy import BigInteger, Float, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from service.catalog.rows import CatalogRow
from service.kit.database.engine import Json


class AcceleratorRow(CatalogRow):
    """One version of an accelerator."""

    __tablename__ = "accelerators"

    vendor: Mapped[str] = mapped_column(String(500))
    generation: Mapped[str | None] = mapped_column(String(500))
    form_factor: Mapped[str | None] = mapped_column(String(500))
    launched_on: Mapped[str | None] = mapped_column(String(10))
    memory_label_gb: Mapped[float | None] = mapped_column(Float)
    memory_label_reading: Mapped[str | None] = mapped_column(String(10))
    memory_kind: Mapped[str | None] = mapped_column(String(500))
    memory_reported_bytes: Mapped[int | None] = mapped_column(BigInteger)
    memory_bandwidth_bytes_per_second: Mapped[float | None] = mapped_column(Float)
    peak_flops_per_second: Mapped[dict[str, Any] | None] = mapped_column(Json)
    power_limit_watts: Mapped[float | None] = mapped_column(Float)
    intra_node_link_id: Mapped[str | None] = mapped_column(String(100))
    inter_node_link_id: Mapped[str | None] = mapped_column(String(100))
    network_interfaces_per_device: Mapped[float | None] = mapped_column(Float)
    pcie_generation: Mapped[int | None] = mapped_column(Integer)
    device_count: Mapped[int | None] = mapped_column(Integer)
    systems: Mapped[list[dict[str, Any]] | None] = mapped_column(Json)
    server: Mapped[dict[str, Any] | None] = mapped_column(Json)
    embodied_kg_co2e: Mapped[dict[str, Any] | None] = mapped_column(Json)
