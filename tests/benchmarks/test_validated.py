"""Validation of stored results: asked for when a lease ends, kept beside the result, shown with it."""

import pytest
from sqlalchemy import select, update

from service.app.background.regressions import COMPARING
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation import repository
from service.benchmarks.validation.jobs import SWEEPING, build_validation_kind, enqueue_validation
from service.kit.jobs.events import EventRow
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.schedules import NoArguments
from service.nodes.tables import REVOKED, LeaseRow, NodeRow
from tests.applications import MEANS
from tests.benchmarks.conftest import refusal
from tests.benchmarks.records import COPY, GEMM, SUITE, samples_ns
from tests.clocks import START
from tests.working import do_all

SAMPLES = samples_ns(3_000_000, seed=77)


def ask_sweep(session, tick="first"):
    enqueue_job(session, SWEEPING.job, NoArguments(), tenant_id="system", effect_key=tick)


@pytest.fixture
def lease(nodes):
    nodes.node("a")
    nodes.run()
    return nodes.claim("a")


def test_what_a_node_measured_is_accepted_once_its_lease_ends(nodes, lease):
    results = [nodes.reported(1, "a", lease), nodes.reported(2, "a", lease, benchmark=COPY)]
    assert nodes.validate() == 0
    nodes.complete("a", lease, *results)
    assert nodes.validate() == 1
    assert {row.verdict for row in nodes.validations().values()} == {"accepted"}
    with nodes.database.open_reader() as session:
        accepted = repository.list_accepted_results(session, "default", "a")
        assert [row.id for row in accepted] == [result.result_id for result in results]
        assert repository.list_accepted_results(session, "other", "a") == []


def test_what_came_late_is_evidence_and_of_another_lease_nothing(nodes, lease):
    late, guessed = nodes.measured(1, "a", lease), nodes.reported(2, "a", lease, nonce="b" * 32)
    nodes.complete("a", lease)
    nodes.put("a", late)
    nodes.validate()
    found = nodes.validations()
    assert (found[late.result_id].verdict, found[guessed.result_id].verdict) == ("evidence_only", "rejected")
    assert [one["rule"] for one in found[late.result_id].findings] == ["envelope.late"]
    assert [one["rule"] for one in found[guessed.result_id].findings] == ["envelope.unknown_lease"]


def test_a_copy_of_an_earlier_measurement_is_rejected(nodes):
    """Samples sent again under another id, in another run of another node."""
    nodes.node("a")
    first = nodes.measured_run(range(1, 2), "a", samples=SAMPLES)
    nodes.node("b")
    second = nodes.measured_run(range(2, 3), "b", samples=SAMPLES)
    nodes.validate()
    assert [shown["validation"]["verdict"] for shown in nodes.results(run_id=first)] == ["accepted"]
    (copy,) = nodes.results(run_id=second)
    assert [one["rule"] for one in copy["validation"]["findings"]] == ["replay.samples_seen"]
    assert nodes.results(verdict="rejected") == [copy]
    assert nodes.results(verdict=["rejected", "accepted"], by="other") == []


def test_what_does_not_depend_on_the_seed_is_rejected(nodes):
    nodes.node("a")
    for number in (1, 2):
        nodes.measured_run(range(number, number + 1), "a", checksum="e" * 64)
        nodes.validate()
    second, first = nodes.results()
    assert (first["validation"]["verdict"], second["validation"]["verdict"]) == ("accepted", "rejected")
    assert second["validation"]["findings"][0]["rule"] == "correctness.seed_ignored"


