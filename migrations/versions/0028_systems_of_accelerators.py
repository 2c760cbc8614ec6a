"""Several systems for each accelerator, each with links of its own."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0028"
down_revision: str | None = "0027"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
LIST_OF_ONE = {
    "postgresql": "SET systems = jsonb_build_array(system) WHERE jsonb_typeof(system) = 'object'",
    "sqlite": "SET systems = json_array(json(system)) WHERE json_type(system) = 'object'",
}
FIRST = {
    "postgresql": "SET system = systems -> 0 WHERE jsonb_typeof(systems) = 'array'",
    "sqlite": "SET system = json_extract(systems, '$[0]') WHERE json_type(systems) = 'array'",
}


def upgrade() -> None:
    """Make a list of the one system that a row had."""
    with op.batch_alter_table("accelerators") as altered:
        altered.add_column(sa.Column("systems", JSON))
    op.execute(f"UPDATE accelerators {LIST_OF_ONE[op.get_bind().dialect.name]}")
    with op.batch_alter_table("accelerators") as altered:
        altered.drop_column("system")


def downgrade() -> None:
    """Keep the first system of each row."""
    with op.batch_alter_table("accelerators") as altered:
        altered.add_column(sa.Column("system", JSON))
    op.execute(f"UPDATE accelerators {FIRST[op.get_bind().dialect.name]}")
    with op.batch_alter_table("accelerators") as altered:
        altered.drop_column("systems")
