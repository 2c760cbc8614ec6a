"""Tables of pending and past changes, and of the delay of a tenant."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime

WAITING = "waiting"
EFFECTIVE = "effective"
REJECTED = "rejected"
_IS_WAITING = text(f"state = '{WAITING}'")


class PolicyChangeRow(Base):
    """A change of a policy, a budget or the delay. A resource has at most one pending change."""

    __tablename__ = "policy_changes"
    __table_args__ = (
        Index("ix_policy_changes_listed", "tenant_id", "proposed_at", "id"),
        Index("ix_policy_changes_due", "state", "effective_at"),
        Index(
            "uq_policy_changes_waiting",
            "tenant_id",
            "resource",
            unique=True,
            postgresql_where=_IS_WAITING,
            sqlite_where=_IS_WAITING,
        ),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    resource: Mapped[str] = mapped_column(String(200))
    """Path of the resource below the version of the API."""
    cost_center_id: Mapped[str | None] = mapped_column(String(100))
    """Cost centre of a budget."""
    action: Mapped[str] = mapped_column(String(20))
    document: Mapped[str | None] = mapped_column(Text)
    """New document as JSON. Absent for a deletion."""
    based_on_version: Mapped[int] = mapped_column(BigInteger)
    """Version that the change replaces, or 0 for a new resource."""
    proposed_by: Mapped[str] = mapped_column(String(300))
    proposed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    effective_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """Time at which the change takes effect unless it is approved or rejected before."""
    state: Mapped[str] = mapped_column(String(20))
    approvals: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    """Approvers with the times of their approvals."""
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_by: Mapped[str | None] = mapped_column(String(300))
    """Subject who rejected it or approved it last. Absent at the end of the delay."""
    version: Mapped[int] = mapped_column(BigInteger)


class ApprovalSettingsRow(Base):
    """Settings of a tenant for changes. Every proposal locks this row first."""

    __tablename__ = "approval_settings"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    change_delay_seconds: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[int] = mapped_column(BigInteger)
    """1 if the settings are the defaults."""
