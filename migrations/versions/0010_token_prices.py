"""Prices of tokens."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "token_prices",
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
        sa.Column("provider", sa.String(500), nullable=False),
        sa.Column("model_name", sa.String(500), nullable=False),
        sa.Column("model_id", sa.String(100)),
        sa.Column("input_price_per_million_tokens", JSON, nullable=False),
        sa.Column("output_price_per_million_tokens", JSON, nullable=False),
        sa.Column("cached_input_price_per_million_tokens", JSON),
        sa.Column("as_of", sa.String(10), nullable=False),
        sa.Column("doubt", sa.String(500)),
        sa.PrimaryKeyConstraint("tenant_id", "id", "version", name="pk_token_prices"),
    )
    op.create_index("ix_token_prices_revision", "token_prices", ["revision"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("token_prices")
