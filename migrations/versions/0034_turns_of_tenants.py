"""Turns of tenants at background jobs."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0034"
down_revision: str | None = "0033"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_TABLE = "background_jobs"


def upgrade() -> None:
    """Add the number of a turn, and indexes by which a claim finds the last turn and the next tenant.

    An older version that runs meanwhile claims without numbers, the most overdue job of all.
    """
    unfinished = sa.text("due_at IS NOT NULL")
    op.add_column(_TABLE, sa.Column("turn", sa.BigInteger))
    op.create_index("ix_background_jobs_claimed", _TABLE, ["kind", "turn"])
    op.create_index(
        "ix_background_jobs_turns",
        _TABLE,
        ["kind", "tenant_id", "due_at"],
        sqlite_where=unfinished,
        postgresql_where=unfinished,
    )


def downgrade() -> None:
    """Drop them."""
    for name in ("turns", "claimed"):
        op.drop_index(f"ix_background_jobs_{name}", _TABLE)
    with op.batch_alter_table(_TABLE) as altered:
        altered.drop_column("turn")
