"""Nodes whose accepted results are in the database, as if they had been reported and validated."""

import json
from dataclasses import asdict
from datetime import timedelta
from itertools import count
from uuid import UUID

from service.benchmarks.conditions import resolve_hardware
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.kit.database.engine import Database
from service.nodes.tables import NodeInventoryRow
from service.protocol.canonical import compute_digest
from service.protocol.nodes import NodeInventory
from service.protocol.suites import BenchmarkSuite
from service.protocol.summary import summarize_samples
from tests.benchmarks.planned import SUITE
from tests.clocks import START
from tests.nodes import fleet

H100 = "NVIDIA H100 80GB HBM3"


def inventory(*, model=H100, device="cuda", driver="575.51.03", power=700.0, **members):
    """What a node with one accelerator, or with none, is made of."""
    part = {
        "index": 0,
        "uuid_sha256": "a" * 64,
        "name": model,
        "memory_bytes": 84_929_757_053,
        "power_limit_watts": power,
        "power_limit_default_watts": 700.0,
        "nvlink_count": 18,
        **members,
    }
    host = {
        "operating_system": "Linux",
        "kernel": "6.12",
        "architecture": "x86_64",
        "cpu_count": 2,
        "cpu_model": "Xeon of the tests",
    }
    made = {
        "device": device,
        "host": host,
        "accelerators": [part] if device == "cuda" else [],
        "software": [{"name": "driver", "version": driver}] if device == "cuda" else [],
    }
    return NodeInventory.model_validate_json(json.dumps(made))


class _Of:
    """As much of a record as tells its hardware."""

    def __init__(self, device):
        self.device, self.accelerator_index = device, 0


def suite_of(benchmarks, device="cuda"):
    """A suite of works under their names."""
    return BenchmarkSuite.model_validate_json(
        json.dumps(
            {
                "id": "planned",
                "version": 1,
                "title": "What planning says",
                "device": device,
                "benchmarks": [
                    {
                        "name": name.lower(),
                        "work": work.model_dump(mode="json"),
                        "metric": metric,
                        "direction": "lower" if metric == "seconds" else "higher",
                        "formula": "as planned",
                    }
                    for name, work, metric in benchmarks
                ],
            }
        )
    )


class MeasuredNodes:
    """Nodes of a database, and what they have measured."""

    def __init__(self, database: Database, began=START) -> None:
        self.database = database
        self.began = began
        self._numbers = count(1)
        self._inventories = {}

    def node(self, name, *, tenant="default", **members):
        """A node that has said what it is made of; said again, it is made of something else."""
        made = inventory(**members)
        device = members.get("device", "cuda")
        if name not in self._inventories:
            fleet.add_node(self.database, name, tenant=tenant, device=device)
        self._inventories[name] = made
        with self.database.open_writer() as session:
            session.merge(
                NodeInventoryRow(
                    tenant_id=tenant,
                    node_id=name,
                    content_sha256=compute_digest(made),
                    inventory=made.model_dump(mode="json"),
                    created_at=START,
                )
            )
        return name

    def run(self, node, planned, *, tenant="default", benchmarks=SUITE, verdict="accepted", **conditions):
        """The id of a run whose figures are those of ``planned``, a function of work and metric."""
        number = next(self._numbers)
        run_id, made = f"run-{number}", self._inventories[node]
        suite = suite_of(benchmarks, made.device)
        run = BenchmarkRunRow(
            tenant_id=tenant,
            id=run_id,
            suite_id=suite.id,
            suite_version=1,
            suite=suite.model_dump(mode="json"),
            device=made.device,
            seed=number,
            created_at=self.began + timedelta(minutes=number),
        )
        with self.database.open_writer() as session:
            session.add(run)
            for benchmark in suite.benchmarks:
                figure = planned(benchmark.work, benchmark.metric)
                for row in self._result(run, node, benchmark, figure, verdict=verdict, **conditions):
                    session.add(row)
        return run_id

    def _result(self, run, node, benchmark, figure, *, verdict, findings=(), **conditions):
        made = self._inventories[node]
        result_id = str(UUID(int=(0x0198_0000_0000_7000_8000 << 48) + next(self._numbers)))
        part = resolve_hardware(made, _Of(made.device))
        # Of a rate the samples are times.
        sample = 1 / figure if benchmark.metric.endswith("_per_second") else figure
        yield BenchmarkResultRow(
            tenant_id=run.tenant_id,
            id=result_id,
            content_sha256="0" * 64,
            content=json.dumps({"inventory_sha256": compute_digest(made)}),
            run_id=run.id,
            attempt=1,
            fencing_token=1,
            benchmark=benchmark.name,
            repeat=1,
            lease="current",
            node_id=node,
            suite_id=run.suite_id,
            suite_version=1,
            device=made.device,
            hardware=part.name,
            hardware_sha256=part.sha256,
            work_sha256=compute_digest(benchmark.work),
            metric=benchmark.metric,
            direction=benchmark.direction,
            status="ok",
            figure=figure,
            summary=asdict(summarize_samples([sample * (1 + step / 1000) for step in range(5)])),
            conditions={"accelerator_index": 0, "worker_version": "1", **conditions},
            started_at=START,
            finished_at=START,
            received_at=run.created_at,
        )
        yield BenchmarkValidationRow(
            tenant_id=run.tenant_id,
            result_id=result_id,
            rules_version=1,
            verdict=verdict,
            findings=list(findings),
            unchecked=[],
            agreeing_run_ids=[],
            seed=1,
            validated_at=START,
        )
