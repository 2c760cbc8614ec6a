"""Quotes."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "quotes",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("operation", sa.String(20), nullable=False),
        sa.Column("name", sa.String(500), nullable=False),
        sa.Column("cost_center_id", sa.String(100)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(300), nullable=False),
        sa.Column("valid_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("catalog_revision", sa.BigInteger, nullable=False),
        sa.Column("method_version", sa.String(20), nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("focus", sa.Text),
        sa.Column("content_digest", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", "version", name="pk_quotes"),
    )
    op.create_index("ix_quotes_listed", "quotes", ["tenant_id", "created_at", "id"])
    op.create_index("ix_quotes_cost_center", "quotes", ["tenant_id", "cost_center_id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("quotes")
