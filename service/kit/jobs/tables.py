"""The table of background jobs."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime
from service.kit.jobs.leases import RUNNING, WAITING, LeasedColumns
from service.kit.tracing import TRACEPARENT_CHARACTERS

DONE = "done"
CANCELLED = "cancelled"
DEAD = "dead"
STATES = (WAITING, RUNNING, DONE, CANCELLED, DEAD)
_IS_RUNNING = text(f"state = '{RUNNING}'")
_IS_UNFINISHED = text("due_at IS NOT NULL")


class JobRow(LeasedColumns, Base):
    """A job: its arguments, its progress and its result or error."""

    __tablename__ = "background_jobs"
    __table_args__ = (
        UniqueConstraint("tenant_id", "kind", "effect_key"),
        Index("ix_background_jobs_due", "kind", "due_at"),
        Index(
            "ix_background_jobs_turns",
            "kind",
            "tenant_id",
            "due_at",
            postgresql_where=_IS_UNFINISHED,
            sqlite_where=_IS_UNFINISHED,
        ),
        Index("ix_background_jobs_claimed", "kind", "turn"),
        Index("ix_background_jobs_running", "kind", postgresql_where=_IS_RUNNING, sqlite_where=_IS_RUNNING),
        Index("ix_background_jobs_finished", "kind", "finished_at"),
        Index("ix_background_jobs_listed", "tenant_id", "created_at", "id"),
    )

    kind: Mapped[str] = mapped_column(String(100))
    effect_key: Mapped[str] = mapped_column(String(200))
    """Key of the effect of the job: two requests for one effect are one job."""
    arguments: Mapped[dict[str, Any]] = mapped_column(Json)
    progress: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)
    result: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)
    turn: Mapped[int | None] = mapped_column(BigInteger)
    """Number of its last claim among the claims of its kind. The highest one tells whose turn was last."""
    cancel_requested: Mapped[bool] = mapped_column(Boolean, default=False)
    error_code: Mapped[str | None] = mapped_column(String(100))
    error_summary: Mapped[str | None] = mapped_column(String(500))
    """Summary of the last failed attempt; never contains data that was sent or received."""
    traceparent: Mapped[str | None] = mapped_column(String(TRACEPARENT_CHARACTERS))
    """Span of the request or job that asked for it, if that is traced."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
