"""Terms, validity and inclusions of offers."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeEngine

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
EFFECTIVE = "effective_price_per_instance_hour"
STATED = "price_per_instance_hour"
COLUMNS: dict[str, type[TypeEngine[Any]] | TypeEngine[Any]] = {
    "zone": sa.String(500),
    "commitment": JSON,
    "billing_increment_seconds": sa.Integer,
    "minimum_billed_seconds": sa.Integer,
    "includes": JSON,
    "valid_from": sa.String(10),
    "valid_until": sa.String(10),
    "doubt": sa.String(500),
}


def upgrade() -> None:
    """Add the columns; the stated price of existing offers is the effective one."""
    with op.batch_alter_table("offers") as altered:
        for name, kind in COLUMNS.items():
            altered.add_column(sa.Column(name, kind))
        altered.add_column(sa.Column(EFFECTIVE, JSON))
        altered.alter_column(STATED, existing_type=JSON, nullable=True)
    op.execute("UPDATE offers SET effective_price_per_instance_hour = price_per_instance_hour")
    with op.batch_alter_table("offers") as altered:
        altered.alter_column(EFFECTIVE, existing_type=JSON, nullable=False)


def downgrade() -> None:
    """Drop them; offers with a split price keep their effective price."""
    op.execute(
        "UPDATE offers SET price_per_instance_hour = effective_price_per_instance_hour "
        "WHERE price_per_instance_hour IS NULL OR CAST(price_per_instance_hour AS TEXT) = 'null'"
    )
    with op.batch_alter_table("offers") as altered:
        altered.alter_column(STATED, existing_type=JSON, nullable=False)
        altered.drop_column(EFFECTIVE)
        for name in COLUMNS:
            altered.drop_column(name)
