"""Calibrations."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the table."""
    table = "calibrations"
    op.create_table(
        table,
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("origin", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("device", sa.String(10), nullable=False),
        sa.Column("node_id", sa.String(100)),
        sa.Column("hardware", sa.Text),
        sa.Column("hardware_sha256", sa.String(64)),
        sa.Column("accelerator_id", sa.String(100)),
        sa.Column("generation", sa.String(100)),
        sa.Column("power_limit_watts", sa.Float),
        sa.Column("driver_major", sa.BigInteger),
        sa.Column("figures", JSON, nullable=False),
        sa.Column("fits", JSON, nullable=False),
        sa.Column("answers", JSON, nullable=False),
        sa.Column("rests_on", JSON),
        sa.Column("new_result_ids", JSON, nullable=False),
        sa.Column("takes_all", sa.Boolean, nullable=False),
        sa.Column("content_sha256", sa.String(64), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("ended_at", TIME),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_calibrations"),
    )
    numbered = ["tenant_id", "node_id", "hardware_sha256", "number"]
    op.create_index("uq_calibrations_number", table, numbered, unique=True)
    op.create_index("ix_calibrations_listed", table, ["tenant_id", "created_at", "id"])
    op.create_index("ix_calibrations_state", table, ["tenant_id", "state"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("calibrations")
