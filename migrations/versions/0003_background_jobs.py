"""Background jobs."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
RUNNING = sa.text("state = 'running'")


def upgrade() -> None:
    """Create the table."""
    name = "background_jobs"
    op.create_table(
        name,
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("due_at", TIME),
        sa.Column("span_seconds", sa.Float),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("fencing_token", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(100), nullable=False),
        sa.Column("effect_key", sa.String(200), nullable=False),
        sa.Column("arguments", JSON, nullable=False),
        sa.Column("progress", JSON, nullable=False),
        sa.Column("result", JSON, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("error_code", sa.String(100)),
        sa.Column("error_summary", sa.String(500)),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("finished_at", TIME),
        sa.PrimaryKeyConstraint("id", name="pk_background_jobs"),
        sa.UniqueConstraint(
            "tenant_id", "kind", "effect_key", name="uq_background_jobs_tenant_id_kind_effect_key"
        ),
    )
    op.create_index("ix_background_jobs_due", name, ["kind", "due_at"])
    op.create_index(
        "ix_background_jobs_running", name, ["kind"], postgresql_where=RUNNING, sqlite_where=RUNNING
    )
    op.create_index("ix_background_jobs_finished", name, ["kind", "finished_at"])
    op.create_index("ix_background_jobs_listed", name, ["tenant_id", "created_at", "id"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("background_jobs")
