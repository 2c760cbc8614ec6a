"""Runs of one benchmark beside a baseline: over time on a node, and across nodes of equal hardware."""

import pytest

from tests.benchmarks.records import COPY, GEMM, SUITE

FAST, SLOW = ([middle + step * 1000 for step in range(5)] for middle in (3_000_000, 3_600_000))


def compare(nodes, **query):
    return nodes.get("/v1/benchmark-results:compare", benchmark=GEMM, **query)


def verdicts(comparison):
    return [(run["run_id"], run["verdict"]) for run in comparison["runs"]]


def test_over_time_on_a_node(nodes):
    nodes.node("a")
    first = nodes.measured_run(range(1, 4), "a", samples=FAST)
    second = nodes.measured_run(range(4, 7), "a", samples=FAST)
    third = nodes.measured_run(range(7, 10), "a", samples=SLOW)
    found = compare(nodes, node_id="a")
    assert found["baseline"]["run_id"] == first
    assert verdicts(found) == [(first, "same"), (second, "same"), (third, "slower")]
    last = found["runs"][-1]
    assert last["relative_change"] == pytest.approx(3_002_000 / 3_602_000 - 1)
    assert (last["sample_minimum"], last["sample_q3"]) == (pytest.approx(0.0036), pytest.approx(0.003603))
    assert (last["repeats"], last["node_id"], last["has_clocks"]) == (3, "a", False)
    assert found["direction"] == "higher"


def test_beside_a_run_that_is_named(nodes):
    nodes.node("a")
    first = nodes.measured_run(range(1, 4), "a", samples=FAST)
    second = nodes.measured_run(range(4, 7), "a", samples=SLOW)
    assert verdicts(compare(nodes, baseline_run_id=second)) == [(first, "faster"), (second, "same")]


def test_across_nodes_of_equal_hardware(nodes):
    nodes.node("a")
    nodes.node("b")
    nodes.node("c", cpu_model="another processor")
    first = nodes.measured_run(range(1, 4), "a", samples=FAST)
    second = nodes.measured_run(range(4, 7), "b", samples=SLOW)
    nodes.measured_run(range(7, 10), "c", samples=SLOW)
    found = compare(nodes)
    assert verdicts(found) == [(first, "same"), (second, "slower")]
    assert found["hardware"] == "Xeon of the tests"
    beside = compare(nodes, node_id="b", baseline_run_id=first)
    assert verdicts(beside) == [(second, "slower")]


def test_hardware_that_is_unknown_is_like_nothing_else(nodes):
    for node, numbers in (("a", range(1, 4)), ("b", range(4, 7))):
        nodes.node(node)
        nodes.measured_run(numbers, node, inventory_sha256="9" * 64)
    found = compare(nodes)
    assert [run["node_id"] for run in found["runs"]] == ["a"]
    assert "hardware_sha256" not in found


def test_a_lower_clock_is_told_from_a_slower_kernel(nodes):
    nodes.node("a")
    for numbers, samples, clock in (
        (range(1, 4), FAST, 3.6e9),
        (range(4, 7), SLOW, 3.0e9),
        (range(7, 10), SLOW, 3.6e9),
    ):
        nodes.measured_run(numbers, "a", samples=samples, clock_hz=clock)
    found = compare(nodes)
    assert [run["verdict"] for run in found["runs"]] == ["same", "ambiguous", "slower"]
    assert {run["has_clocks"] for run in found["runs"]} == {True}


def test_what_does_not_count_is_not_compared(nodes):
    nodes.node("a")
    nodes.run()
    lease = nodes.claim("a")
    nodes.reported(1, "a", lease, samples=FAST)
    nodes.reported(2, "a", lease, samples=SLOW)
    nodes.reported(3, "a", lease, samples=SLOW, repeat=2, nonce="b" * 32)
    nodes.reported(4, "a", lease, status="failed", failure={"reason": "CRASHED"}, repeat=3)
    (run,) = compare(nodes)["runs"]
    assert (run["repeats"], run["sample_q3"]) == (1, pytest.approx(0.003003))
    assert "relative_spread" not in run


def test_the_last_runs_alone(nodes):
    nodes.node("a")
    ids = [nodes.measured_run(range(start, start + 1), "a") for start in (1, 2, 3, 4)]
    found = compare(nodes, runs=2)
    assert [run["run_id"] for run in found["runs"]] == ids[2:]
    assert found["baseline"]["run_id"] == ids[0]


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "query", [{"benchmark": COPY}, {"node_id": "b"}, {"baseline_run_id": "never"}, {"by": "other"}]
)
def test_there_may_be_nothing_to_compare(nodes, query):
    nodes.node("a")
    nodes.measured_run(range(1, 4), "a")
    params = {"benchmark": GEMM, **query}
    by = params.pop("by", "operator")
    answer = nodes.call("GET", "/v1/benchmark-results:compare", by=by, params=params)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOTHING_TO_COMPARE")


def test_another_amount_of_work_is_another_benchmark(nodes, monkeypatch):
    """A later version of the suite with a larger product is not held against the smaller one."""
    nodes.node("a")
    nodes.measured_run(range(1, 4), "a")
    gemm = SUITE.benchmarks[0]
    larger = gemm.model_copy(update={"work": gemm.work.model_copy(update={"m": 1024})})
    later = SUITE.model_copy(update={"version": 4, "benchmarks": [larger]})
    monkeypatch.setattr(nodes.app.state, "suites", {SUITE.id: later})
    second = nodes.measured_run(range(4, 7), "a", suite=later)
    assert len(compare(nodes)["runs"]) == 1
    assert [run["run_id"] for run in compare(nodes, baseline_run_id=second)["runs"]] == [second]


def test_a_run_that_not_every_accelerator_has_reported_is_left_out(nodes):
    """Of two that measure at once one alone says nothing of the slower."""
    nodes.node("a")
    together = {"concurrent_accelerators": 2, "samples": FAST}
    alone = nodes.measured_run(range(1, 2), "a", accelerator_index=0, **together)
    nodes.validate()
    for query in ({}, {"baseline_run_id": alone}):
        params = {"benchmark": GEMM, **query}
        answer = nodes.call("GET", "/v1/benchmark-results:compare", params=params)
        assert (answer.status_code, answer.json()["code"]) == (404, "NOTHING_TO_COMPARE")
    assert nodes.get("/v1/benchmark-results:regressions")["items"] == []

    run_id = nodes.run(node_id="a")
    lease = nodes.claim("a")
    results = [
        nodes.reported(number, "a", lease, accelerator_index=number - 2, **together) for number in (2, 3)
    ]
    assert nodes.complete("a", lease, *results).json() == {"state": "completed"}
    found = compare(nodes)
    assert found["baseline"]["run_id"] == run_id
    assert verdicts(found) == [(run_id, "same")]
