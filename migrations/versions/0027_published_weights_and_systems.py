"""Published weights of models, reference systems of accelerators, and tori of links."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0027"
down_revision: str | None = "0026"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Add the columns; rows that are there state none of it."""
    with op.batch_alter_table("models") as altered:
        altered.add_column(sa.Column("hub_id", sa.Text))
        altered.add_column(sa.Column("license", sa.Text))
        altered.add_column(sa.Column("quantization_config", JSON))
    with op.batch_alter_table("accelerators") as altered:
        altered.add_column(sa.Column("system", JSON))
    with op.batch_alter_table("links") as altered:
        altered.add_column(sa.Column("torus", JSON))


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("links") as altered:
        altered.drop_column("torus")
    with op.batch_alter_table("accelerators") as altered:
        altered.drop_column("system")
    with op.batch_alter_table("models") as altered:
        for name in ("hub_id", "license", "quantization_config"):
            altered.drop_column(name)
