"""Links for a single decision by an approver without credentials, and sessions that were ended early."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0021"
down_revision: str | None = "0020"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "approval_links",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("approval_id", sa.String(100), nullable=False),
        sa.Column("step_number", sa.BigInteger, nullable=False),
        sa.Column("approver", sa.String(300), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(300), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_approval_links"),
    )
    op.create_index("ix_approval_links_tenant_id", "approval_links", ["tenant_id"])
    op.create_index("ix_approval_links_expires_at", "approval_links", ["expires_at"])
    op.create_table(
        "ended_sessions",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_ended_sessions"),
    )
    op.create_index("ix_ended_sessions_expires_at", "ended_sessions", ["expires_at"])


def downgrade() -> None:
    """Drop them."""
    op.drop_table("ended_sessions")
    op.drop_table("approval_links")
