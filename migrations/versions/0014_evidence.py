"""Imported files of measurements."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "evidence_imports",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("format", sa.String(40), nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("content_sha256", sa.String(64), nullable=False),
        sa.Column("sent_sha256", sa.String(64), nullable=False),
        sa.Column("calibration_id", sa.String(100), nullable=False),
        sa.Column("run_count", sa.BigInteger, nullable=False),
        sa.Column("reading_count", sa.BigInteger, nullable=False),
        sa.Column("answers", JSON, nullable=False),
        sa.Column("figures", JSON, nullable=False),
        sa.Column("readings", JSON, nullable=False),
        sa.Column("refused", JSON, nullable=False),
        sa.Column("notes", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_evidence_imports"),
    )
    op.create_index("ix_evidence_imports_listed", "evidence_imports", ["tenant_id", "created_at", "id"])
    op.create_index("ix_evidence_imports_sent", "evidence_imports", ["tenant_id", "sent_sha256"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("evidence_imports")
