"""Tenants: every row belongs to one. Keys, the audit, and answers that are given once.

The rows so far become those that ship, or those of the tenant ``default``; revisions go on from where
they were.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
NOUNS = ("accelerators", "grids", "links", "models", "offers", "sites")
SHIPPED, DEFAULT = "shipped", "default"


def _text(name: str, length: int, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=nullable)


def _key(name: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"pk_{name}")


def upgrade() -> None:
    """Give every row its tenant, and create the tables of the rooms audit and auth."""
    for name in NOUNS:
        _own(name)
    _count_by_tenant()
    op.create_table(
        "tenants",
        _text("tenant_id", 100),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("disabled_at", TIME),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("keys_revision", sa.BigInteger, nullable=False),
        _key("tenants", "tenant_id"),
    )
    op.create_table(
        "api_keys",
        _text("tenant_id", 100),
        _text("id", 100),
        _text("kind", 20),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", JSON, nullable=False),
        _text("digest", 64),
        _text("next_digest", 64, nullable=True),
        sa.Column("rotation_ends_at", TIME),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("revoked_at", TIME),
        sa.Column("last_used_at", TIME),
        sa.Column("version", sa.BigInteger, nullable=False),
        _key("api_keys", "id"),
    )
    op.create_index("ix_api_keys_tenant_id", "api_keys", ["tenant_id"])
    op.create_index("ix_api_keys_revoked_at", "api_keys", ["revoked_at"])
    op.create_table(
        "installation",
        _text("tenant_id", 100),
        _text("fingerprint", 32),
        _key("installation", "tenant_id"),
    )
    op.create_table(
        "audit_events",
        _text("tenant_id", 100),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("occurred_at", TIME, nullable=False),
        _text("operation", 100),
        _text("resource", 300),
        _text("subject_kind", 20),
        _text("subject_id", 255, nullable=True),
        sa.Column("subject_salt", sa.LargeBinary),
        _text("subject_digest", 64),
        _text("request_id", 16),
        _text("before_digest", 64, nullable=True),
        _text("after_digest", 64, nullable=True),
        _text("previous_hash", 64),
        _text("hash", 64),
        _key("audit_events", "tenant_id", "sequence"),
    )
    op.create_table(
        "audit_heads",
        _text("tenant_id", 100),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        _text("hash", 64),
        _text("seal", 64),
        _key("audit_heads", "tenant_id"),
    )
    op.create_table(
        "idempotency_keys",
        _text("tenant_id", 100),
        _text("subject", 300),
        _text("operation", 100),
        _text("key_digest", 64),
        _text("request_digest", 64),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("headers", JSON, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        _key("idempotency_keys", "tenant_id", "subject", "operation", "key_digest"),
    )
    op.create_index("ix_idempotency_keys_expires_at", "idempotency_keys", ["expires_at"])


def _own(name: str) -> None:
    op.add_column(name, _text("tenant_id", 100, nullable=True))
    table = sa.table(name, sa.column("tenant_id", sa.String), sa.column("origin", sa.String))
    owner = sa.case((table.c.origin == SHIPPED, SHIPPED), else_=DEFAULT)
    op.execute(table.update().values(tenant_id=owner))
    with op.batch_alter_table(name) as batch:
        batch.alter_column("tenant_id", existing_type=sa.String(100), nullable=False)
        batch.drop_constraint(f"pk_{name}", type_="primary")
        batch.create_primary_key(f"pk_{name}", ["tenant_id", "id", "version"])
        batch.drop_column("origin")


def _state(*extra: sa.Column[Any], key: str) -> sa.Table:
    return op.create_table(
        "catalog_state",
        *extra,
        sa.Column("revision", sa.BigInteger, nullable=False),
        _text("shipped_digest", 64),
        sa.Column("updated_at", TIME, nullable=False),
        _key("catalog_state", key),
    )


def _changes(where: str) -> int:
    """Returns the last revision among rows of the catalog."""
    latest = " UNION ALL ".join(f"SELECT max(revision) AS r FROM {name} {where}" for name in NOUNS)  # noqa: S608
    return int(op.get_bind().scalar(sa.text(f"SELECT max(r) FROM ({latest}) AS found")) or 0)  # noqa: S608


def _count_by_tenant() -> None:
    bind = op.get_bind()
    total, digest = bind.execute(sa.text("SELECT revision, shipped_digest FROM catalog_state")).one()
    shipped = _changes(f"WHERE tenant_id = '{SHIPPED}'")
    op.drop_table("catalog_state")
    state = _state(_text("tenant_id", 100), key="tenant_id")
    if not total:
        return
    now = datetime.now(UTC)
    counted = [{"tenant_id": SHIPPED, "revision": shipped, "shipped_digest": digest, "updated_at": now}]
    if total > shipped:
        own = {"tenant_id": DEFAULT, "revision": total - shipped, "shipped_digest": "", "updated_at": now}
        counted.append(own)
    op.bulk_insert(state, counted)


def downgrade() -> None:
    """Keeps the shipped rows, and rows of the tenant ``default`` that are not versions of a shipped one."""
    import secrets  # noqa: PLC0415

    for name in ("idempotency_keys", "audit_heads", "audit_events", "installation", "api_keys", "tenants"):
        op.drop_table(name)
    bind = op.get_bind()
    counted = sa.text("SELECT tenant_id, revision, shipped_digest FROM catalog_state")
    states = {tenant: (changes, digest) for tenant, changes, digest in bind.execute(counted)}
    for name in NOUNS:
        _disown(name)
    op.drop_table("catalog_state")
    key = sa.Column("page_token_key", sa.LargeBinary, nullable=False)
    state = _state(sa.Column("id", sa.BigInteger, nullable=False), key, key="id")
    shipped, digest = states.get(SHIPPED, (0, ""))
    only = {
        "id": 1,
        "revision": shipped + states.get(DEFAULT, (0, ""))[0],
        "shipped_digest": digest,
        "page_token_key": secrets.token_bytes(32),
        "updated_at": datetime.now(UTC),
    }
    op.bulk_insert(state, [only])


def _disown(name: str) -> None:
    same = f"s.tenant_id = '{SHIPPED}' AND s.id = {name}.id AND s.version = {name}.version"
    taken = f"EXISTS (SELECT 1 FROM {name} AS s WHERE {same})"  # noqa: S608
    others = f"tenant_id NOT IN ('{SHIPPED}', '{DEFAULT}')"
    gone = f"{others} OR (tenant_id = '{DEFAULT}' AND {taken})"
    op.execute(sa.text(f"DELETE FROM {name} WHERE {gone}"))  # noqa: S608
    op.add_column(name, _text("origin", 10, nullable=True))
    origin = f"CASE WHEN tenant_id = '{SHIPPED}' THEN '{SHIPPED}' ELSE 'user' END"
    op.execute(sa.text(f"UPDATE {name} SET origin = {origin}"))  # noqa: S608
    with op.batch_alter_table(name) as batch:
        batch.alter_column("origin", existing_type=sa.String(10), nullable=False)
        batch.drop_constraint(f"pk_{name}", type_="primary")
        batch.create_primary_key(f"pk_{name}", ["id", "version"])
        batch.drop_column("tenant_id")
