"""Time series and accounting of grids, and embodied emissions of accelerators."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
STATED = ("emission_rate", "greenhouse_gases")


def upgrade() -> None:
    """Add the columns; every grid so far was an average of all gases."""
    with op.batch_alter_table("grids") as altered:
        altered.add_column(sa.Column("series", JSON))
        for name in STATED:
            altered.add_column(sa.Column(name, sa.String(10)))
    op.execute("UPDATE grids SET emission_rate = 'average', greenhouse_gases = 'co2e'")
    with op.batch_alter_table("grids") as altered:
        for name in STATED:
            altered.alter_column(name, existing_type=sa.String(10), nullable=False)
    with op.batch_alter_table("accelerators") as altered:
        altered.add_column(sa.Column("embodied_kg_co2e", JSON))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("accelerators") as altered:
        altered.drop_column("embodied_kg_co2e")
    with op.batch_alter_table("grids") as altered:
        for name in ("series", *STATED):
            altered.drop_column(name)
