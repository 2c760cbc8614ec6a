"""Tables of enrolment tokens, nodes, credentials, inventories, leases and their grants."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, Index, Integer, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import SECRET, Base, Json, UtcDateTime
from service.kit.jobs.leases import RUNNING, LeasedColumns

ACTIVE = "active"
DRAINING = "draining"
QUARANTINED = "quarantined"
REVOKED = "revoked"

PENDING = "pending"
CURRENT = "current"
RETIRED = "retired"
WITHDRAWN = "withdrawn"

COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"
DEAD = "dead"

LOST = "lost"
"""Outcome of a grant whose lease has lapsed."""

_IS_RUNNING = text(f"state = '{RUNNING}'")
_IS_NOT_REVOKED = text(f"state != '{REVOKED}'")


class EnrolmentTokenRow(Base):
    """A token for one installation, which may repeat its enrolment until its credential has been used."""

    __tablename__ = "enrolment_tokens"

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    node_name: Mapped[str | None] = mapped_column(String(100))
    digest: Mapped[str] = mapped_column(String(64), info=SECRET)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str | None] = mapped_column(String(300))
    """Name of the subject that made the token. Absent for tokens older than the column."""
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    node_id: Mapped[str | None] = mapped_column(String(100))
    installation_id: Mapped[str | None] = mapped_column(String(32))


class NodeRow(Base):
    """A node. ``boots`` are digests of its last boots, the newest first."""

    __tablename__ = "nodes"
    __table_args__ = (
        Index(
            "uq_nodes_installation",
            "tenant_id",
            "installation_id",
            unique=True,
            postgresql_where=_IS_NOT_REVOKED,
            sqlite_where=_IS_NOT_REVOKED,
        ),
        Index("ix_nodes_tenant_id_installation_id", "tenant_id", "installation_id"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    device: Mapped[str] = mapped_column(String(10))
    state: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(String(64))
    """Reason of the quarantine."""
    installation_id: Mapped[str] = mapped_column(String(32))
    worker_version: Mapped[str] = mapped_column(Text)
    inventory_sha256: Mapped[str | None] = mapped_column(String(64))
    boots: Mapped[list[str]] = mapped_column(Json)
    activity: Mapped[str | None] = mapped_column(String(20))
    spool: Mapped[dict[str, Any] | None] = mapped_column(Json)
    last_seen_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    rotate_requested: Mapped[bool] = mapped_column(Boolean)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    barred_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time from which an operator bars enrolment by the installation."""
    version: Mapped[int] = mapped_column(BigInteger)


class NodeCredentialRow(Base):
    """A generation of a node's credential: pending until it is first used, then current, then retired.

    Generations from before another enrolment are withdrawn and have no effect when they are used.
    """

    __tablename__ = "node_credentials"

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    node_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    generation: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    state: Mapped[str] = mapped_column(String(20))
    digest: Mapped[str] = mapped_column(String(64), info=SECRET)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime)
    confirmed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class NodeInventoryRow(Base):
    """Inventory of a node. Results name it by its digest."""

    __tablename__ = "node_inventories"

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    node_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    content_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    inventory: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class NodeIntakeRow(Base):
    """Counts of a node's submissions on the last day with a new one."""

    __tablename__ = "node_intakes"

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    node_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    day: Mapped[str] = mapped_column(String(10))
    """Date in UTC."""
    results: Mapped[int] = mapped_column(BigInteger)
    result_bytes: Mapped[int] = mapped_column(BigInteger)
    inventories: Mapped[int] = mapped_column(BigInteger)
    inventory_bytes: Mapped[int] = mapped_column(BigInteger)


class LeaseRow(LeasedColumns, Base):
    """Right to one benchmark run, with the same id.

    ``due_at`` of a running lease includes the grace period.
    """

    __tablename__ = "leases"
    __table_args__ = (
        Index("ix_leases_due", "state", "due_at"),
        Index("ix_leases_tenant", "tenant_id", "state"),
        Index(
            "uq_leases_running",
            "node_id",
            unique=True,
            postgresql_where=_IS_RUNNING,
            sqlite_where=_IS_RUNNING,
        ),
    )

    node_id: Mapped[str | None] = mapped_column(String(100))
    """Holder of the lease, or the last holder."""
    target_node_id: Mapped[str | None] = mapped_column(String(100))
    device: Mapped[str] = mapped_column(String(10))
    suite: Mapped[dict[str, Any]] = mapped_column(Json)
    seed: Mapped[int] = mapped_column(BigInteger)
    runtime_seconds: Mapped[float] = mapped_column(Float)
    nonce: Mapped[str | None] = mapped_column(String(32))
    claim_request_id: Mapped[str | None] = mapped_column(String(32))
    cancel_requested: Mapped[bool] = mapped_column(Boolean, default=False)
    losses: Mapped[int] = mapped_column(Integer, default=0)
    lost_by: Mapped[str | None] = mapped_column(String(100))
    """Last node that lost the lease."""
    progress: Mapped[dict[str, Any]] = mapped_column(Json, default=dict)
    reason: Mapped[str | None] = mapped_column(String(64))
    detail: Mapped[str | None] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    begun_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Start of the latest attempt."""
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class LeaseGrantRow(Base):
    """A grant of a lease, with its holder, fencing token and outcome."""

    __tablename__ = "lease_grants"

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    lease_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    fencing_token: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    node_id: Mapped[str] = mapped_column(String(100))
    attempt: Mapped[int] = mapped_column(Integer)
    nonce: Mapped[str] = mapped_column(String(32))
    granted_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    outcome: Mapped[str | None] = mapped_column(String(20))
    """Outcome that the node reported, or ``lost``, ``withdrawn`` by an operator, or ``superseded`` by an
    earlier attempt that has completed the run after all.
    """
    state_after: Mapped[str | None] = mapped_column(String(20))
