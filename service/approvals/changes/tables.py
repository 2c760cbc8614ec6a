"""Changes that wait or have waited, and how long those of a tenant do."""

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
    """A change of a policy, a budget or the delay. What it changes takes no other one while it waits."""

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
    """What changes: the path of it below the version of the API."""
    cost_center_id: Mapped[str | None] = mapped_column(String(100))
    """Of a budget: whose it is."""
    action: Mapped[str] = mapped_column(String(20))
    document: Mapped[str | None] = mapped_column(Text)
    """What is to stand then, as JSON; absent where it is to be deleted."""
    based_on_version: Mapped[int] = mapped_column(BigInteger)
    """The version that stands meanwhile; 0 where there is none."""
    proposed_by: Mapped[str] = mapped_column(String(300))
    proposed_at: Mapped[datetime] = mapped_column(UtcDateTime)
    effective_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """When it takes effect, unless it is approved or rejected before."""
    state: Mapped[str] = mapped_column(String(20))
    approvals: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    """Who has approved it, and when."""
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended_by: Mapped[str | None] = mapped_column(String(300))
    """Who rejected it, or approved it last; absent where the delay was over."""
    version: Mapped[int] = mapped_column(BigInteger)


class ApprovalSettingsRow(Base):
    """What holds for the changes of a tenant. Whoever proposes one locks this row first."""

    __tablename__ = "approval_settings"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    change_delay_seconds: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[int] = mapped_column(BigInteger)
    """1 while nobody has changed what holds for everybody."""
