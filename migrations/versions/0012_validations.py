"""Verdicts of the validation of results, and repeated runs of suspicious ones."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    """Create the table, and let a run name the one that it repeats."""
    table = "benchmark_validations"
    op.create_table(
        table,
        sa.Column("tenant_id", sa.String(100), nullable=False),
        sa.Column("result_id", sa.String(36), nullable=False),
        sa.Column("rules_version", sa.BigInteger, nullable=False),
        sa.Column("verdict", sa.String(20), nullable=False),
        sa.Column("findings", JSON, nullable=False),
        sa.Column("unchecked", JSON, nullable=False),
        sa.Column("agreeing_run_ids", JSON, nullable=False),
        sa.Column("samples_sha256", sa.String(64)),
        sa.Column("checksum", sa.String(64)),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("validated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "result_id", name="pk_benchmark_validations"),
    )
    op.create_index("ix_benchmark_validations_verdict", table, ["tenant_id", "verdict"])
    op.create_index("ix_benchmark_validations_samples", table, ["tenant_id", "samples_sha256"])
    op.create_index("ix_benchmark_validations_checksum", table, ["tenant_id", "checksum"])
    op.create_index("ix_benchmark_results_run", "benchmark_results", ["tenant_id", "run_id"])
    op.add_column("benchmark_runs", sa.Column("re_run_of", sa.String(100)))
    op.create_index("ix_benchmark_runs_re_run_of", "benchmark_runs", ["tenant_id", "re_run_of"])


def downgrade() -> None:
    """Drop both."""
    op.drop_index("ix_benchmark_runs_re_run_of", "benchmark_runs")
    op.drop_column("benchmark_runs", "re_run_of")
    op.drop_index("ix_benchmark_results_run", "benchmark_results")
    op.drop_table("benchmark_validations")
