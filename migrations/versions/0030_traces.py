"""The span that a job or an event belongs to."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0030"
down_revision: str | None = "0029"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TABLES = ("background_jobs", "events")


def upgrade() -> None:
    """Add the column."""
    for table in TABLES:
        op.add_column(table, sa.Column("traceparent", sa.String(55)))


def downgrade() -> None:
    """Drop it."""
    for table in TABLES:
        op.drop_column(table, "traceparent")
