"""Tariffs and exchange rates; tariff and time zone of sites."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
SITE_COLUMNS = ("tariff_id", "time_zone")


def _create(name: str, *columns: sa.Column[Any]) -> None:
    op.create_table(
        name,
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
        *columns,
        sa.PrimaryKeyConstraint("tenant_id", "id", "version", name=f"pk_{name}"),
    )
    op.create_index(f"ix_{name}_revision", name, ["revision"])


def upgrade() -> None:
    """Create the tables and add the columns."""
    _create(
        "tariffs",
        sa.Column("utility", sa.String(500)),
        sa.Column("currency_code", sa.String(3), nullable=False),
        sa.Column("time_zone", sa.String(100), nullable=False),
        sa.Column("revisions", JSON, nullable=False),
        sa.Column("holidays", JSON, nullable=False),
        sa.Column("secondary_loss_factor", sa.Float, nullable=False),
        sa.Column("hours_of_use_minimum", sa.Float, nullable=False),
        sa.Column("notes", JSON, nullable=False),
    )
    _create(
        "exchange_rates",
        sa.Column("from_currency_code", sa.String(3), nullable=False),
        sa.Column("to_currency_code", sa.String(3), nullable=False),
        sa.Column("rate", sa.String(32), nullable=False),
        sa.Column("as_of", sa.String(10), nullable=False),
    )
    with op.batch_alter_table("sites") as altered:
        for name in SITE_COLUMNS:
            altered.add_column(sa.Column(name, sa.String(100)))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("sites") as altered:
        for name in SITE_COLUMNS:
            altered.drop_column(name)
    op.drop_table("exchange_rates")
    op.drop_table("tariffs")
