"""Estimates of a tenant whose devices were measured: figures, intervals and evidence move, and only those."""

import json
from dataclasses import replace

import pytest

from service.estimates.frontier import estimate_frontier
from service.planning.hardware.calibration import OperatorQuantity
from service.planning.hardware.calibration.measured import DeviceCalibration
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity
from service.schemas.frontier import ThroughputFrontierRequest
from tests.asking import ask, codes, question, refusal, usd
from tests.calibrated import a_set, figure, scope_of, with_sets

TPOT, TTFT = "time_per_output_token_seconds", "time_to_first_token_seconds"
VLLM = {"name": "vllm", "version": "0.11"}
CHAT = {"kind": "inference", "input_tokens": 2048, "output_tokens": 512, "concurrency": 1, "engine": VLLM}
TRAINING = {
    "sequence_length": 4096,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 8,
    "total_tokens": 10**9,
}


def served(accelerator="h100-sxm", count=1, parallelism=None, model="llama-3.1-8b", **workload):
    asked = question(model, accelerator, count, **{**CHAT, **workload})
    return asked if parallelism is None else {**asked, "parallelism": parallelism}


STAGED = served("a100-sxm-80gb", 2, {"pipeline": 2}, "llama-3.1-70b")
"""A model that fills two devices: nearly all of its time is that of its matrices."""


def throughput(catalog, asked, *sets):
    return ask(with_sets(catalog, *sets) if sets else catalog, "throughput", asked)


def ratio(answer, before, name):
    return answer[name]["value"] / before[name]["value"]


def ids(answer):
    return answer["evidence"]["calibration_ids"]


def width(quantity):
    return quantity["high"] / quantity["low"]


def test_decoding_follows_the_measured_bandwidth_and_prompts_the_measured_products(snapshot):
    before = throughput(snapshot, STAGED)
    slow_memory = throughput(snapshot, STAGED, a_set(snapshot, "a100-sxm-80gb", streaming=0.5))
    slow_products = throughput(snapshot, STAGED, a_set(snapshot, "a100-sxm-80gb", matrices=0.5))
    assert ratio(slow_memory, before, TPOT) == pytest.approx(2.0, rel=0.05)
    assert ratio(slow_memory, before, TTFT) == pytest.approx(1.0, rel=0.05)
    assert ratio(slow_products, before, TTFT) == pytest.approx(2.0, rel=0.05)
    assert ratio(slow_products, before, TPOT) == pytest.approx(1.0, rel=0.01)
    assert {before[name]["basis"] for name in (TPOT, TTFT)} == {"reference"}
    assert {slow_memory[name]["basis"] for name in (TPOT, TTFT)} == {"calibrated_sku"}
    assert ids(slow_memory) == ["set-1"]
    assert ids(before) == []


@pytest.mark.parametrize("engine", [VLLM, {"name": "llama.cpp"}])
def test_an_ordinary_question_follows_a_node_of_half_the_rate_as_far_as_it_streams(snapshot, engine):
    """Launches and the host's time stay; no cap of an engine's kernels hides the rest."""
    asked = served(engine=engine)
    before = throughput(snapshot, asked)
    slow = throughput(snapshot, asked, a_set(snapshot, "h100-sxm", streaming=0.5))
    [decode] = [phase for phase in before["breakdown"] if phase["phase"] == "decode"]
    assert decode["bound"] == "memory"
    assert 1.55 < ratio(slow, before, TPOT) < 2.0


def test_a_device_that_reaches_what_is_expected_moves_evidence_alone(snapshot):
    asked = served()
    before = throughput(snapshot, asked)
    same = throughput(snapshot, asked, a_set(snapshot, "h100-sxm"))
    for name in (TPOT, TTFT):
        assert same[name]["value"] == pytest.approx(before[name]["value"])
        assert same[name]["basis"] == "calibrated_sku"
        # What the node's own runs differ by is added to what software does.
        assert 1.0 < width(same[name]) / width(before[name]) < 1.01


def test_without_the_set_the_answer_is_the_former_one(snapshot):
    asked = served()
    before = throughput(snapshot, asked)
    measured = with_sets(snapshot, a_set(snapshot, "h100-sxm", streaming=0.5))
    assert ask(measured, "throughput", asked) != before
    assert ask(replace(measured, calibrations=()), "throughput", asked) == before


def test_a_device_of_a_generation_without_rows_is_surer_once_it_is_measured(snapshot):
    asked = served("mi250x")
    before = throughput(snapshot, asked)
    known = throughput(snapshot, asked, a_set(snapshot, "mi250x"))
    assert before[TPOT]["basis"] == "datasheet"
    assert known[TPOT]["basis"] == "calibrated_sku"
    assert width(known[TPOT]) < width(before[TPOT])
    trained = question("llama-3.1-8b", "l4", 8, **TRAINING)
    steps = [throughput(snapshot, trained, *sets)["step_seconds"] for sets in ([], [a_set(snapshot, "l4")])]
    assert width(steps[1]) < width(steps[0])
    assert steps[1]["basis"] == "calibrated_sku"


