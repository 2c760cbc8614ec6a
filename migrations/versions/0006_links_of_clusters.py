"""Joined devices and in-network reduction of links, and the inter-node link of accelerators."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.types import TypeEngine

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

COLUMNS: dict[str, dict[str, type[TypeEngine[Any]] | TypeEngine[Any]]] = {
    "links": {"joined_count": sa.Integer, "in_network_reduction": sa.Boolean},
    "accelerators": {"inter_node_link_id": sa.String(100), "network_interfaces_per_device": sa.Float},
}


def upgrade() -> None:
    """Add the columns."""
    for table, columns in COLUMNS.items():
        with op.batch_alter_table(table) as altered:
            for name, kind in columns.items():
                altered.add_column(sa.Column(name, kind))


def downgrade() -> None:
    """Drop them."""
    for table, columns in COLUMNS.items():
        with op.batch_alter_table(table) as altered:
            for name in columns:
                altered.drop_column(name)
