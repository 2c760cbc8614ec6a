"""Cost centres, their budgets, and imported bills."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0019"
down_revision: str | None = "0018"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "cost_centers",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("accounts", JSON, nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_cost_centers"),
    )
    op.create_table(
        "budgets",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("cost_center_id", sa.String(100), nullable=False),
        sa.Column("starts_on", sa.String(10), nullable=False),
        sa.Column("ends_on", sa.String(10), nullable=False),
        sa.Column("amount_micros", sa.BigInteger, nullable=False),
        sa.Column("currency_code", sa.String(3), nullable=False),
        sa.Column("thresholds", JSON, nullable=False),
        sa.Column("enforcement", sa.String(10), nullable=False),
        sa.Column("told", JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_budgets"),
    )
    op.create_index("ix_budgets_cost_center", "budgets", ["tenant_id", "cost_center_id", "starts_on"])
    op.create_table(
        "actuals_imports",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("source", sa.String(100), nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("content_sha256", sa.String(64), nullable=False),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("matched_row_count", sa.BigInteger, nullable=False),
        sa.Column("periods", JSON, nullable=False),
        sa.Column("notes", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True)),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_actuals_imports"),
    )
    op.create_index("ix_actuals_imports_listed", "actuals_imports", ["tenant_id", "created_at", "id"])
    op.create_table(
        "actuals_periods",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("source", sa.String(100), nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("covered_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("import_id", sa.String(100), nullable=False),
        sa.Column("charges_sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "source", "starts_at", name="pk_actuals_periods"),
    )
    op.create_index("ix_actuals_periods_import", "actuals_periods", ["tenant_id", "import_id"])
    op.create_table(
        "actual_charges",
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("import_id", sa.String(100), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("billing_starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("quote_id", sa.String(100)),
        sa.Column("cost_center_id", sa.String(100)),
        sa.Column("service_category", sa.String(100)),
        sa.Column("currency_code", sa.String(3), nullable=False),
        sa.Column("billed_micros", sa.BigInteger, nullable=False),
        sa.Column("effective_micros", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "import_id", "number", name="pk_actual_charges"),
    )
    op.create_index("ix_actual_charges_quote", "actual_charges", ["tenant_id", "quote_id"])
    op.create_index("ix_actual_charges_cost_center", "actual_charges", ["tenant_id", "cost_center_id", "day"])


def downgrade() -> None:
    """Drop them."""
    for table in (
        "actual_charges",
        "actuals_periods",
        "actuals_imports",
        "budgets",
        "cost_centers",
    ):
        op.drop_table(table)
