"""Results of several accelerators that measured one repeat at the same time."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

INDEX, RESULTS = "uq_benchmark_results_place", "benchmark_results"
PLACE = ["tenant_id", "run_id", "fencing_token", "benchmark", "repeat"]
HOLDS_ITS_PLACE = sa.text("conflicts_with IS NULL AND lease <> 'unknown'")


def upgrade() -> None:
    """Give each accelerator a separate place."""
    column = sa.Column("accelerator_index", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    op.add_column(RESULTS, column)
    op.drop_index(INDEX, RESULTS)
    _create([*PLACE, "accelerator_index"])


def downgrade() -> None:
    """Restore one place for all of them, which the first takes."""
    op.execute("UPDATE benchmark_results SET lease = 'unknown' WHERE accelerator_index > 0")
    op.drop_index(INDEX, RESULTS)
    _create(PLACE)
    op.drop_column(RESULTS, "accelerator_index")


def _create(columns: list[str]) -> None:
    op.create_index(
        INDEX,
        RESULTS,
        columns,
        unique=True,
        postgresql_where=HOLDS_ITS_PLACE,
        sqlite_where=HOLDS_ITS_PLACE,
    )
