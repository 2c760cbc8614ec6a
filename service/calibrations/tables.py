"""Calibrations of devices."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime

ACTIVE = "active"
SUPERSEDED = "superseded"
WITHDRAWN = "withdrawn"


class CalibrationRow(Base):
    """One set of figures of one device. Only its state ever changes.

    The sets of one node and hardware are numbered, and at most one of them is active.
    """

    __tablename__ = "calibrations"
    __table_args__ = (
        Index("uq_calibrations_number", "tenant_id", "node_id", "hardware_sha256", "number", unique=True),
        Index("ix_calibrations_listed", "tenant_id", "created_at", "id"),
        Index("ix_calibrations_state", "tenant_id", "state"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    origin: Mapped[str] = mapped_column(String(20))
    """``benchmarks`` of a node, or an ``import``."""
    state: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(Text)
    """Reason of the withdrawal."""
    device: Mapped[str] = mapped_column(String(10))
    node_id: Mapped[str | None] = mapped_column(String(100))
    hardware: Mapped[str | None] = mapped_column(Text)
    hardware_sha256: Mapped[str | None] = mapped_column(String(64))
    accelerator_id: Mapped[str | None] = mapped_column(String(100))
    generation: Mapped[str | None] = mapped_column(String(100))
    power_limit_watts: Mapped[float | None] = mapped_column(Float)
    driver_major: Mapped[int | None] = mapped_column(BigInteger)
    figures: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True, deferred_group="content")
    """Figures, each with its sources."""
    fits: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True, deferred_group="content")
    """Lines through the times of messages, with their residuals."""
    answers: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True, deferred_group="content")
    """Measured end-to-end figures beside their questions."""
    rests_on: Mapped[dict[str, Any] | None] = mapped_column(Json)
    """Identity of the import, absent for benchmarks."""
    new_result_ids: Mapped[list[str]] = mapped_column(Json, deferred=True)
    """Results that no earlier set of the node has brought, or else all that it read; withdrawn with it."""
    takes_all: Mapped[bool] = mapped_column(Boolean, default=False)
    """True if everything that the node had measured was withdrawn with this set."""
    content_sha256: Mapped[str] = mapped_column(String(64))
    """Digest of figures, fits and answers: an equal set is not stored again."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time when it was superseded or withdrawn."""
