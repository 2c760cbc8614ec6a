"""Lineage of keys, subjects of the issuer as people, and revocation of links."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0022"
down_revision: str | None = "0021"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_JSON = sa.JSON().with_variant(JSONB(), "postgresql")
_LISTS = ("lineage", "handed_to")
_API_KEY = "api_key:"


def upgrade() -> None:
    """Store who can act by each key, as far as existing rows show it."""
    for name in _LISTS:
        op.add_column("api_keys", sa.Column(name, _JSON))
    _fill_lineage()
    with op.batch_alter_table("api_keys") as table:
        for name in _LISTS:
            table.alter_column(name, existing_type=_JSON, nullable=False)
    op.create_table(
        "past_api_keys",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("lineage", _JSON, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_past_api_keys"),
    )
    op.create_table(
        "identities",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("subject", sa.String(300), nullable=False),
        sa.Column("person", sa.String(300), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_identities"),
        sa.UniqueConstraint("tenant_id", "subject", "person", name="uq_identities_subject"),
    )
    op.create_index("ix_identities_person", "identities", ["tenant_id", "person"])
    op.add_column("enrolment_tokens", sa.Column("created_by", sa.String(300)))
    op.add_column("approval_links", sa.Column("revoked_at", sa.DateTime(timezone=True)))
    op.add_column("approval_decisions", sa.Column("linked_by", sa.String(300)))


def _fill_lineage() -> None:
    connection = op.get_bind()
    keys = sa.table("api_keys", *map(sa.column, ("id", "created_by")), *(sa.column(n, _JSON) for n in _LISTS))
    makers = {f"{_API_KEY}{row.id}": row.created_by for row in connection.execute(sa.select(keys))}
    for name in makers:
        filled = {"lineage": _lineage(name, makers), "handed_to": []}
        own = keys.c.id == name.removeprefix(_API_KEY)
        connection.execute(keys.update().where(own).values(filled))


def _lineage(name: str, makers: Mapping[str, str | None]) -> list[str]:
    """Returns the makers of a key, from its own to the first that is known."""
    line: list[str] = []
    maker = makers.get(name)
    while maker is not None and maker not in line:
        line.append(maker)
        maker = makers.get(maker)
    return line


def downgrade() -> None:
    """Drop the tables and columns."""
    op.drop_column("approval_decisions", "linked_by")
    op.drop_column("approval_links", "revoked_at")
    op.drop_column("enrolment_tokens", "created_by")
    op.drop_table("identities")
    op.drop_table("past_api_keys")
    for name in _LISTS:
        op.drop_column("api_keys", name)
