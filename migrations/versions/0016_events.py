"""Events for webhooks, and the makers of keys."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create the table and the column."""
    op.create_table(
        "events",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("type", sa.String(100), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_events"),
    )
    op.create_index("ix_events_listed", "events", ["tenant_id", "occurred_at", "id"])
    op.add_column("api_keys", sa.Column("created_by", sa.String(300)))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("api_keys", "created_by")
    op.drop_table("events")
