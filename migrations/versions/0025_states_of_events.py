"""What an event holds of all that is stored of its resource, beside what its answer showed."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0025"
down_revision: str | None = "0024"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the column; events from before hold less, and a verification says so."""
    op.add_column("audit_events", sa.Column("state_digest", sa.String(64)))


def downgrade() -> None:
    """Drop it: events that were written with it no longer hold."""
    op.drop_column("audit_events", "state_digest")
