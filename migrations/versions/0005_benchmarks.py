"""Benchmark runs and results."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)
HOLDS_ITS_PLACE = sa.text("conflicts_with IS NULL AND lease <> 'unknown'")


def _text(name: str, length: int, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=nullable)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, TIME, nullable=False)


def upgrade() -> None:
    """Create the tables."""
    runs, results = "benchmark_runs", "benchmark_results"
    op.create_table(
        runs,
        _text("tenant_id", 100),
        _text("id", 100),
        _text("suite_id", 100),
        _number("suite_version"),
        sa.Column("suite", JSON, nullable=False),
        _text("device", 20),
        _number("seed"),
        _text("node_id", 100, nullable=True),
        sa.Column("note", sa.Text),
        _time("created_at"),
        sa.PrimaryKeyConstraint("id", name="pk_benchmark_runs"),
    )
    op.create_index("ix_benchmark_runs_listed", runs, ["tenant_id", "created_at", "id"])
    op.create_table(
        results,
        _text("tenant_id", 100),
        _text("id", 36),
        _text("content_sha256", 64),
        sa.Column("content", sa.Text, nullable=False),
        _text("run_id", 100),
        _number("attempt"),
        _number("fencing_token"),
        _text("benchmark", 100),
        _number("repeat"),
        _text("lease", 20),
        _text("conflicts_with", 36, nullable=True),
        _text("node_id", 100),
        _text("suite_id", 100),
        _number("suite_version"),
        _text("device", 20),
        sa.Column("hardware", sa.Text),
        _text("hardware_sha256", 64, nullable=True),
        _text("work_sha256", 64),
        _text("metric", 40),
        _text("direction", 10),
        _text("status", 20),
        _text("reason", 64, nullable=True),
        sa.Column("figure", sa.Float),
        sa.Column("summary", JSON),
        sa.Column("conditions", JSON, nullable=False),
        _time("started_at"),
        _time("finished_at"),
        _time("received_at"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_benchmark_results"),
    )
    op.create_index(
        "uq_benchmark_results_place",
        results,
        ["tenant_id", "run_id", "fencing_token", "benchmark", "repeat"],
        unique=True,
        postgresql_where=HOLDS_ITS_PLACE,
        sqlite_where=HOLDS_ITS_PLACE,
    )
    op.create_index("ix_benchmark_results_listed", results, ["tenant_id", "received_at", "id"])
    op.create_index("ix_benchmark_results_compared", results, ["tenant_id", "benchmark", "received_at"])
    op.create_index("ix_benchmark_results_digests", results, ["tenant_id", "content_sha256"])


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("benchmark_results")
    op.drop_table("benchmark_runs")
