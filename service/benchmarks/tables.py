"""Benchmark runs and their results."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Float, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime

_HOLDS_ITS_PLACE = text("conflicts_with IS NULL AND lease <> 'unknown'")


class BenchmarkRunRow(Base):
    """One suite to be run on one node. Its lease, of the same id, holds the node and the progress."""

    __tablename__ = "benchmark_runs"
    __table_args__ = (
        Index("ix_benchmark_runs_listed", "tenant_id", "created_at", "id"),
        Index("ix_benchmark_runs_re_run_of", "tenant_id", "re_run_of"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100))
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    suite_id: Mapped[str] = mapped_column(String(100))
    suite_version: Mapped[int] = mapped_column(BigInteger)
    suite: Mapped[dict[str, Any]] = mapped_column(Json, deferred=True)
    """The suite at the time of the request; results are checked against it."""
    device: Mapped[str] = mapped_column(String(20))
    seed: Mapped[int] = mapped_column(BigInteger)
    node_id: Mapped[str | None] = mapped_column(String(100))
    """The requested node."""
    note: Mapped[str | None] = mapped_column(Text)
    re_run_of: Mapped[str | None] = mapped_column(String(100))
    """The run whose suspect results it measures again; for a repeated re-run too, the first run."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class BenchmarkResultRow(Base):
    """One result as its node sent it, and the values that the service computed from it.

    Nothing but ``lease`` is ever changed: one attempt of a run counts, and its results alone are current.

    The first payload for a repeat of an attempt holds its place; another one names it in ``conflicts_with``.
    A result that was not measured under a lease of its run takes no place, so that it cannot displace one
    that was.
    """

    __tablename__ = "benchmark_results"
    __table_args__ = (
        Index(
            "uq_benchmark_results_place",
            "tenant_id",
            "run_id",
            "fencing_token",
            "benchmark",
            "repeat",
            "accelerator_index",
            unique=True,
            postgresql_where=_HOLDS_ITS_PLACE,
            sqlite_where=_HOLDS_ITS_PLACE,
        ),
        Index("ix_benchmark_results_listed", "tenant_id", "received_at", "id"),
        Index("ix_benchmark_results_compared", "tenant_id", "benchmark", "received_at"),
        Index("ix_benchmark_results_digests", "tenant_id", "content_sha256"),
        Index("ix_benchmark_results_run", "tenant_id", "run_id"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    content_sha256: Mapped[str] = mapped_column(String(64))
    content: Mapped[str] = mapped_column(Text, deferred=True)
    """Exact bytes of the record, so that the digest can be recomputed."""
    run_id: Mapped[str] = mapped_column(String(100))
    attempt: Mapped[int] = mapped_column(BigInteger)
    fencing_token: Mapped[int] = mapped_column(BigInteger)
    """Token of the attempt, given by the service, whereas the attempt number is the node's statement."""
    benchmark: Mapped[str] = mapped_column(String(100))
    repeat: Mapped[int] = mapped_column(BigInteger)
    accelerator_index: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """Index in the inventory: several may measure one repeat at once. 0 without accelerators."""
    lease: Mapped[str] = mapped_column(String(20))
    conflicts_with: Mapped[str | None] = mapped_column(String(36))
    node_id: Mapped[str] = mapped_column(String(100))
    suite_id: Mapped[str] = mapped_column(String(100))
    suite_version: Mapped[int] = mapped_column(BigInteger)
    device: Mapped[str] = mapped_column(String(20))
    hardware: Mapped[str | None] = mapped_column(Text)
    hardware_sha256: Mapped[str | None] = mapped_column(String(64))
    work_sha256: Mapped[str] = mapped_column(String(64))
    metric: Mapped[str] = mapped_column(String(40))
    direction: Mapped[str] = mapped_column(String(10))
    status: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(String(64))
    figure: Mapped[float | None] = mapped_column(Float)
    summary: Mapped[dict[str, Any] | None] = mapped_column(Json)
    conditions: Mapped[dict[str, Any]] = mapped_column(Json)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime] = mapped_column(UtcDateTime)
    received_at: Mapped[datetime] = mapped_column(UtcDateTime)

    @property
    def is_counted(self) -> bool:
        """True if figures are computed from the result."""
        return self.lease == "current" and self.status == "ok" and self.conflicts_with is None

    @property
    def counted_figure(self) -> float:
        """The figure of a counted result, which always has one."""
        if self.figure is None:
            raise ValueError("the result has no figure")
        return self.figure
