"""The generation of a person's sessions."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0031"
down_revision: str | None = "0030"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("ended_sessions", sa.Column("generation", sa.BigInteger))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("ended_sessions", "generation")
