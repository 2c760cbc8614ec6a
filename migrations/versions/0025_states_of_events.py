"""Digest of the complete stored state of a resource in its events."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0025"
down_revision: str | None = "0024"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the column; a verification reports that earlier events lack it."""
    op.add_column("audit_events", sa.Column("state_digest", sa.String(64)))


def downgrade() -> None:
    """Drop the column, after which events that were written with it are invalid."""
    op.drop_column("audit_events", "state_digest")
