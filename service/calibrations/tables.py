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

    Those of one node and hardware are numbered; of them, one at most is active.
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
    """Why it was withdrawn."""
    device: Mapped[str] = mapped_column(String(10))
    node_id: Mapped[str | None] = mapped_column(String(100))
    hardware: Mapped[str | None] = mapped_column(Text)
    hardware_sha256: Mapped[str | None] = mapped_column(String(64))
    accelerator_id: Mapped[str | None] = mapped_column(String(100))
    generation: Mapped[str | None] = mapped_column(String(100))
    power_limit_watts: Mapped[float | None] = mapped_column(Float)
    driver_major: Mapped[int | None] = mapped_column(BigInteger)
    figures: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True, deferred_group="content")
    """Each with what it rests on."""
    fits: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True, deferred_group="content")
    """Lines through the times of messages, with what they leave."""
    answers: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True, deferred_group="content")
    """Measured end-to-end figures beside their questions."""
    rests_on: Mapped[dict[str, Any] | None] = mapped_column(Json)
    """Of an import: which one."""
    new_result_ids: Mapped[list[str]] = mapped_column(Json, deferred=True)
    """Results that no earlier set of the node has brought, else all that it read: withdrawn with this one."""
    takes_all: Mapped[bool] = mapped_column(Boolean, default=False)
    """Whether all that the node had measured was withdrawn with it."""
    content_sha256: Mapped[str] = mapped_column(String(64))
    """Of figures, fits and answers: what is drawn anew and is the same is no new set."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When it was superseded or withdrawn."""
