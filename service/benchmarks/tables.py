"""Benchmark runs and their results."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Float, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime

_HOLDS_ITS_PLACE = text("conflicts_with IS NULL AND lease <> 'unknown'")


class BenchmarkRunRow(Base):
    """One suite to be run on one node. Who runs it and how far it is says its lease, of the same id."""

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
    """As it was when the run was asked for: results are held against it."""
    device: Mapped[str] = mapped_column(String(20))
    seed: Mapped[int] = mapped_column(BigInteger)
    node_id: Mapped[str | None] = mapped_column(String(100))
    """The node that was asked for."""
    note: Mapped[str | None] = mapped_column(Text)
    re_run_of: Mapped[str | None] = mapped_column(String(100))
    """The run whose suspects it measures again; the first one, of a re-run too."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class BenchmarkResultRow(Base):
    """One result as its node sent it, and what the service read and computed from it. Never changed.

    The first payload for a repeat of an attempt holds its place; another one names it in ``conflicts_with``.
    What was not measured under a lease of its run takes no place: it cannot stand before what was.
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
    """Its bytes, so that the digest can be made again."""
    run_id: Mapped[str] = mapped_column(String(100))
    attempt: Mapped[int] = mapped_column(BigInteger)
    fencing_token: Mapped[int] = mapped_column(BigInteger)
    """Names the attempt: the service gave it, where the number is what the node says."""
    benchmark: Mapped[str] = mapped_column(String(100))
    repeat: Mapped[int] = mapped_column(BigInteger)
    accelerator_index: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    """Of the inventory: several may measure one repeat at once. 0 on a node without accelerators."""
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
        """Whether figures are computed from it."""
        return self.lease == "current" and self.status == "ok" and self.conflicts_with is None

    @property
    def counted_figure(self) -> float:
        """The figure of a result that counts: it has one."""
        if self.figure is None:
            raise ValueError("the result has no figure")
        return self.figure
