"""Subject on whose behalf a webhook receives events, and its scopes."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0026"
down_revision: str | None = "0025"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
WEBHOOKS = sa.table(
    "webhooks",
    sa.column("tenant_id", sa.String),
    sa.column("created_by", sa.String),
    sa.column("on_behalf_of", sa.String),
    sa.column("scopes", JSON),
)
KEYS = sa.table(
    "api_keys", sa.column("tenant_id", sa.String), sa.column("id", sa.String), sa.column("scopes", JSON)
)
KEY = "api_key:"
UNKNOWN = ["*:read"]
"""Scopes of subjects other than keys: theirs were not stored, and they keep the events that they have
received.
"""


def upgrade() -> None:
    """Add the columns: a webhook acts on behalf of its maker, with the scopes of the maker's key."""
    with op.batch_alter_table("webhooks") as altered:
        altered.add_column(sa.Column("on_behalf_of", sa.String(300)))
        altered.add_column(sa.Column("scopes", JSON))
    connection = op.get_bind()
    connection.execute(sa.update(WEBHOOKS).values(on_behalf_of=WEBHOOKS.c.created_by, scopes=UNKNOWN))
    of_keys = WEBHOOKS.c.created_by.startswith(KEY, autoescape=True)
    connection.execute(sa.update(WEBHOOKS).where(of_keys).values(scopes=[]))
    for tenant_id, key_id, scopes in connection.execute(sa.select(KEYS)).all():
        own = (WEBHOOKS.c.tenant_id == tenant_id, WEBHOOKS.c.created_by == f"{KEY}{key_id}")
        connection.execute(sa.update(WEBHOOKS).where(*own).values(scopes=scopes))
    with op.batch_alter_table("webhooks") as altered:
        altered.alter_column("on_behalf_of", existing_type=sa.String(300), nullable=False)
        altered.alter_column("scopes", existing_type=JSON, nullable=False)


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("webhooks") as altered:
        altered.drop_column("on_behalf_of")
        altered.drop_column("scopes")