class TestMeasuredAgain:
    @pytest.fixture
    def suspect(self, nodes):
        """A run whose two repeats are far apart; one benchmark of it is sound."""
        nodes.node("a")
        run_id = nodes.run(node_id="a")
        lease = nodes.claim("a")
        results = [
            nodes.reported(1, "a", lease, samples=samples_ns(3_000_000, seed=1)),
            nodes.reported(2, "a", lease, repeat=2, samples=samples_ns(9_000_000, seed=2)),
            nodes.reported(3, "a", lease, benchmark=COPY),
        ]
        nodes.complete("a", lease, *results)
        nodes.validate()
        return run_id

    @staticmethod
    def again(nodes, number, middle_ns):
        """The node claims what it is asked for again, and measures it."""
        lease = nodes.claim("a")
        result = nodes.reported(number, "a", lease, samples=samples_ns(middle_ns, seed=number))
        nodes.complete("a", lease, result)
        nodes.validate()
        return lease

    def verdicts(self, nodes, **filters):
        return sorted(one["validation"]["verdict"] for one in nodes.results(benchmark=GEMM, **filters))

    def test_only_the_suspects_and_on_the_same_node(self, nodes, suspect):
        assert self.verdicts(nodes) == ["suspect", "suspect"]
        again = nodes.get("/v1/benchmark-runs", state="waiting")["items"]
        assert [(one["re_run_of"], one["node_id"]) for one in again] == [(suspect, "a")]
        with nodes.database.open_writer() as session:
            enqueue_validation(session, "default", suspect, because="its process was killed after the commit")
        assert nodes.validate() == 1
        assert len(nodes.get("/v1/benchmark-runs", state="waiting")["items"]) == 1
        recorded = [e for e in nodes.get("/v1/audit-events")["items"] if e["operation"] == "re_run_benchmark"]
        assert [event["resource"] for event in recorded] == [f"benchmark-runs/{again[0]['id']}"]
        assert (recorded[0]["subject_kind"], "after_digest" in recorded[0]) == ("service", True)
        lease = nodes.claim("a")
        assert [benchmark.name for benchmark in lease.suite.benchmarks] == [GEMM]
        figures = nodes.get(f"/v1/benchmark-runs/{suspect}")["figures"]
        assert {one["benchmark"]: one["result_verdict"] for one in figures} == {
            GEMM: "suspect",
            COPY: "accepted",
        }

    def test_two_that_agree_are_accepted(self, nodes, suspect):
        """The middle figure of the suspect run is that of 4.5 ms, as its re-run measures."""
        lease = self.again(nodes, 11, 4_500_000)
        assert self.verdicts(nodes) == ["accepted"] * 3
        (first,) = nodes.results(run_id=lease.id)
        assert first["validation"]["agreeing_run_ids"] == [suspect]
        shown = nodes.results(run_id=suspect, benchmark=GEMM)
        assert {one["validation"]["findings"][0]["rule"] for one in shown} == {"quality.repeat_spread"}
        assert nodes.get("/v1/benchmark-runs", state="waiting")["items"] == []

    @pytest.mark.usefixtures("suspect")
    def test_it_ends_after_two(self, nodes):
        """None of the three agrees: all stay suspect, and nobody measures for ever."""
        for number, middle_ns in ((11, 15_000_000), (12, 500_000)):
            lease = nodes.claim("a")
            results = [
                nodes.reported(number, "a", lease, samples=samples_ns(middle_ns, seed=number)),
                nodes.reported(
                    number + 10, "a", lease, repeat=2, samples=samples_ns(3 * middle_ns, seed=number + 10)
                ),
            ]
            nodes.complete("a", lease, *results)
            nodes.validate()
        assert self.verdicts(nodes) == ["suspect"] * 6
        assert len(nodes.get("/v1/benchmark-runs", suite_id=SUITE.id)["items"]) == 3

    def test_not_on_a_node_that_is_gone(self, nodes):
        nodes.node("a")
        nodes.run(node_id="a")
        lease = nodes.claim("a")
        results = [
            nodes.reported(number, "a", lease, repeat=number, samples=samples_ns(number * 10**7, seed=number))
            for number in (1, 3)
        ]
        nodes.complete("a", lease, *results)
        with nodes.database.open_writer() as session:
            session.execute(update(NodeRow).values(state=REVOKED))
        nodes.validate()
        assert self.verdicts(nodes) == ["suspect", "suspect"]
        assert nodes.get("/v1/benchmark-runs", state="waiting")["items"] == []


