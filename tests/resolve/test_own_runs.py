"""A tenant's measured answers move that tenant's estimates: of runs like these, and of no others."""

import gc
import json
import math
import weakref
from dataclasses import replace

import pytest

from service.estimates import service as estimates
from service.estimates.frontier import estimate_frontier
from service.estimates.service import ESTIMATES, answer_question
from service.planning.hardware.calibration.measured import MeasuredAnswer
from service.planning.hardware.local_evidence import LogDeviations, RunGroup, compute_fingerprint
from service.resolve.own_runs import resolve_run_setting
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.frontier import ThroughputFrontierRequest
from tests.applications import bearing
from tests.asking import question, shipped
from tests.calibrated import a_set, with_sets

DEVIATIONS = LogDeviations(model=0.2, system=0.1, layout=0.05, load=0.2, layout_load=0.1, run=0.1)
"""Of tests: rounder than those that ship."""
FAMILIES = (
    "serving_tpot",
    "serving_ttft",
    "serving_throughput",
    "serving_power",
    "training_step",
    "training_memory",
)


def catalog(*answers):
    """What a tenant with these answers sees."""
    seen = replace(shipped(), measured_answers=answers)
    curves = replace(seen.curves, deviations=dict.fromkeys(FAMILIES, DEVIATIONS))
    return replace(seen, curves=curves)


def served(concurrency=16, model="llama-3.1-8b", **workload):
    load = {"input_tokens": 1000, "output_tokens": 200, "concurrency": concurrency, **workload}
    return question(model, "h100-sxm", kind="inference", engine={"name": "vllm", "version": "0.11.0"}, **load)


TRAINED = question(
    "llama-3.1-8b", "h100-sxm", 8, sequence_length=4096, micro_batch_size=1, gradient_accumulation_steps=8,
    framework={"name": "torchtitan"},
)  # fmt: skip


FIGURES = {
    "serving_ttft": "/time_to_first_token_seconds",
    "serving_ttft/median": "/time_to_first_token_seconds_percentiles/p50",
    "serving_tpot": "/time_per_output_token_seconds",
    "serving_tpot/median": "/time_per_output_token_seconds_percentiles/p50",
    "serving_throughput": "/output_tokens_per_second",
    "serving_power": "/power_per_device_watts",
    "serving_energy": "/energy_per_output_token_joules",
    "training_step": "/step_seconds",
    "training_memory": "/per_device/total_bytes",
    "inference_memory": "/per_device/total_bytes",
}
"""The member of an answer that each kind of measured answer is compared with."""


def asked(seen, body, operation="throughput"):
    """The answer as the API gives it."""
    estimate = ESTIMATES[operation]
    return answer_question(estimate.estimator, estimate.question.model_validate_json(json.dumps(body)), seen)


def measured(body, family, factor, operation="throughput", calibration_id="import-1"):
    """A figure that was measured to be ``factor`` of its estimate."""
    found = asked(shipped(), body, operation)
    for name in FIGURES[family].removeprefix("/").split("/"):
        found = found[name]
    value = found["value"] if isinstance(found, dict) else found
    return MeasuredAnswer(f"{family}-{factor}", calibration_id, operation, family, factor * value, body)


def ten(family, factor):
    return [measured(served(count), family, factor) for count in (1, 2, 4, 8, 12, 24, 32, 48, 64, 96)]


@pytest.fixture(scope="module")
def seen():
    """What a tenant with ten rows of one system sees."""
    return catalog(*ten("serving_tpot", 1.3), *ten("serving_ttft", 0.8))


