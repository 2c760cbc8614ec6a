"""Searches of fleets beside those of plans."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0033"
down_revision: str | None = "0032"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the kind of a plan. An older version that runs meanwhile stores plans without one."""
    kind = sa.Column("kind", sa.String(20), nullable=False, server_default=sa.text("'configuration'"))
    op.add_column("plans", kind)


def downgrade() -> None:
    """Delete the fleets and their jobs, of which an older version knows nothing, and drop the column."""
    op.execute("DELETE FROM background_jobs WHERE kind IN ('plans.search_fleet', 'plans.schedule_fleet')")
    op.execute(
        "DELETE FROM plan_pieces WHERE (tenant_id, plan_id) IN"
        " (SELECT tenant_id, id FROM plans WHERE kind = 'fleet')"
    )
    op.execute("DELETE FROM plans WHERE kind = 'fleet'")
    with op.batch_alter_table("plans") as altered:
        altered.drop_column("kind")
