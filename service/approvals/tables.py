"""Tables of delegations, and of approvals with their steps, decisions and comments."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from service.budgets.tables import CommitmentRow
from service.kit.database.engine import LATER, Base, Json, UtcDateTime

PENDING = "pending"
APPROVED = "approved"
REJECTED = "rejected"
CANCELLED = "cancelled"
EXPIRED = "expired"
SUPERSEDED = "superseded"

WAITING = "waiting"
OPEN = "open"
ENDED = "ended"

_IS_PENDING = text(f"state = '{PENDING}'")


class ApprovalDelegationRow(Base):
    """Temporary permission to decide on an approver's behalf."""

    __tablename__ = "approval_delegations"
    __table_args__ = (
        Index("ix_approval_delegations_listed", "tenant_id", "created_at", "id"),
        Index("ix_approval_delegations_delegate", "tenant_id", "delegate", "ends_at"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approver: Mapped[str] = mapped_column(String(300))
    delegate: Mapped[str] = mapped_column(String(300))
    starts_at: Mapped[datetime] = mapped_column(UtcDateTime)
    ends_at: Mapped[datetime] = mapped_column(UtcDateTime)
    note: Mapped[str | None] = mapped_column(String(500))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class ApprovalRow(CommitmentRow):
    """An approval of one version of a quote. Every write of its parts locks this row first."""

    state: Mapped[str] = mapped_column(String(20))
    content_digest: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(500))
    headlines: Mapped[str] = mapped_column(Text)
    """JSON text, with every number as it was written."""
    requester: Mapped[str] = mapped_column(String(300))
    asked_by: Mapped[list[str]] = mapped_column(Json)
    """Requesters of the approval and makers of the quote, in any version up to this one."""
    barred: Mapped[list[str]] = mapped_column(Json)
    """Requesters and makers of their keys, none of whom may decide."""
    supersedes: Mapped[str | None] = mapped_column(String(100))
    budgets: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    warnings: Mapped[list[dict[str, str]]] = mapped_column(Json)
    judged: Mapped[dict[str, Any]] = mapped_column(Json)
    """Policies and exchange rates by which the approvers were determined."""
    valid_until: Mapped[datetime] = mapped_column(UtcDateTime)
    submitted_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    acts_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time of the next action of the service. Absent once the approval has ended."""
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    version: Mapped[int] = mapped_column(BigInteger)


Index("ix_approvals_listed", ApprovalRow.tenant_id, ApprovalRow.submitted_at, ApprovalRow.id)
Index("ix_approvals_quote", ApprovalRow.tenant_id, ApprovalRow.quote_id, ApprovalRow.quote_version)
Index("ix_approvals_acts_at", ApprovalRow.acts_at)
Index(
    "uq_approvals_pending",
    ApprovalRow.tenant_id,
    ApprovalRow.quote_id,
    unique=True,
    postgresql_where=_IS_PENDING,
    sqlite_where=_IS_PENDING,
)


class ApprovalStepRow(Base):
    """A step of an approval, as the policy had it at submission."""

    __tablename__ = "approval_steps"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approval_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    name: Mapped[str] = mapped_column(String(500))
    policy_id: Mapped[str] = mapped_column(String(100))
    policy_version: Mapped[int] = mapped_column(BigInteger)
    quorum: Mapped[int] = mapped_column(BigInteger)
    expires_after_seconds: Mapped[int | None] = mapped_column(BigInteger)
    escalates_after_seconds: Mapped[int | None] = mapped_column(BigInteger)
    escalates_to: Mapped[list[str]] = mapped_column(Json)
    state: Mapped[str] = mapped_column(String(20))
    opened_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    due_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    due_soon_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time of the event that the step is due soon. Absent once the event is written."""
    escalates_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    escalated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class ApprovalApproverRow(Base):
    """An approver of a step."""

    __tablename__ = "approval_approvers"
    __table_args__ = (Index("ix_approval_approvers_approver", "tenant_id", "approver"),)

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approval_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    step_number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    approver: Mapped[str] = mapped_column(String(300), primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger)


class ApprovalDecisionRow(Base):
    """A decision on an approver's behalf. The keys ensure that nobody counts twice in a step."""

    __tablename__ = "approval_decisions"
    __table_args__ = (
        UniqueConstraint(
            "tenant_id", "approval_id", "step_number", "decided_by", name="uq_approval_decisions_decided_by"
        ),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approval_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    step_number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    approver: Mapped[str] = mapped_column(String(300), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    decided_by: Mapped[str] = mapped_column(String(300))
    delegation_id: Mapped[str | None] = mapped_column(String(100))
    """Delegation of the decision. Absent if the approver decided."""
    lineage: Mapped[list[str]] = mapped_column(Json)
    """The decider, and all subjects who can act by that name."""
    linked_by: Mapped[str | None] = mapped_column(String(300), info=LATER)
    """Maker of the link by which the decision was made."""
    decision: Mapped[str] = mapped_column(String(20))
    via: Mapped[str] = mapped_column(String(20))
    comment: Mapped[str | None] = mapped_column(String(500))
    content_digest: Mapped[str] = mapped_column(String(64))
    decided_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ApprovalCommentRow(Base):
    """A comment on an approval."""

    __tablename__ = "approval_comments"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approval_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    written_by: Mapped[str] = mapped_column(String(300))
    text: Mapped[str] = mapped_column(String(500))
    written_at: Mapped[datetime] = mapped_column(UtcDateTime)