def test_nodes_that_differ_widen_the_interval_and_a_named_node_counts_alone(snapshot):
    slow = a_set(snapshot, "h100-sxm", streaming=0.6, id="slow", node="a")
    fast = a_set(snapshot, "h100-sxm", id="fast", node="b")
    asked = served()
    one, both = throughput(snapshot, asked, fast), throughput(snapshot, asked, slow, fast)
    assert width(both[TPOT]) > 1.05 * width(one[TPOT])
    assert ids(both) == ["slow", "fast"]
    on_node = {**asked, "cluster": {**asked["cluster"], "node_id": "a", "driver_version": "570.86"}}
    named = throughput(snapshot, on_node, slow, fast)
    assert named[TPOT]["basis"] == "calibrated_node"
    assert ids(named) == ["slow"]
    assert named[TPOT]["value"] == throughput(snapshot, asked, slow)[TPOT]["value"]
    chosen = {**asked, "efficiency": {"source": "calibration", "id": "slow"}}
    assert throughput(snapshot, chosen, slow, fast)[TPOT] == named[TPOT]


def test_every_estimate_reads_the_measured_constants(snapshot):
    measured = with_sets(snapshot, a_set(snapshot, "h100-sxm", matrices=0.5, streaming=0.5))
    trained = question("llama-3.1-8b", "h100-sxm", 8, **TRAINING)
    rent = {"rental": {"price_per_device_hour": usd("3")}}
    found = {
        name: [ask(catalog, name, {**trained, **more}) for catalog in (snapshot, measured)]
        for name, more in (("throughput", {}), ("cost", rent), ("utility-bill", rent))
    }
    for before, after in found.values():
        assert ratio(after, before, "duration_seconds") > 1.5
        assert ids(after) == ["set-1"]
    before, after = found["cost"]
    assert float(after["total"]["amount"]) > 1.5 * float(before["total"]["amount"])
    assert after["total"]["basis"] == "calibrated_sku"


def test_each_side_of_a_disaggregated_system_is_resolved_by_itself(snapshot):
    asked = served("h100-sxm", 16, concurrency=64)
    prefill = {
        "parallelism": {"tensor": 4},
        "replicas": 2,
        "accelerator": {"source": "catalog", "id": "h200-sxm"},
    }
    asked["workload"]["disaggregated"] = {
        "prefill": prefill,
        "decode": {"parallelism": {"tensor": 8}, "replicas": 1},
    }
    before = throughput(snapshot, asked)
    slow = a_set(snapshot, "h200-sxm", matrices=0.5, streaming=0.5, id="h200")
    own = a_set(snapshot, "h100-sxm", id="h100")
    after = throughput(snapshot, asked, own, slow)
    assert ids(after) == ["h200", "h100"]
    # Most of it is the way of the cache from one side to the other.
    assert ratio(after, before, TTFT) > 1.05
    assert ratio(after, before, TPOT) == pytest.approx(1.0, rel=0.01)


def test_a_search_resolves_each_accelerator(snapshot):
    asked = served("h100-sxm", 2)
    del asked["workload"]["concurrency"]
    asked["search"] = {
        "accelerators": [{"source": "catalog", "id": one} for one in ("h100-sxm", "a100-sxm-80gb")]
    }
    question_of = ThroughputFrontierRequest.model_validate_json(json.dumps(asked))
    measured = with_sets(snapshot, a_set(snapshot, "a100-sxm-80gb", streaming=0.5, matrices=0.5, id="a100"))
    found = [estimate_frontier(question_of, catalog) for catalog in (snapshot, measured)]
    shares = [sum(point["accelerator_id"] == "a100-sxm-80gb" for point in each["points"]) for each in found]
    assert shares[1] <= shares[0]
    assert [each["evidence"]["calibration_ids"] for each in found] == [[], ["a100"]]
    fastest = [max(p["output_tokens_per_second_per_user"]["value"] for p in each["points"]) for each in found]
    assert fastest[0] == fastest[1]


@pytest.mark.parametrize(
    ("changes", "efficiency"),
    [
        ({"operators": {(OperatorQuantity.MATRIX_PEAK, NumberFormat.FP64): figure(3e13, 6.7e13)}}, None),
        ({"memory_bytes": Quantity(8e10, 8e10, 8e10, EvidenceBasis.CALIBRATED_NODE)}, None),
        ({}, {"source": "assumed", "utilization": 0.5, "bandwidth_utilization": 0.7}),
    ],
)
def test_a_set_that_moves_nothing_is_not_named(snapshot, changes, efficiency):
    asked = {**served(), **({"efficiency": efficiency} if efficiency else {})}
    own = a_set(snapshot, "h100-sxm")
    own = replace(own, **{"operators": {}, "serving": {}, **changes}) if changes else own
    assert throughput(snapshot, asked, own) == throughput(snapshot, asked)