def test_somebody_can_have_it_validated_again(nodes):
    """What nobody knew the first time: the same samples came before, in a run that is validated later."""
    nodes.node("a")
    run_id = nodes.measured_run(range(1, 2), "a")
    nodes.validate()
    (before,) = nodes.results()
    asked = nodes.call("POST", f"/v1/benchmark-runs/{run_id}:validate")
    assert (asked.status_code, asked.json()["id"]) == (202, run_id)
    assert nodes.validate() == 1
    (after,) = nodes.results()
    assert after["validation"]["validated_at"] > before["validation"]["validated_at"]
    assert refusal(nodes.call("POST", f"/v1/benchmark-runs/{run_id}:validate", by="other"))[0] == 404
    assert nodes.audited("validate_benchmark_run") == [f"benchmark-runs/{run_id}"]


def test_what_no_end_of_a_lease_asked_for_is_swept_up(nodes):
    nodes.node("a")
    nodes.run()
    lease = nodes.claim("a")
    result = nodes.reported(1, "a", lease)
    with nodes.database.open_writer() as session:
        session.execute(update(BenchmarkResultRow).values(received_at=START))
        ask_sweep(session)
    assert do_all(nodes.database, SWEEPING.job, build_validation_kind(MEANS.writes)) == 1
    nodes.lose(lease)
    nodes.node("b")
    nodes.claim("b")
    nodes.complete("b", lease, outcome="failed")
    with nodes.database.open_writer() as session:
        session.execute(update(LeaseRow).values(state="dead"))
        ask_sweep(session, "second")
    assert do_all(nodes.database, SWEEPING.job, build_validation_kind(MEANS.writes)) == 2
    assert nodes.validations()[result.result_id].verdict == "accepted"


class TestRegressions:
    def measured(self, nodes, node, *middles_ns):
        """Runs of a node, one after the other."""
        return [
            nodes.measured_run(range(number, number + 1), node, samples=samples_ns(middle_ns, seed=number))
            for number, middle_ns in enumerate(middles_ns, start=1 + 100 * len(nodes.subjects))
        ]

    def test_over_time_and_across_nodes(self, nodes):
        nodes.node("a")
        *_, slow = self.measured(nodes, "a", 3_000_000, 3_010_000, 4_500_000)
        nodes.node("b")
        beside = self.measured(nodes, "b", 3_000_000)
        nodes.validate()
        answer = nodes.get("/v1/benchmark-results:regressions")
        assert answer["results_considered"] == 4
        over_time, across = sorted(answer["items"], key=lambda one: one["against"])
        assert (over_time["against"], over_time["run_id"], over_time["compared"]) == (
            "earlier_runs",
            slow,
            2,
        )
        assert over_time["relative_change"] == pytest.approx(-1 / 3, abs=0.01)
        assert (across["against"], across["baseline_run_id"]) == ("other_nodes", beside[0])
        assert nodes.get("/v1/benchmark-results:regressions", node_id="b")["items"] == []
        assert nodes.get("/v1/benchmark-results:regressions", least_change=0.5)["items"] == []
        assert nodes.get("/v1/benchmark-results:regressions", by="other")["items"] == []

    def test_are_told_once_for_each_result(self, nodes):
        nodes.node("a")
        *_, slow = self.measured(nodes, "a", 3_000_000, 3_010_000, 4_500_000)
        nodes.node("b")
        self.measured(nodes, "b", 3_000_000)
        for again in (False, True):
            nodes.validate()
            assert do_all(nodes.database, COMPARING) == (1 if again else 4)
            with nodes.database.open_writer() as session:
                told = session.scalars(select(EventRow)).all()
                enqueue_validation(session, "default", slow, because="again", again=True)
            (event,) = told
            (result,) = nodes.results(run_id=slow)
            assert event.type == "benchmark.regressed"
            assert event.data["result_id"] == result["id"]
            assert event.data["node_id"] == result["node_id"]
            assert event.data["relative_change"] == pytest.approx(-1 / 3, abs=0.01)

    def test_a_lower_clock_is_no_slower_work(self, nodes):
        """Half the clock and twice the time are as many cycles."""
        nodes.node("a")
        for number, (middle_ns, clock_hz) in enumerate(((3_000_000, 3e9), (6_000_000, 1.5e9)), start=1):
            taken = samples_ns(middle_ns, seed=number)
            nodes.measured_run(range(number, number + 1), "a", samples=taken, clock_hz=clock_hz)
        nodes.validate()
        assert nodes.get("/v1/benchmark-results:regressions")["items"] == []