class TestTenServingRows:
    def test_they_move_estimates_of_the_same_system(self, seen):
        before, after = asked(catalog(), served(16)), asked(seen, served(16))
        each, first = "time_per_output_token_seconds", "time_to_first_token_seconds"
        assert after[each]["value"] / before[each]["value"] == pytest.approx(1.3, rel=0.04)
        assert after[first]["value"] / before[first]["value"] == pytest.approx(0.8, rel=0.04)
        for name in (each, first):
            assert after[name]["basis"] == "calibrated_sku"
            was, now = (found[name]["high"] / found[name]["low"] for found in (before, after))
            assert now < 0.8 * was
            percentiles = after[f"{name}_percentiles"], before[f"{name}_percentiles"]
            moved = after[name]["value"] / before[name]["value"]
            assert percentiles[0]["p95"] / percentiles[1]["p95"] == pytest.approx(moved)
        assert after["evidence"]["calibration_ids"] == ["import-1"]
        assert before["evidence"]["calibration_ids"] == []

    def test_the_rate_is_what_these_latencies_allow(self, seen):
        after = asked(seen, served(16))
        inside = after["requests_per_second"]["value"] * after["request_seconds"]["value"]
        assert inside == pytest.approx(16.0, rel=1e-3)
        assert after["requests_per_second"]["basis"] == "calibrated_sku"

    @pytest.mark.parametrize(
        "body",
        [served(16, "llama-3.1-70b", weight_precision="fp8"), TRAINED],
        ids=["another model", "training"],
    )
    def test_other_estimates_stay_as_they_are(self, seen, body):
        before, after = asked(catalog(), body), asked(seen, body)
        assert after == before

    def test_without_them_the_former_answer_is_back(self, seen):
        assert asked(replace(seen, measured_answers=()), served(16)) == asked(catalog(), served(16))

    def test_phases_of_a_request_add_up(self, seen):
        after = asked(seen, served(16))
        whole = sum(phase["seconds"]["value"] for phase in after["breakdown"])
        assert whole == pytest.approx(after["request_seconds"]["value"])

    def test_advice_compares_like_with_like(self, seen):
        wide = served(64, weight_precision="bf16")
        gains = [
            {each["code"]: each["gain_share"] for each in asked(by, wide)["bottleneck"]["advice"]}
            for by in (catalog(), seen)
        ]
        assert gains[0]
        assert gains[0] == gains[1]

    def test_a_search_answers_as_a_single_estimate_does(self, seen):
        search = {**served(16), "search": {"requests_per_replica": [16], "tensor": [1]}}
        search["workload"] = {key: each for key, each in search["workload"].items() if key != "concurrency"}
        found = answer_question(
            estimate_frontier, ThroughputFrontierRequest.model_validate_json(json.dumps(search)), seen
        )
        single = asked(seen, served(16))
        [point] = found["points"]
        for name in ("time_per_output_token_seconds", "time_to_first_token_seconds", "requests_per_second"):
            assert point[name] == single[name]
        assert found["evidence"]["calibration_ids"] == ["import-1"]


@pytest.mark.parametrize("family", ["serving_throughput", "serving_power"])
def test_measured_rates_and_draw_move_theirs(family):
    seen = catalog(*ten(family, 0.9))
    before, after = asked(catalog(), served(16)), asked(seen, served(16))
    name = FIGURES[family].removeprefix("/")
    assert after[name]["value"] / before[name]["value"] == pytest.approx(0.9, rel=0.03)
    assert after["evidence"]["calibration_ids"] == ["import-1"]
    drawn, rate = after["power_per_device_watts"]["value"], after["output_tokens_per_second"]["value"]
    assert after["energy_per_output_token_joules"]["value"] == pytest.approx(drawn / rate)


def test_a_rate_of_arrivals_is_not_exceeded():
    rows = [measured(served(count), "serving_throughput", 0.5) for count in (16, 64, 128, 256)]
    arriving = served(16, request_rate_per_second=1e3)
    del arriving["workload"]["concurrency"]
    after = asked(catalog(*rows), arriving)
    assert after["requests_per_second"]["value"] <= after["saturation"]["most_requests_per_second"]["value"]


def test_a_measured_median_is_set_beside_the_median():
    row = measured(served(16), "serving_ttft/median", 1.2)
    before, after = (asked(catalog(*rows), served(16)) for rows in ((), (row,)))
    moved = after["time_to_first_token_seconds"]["value"] / before["time_to_first_token_seconds"]["value"]
    assert 1.1 < moved < 1.2


