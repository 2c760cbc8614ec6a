"""Plans and the pieces of their searches."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "plans",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("goal", sa.String(20), nullable=False),
        sa.Column("question", JSON, nullable=False),
        sa.Column("catalog_revision", sa.BigInteger, nullable=False),
        sa.Column("method_version", sa.String(20), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("beginning", sa.BigInteger, nullable=False),
        sa.Column("piece_count", sa.BigInteger, nullable=False),
        sa.Column("pieces_done", sa.BigInteger, nullable=False),
        sa.Column("candidates", sa.BigInteger, nullable=False),
        sa.Column("candidates_decided", sa.BigInteger, nullable=False),
        sa.Column("answer", sa.Text),
        sa.Column("best_cost", JSON),
        sa.Column("error_code", sa.String(100)),
        sa.Column("error_summary", sa.String(500)),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_plans"),
    )
    op.create_index("ix_plans_listed", "plans", ["tenant_id", "created_at", "id"])
    op.create_index("ix_plans_state", "plans", ["state", "finished_at"])
    op.create_table(
        "plan_pieces",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("plan_id", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("candidates", sa.BigInteger, nullable=False),
        sa.Column("part", JSON, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.PrimaryKeyConstraint("tenant_id", "plan_id", "number", name="pk_plan_pieces"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("plan_pieces")
    op.drop_table("plans")
