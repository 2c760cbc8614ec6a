"""Approvals, their policies and delegations; an index of the events of a resource."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_IS_PENDING = sa.text("state = 'pending'")


def upgrade() -> None:
    """Create the tables and the index."""
    op.create_index("ix_audit_events_resource", "audit_events", ["tenant_id", "resource", "sequence"])
    op.create_table(
        "approval_policies",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("is_live", sa.Boolean, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_approval_policies"),
    )
    op.create_table(
        "approval_delegations",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("approver", sa.String(300), nullable=False),
        sa.Column("delegate", sa.String(300), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.String(500)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_approval_delegations"),
    )
    op.create_index(
        "ix_approval_delegations_delegate", "approval_delegations", ["tenant_id", "delegate", "ends_at"]
    )
    op.create_index(
        "ix_approval_delegations_listed", "approval_delegations", ["tenant_id", "created_at", "id"]
    )
    op.create_table(
        "approvals",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("quote_id", sa.String(100), nullable=False),
        sa.Column("quote_version", sa.BigInteger, nullable=False),
        sa.Column("content_digest", sa.String(64), nullable=False),
        sa.Column("name", sa.String(500), nullable=False),
        sa.Column("cost_center_id", sa.String(100)),
        sa.Column("headlines", sa.Text, nullable=False),
        sa.Column("requester", sa.String(300), nullable=False),
        sa.Column("asked_by", JSON, nullable=False),
        sa.Column("barred", JSON, nullable=False),
        sa.Column("supersedes", sa.String(100)),
        sa.Column("budgets", JSON, nullable=False),
        sa.Column("warnings", JSON, nullable=False),
        sa.Column("judged", JSON, nullable=False),
        sa.Column("valid_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("acts_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("committed_at", sa.DateTime(timezone=True)),
        sa.Column("committed_micros", sa.BigInteger),
        sa.Column("committed_currency_code", sa.String(3)),
        sa.Column("due_from", sa.DateTime(timezone=True)),
        sa.Column("due_until", sa.DateTime(timezone=True)),
        sa.Column("released_at", sa.DateTime(timezone=True)),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_approvals"),
    )
    op.create_index("ix_approvals_acts_at", "approvals", ["acts_at"])
    op.create_index("ix_approvals_due", "approvals", ["tenant_id", "cost_center_id", "due_until"])
    op.create_index("ix_approvals_listed", "approvals", ["tenant_id", "submitted_at", "id"])
    op.create_index("ix_approvals_quote", "approvals", ["tenant_id", "quote_id", "quote_version"])
    op.create_index(
        "uq_approvals_pending",
        "approvals",
        ["tenant_id", "quote_id"],
        unique=True,
        postgresql_where=_IS_PENDING,
        sqlite_where=_IS_PENDING,
    )
    op.create_table(
        "approval_steps",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("approval_id", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("name", sa.String(500), nullable=False),
        sa.Column("policy_id", sa.String(100), nullable=False),
        sa.Column("policy_version", sa.BigInteger, nullable=False),
        sa.Column("quorum", sa.BigInteger, nullable=False),
        sa.Column("expires_after_seconds", sa.BigInteger),
        sa.Column("escalates_after_seconds", sa.BigInteger),
        sa.Column("escalates_to", JSON, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True)),
        sa.Column("due_at", sa.DateTime(timezone=True)),
        sa.Column("due_soon_at", sa.DateTime(timezone=True)),
        sa.Column("escalates_at", sa.DateTime(timezone=True)),
        sa.Column("escalated_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("tenant_id", "approval_id", "number", name="pk_approval_steps"),
    )
    op.create_table(
        "approval_approvers",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("approval_id", sa.String(100), nullable=False),
        sa.Column("step_number", sa.BigInteger, nullable=False),
        sa.Column("approver", sa.String(300), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "approval_id", "step_number", "approver", name="pk_approval_approvers"
        ),
    )
    op.create_index("ix_approval_approvers_approver", "approval_approvers", ["tenant_id", "approver"])
    op.create_table(
        "approval_decisions",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("approval_id", sa.String(100), nullable=False),
        sa.Column("step_number", sa.BigInteger, nullable=False),
        sa.Column("approver", sa.String(300), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("decided_by", sa.String(300), nullable=False),
        sa.Column("delegation_id", sa.String(100)),
        sa.Column("lineage", JSON, nullable=False),
        sa.Column("decision", sa.String(20), nullable=False),
        sa.Column("via", sa.String(20), nullable=False),
        sa.Column("comment", sa.String(500)),
        sa.Column("content_digest", sa.String(64), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant_id", "approval_id", "step_number", "approver", name="pk_approval_decisions"
        ),
        sa.UniqueConstraint(
            "tenant_id", "approval_id", "step_number", "decided_by", name="uq_approval_decisions_decided_by"
        ),
    )
    op.create_table(
        "approval_comments",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("approval_id", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("written_by", sa.String(300), nullable=False),
        sa.Column("text", sa.String(500), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "approval_id", "number", name="pk_approval_comments"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("approval_comments")
    op.drop_table("approval_decisions")
    op.drop_table("approval_approvers")
    op.drop_table("approval_steps")
    op.drop_table("approvals")
    op.drop_table("approval_delegations")
    op.drop_table("approval_policies")
    op.drop_index("ix_audit_events_resource", "audit_events")
