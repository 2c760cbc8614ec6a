"""The catalog: six nouns in append-only versions, and the row that counts its changes."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
NOUNS = ("accelerators", "grids", "links", "models", "offers", "sites")


def _text(name: str, length: int, *, nullable: bool = True) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=nullable)


def _create(name: str, *columns: sa.Column[Any]) -> None:
    op.create_table(
        name,
        _text("id", 100, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        _text("origin", 10, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("aliases", JSON, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("sources", JSON, nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", "version", name=f"pk_{name}"),
    )
    op.create_index(f"ix_{name}_revision", name, ["revision"])


def upgrade() -> None:
    """Create the tables."""
    state = op.create_table(
        "catalog_state",
        sa.Column("id", sa.BigInteger, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        _text("shipped_digest", 64, nullable=False),
        sa.Column("page_token_key", sa.LargeBinary, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_catalog_state"),
    )
    only = {
        "id": 1,
        "revision": 0,
        "shipped_digest": "",
        "page_token_key": secrets.token_bytes(32),
        "updated_at": datetime.now(UTC),
    }
    op.bulk_insert(state, [only])
    _create(
        "accelerators",
        _text("vendor", 500, nullable=False),
        _text("generation", 500),
        _text("form_factor", 500),
        _text("launched_on", 10),
        sa.Column("memory_label_gb", sa.Float),
        _text("memory_label_reading", 10),
        _text("memory_kind", 500),
        sa.Column("memory_reported_bytes", sa.BigInteger),
        sa.Column("memory_bandwidth_bytes_per_second", sa.Float),
        sa.Column("peak_flops_per_second", JSON),
        sa.Column("power_limit_watts", sa.Float),
        _text("intra_node_link_id", 100),
        sa.Column("pcie_generation", sa.Integer),
        sa.Column("device_count", sa.Integer),
        sa.Column("server", JSON),
    )
    _create(
        "grids",
        _text("code", 500, nullable=False),
        _text("kind", 30, nullable=False),
        sa.Column("carbon_intensity_kg_co2e_per_kwh", sa.Float, nullable=False),
        sa.Column("data_year", sa.Integer),
        _text("accounting", 30, nullable=False),
        sa.Column("water_liters_per_kwh", sa.Float),
    )
    _create(
        "links",
        _text("kind", 30, nullable=False),
        _text("scope", 20, nullable=False),
        sa.Column("bandwidth_bytes_per_second", sa.Float, nullable=False),
        sa.Column("bidirectional_bandwidth_bytes_per_second", sa.Float),
        sa.Column("latency_seconds", sa.Float),
    )
    _create(
        "models",
        sa.Column("architecture", JSON, nullable=False),
        sa.Column("context_tokens", sa.BigInteger),
        sa.Column("parameter_count", sa.BigInteger, nullable=False),
        sa.Column("active_parameter_count", sa.BigInteger, nullable=False),
    )
    _create(
        "offers",
        _text("provider", 500, nullable=False),
        _text("region", 500),
        _text("instance_type", 500),
        _text("accelerator_id", 100, nullable=False),
        sa.Column("accelerator_count", sa.Integer, nullable=False),
        _text("purchase_option", 30, nullable=False),
        sa.Column("price_per_instance_hour", JSON, nullable=False),
        sa.Column("price_per_device_hour", JSON, nullable=False),
        _text("as_of", 10, nullable=False),
    )
    _create(
        "sites",
        sa.Column("pue", sa.Float, nullable=False),
        _text("grid_id", 100),
        sa.Column("water_usage_effectiveness_liters_per_kwh", sa.Float),
    )


def downgrade() -> None:
    """Drop the tables."""
    for name in NOUNS:
        op.drop_table(name)
    op.drop_table("catalog_state")