def test_a_run_without_shapes_is_not_timed_by_a_calibration(snapshot):
    asked = question({"source": "parameter_count", "parameter_count": 10**9}, "h100-sxm", **TRAINING)
    own, chosen = a_set(snapshot, "h100-sxm", matrices=0.5), {"source": "calibration", "id": "set-1"}
    answer = throughput(snapshot, {**asked, "efficiency": chosen}, own)
    assert answer["tokens_per_second"] == throughput(snapshot, asked)["tokens_per_second"]
    assert ids(answer) == []
    assert ("NOT_USED", "/efficiency/id") in {(one["code"], one["pointer"]) for one in answer["warnings"]}


def test_memory_that_was_measured_is_what_a_device_has(snapshot):
    asked = served()
    own = replace(
        a_set(snapshot, "h100-sxm"),
        memory_bytes=Quantity(7.0e10, 6.9e10, 7.1e10, EvidenceBasis.CALIBRATED_NODE),
        context_bytes=Quantity(9e8, 8e8, 1e9, EvidenceBasis.CALIBRATED_NODE),
    )
    before, after = (ask(catalog, "memory", asked) for catalog in (snapshot, with_sets(snapshot, own)))
    assert after["capacity_bytes"] == 70_900_000_000 != before["capacity_bytes"]
    context = {part["name"]: part["bytes"] for part in after["per_device"]["components"]}["device_context"]
    assert context == 900_000_000
    assert ids(after) == ["set-1"]


def test_a_processor_moves_no_accelerator_and_answers_for_itself(snapshot):
    device = snapshot.accelerators["h100-sxm"].accelerator
    host = DeviceCalibration(
        id="host-set",
        scope=scope_of(device, node="host", kind="cpu", accelerator_id=None, generation=None),
        operators={
            (OperatorQuantity.BANDWIDTH, None): figure(2e10),
            (OperatorQuantity.MATRIX_PEAK, NumberFormat.FP32): figure(2e11),
        },
    )
    assert throughput(snapshot, served(), host) == throughput(snapshot, served())
    machine = {"source": "specification", "specification": {"name": "this machine"}}
    asked = question("llama-3.1-8b", "h100-sxm", **{**TRAINING, "precision": "fp32", "sequence_length": 512})
    asked["cluster"] = {"accelerator": machine, "node_id": "host"}
    answer = throughput(snapshot, asked, host)
    assert answer["step_seconds"]["basis"] == "calibrated_node"
    assert ids(answer) == ["host-set"]
    # 6 N D over 200 GFLOP/s, and what streams meanwhile.
    least = 6 * 8.03e9 * 512 * 8 / 2e11
    assert least < answer["step_seconds"]["value"] < 2.0 * least
    asked["cluster"]["node_id"] = "another"
    assert refusal(with_sets(snapshot, host), "throughput", asked)[0] == "PEAK_RATE_UNKNOWN"


def test_what_is_named_must_be_of_the_device(snapshot):
    own = with_sets(snapshot, a_set(snapshot, "a100-sxm-80gb", node="a"))
    asked = served()
    for named, code, pointer in (
        ({"source": "calibration", "id": "no-such"}, "UNKNOWN_REFERENCE", "/efficiency/id"),
        ({"source": "calibration", "id": "set-1"}, "CALIBRATION_OF_ANOTHER_DEVICE", "/efficiency/id"),
    ):
        assert refusal(own, "throughput", {**asked, "efficiency": named}) == (code, pointer)
    on_node = {**asked, "cluster": {**asked["cluster"], "node_id": "a"}}
    assert refusal(own, "throughput", on_node) == ("NODE_HAS_ANOTHER_DEVICE", "/cluster/node_id")
    on_node["cluster"]["node_id"] = "unknown"
    assert "NODE_NOT_CALIBRATED" in codes(ask(own, "throughput", on_node)["warnings"])


class CountedSets(tuple):
    """Calibrations that count how often somebody goes through them."""

    __slots__ = ()
    reads = 0

    def __iter__(self):
        type(self).reads += 1
        return super().__iter__()


def test_constants_are_resolved_once_for_a_device(snapshot):
    sets = CountedSets(a_set(snapshot, "h100-sxm", node=f"n{n}", id=f"s{n}") for n in range(50))
    measured = replace(snapshot, calibrations=sets)
    first = ask(measured, "memory", served())
    reads = CountedSets.reads
    assert reads
    for _ in range(5):
        assert ask(measured, "memory", served()) == first
    assert CountedSets.reads == reads
    ask(measured, "memory", served("a100-sxm-80gb"))
    assert CountedSets.reads > reads
