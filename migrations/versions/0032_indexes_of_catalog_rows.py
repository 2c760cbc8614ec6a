"""Indexes by which a write of the catalog finds what it needs among many rows."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0032"
down_revision: str | None = "0031"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

_TABLES = (
    "accelerators",
    "exchange_rates",
    "grids",
    "hardware_prices",
    "links",
    "models",
    "offers",
    "sites",
    "tariffs",
    "token_prices",
)
_LETTERS = "replace(replace(replace(id, '-', ''), '.', ''), '_', '')"
_HAS_ALIASES = "CAST(aliases AS TEXT) != '[]'"


def upgrade() -> None:
    """Create them. That of changes takes the place of the one of revisions."""
    named = sa.text(_HAS_ALIASES)
    for name in _TABLES:
        op.create_index(f"ix_{name}_changed", name, ["tenant_id", "revision"])
        op.create_index(f"ix_{name}_letters", name, [sa.text(_LETTERS), "tenant_id"])
        op.create_index(f"ix_{name}_aliased", name, ["tenant_id"], sqlite_where=named, postgresql_where=named)
        op.drop_index(f"ix_{name}_revision", name)


def downgrade() -> None:
    """Drop them."""
    for name in _TABLES:
        op.create_index(f"ix_{name}_revision", name, ["revision"])
        for kind in ("aliased", "letters", "changed"):
            op.drop_index(f"ix_{name}_{kind}", name)