def test_training_runs_move_steps_and_memory():
    step = measured(TRAINED, "training_step", 1.2, calibration_id="steps")
    held = {key: TRAINED[key] for key in ("model", "cluster", "workload")}
    peak = measured(held, "training_memory", 1.1, "memory", "peaks")
    seen = catalog(step, peak)
    before, after = asked(catalog(), TRAINED), asked(seen, TRAINED)
    assert 1.1 < after["step_seconds"]["value"] / before["step_seconds"]["value"] < 1.2
    assert after["evidence"]["calibration_ids"] == ["steps"]
    least, most = (asked(each, held, "memory") for each in (catalog(), seen))
    moved = most["per_device"]["total_bytes"]["value"] / least["per_device"]["total_bytes"]["value"]
    assert 1.03 < moved < 1.1
    assert most["evidence"]["calibration_ids"] == ["peaks"]


def test_rows_of_the_reference_set_count_once(monkeypatch):
    row = measured(served(16), "serving_tpot", 1.3)
    group = RunGroup("serving", "vllm", "h100-sxm", shipped().models["llama-3.1-8b"].profile.parameter_count)
    question = ThroughputEstimateRequest.model_validate_json(json.dumps(served(16)))
    setting = resolve_run_setting(question, shipped())
    assert asked(catalog(row), served(16)) != asked(catalog(), served(16))
    assert setting.group == group
    assert setting.load == pytest.approx((math.log(16), math.log(1000), math.log(200)))
    known = frozenset({compute_fingerprint("serving_tpot", setting, row.measured)})
    monkeypatch.setattr(estimates, "known_rows", lambda: known)
    assert asked(catalog(row), served(16)) == asked(catalog(), served(16))


def test_a_row_of_what_the_catalog_lost_says_nothing():
    row = measured(served(16), "serving_tpot", 1.3)
    gone = row._replace(question={**row.question, "model": {"source": "catalog", "id": "gone"}})
    assert asked(catalog(gone), served(16)) == asked(catalog(), served(16))


COUNTS = (1, 2, 4, 8, 12, 20, 24, 32, 48, 64)
ROWS = "\n".join(
    [
        "metric,value,workload.concurrency",
        *(f"time_per_output_token_seconds,{0.013 + 0.00012 * count},{count}" for count in COUNTS),
    ]
)


def test_ten_imported_rows_move_one_tenant_until_they_are_withdrawn(callers):
    client, asked_about = callers.client, served(16, weight_precision="bf16")
    mine, other = (
        {"headers": bearing(callers.key("evidence:*", "estimates:*", tenant=callers.tenant(name)))}
        for name in ("mine", "other")
    )

    def answered(caller, writes=0):
        """After so many writes since the first answer."""
        headers = (
            {**caller["headers"], "Catalog-Revision": str(revision + writes)} if writes else caller["headers"]
        )
        response = client.post("/v1/estimates/throughput", asked_about, headers=headers)
        assert response.status_code == 200, response.text
        found = response.json()
        return found, found["evidence"].pop("catalog_revision")

    name = "time_per_output_token_seconds"
    before, revision = answered(mine)
    body = {"format": "own_csv", "content": ROWS, **{key: asked_about[key] for key in ("model", "cluster")}}
    workload = {key: each for key, each in asked_about["workload"].items() if key != "concurrency"}
    made = client.post("/v1/evidence:import", {**body, "workload": workload}, **mine)
    assert made.status_code == 201, made.text
    assert len(made.json()["answers"]) == 10
    after, _ = answered(mine, 1)
    assert after[name]["value"] == pytest.approx(0.0149, rel=0.03)
    assert abs(after[name]["value"] / before[name]["value"] - 1.0) > 0.1
    assert after["evidence"]["calibration_ids"] == [made.json()["calibration_id"]]
    assert answered(other)[0] == before
    client.post(f"{made.headers['location']}:withdraw", {"reason": "a test"}, **mine)
    assert answered(mine, 2)[0] == before


@pytest.mark.parametrize("device", ["h100-sxm", "a100-sxm-80gb"], ids=["measured", "not measured"])
def test_a_catalog_that_a_write_replaced_is_gone_with_its_last_question(device):
    replaced = with_sets(catalog(*ten("serving_tpot", 1.3)), a_set(shipped(), device, streaming=0.5))
    held = weakref.ref(replaced)
    asked(replaced, served(16))
    asked(replaced, served(16), "memory")
    gc.disable()
    try:
        del replaced
        assert held() is None
    finally:
        gc.enable()
