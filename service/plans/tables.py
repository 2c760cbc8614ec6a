"""Tables of plans and fleets, and the progress of their searches."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime

RUNNING = "running"
DONE = "done"
CANCELLED = "cancelled"
FAILED = "failed"

CONFIGURATION = "configuration"
"""Kind of a plan that searches the best configuration for some work."""
FLEET = "fleet"
"""Kind of a plan that schedules several workloads over shared devices."""


class PlanRow(Base):
    """A question and, once it is searched, its answer. An ended plan never changes."""

    __tablename__ = "plans"
    __table_args__ = (
        Index("ix_plans_listed", "tenant_id", "created_at", "id"),
        Index("ix_plans_state", "state", "finished_at"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20), server_default=text("'configuration'"))
    state: Mapped[str] = mapped_column(String(20))
    goal: Mapped[str] = mapped_column(String(20))
    question: Mapped[dict[str, Any]] = mapped_column(Json, deferred=True)
    catalog_revision: Mapped[int] = mapped_column(BigInteger)
    """Revision of the catalog that is searched. The search also depends on the next two columns."""
    method_version: Mapped[str] = mapped_column(String(20))
    day: Mapped[str] = mapped_column(String(10))
    beginning: Mapped[int] = mapped_column(BigInteger)
    """Number of starts of the search: it restarts whenever catalog, method or day has changed."""
    piece_count: Mapped[int] = mapped_column(BigInteger)
    pieces_done: Mapped[int] = mapped_column(BigInteger)
    candidates: Mapped[int] = mapped_column(BigInteger)
    candidates_decided: Mapped[int] = mapped_column(BigInteger)
    answer: Mapped[str | None] = mapped_column(Text, deferred=True)
    """JSON text, with members in the order in which they were written."""
    best_cost: Mapped[dict[str, str] | None] = mapped_column(Json)
    error_code: Mapped[str | None] = mapped_column(String(100))
    error_summary: Mapped[str | None] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class PlanPieceRow(Base):
    """A part of a running search and its outcome."""

    __tablename__ = "plan_pieces"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    plan_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    candidates: Mapped[int] = mapped_column(BigInteger)
    part: Mapped[dict[str, Any]] = mapped_column(Json)
    outcome: Mapped[str | None] = mapped_column(Text)
    """JSON text, with every number as it was written. Absent until the piece is searched."""
