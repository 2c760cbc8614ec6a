"""From records of two slow nodes to the estimates of their tenant, over HTTP, and back."""

import json
from datetime import timedelta
from hashlib import sha256

import pytest
from pydantic import MISSING

from service.app.background.calibrations import build_calibration_kind
from service.benchmarks.validation.jobs import build_validation_kind
from service.nodes.tables import NodeInventoryRow
from service.protocol.nodes import NodeInventory
from service.protocol.suites import BenchmarkSuite
from tests.applications import MEANS
from tests.benchmarks.cases import BEGAN, PART, case
from tests.benchmarks.conftest import HOST
from tests.benchmarks.planned import Planned, cached, device, gemm, prompt, work
from tests.benchmarks.records import INVENTORY_SHA256, samples_ns, uuid
from tests.clocks import START
from tests.nodes import fleet
from tests.working import do_all

MEASURED = {
    "gemm.bf16": (gemm(8192, 8192, 8192), "flops_per_second"),
    "gemm.skinny.bf16": (gemm(16, 14336, 8192), "bytes_per_second"),
    "dram.read": (work("stream", pattern="read", array_bytes=2**32), "bytes_per_second"),
    "dram.copy": (work("stream", pattern="copy", array_bytes=2**32), "bytes_per_second"),
    "attention.prefill": (prompt("cudnn"), "flops_per_second"),
    "attention.decode": (cached("flash"), "bytes_per_second"),
}
SUITE = BenchmarkSuite.model_validate_json(
    json.dumps(
        {
            "id": "tests-gpu",
            "version": 1,
            "title": "What decides how fast a model is served",
            "device": "cuda",
            "benchmarks": [
                {
                    "name": name,
                    "work": of_work.model_dump(mode="json"),
                    "metric": metric,
                    "direction": "higher",
                    "formula": "work over time",
                    "repeats": 2,
                }
                for name, (of_work, metric) in MEASURED.items()
            ],
        }
    )
)
TPOT, TTFT = "time_per_output_token_seconds", "time_to_first_token_seconds"
ASKED = {
    "model": {"source": "catalog", "id": "llama-3.1-405b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
    "parallelism": {"pipeline": 16},
    "workload": {
        "kind": "inference",
        "weight_precision": "bf16",
        "input_tokens": 4096,
        "output_tokens": 512,
        "concurrency": 1,
        "engine": {"name": "vllm", "version": "0.11"},
    },
}
"""Nearly all time of this model is that of its matrices: launches and the host take 3%."""
DRIVER = {"name": "driver", "version": "570.86.15"}


class Machines:
    """GPU nodes of a tenant, and what is estimated for them."""

    def __init__(self, nodes):
        self.nodes, self.database = nodes, nodes.database
        self.numbers = iter(range(1, 1000))
        nodes.app.state.suites = {SUITE.id: SUITE}

    def measured(self, name, **slowness):
        """A node whose records are those of devices so slow, through validation to its set."""
        self._enrolled(name)
        self.nodes.run(suite_id=SUITE.id, node_id=name)
        lease, planned = self.nodes.claim(name), Planned(device("h100-sxm"), **slowness)
        results = [
            self._record(name, lease, of, repeat, planned) for of in SUITE.benchmarks for repeat in (1, 2)
        ]
        for result in results:
            assert self.nodes.put(name, result).status_code == 200
        assert self.nodes.complete(name, lease, *results).json() == {"state": "completed"}
        do_all(self.database, build_validation_kind(MEANS.writes), build_calibration_kind(MEANS.writes))
        assert {self.nodes.validations()[one.result_id].verdict for one in results} == {"accepted"}
        self.nodes.app.state.snapshots.refresh()
        [drawn] = self.nodes.get("/v1/calibrations", node_id=name)["items"]
        return drawn["id"]

    def _enrolled(self, name):
        self.nodes.subjects[name] = fleet.add_node(self.database, name, device="cuda")
        document = {
            "device": "cuda",
            "host": HOST.model_dump(mode="json"),
            "accelerators": [{**PART, "uuid_sha256": sha256(name.encode()).hexdigest()}],
            "software": [DRIVER],
        }
        inventory = NodeInventory.model_validate_json(json.dumps(document)).model_dump(mode="json")
        kept = {"content_sha256": INVENTORY_SHA256, "inventory": inventory, "created_at": START}
        with self.database.open_writer() as session:
            session.add(NodeInventoryRow(tenant_id="default", node_id=name, **kept))

    def _record(self, name, lease, of, repeat, planned):
        number = next(self.numbers)
        seconds = planned.seconds(of.work)
        held = {
            "result_id": uuid(number),
            "run_id": lease.id,
            "fencing_token": lease.fencing_token,
            "attempt": lease.attempt,
            "nonce": lease.nonce,
            "seed": lease.seed,
            "node_id": name,
            "suite_id": SUITE.id,
            "benchmark": of,
            "repeat": repeat,
            "started_at": BEGAN + timedelta(minutes=number),
            "finished_at": BEGAN + timedelta(minutes=number, seconds=20),
            "finished_monotonic_seconds": 120.0,
        }
        computed = {
            "method": "float64 on tiles",
            "largest_error": 1e-3,
            "tolerance": 1e-2,
            "passed": True,
            "checksum": sha256(f"{lease.seed} {of.name}".encode()).hexdigest(),
        }
        made = case(
            of.work.model_dump(mode="json"),
            samples_ns=samples_ns(round(seconds * 1e9), seed=number),
            asked={"metric": of.metric},
            result=held,
            measurement={"correctness": computed},
        )
        # A node that does not know how far its clock is off is not held to the times of the lease.
        return made.result.model_copy(update={"clock_offset_seconds": MISSING})

    def asked(self, by="operator", node_id=None, **members):
        """The answer to the question, for devices of a node where one is named."""
        cluster = ASKED["cluster"] if node_id is None else {**ASKED["cluster"], "node_id": node_id}
        answer = self.nodes.call(
            "POST", "/v1/estimates/throughput", by=by, json={**ASKED, "cluster": cluster, **members}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def machines(nodes):
    return Machines(nodes)


def figures(answer):
    """What an answer says, without the revision that it was read at."""
    return {**answer, "evidence": {**answer["evidence"], "catalog_revision": 0}}


def test_two_slow_nodes_move_the_answers_of_their_tenant_and_withdrawing_them_moves_all_back(machines):
    before, others = machines.asked(), machines.asked(by="other")
    slow_memory = machines.measured("memory", stream=0.5)
    slow_products = machines.measured("products", matrix=0.5)
    for node, calibration_id, name, other in (
        ("memory", slow_memory, TPOT, TTFT),
        ("products", slow_products, TTFT, TPOT),
    ):
        answer = machines.asked(node_id=node)
        assert answer[name]["value"] / before[name]["value"] == pytest.approx(2.0, rel=0.05)
        assert answer[other]["value"] / before[other]["value"] == pytest.approx(1.0, rel=0.05)
        assert answer[name]["low"] > 1.8 * before[name]["low"]
        assert {answer[each]["basis"] for each in (name, other)} == {"calibrated_node"}
        assert answer["evidence"]["calibration_ids"] == [calibration_id]
        assert (
            machines.asked(efficiency={"source": "calibration", "id": calibration_id})[name] == answer[name]
        )
    both = machines.asked()
    assert both[TPOT]["basis"] == both[TTFT]["basis"] == "calibrated_sku"
    assert both["evidence"]["calibration_ids"] == [slow_memory, slow_products]
    assert both[TPOT]["high"] / both[TPOT]["low"] > 1.2 * before[TPOT]["high"] / before[TPOT]["low"]
    assert figures(machines.asked(by="other")) == figures(others)

    for calibration_id in (slow_memory, slow_products):
        url = f"/v1/calibrations/{calibration_id}:withdraw"
        assert machines.nodes.call("POST", url, json={"reason": "a bad node"}).status_code == 200
    machines.nodes.app.state.snapshots.refresh()
    assert figures(machines.asked()) == figures(before)
    # What was drawn from goes with its set: there is nothing to draw anew.
    assert do_all(machines.database, build_calibration_kind(MEANS.writes)) == 2
    machines.nodes.app.state.snapshots.refresh()
    assert figures(machines.asked()) == figures(before)
