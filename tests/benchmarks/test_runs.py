"""Runs: asked for, followed, cancelled, listed; and the suites that there are."""

import pytest

from service.protocol.leases import BenchmarkProgress, LeaseProgress
from tests.benchmarks.conftest import refusal
from tests.benchmarks.records import COPY, GEMM, POWER, SUITE
from tests.nodes import fleet
from tests.prepared import ON_SQLITE


def ask(nodes, by="operator", headers=None, **body):
    return nodes.call(
        "POST", "/v1/benchmark-runs", by=by, json={"suite_id": SUITE.id, **body}, headers=headers
    )


class TestAsked:
    def test_it_waits_for_a_node(self, nodes):
        made = ask(nodes, note="after the new fan")
        run = made.json()
        assert made.headers["location"] == f"/v1/benchmark-runs/{run['id']}"
        expected = {
            "suite_id": SUITE.id,
            "suite_version": SUITE.version,
            "device": "cpu",
            "note": "after the new fan",
            "state": "waiting",
            "attempt": 0,
            "cancel_requested": False,
            "progress": [],
        }
        assert {name: run[name] for name in expected} == expected
        assert run.keys() - expected.keys() == {"id", "seed", "created_at"}
        assert nodes.get(f"/v1/benchmark-runs/{run['id']}") == {**run, "figures": []}

    def test_the_node_gets_the_suite_and_the_seed(self, nodes):
        nodes.node("a")
        run_id = nodes.run()
        lease = nodes.claim("a")
        assert (lease.id, lease.suite) == (run_id, SUITE)
        assert lease.seed == nodes.get(f"/v1/benchmark-runs/{run_id}")["seed"]

    @ON_SQLITE
    def test_seeds_differ(self, nodes):
        assert len({ask(nodes).json()["seed"] for _ in range(5)}) == 5

    def test_for_one_node(self, nodes):
        nodes.node("a")
        nodes.node("b")
        run_id = nodes.run(node_id="b")
        assert fleet.claim(nodes.database, nodes.subjects["a"]) is None
        assert nodes.claim("b").id == run_id

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"suite_id": "never"}, "/suite_id"),
            ({"node_id": "never"}, "/node_id"),
            ({"node_id": "x"}, "/node_id"),
        ],
    )
    @ON_SQLITE
    def test_of_something_that_is_not_there(self, nodes, body, pointer):
        nodes.node("x", tenant="other")
        answer = ask(nodes, **body)
        assert answer.status_code == 422
        assert refusal(answer)[2] == [pointer]
        assert nodes.get("/v1/benchmark-runs")["items"] == []

    def test_twice_under_one_key_it_is_one_run(self, nodes):
        first, again = (ask(nodes, headers={"Idempotency-Key": "once"}) for _ in range(2))
        assert first.json() == again.json()
        assert len(nodes.get("/v1/benchmark-runs")["items"]) == 1

    def test_for_the_check_alone_nothing_is_stored(self, nodes):
        url = "/v1/benchmark-runs?validate_only=true"
        assert nodes.call("POST", url, json={"suite_id": SUITE.id}).status_code == 201
        assert nodes.get("/v1/benchmark-runs")["items"] == []

    def test_it_is_in_the_audit(self, nodes):
        run_id = nodes.run()
        nodes.call("POST", f"/v1/benchmark-runs/{run_id}:cancel")
        events = nodes.get("/v1/audit-events")["items"]
        assert [event["operation"] for event in events[:2]] == [
            "cancel_benchmark_run",
            "create_benchmark_run",
        ]
        assert {event["resource"] for event in events[:2]} == {f"benchmark-runs/{run_id}"}


