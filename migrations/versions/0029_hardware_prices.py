"""Purchase prices of hardware."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0029"
down_revision: str | None = "0028"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "hardware_prices",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("aliases", JSON, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("sources", JSON, nullable=False),
        sa.Column("product", sa.String(500), nullable=False),
        sa.Column("accelerator_id", sa.String(100), nullable=False),
        sa.Column("accelerator_count", sa.Integer, nullable=False),
        sa.Column("price", JSON),
        sa.Column("price_range", JSON),
        sa.Column("price_per_device", JSON, nullable=False),
        sa.Column("includes", JSON),
        sa.Column("as_of", sa.String(10), nullable=False),
        sa.Column("doubt", sa.String(500)),
        sa.PrimaryKeyConstraint("tenant_id", "id", "version", name="pk_hardware_prices"),
    )
    op.create_index("ix_hardware_prices_revision", "hardware_prices", ["revision"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("hardware_prices")
