"""Creation of a benchmark run, with the lease that a node may claim."""

import secrets
from uuid import uuid4

from service.benchmarks.tables import BenchmarkRunRow
from service.kit.database.engine import Writer
from service.kit.jobs import leases
from service.nodes import service as nodes
from service.protocol.suites import BenchmarkSuite

_SEEDS = 2**53


def store_run(
    session: Writer,
    tenant_id: str,
    suite: BenchmarkSuite,
    *,
    node_id: str | None,
    note: str | None = None,
    re_run_of: str | None = None,
) -> BenchmarkRunRow:
    """Stores a new run, which waits for its node."""
    row = BenchmarkRunRow(
        tenant_id=tenant_id,
        id=uuid4().hex,
        suite_id=suite.id,
        suite_version=suite.version,
        suite=suite.model_dump(mode="json"),
        device=suite.device,
        seed=secrets.randbelow(_SEEDS),
        node_id=node_id,
        note=note,
        re_run_of=re_run_of,
        created_at=leases.get_database_time(),
    )
    session.add(row)
    session.flush()
    nodes.request_run(
        session,
        run_id=row.id,
        tenant_id=tenant_id,
        device=suite.device,
        target_node_id=node_id,
        suite=suite,
        seed=row.seed,
    )
    return row
