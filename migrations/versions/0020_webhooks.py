"""Webhooks, their deliveries and attempts."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0020"
down_revision: str | None = "0019"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
IS_SENT = sa.text("state = 'running'")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "webhooks",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("event_types", JSON, nullable=False),
        sa.Column("signature_scheme", sa.String(10), nullable=False),
        sa.Column("public_key", sa.String(100)),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("previous_secret", sa.LargeBinary),
        sa.Column("rotation_ends_at", TIME),
        sa.Column("disabled_at", TIME),
        sa.Column("disabled_reason", sa.String(20)),
        sa.Column("failing_since", TIME),
        sa.Column("succeeded_at", TIME),
        sa.Column("paused_until", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by", sa.String(300), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_webhooks"),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("due_at", TIME),
        sa.Column("span_seconds", sa.Float),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("fencing_token", sa.BigInteger, nullable=False),
        sa.Column("webhook_id", sa.String(100), nullable=False),
        sa.Column("event_id", sa.String(100), nullable=False),
        sa.Column("event_type", sa.String(100), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_deliveries"),
        sa.UniqueConstraint(
            "tenant_id", "webhook_id", "event_id", name="uq_webhook_deliveries_tenant_id_webhook_id_event_id"
        ),
    )
    op.create_index("ix_webhook_deliveries_due", "webhook_deliveries", ["due_at"])
    op.create_index("ix_webhook_deliveries_next", "webhook_deliveries", ["webhook_id", "due_at"])
    op.create_index(
        "ix_webhook_deliveries_running",
        "webhook_deliveries",
        ["webhook_id"],
        sqlite_where=IS_SENT,
        postgresql_where=IS_SENT,
    )
    listed = ["tenant_id", "webhook_id", "created_at", "id"]
    op.create_index("ix_webhook_deliveries_listed", "webhook_deliveries", listed)
    op.create_index("ix_webhook_deliveries_finished", "webhook_deliveries", ["finished_at"])
    op.create_table(
        "webhook_attempts",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("delivery_id", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("milliseconds", sa.BigInteger, nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("error_code", sa.String(100)),
        sa.Column("answer_excerpt", sa.Text),
        sa.PrimaryKeyConstraint("tenant_id", "delivery_id", "number", name="pk_webhook_attempts"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("webhook_attempts")
    op.drop_table("webhook_deliveries")
    op.drop_table("webhooks")
