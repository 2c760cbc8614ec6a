"""GPU nodes: enrolment tokens, nodes, their credentials and inventories, leases and their grants."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
RUNNING = sa.text("state = 'running'")
NOT_REVOKED = sa.text("state != 'revoked'")
TABLES = ("enrolment_tokens", "nodes", "node_credentials", "node_inventories", "leases", "lease_grants")


def _text(name: str, length: int, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> sa.Column[datetime]:
    return sa.Column(name, TIME, nullable=nullable)


def _key(name: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{name}")


def upgrade() -> None:
    """Create the tables, and end the keys of nodes: enrolment has taken their place."""
    op.execute(sa.text("DELETE FROM api_keys WHERE kind = 'node'"))
    op.execute(sa.text("UPDATE tenants SET keys_revision = keys_revision + 1"))
    op.drop_column("api_keys", "kind")
    _enrolment()
    _nodes()
    _leases()
    for name in TABLES:
        if name != "leases":
            op.create_index(f"ix_{name}_tenant_id", name, ["tenant_id"])


def _enrolment() -> None:
    op.create_table(
        "enrolment_tokens",
        _text("tenant_id", 100),
        _text("id", 100),
        _text("node_name", 100, nullable=True),
        _text("digest", 64),
        _time("created_at"),
        _time("expires_at"),
        _time("used_at", nullable=True),
        _text("node_id", 100, nullable=True),
        _text("installation_id", 32, nullable=True),
        _key("enrolment_tokens", "id"),
    )
    op.create_index("ix_enrolment_tokens_expires_at", "enrolment_tokens", ["expires_at"])


def _nodes() -> None:
    op.create_table(
        "nodes",
        _text("tenant_id", 100),
        _text("id", 100),
        _text("name", 100),
        _text("device", 10),
        _text("state", 20),
        _text("reason", 64, nullable=True),
        _text("installation_id", 32),
        sa.Column("worker_version", sa.Text, nullable=False),
        _text("inventory_sha256", 64, nullable=True),
        sa.Column("boots", JSON, nullable=False),
        _text("activity", 20, nullable=True),
        sa.Column("spool", JSON),
        _time("last_seen_at", nullable=True),
        sa.Column("rotate_requested", sa.Boolean, nullable=False),
        _time("created_at"),
        _time("revoked_at", nullable=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        _key("nodes", "id"),
    )
    op.create_index(
        "uq_nodes_installation",
        "nodes",
        ["tenant_id", "installation_id"],
        unique=True,
        postgresql_where=NOT_REVOKED,
        sqlite_where=NOT_REVOKED,
    )
    op.create_table(
        "node_credentials",
        _text("tenant_id", 100),
        _text("node_id", 100),
        sa.Column("generation", sa.BigInteger, nullable=False),
        _text("state", 20),
        _text("digest", 64),
        _time("created_at"),
        _time("expires_at"),
        _time("confirmed_at", nullable=True),
        _time("ended_at", nullable=True),
        _key("node_credentials", "node_id", "generation"),
    )
    op.create_table(
        "node_inventories",
        _text("tenant_id", 100),
        _text("node_id", 100),
        _text("content_sha256", 64),
        sa.Column("inventory", JSON, nullable=False),
        _time("created_at"),
        _key("node_inventories", "node_id", "content_sha256"),
    )


def _leases() -> None:
    op.create_table(
        "leases",
        _text("id", 100),
        _text("tenant_id", 100),
        _text("state", 20),
        _time("due_at", nullable=True),
        sa.Column("span_seconds", sa.Float),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("fencing_token", sa.BigInteger, nullable=False),
        _text("node_id", 100, nullable=True),
        _text("target_node_id", 100, nullable=True),
        _text("device", 10),
        sa.Column("suite", JSON, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("runtime_seconds", sa.Float, nullable=False),
        _text("nonce", 32, nullable=True),
        _text("claim_request_id", 32, nullable=True),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("losses", sa.Integer, nullable=False),
        _text("lost_by", 100, nullable=True),
        sa.Column("progress", JSON, nullable=False),
        _text("reason", 64, nullable=True),
        _text("detail", 500, nullable=True),
        _time("created_at"),
        _time("begun_at", nullable=True),
        _time("finished_at", nullable=True),
        _key("leases", "id"),
    )
    op.create_index("ix_leases_due", "leases", ["state", "due_at"])
    op.create_index("ix_leases_tenant", "leases", ["tenant_id", "state"])
    op.create_index(
        "uq_leases_running",
        "leases",
        ["node_id"],
        unique=True,
        postgresql_where=RUNNING,
        sqlite_where=RUNNING,
    )
    op.create_table(
        "lease_grants",
        _text("tenant_id", 100),
        _text("lease_id", 100),
        sa.Column("fencing_token", sa.BigInteger, nullable=False),
        _text("node_id", 100),
        sa.Column("attempt", sa.Integer, nullable=False),
        _text("nonce", 32),
        _time("granted_at"),
        _time("ended_at", nullable=True),
        _text("outcome", 20, nullable=True),
        _text("state_after", 20, nullable=True),
        _key("lease_grants", "lease_id", "fencing_token"),
    )


def downgrade() -> None:
    """Drop the tables; the keys that are left open all that their scopes do."""
    for name in reversed(TABLES):
        op.drop_table(name)
    op.add_column("api_keys", _text("kind", 20, nullable=True))
    op.execute(sa.text("UPDATE api_keys SET kind = 'api_key'"))
    with op.batch_alter_table("api_keys") as batch:
        batch.alter_column("kind", existing_type=sa.String(20), nullable=False)