class TestFollowed:
    def test_progress_is_what_the_node_says(self, nodes):
        nodes.node("a")
        run_id = nodes.run()
        step = BenchmarkProgress(benchmark=GEMM, state="running", repeat=2)
        fleet.renew(
            nodes.database, nodes.subjects["a"], nodes.claim("a"), progress=LeaseProgress(steps=[step])
        )
        run = nodes.get(f"/v1/benchmark-runs/{run_id}")
        assert (run["state"], run["attempt"], run["node_id"]) == ("running", 1, "a")
        assert run["progress"] == [{"benchmark": GEMM, "state": "running", "repeat": 2}]
        assert run["begun_at"]

    @ON_SQLITE
    def test_figures_are_the_middle_of_the_repeats_with_their_spread(self, nodes):
        """3 repeats of 2 * 512**3 FLOP in 1, 2 and 4 ms; the copy of 2 arrays of 2**28 bytes in 100 ms."""
        nodes.node("a")
        run_id = nodes.run()
        lease = nodes.claim("a")
        for repeat, middle in enumerate((1_000_000, 4_000_000, 2_000_000), start=1):
            nodes.reported(repeat, "a", lease, repeat=repeat, samples=[middle] * 5)
        nodes.reported(4, "a", lease, benchmark=COPY, samples=[100_000_000] * 5)
        nodes.reported(5, "a", lease, benchmark=POWER, readings=[71.5])
        gemm, copy, power = nodes.get(f"/v1/benchmark-runs/{run_id}")["figures"]
        work = 2 * 512**3
        assert gemm == {
            "benchmark": GEMM,
            "metric": "flops_per_second",
            "direction": "higher",
            "value": pytest.approx(work / 0.002),
            "lowest": pytest.approx(work / 0.004),
            "highest": pytest.approx(work / 0.001),
            "relative_spread": pytest.approx(1.5),
            "repeats": 3,
        }
        assert copy["value"] == pytest.approx(2 * 2**28 / 0.1)
        assert (power["metric"], power["value"], power["repeats"]) == ("watts", 71.5, 1)
        assert "relative_spread" not in power

    @ON_SQLITE
    def test_of_accelerators_that_measured_at_once_the_slowest_is_the_figure(self, nodes):
        """Two repeats on two accelerators: 1 and 2 ms, then 4 and 3 ms; of a third one is missing."""
        nodes.node("a")
        run_id = nodes.run()
        lease = nodes.claim("a")
        times = [
            (1, 0, 1_000_000),
            (1, 1, 2_000_000),
            (2, 0, 4_000_000),
            (2, 1, 3_000_000),
            (3, 0, 9_000_000),
        ]
        for number, (repeat, index, middle) in enumerate(times, start=1):
            members = {"accelerator_index": index, "concurrent_accelerators": 2}
            nodes.reported(number, "a", lease, repeat=repeat, samples=[middle] * 5, **members)
        (gemm,) = nodes.get(f"/v1/benchmark-runs/{run_id}")["figures"]
        work = 2 * 512**3
        assert (gemm["lowest"], gemm["highest"]) == (
            pytest.approx(work / 0.004),
            pytest.approx(work / 0.002),
        )
        assert gemm["repeats"] == 2

    @ON_SQLITE
    def test_a_failure_says_why(self, nodes):
        nodes.node("a")
        run_id = nodes.run()
        ended = nodes.complete("a", nodes.claim("a"), outcome="failed", reason="NO_DEVICE", detail="gone")
        assert ended.json() == {"state": "failed"}
        run = nodes.get(f"/v1/benchmark-runs/{run_id}")
        assert (run["state"], run["reason"], run["detail"]) == ("failed", "NO_DEVICE", "gone")
        assert run["finished_at"]

    def test_of_another_tenant_it_is_not_found(self, nodes):
        run_id = nodes.run()
        for method, url in (("GET", ""), ("POST", ":cancel")):
            answer = nodes.call(method, f"/v1/benchmark-runs/{run_id}{url}", by="other")
            assert refusal(answer)[:2] == (404, "BENCHMARK_RUN_NOT_FOUND")


class TestCancelled:
    def test_one_that_waits_ends_at_once(self, nodes):
        nodes.node("a")
        answer = nodes.call("POST", f"/v1/benchmark-runs/{nodes.run()}:cancel")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert fleet.claim(nodes.database, nodes.subjects["a"]) is None

    def test_one_that_is_running_ends_when_its_node_hears_of_it(self, nodes):
        nodes.node("a")
        run_id = nodes.run()
        lease = nodes.claim("a")
        told = nodes.call("POST", f"/v1/benchmark-runs/{run_id}:cancel").json()
        assert (told["state"], told["cancel_requested"]) == ("running", True)
        assert fleet.renew(nodes.database, nodes.subjects["a"], lease).cancel
        assert nodes.complete("a", lease, outcome="cancelled").json() == {"state": "cancelled"}

    def test_one_that_has_ended_stays_as_it_is(self, nodes):
        nodes.node("a")
        run_id = nodes.measured_run(range(1, 2), "a")
        answer = nodes.call("POST", f"/v1/benchmark-runs/{run_id}:cancel")
        assert refusal(answer)[:2] == (409, "RUN_ENDED")


class TestListed:
    def test_by_state_node_and_suite(self, nodes):
        nodes.node("a")
        nodes.node("b")
        done = nodes.measured_run(range(1, 3), "a")
        waiting, running = nodes.run(node_id="b"), nodes.run(node_id="a")
        nodes.claim("a")

        def ids(**filters):
            return [run["id"] for run in nodes.get("/v1/benchmark-runs", **filters)["items"]]

        assert ids() == [running, waiting, done]
        assert ids(state="completed") == [done]
        assert ids(state=["waiting", "running"]) == [running, waiting]
        assert ids(node_id="a") == [running, done]
        assert ids(node_id=["a", "b"], state="waiting") == [waiting]
        assert ids(suite_id=SUITE.id, node_id="b") == [waiting]
        assert ids(suite_id="another") == []
        assert nodes.get("/v1/benchmark-runs", by="other")["items"] == []

    def test_in_pages(self, nodes):
        asked = [nodes.run() for _ in range(5)]
        seen, token = [], ""
        while token is not None:
            page = nodes.get("/v1/benchmark-runs", page_size=2, page_token=token, state="waiting")
            seen += [run["id"] for run in page["items"]]
            token = page["next_page_token"]
        assert seen == asked[::-1]

    def test_without_figures(self, nodes):
        nodes.node("a")
        nodes.measured_run(range(1, 2), "a")
        assert "figures" not in nodes.get("/v1/benchmark-runs")["items"][0]


@ON_SQLITE
class TestSuites:
    def test_all_of_them(self, nodes):
        page = nodes.get("/v1/benchmark-suites")
        assert page == {"items": [SUITE.model_dump(mode="json")], "next_page_token": None}

    def test_one(self, nodes):
        assert nodes.get(f"/v1/benchmark-suites/{SUITE.id}") == SUITE.model_dump(mode="json")
        answer = nodes.call("GET", "/v1/benchmark-suites/never")
        assert refusal(answer)[:2] == (404, "BENCHMARK_SUITE_NOT_FOUND")
