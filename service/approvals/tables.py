"""Approval policies, delegations, and approvals with their steps, decisions and comments."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Boolean, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

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


class ApprovalPolicyRow(Base):
    """Who has to approve which quotes. A deleted one is kept, so that no version is ever given twice."""

    __tablename__ = "approval_policies"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger)
    is_live: Mapped[bool] = mapped_column(Boolean)
    document: Mapped[str] = mapped_column(Text)
    """As JSON, every number as it was written."""
    written_by: Mapped[list[str] | None] = mapped_column(Json)
    """Who has written a version of it since it was created; of older rows the audit chain says so."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ApprovalDelegationRow(Base):
    """For a time somebody may decide in an approver's place."""

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


class ApprovalRow(Base):
    """An approval of one version of a quote. Every write of its parts locks this row first."""

    __tablename__ = "approvals"
    __table_args__ = (
        Index("ix_approvals_listed", "tenant_id", "submitted_at", "id"),
        Index("ix_approvals_quote", "tenant_id", "quote_id", "quote_version"),
        Index(
            "uq_approvals_pending",
            "tenant_id",
            "quote_id",
            unique=True,
            postgresql_where=_IS_PENDING,
            sqlite_where=_IS_PENDING,
        ),
        Index("ix_approvals_acts_at", "acts_at"),
        Index("ix_approvals_due", "tenant_id", "cost_center_id", "due_until"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    state: Mapped[str] = mapped_column(String(20))
    quote_id: Mapped[str] = mapped_column(String(100))
    quote_version: Mapped[int] = mapped_column(BigInteger)
    content_digest: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(500))
    cost_center_id: Mapped[str | None] = mapped_column(String(100))
    headlines: Mapped[str] = mapped_column(Text)
    """As JSON, every number as it was written."""
    requester: Mapped[str] = mapped_column(String(300))
    asked_by: Mapped[list[str]] = mapped_column(Json)
    """Who asked for it or made the quote, in any of the versions up to this one."""
    barred: Mapped[list[str]] = mapped_column(Json)
    """Those, and whoever made the keys that they act by: none of them may decide."""
    supersedes: Mapped[str | None] = mapped_column(String(100))
    budgets: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    warnings: Mapped[list[dict[str, str]]] = mapped_column(Json)
    judged: Mapped[dict[str, Any]] = mapped_column(Json)
    """By which policies and exchange rates it was judged who has to approve."""
    valid_until: Mapped[datetime] = mapped_column(UtcDateTime)
    submitted_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    acts_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When the service has to do something about it; absent once it has ended."""
    ended_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    committed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Since when its cost centre has to pay, because it was approved."""
    committed_micros: Mapped[int | None] = mapped_column(BigInteger)
    """How much, as quoted; absent where nobody knows it."""
    committed_currency_code: Mapped[str | None] = mapped_column(String(3))
    due_from: Mapped[datetime | None] = mapped_column(UtcDateTime)
    due_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """It falls due evenly over this time, and at once where the time is a moment."""
    released_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Since when nothing but what is billed has to be paid any more."""
    version: Mapped[int] = mapped_column(BigInteger)


class ApprovalStepRow(Base):
    """A step of an approval, as the policy asked for it when it was submitted."""

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
    """When it is told that the step is due soon; absent once that is done."""
    escalates_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    escalated_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class ApprovalApproverRow(Base):
    """Who may decide a step."""

    __tablename__ = "approval_approvers"
    __table_args__ = (Index("ix_approval_approvers_approver", "tenant_id", "approver"),)

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approval_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    step_number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    approver: Mapped[str] = mapped_column(String(300), primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger)


class ApprovalDecisionRow(Base):
    """What was decided in an approver's place; the keys hold that nobody counts twice in a step."""

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
    """By which delegation, where it is not their own place."""
    lineage: Mapped[list[str]] = mapped_column(Json)
    """The decider, and whoever can act by it."""
    linked_by: Mapped[str | None] = mapped_column(String(300), info=LATER)
    """Who made the link that it was decided by."""
    decision: Mapped[str] = mapped_column(String(20))
    via: Mapped[str] = mapped_column(String(20))
    comment: Mapped[str | None] = mapped_column(String(500))
    content_digest: Mapped[str] = mapped_column(String(64))
    decided_at: Mapped[datetime] = mapped_column(UtcDateTime)


class ApprovalCommentRow(Base):
    """What somebody said about an approval."""

    __tablename__ = "approval_comments"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approval_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    written_by: Mapped[str] = mapped_column(String(300))
    text: Mapped[str] = mapped_column(String(500))
    written_at: Mapped[datetime] = mapped_column(UtcDateTime)
