"""A fleet as pages show it: nodes by name that were heard from, runs with their leases, calibrations."""

from datetime import timedelta
from itertools import count

from sqlalchemy import update

from service.benchmarks.tables import BenchmarkResultRow
from service.calibrations import service as calibrations
from service.evidence.service import load_reference_curves
from service.kit.clock import now
from service.nodes.tables import LeaseRow, NodeRow
from service.protocol.canonical import compute_digest
from tests.benchmarks.measured_nodes import MeasuredNodes, suite_of
from tests.benchmarks.planned import SUITE, Planned, device

USUAL = Planned(device()).figure
SLOW = Planned(device(), stream=0.8).figure
FEW = tuple(one for one in SUITE if one[0] in ("gemm.bf16", "copy", "power.context"))
SPOOL = {"waiting_count": 0, "waiting_bytes": 0, "rejected_count": 0, "is_full": False}
_DAY = timedelta(days=1)


class ShownFleet(MeasuredNodes):
    """Nodes whose ids are numbers, with names of their own."""

    def __init__(self, database):
        super().__init__(database, began=now() - _DAY)
        self._ids = count(1)
        self.tenants = {}

    def add(self, name, *, seen=timedelta(seconds=10), tenant="default", members=None, **hardware):
        """The id of a node that was heard from so long ago, or never."""
        node_id = f"node{next(self._ids):012}"
        self.node(node_id, tenant=tenant, **hardware)
        self.tenants[node_id] = tenant
        heard = {} if seen is None else {"last_seen_at": now() - seen, "activity": "idle", "spool": SPOOL}
        values = {"name": name, "inventory_sha256": compute_digest(self._inventories[node_id]), **heard}
        self._update(NodeRow, node_id, {**values, **(members or {})})
        return node_id

    def _update(self, table, row_id, values):
        with self.database.open_writer() as session:
            session.execute(update(table).where(table.id == row_id).values(**values))

    def measure(self, node_id, planned=USUAL, *, benchmarks=FEW, lease=None, **members):
        """The id of a completed run of a node, or of one whose lease has other members."""
        tenant, device = self.tenants[node_id], self._inventories[node_id].device
        run_id = self.run(node_id, planned, tenant=tenant, benchmarks=benchmarks, **members)
        self._lease(run_id, tenant, benchmarks, device=device, **{"node_id": node_id, **(lease or {})})
        return run_id

    def fail(self, run_id, reason):
        """Let the results of a run be failures."""
        values = {"status": "failed", "reason": reason, "figure": None, "summary": None}
        own = BenchmarkResultRow.run_id == run_id
        with self.database.open_writer() as session:
            session.execute(update(BenchmarkResultRow).where(own).values(**values))

    def _lease(self, run_id, tenant, benchmarks, *, device, **members):
        suite = suite_of(benchmarks, device)
        steps = [{"benchmark": one.name, "state": "done", "repeat": 1} for one in suite.benchmarks]
        values = {
            "state": "completed",
            "progress": {"steps": steps},
            "begun_at": self.began,
            "finished_at": self.began + timedelta(minutes=3),
            **members,
        }
        row = LeaseRow(
            id=run_id,
            tenant_id=tenant,
            device=suite.device,
            suite=suite.model_dump(mode="json"),
            seed=1,
            runtime_seconds=100.0,
            fencing_token=1,
            attempt=1,
            created_at=self.began,
            **values,
        )
        with self.database.open_writer() as session:
            session.add(row)

    def draw(self, node_id):
        """The ids of the calibrations that the results of a node make."""
        reference = load_reference_curves().calibration
        with self.database.open_writer() as session:
            return calibrations.calibrate_node(session, self.tenants[node_id], node_id, reference)
