"""Hosts that an operator has barred, and daily submission counts of nodes."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0024"
down_revision: str | None = "0023"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

TIME = sa.DateTime(timezone=True)
LAST_OF_ITS_INSTALLATION = """
NOT EXISTS (
    SELECT 1 FROM nodes AS other
    WHERE other.tenant_id = nodes.tenant_id
      AND other.installation_id = nodes.installation_id
      AND other.id <> nodes.id
      AND (other.state <> 'revoked' OR other.revoked_at > nodes.revoked_at
           OR (other.revoked_at = nodes.revoked_at AND other.id > nodes.id))
)
"""
"""A host that had returned as a new node before this migration is not barred."""


def upgrade() -> None:
    """Bar the hosts of quarantined and revoked nodes, and add the counts."""
    op.add_column("nodes", sa.Column("barred_at", TIME))
    op.execute(
        f"UPDATE nodes SET barred_at = revoked_at WHERE state = 'revoked' AND {LAST_OF_ITS_INSTALLATION}"  # noqa: S608
    )
    op.execute(
        "UPDATE nodes SET barred_at = CURRENT_TIMESTAMP WHERE state = 'quarantined' AND reason = 'OPERATOR'"
    )
    op.create_index("ix_nodes_tenant_id_installation_id", "nodes", ["tenant_id", "installation_id"])
    op.create_table(
        "node_intakes",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("node_id", sa.String(100), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("results", sa.BigInteger, nullable=False),
        sa.Column("result_bytes", sa.BigInteger, nullable=False),
        sa.Column("inventories", sa.BigInteger, nullable=False),
        sa.Column("inventory_bytes", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("node_id", name="pk_node_intakes"),
    )
    op.create_index("ix_node_intakes_tenant_id", "node_intakes", ["tenant_id"])


def downgrade() -> None:
    """Drop both."""
    op.drop_table("node_intakes")
    op.drop_index("ix_nodes_tenant_id_installation_id", "nodes")
    op.drop_column("nodes", "barred_at")
