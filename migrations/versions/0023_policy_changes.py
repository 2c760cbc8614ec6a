"""Pending changes of policies and budgets, their delay, and the writers of current ones."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0023"
down_revision: str | None = "0022"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_IS_WAITING = sa.text("state = 'waiting'")


def upgrade() -> None:
    """Create the tables; the writers of existing rows are in the audit chain."""
    op.create_table(
        "policy_changes",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("resource", sa.String(200), nullable=False),
        sa.Column("cost_center_id", sa.String(100)),
        sa.Column("action", sa.String(20), nullable=False),
        sa.Column("document", sa.Text),
        sa.Column("based_on_version", sa.BigInteger, nullable=False),
        sa.Column("proposed_by", sa.String(300), nullable=False),
        sa.Column("proposed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("effective_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("approvals", JSON, nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("ended_by", sa.String(300)),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_policy_changes"),
    )
    op.create_index("ix_policy_changes_listed", "policy_changes", ["tenant_id", "proposed_at", "id"])
    op.create_index("ix_policy_changes_due", "policy_changes", ["state", "effective_at"])
    op.create_index(
        "uq_policy_changes_waiting",
        "policy_changes",
        ["tenant_id", "resource"],
        unique=True,
        postgresql_where=_IS_WAITING,
        sqlite_where=_IS_WAITING,
    )
    op.create_table(
        "approval_settings",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("change_delay_seconds", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_approval_settings"),
    )
    op.add_column("approval_policies", sa.Column("written_by", JSON))
    op.add_column("budgets", sa.Column("raised_by", JSON))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("budgets", "raised_by")
    op.drop_column("approval_policies", "written_by")
    op.drop_table("approval_settings")
    op.drop_table("policy_changes")
