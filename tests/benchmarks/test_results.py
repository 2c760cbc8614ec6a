"""Results: kept as sent, once, whatever became of their lease; refused where they are not as asked."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from service.benchmarks import service
from service.benchmarks.router import report_benchmark_result
from service.benchmarks.tables import BenchmarkResultRow
from service.nodes.errors import NodeQuotaSpent
from service.nodes.service import lock_node, quarantine_by_operator
from service.protocol.results import MOST_RESULT_BYTES, MOST_RESULT_VALUES, BenchmarkResultReport
from tests.applications import content_digest
from tests.benchmarks.conftest import QUOTA, refusal
from tests.benchmarks.records import COPY, GEMM, POWER, SUITE, uuid
from tests.clocks import Clock, unset
from tests.nodes.fleet import settle
from tests.prepared import ON_SQLITE


@pytest.fixture
def lease(nodes):
    """The lease of node a."""
    nodes.node("a")
    nodes.run()
    return nodes.claim("a")


def rows(nodes):
    with nodes.database.open_reader() as session:
        return list(session.scalars(select(BenchmarkResultRow).order_by(BenchmarkResultRow.id)))


def shown(nodes, result):
    return nodes.get(f"/v1/benchmark-results/{result.result_id}")


def standing_of(nodes, result):
    found = shown(nodes, result)
    return found["lease"], found["is_counted"]


def rules_of(nodes, *results):
    """The rules that results do not meet."""
    return {one["rule"] for each in results for one in shown(nodes, each)["validation"]["findings"]}


class TestKept:
    def test_the_bytes_are_kept_as_they_were_sent(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        content = json.dumps(json.loads(result.to_json()), indent=3).encode()
        receipt = nodes.put("a", result, content=content)
        digest = sha256(content).hexdigest()
        expected = {"result_id": result.result_id, "content_sha256": digest, "lease": "current"}
        assert (receipt.status_code, receipt.json()) == (200, expected)
        answer = nodes.call("GET", f"/v1/benchmark-results/{result.result_id}")
        assert b'"record":' + content + b"}" in answer.content
        assert answer.json()["content_sha256"] == digest
        assert BenchmarkResultReport.model_validate_json(json.dumps(answer.json()["record"])) == result

    @ON_SQLITE
    def test_what_the_samples_say_is_computed_here(self, nodes, lease):
        """Middle of three samples of 4 executions each: 12 ms, so 2 * 512**3 * 4 / 0.012."""
        result = nodes.reported(
            1, "a", lease, samples=[12_000_000, 11_000_000, 15_000_000], inner_iterations=4
        )
        found = shown(nodes, result)
        assert found["figure"] == pytest.approx(2 * 512**3 * 4 / 0.012)
        assert found["metric"] == "flops_per_second"
        assert found["summary"]["minimum"] == pytest.approx(0.00275)
        assert found["summary"]["size"] == 3
        assert found["is_counted"] is True
        assert found["hardware"] == "Xeon of the tests"
        assert "conflicts_with" not in found

    @ON_SQLITE
    def test_a_failure_is_a_result_without_a_figure(self, nodes, lease):
        failure = {"reason": "TIMEOUT", "error_output": "killed\n"}
        found = shown(nodes, nodes.reported(1, "a", lease, status="timeout", failure=failure))
        assert (found["status"], found["reason"], found["is_counted"]) == ("timeout", "TIMEOUT", False)
        assert not {"figure", "summary"} & found.keys()

    @ON_SQLITE
    def test_an_inventory_that_never_came_leaves_the_hardware_unknown(self, nodes, lease):
        result = nodes.reported(1, "a", lease, inventory_sha256="9" * 64)
        assert not {"hardware", "hardware_sha256"} & shown(nodes, result).keys()

    def test_it_is_committed_before_it_is_acknowledged(self, nodes, lease, monkeypatch):
        """A service that dies before the commit has promised nothing."""
        result = nodes.measured(1, "a", lease)
        keep = service.keep

        def interrupted(*arguments):
            keep(*arguments)
            raise RuntimeError("killed before the commit")

        with monkeypatch.context() as patched:
            patched.setattr(service, "keep", interrupted)
            assert nodes.put("a", result).status_code == 500
        assert rows(nodes) == []
        assert nodes.put("a", result).status_code == 200


class TestSentAgain:
    def test_it_is_one_row_and_the_same_receipt(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        first, again = nodes.put("a", result), nodes.put("a", result)
        assert first.status_code == again.status_code == 200
        assert first.content == again.content
        assert len(rows(nodes)) == 1

    @settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        samples=st.lists(st.integers(1, 10**10), min_size=1, max_size=40),
        inner=st.integers(1, 1000),
        indent=st.integers(0, 4),
    )
    @ON_SQLITE
    def test_whatever_was_measured(self, nodes, lease, samples, inner, indent):
        before = len(rows(nodes))
        result = nodes.measured(before + 1, "a", lease, samples=samples, inner_iterations=inner)
        content = json.dumps(json.loads(result.to_json()), indent=indent).encode()
        receipts = [nodes.put("a", result, content=content) for _ in range(2)]
        assert [receipt.status_code for receipt in receipts] == [200, 200]
        assert len(rows(nodes)) == before + 1
        found = shown(nodes, result)
        seconds = [sample / 1e9 for sample in samples]
        assert found["figure"] == SUITE.find_benchmark(GEMM).compute_figure(seconds, inner_iterations=inner)
        assert found["record"] == json.loads(content)

    def test_the_receipt_is_that_of_the_first_time(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        first = nodes.put("a", result)
        assert nodes.complete("a", lease, result).status_code == 200
        assert nodes.put("a", result).content == first.content
        assert rows(nodes)[0].lease == "current"

    def test_other_content_under_the_id_is_refused(self, nodes, lease):
        result = nodes.reported(1, "a", lease)
        other = nodes.measured(1, "a", lease, samples=[1, 2, 3])
        assert refusal(nodes.put("a", other)) == (422, "RESULT_DIFFERS", [])
        assert shown(nodes, result)["record"] == json.loads(result.to_json())

    @ON_SQLITE
    def test_other_spaces_are_other_content(self, nodes, lease):
        result = nodes.reported(1, "a", lease)
        spaced = nodes.put("a", result, content=result.to_json() + b"\n")
        assert refusal(spaced) == (422, "RESULT_DIFFERS", [])

    def test_at_once_it_is_one_row_and_as_many_receipts(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        receipts = self.at_once(nodes, [result] * 8)
        assert len(set(receipts)) == 1
        assert receipts[0].lease == "current"
        assert len(rows(nodes)) == 1

    def test_two_payloads_at_once_are_both_kept_and_one_is_flagged(self, nodes, lease):
        results = [nodes.measured(number, "a", lease) for number in (1, 2)]
        self.at_once(nodes, results * 3)
        first, second = rows(nodes)
        assert {first.conflicts_with, second.conflicts_with} in ({None, first.id}, {None, second.id})

    @staticmethod
    def at_once(nodes, results):
        """Receipts of results that threads report together."""
        start = threading.Barrier(len(results))

        def keep(result):
            values = service.parse_result(nodes.subjects["a"], result, result.to_json())
            start.wait()
            with nodes.database.open_writer() as session:
                return service.keep(session, nodes.subjects["a"], result, values, QUOTA)

        with ThreadPoolExecutor(len(results)) as pool:
            return list(pool.map(keep, results))


class TestConflicts:
    def test_the_second_payload_for_a_repeat_is_kept_and_does_not_count(self, nodes, lease):
        first = nodes.reported(1, "a", lease, samples=[10_000_000] * 5)
        second = nodes.reported(2, "a", lease, samples=[1_000_000] * 5)
        found = shown(nodes, second)
        assert (found["conflicts_with"], found["is_counted"]) == (first.result_id, False)
        (figure,) = nodes.get(f"/v1/benchmark-runs/{lease.id}")["figures"]
        assert (figure["repeats"], figure["value"]) == (1, pytest.approx(2 * 512**3 / 0.01))

    @pytest.mark.parametrize("other", [{"repeat": 2}, {"benchmark": COPY}])
    @ON_SQLITE
    def test_another_place_is_none(self, nodes, lease, other):
        nodes.reported(1, "a", lease)
        assert "conflicts_with" not in shown(nodes, nodes.reported(2, "a", lease, **other))

    def test_what_was_not_measured_under_the_lease_takes_no_place(self, nodes, lease):
        """Who guesses what a lease said cannot stand before what was measured under it."""
        guessed = nodes.reported(1, "a", lease, nonce="b" * 32)
        assert shown(nodes, guessed)["lease"] == "unknown"
        measured = nodes.reported(2, "a", lease)
        found = shown(nodes, measured)
        assert (found["lease"], found["is_counted"]) == ("current", True)


class TestLeases:
    def test_after_the_lease_was_lost_it_is_late(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        nodes.lose(lease)
        nodes.node("b")
        again = nodes.claim("b")
        assert again.fencing_token > lease.fencing_token
        assert nodes.put("a", result).json()["lease"] == "late"
        assert shown(nodes, result)["is_counted"] is False
        current = nodes.reported(2, "b", again)
        assert "conflicts_with" not in shown(nodes, current)
        assert nodes.get(f"/v1/benchmark-runs/{lease.id}")["figures"][0]["repeats"] == 1

    @pytest.mark.parametrize("other", [{"nonce": "b" * 32}, {"fencing_token": 99}])
    def test_of_another_lease_it_is_unknown_and_kept(self, nodes, lease, other):
        result = nodes.reported(1, "a", lease, **other)
        assert (shown(nodes, result)["lease"], shown(nodes, result)["is_counted"]) == ("unknown", False)

    def test_a_run_shows_the_figures_of_its_last_attempt_alone(self, nodes, lease):
        lost = [
            nodes.reported(number, "a", lease, repeat=number, samples=[1_000_000] * 5) for number in (1, 2, 3)
        ]
        nodes.lose(lease)
        nodes.node("b")
        again = nodes.claim("b")
        assert [standing_of(nodes, each) for each in lost] == [("current", True)] * 3
        nodes.reported(4, "b", again, samples=[2_000_000] * 5)
        assert [standing_of(nodes, each) for each in lost] == [("late", False)] * 3
        (figure,) = nodes.get(f"/v1/benchmark-runs/{lease.id}")["figures"]
        assert (figure["repeats"], figure["value"]) == (1, pytest.approx(2 * 512**3 / 0.002))

    @pytest.mark.parametrize("is_taken", [False, True])
    def test_an_attempt_that_lapsed_completes_its_run_and_counts_alone(self, nodes, lease, is_taken):
        named = ((1, GEMM), (2, COPY))
        whole = [nodes.measured(number, "a", lease, benchmark=name) for number, name in named]
        whole.append(nodes.measured(3, "a", lease, benchmark=POWER, readings=[90.0]))
        nodes.lose(lease)
        settle(nodes.database)
        if is_taken:
            nodes.node("b")
            again = nodes.claim("b")
            second = nodes.reported(9, "b", again)
        for each in whole:
            assert nodes.complete("a", lease).json()["code"] == "STALE_LEASE", "a benchmark is not there yet"
            assert nodes.put("a", each).json()["lease"] == "late"
        nodes.validate()
        assert "envelope.late" in rules_of(nodes, *whole)
        assert nodes.complete("a", lease, *whole).json() == {"state": "completed"}
        assert [standing_of(nodes, each) for each in whole] == [("current", True)] * 3
        nodes.validate()
        assert "envelope.late" not in rules_of(nodes, *whole)
        run = nodes.get(f"/v1/benchmark-runs/{lease.id}")
        assert (run["state"], run["node_id"]) == ("completed", nodes.subjects["a"].id)
        if is_taken:
            assert standing_of(nodes, second) == ("late", False)
            assert nodes.complete("b", again, second).json()["code"] == "STALE_LEASE"
        assert nodes.complete("a", lease, *whole).json() == {"state": "completed"}, "asked again"

    def test_one_that_lapsed_does_not_complete_a_run_that_another_has_completed(self, nodes, lease):
        first = nodes.measured(1, "a", lease)
        nodes.lose(lease)
        nodes.node("b")
        again = nodes.claim("b")
        second = nodes.reported(2, "b", again)
        assert nodes.complete("b", again, second).status_code == 200
        nodes.put("a", first)
        assert nodes.complete("a", lease, first).json()["code"] == "STALE_LEASE"
        assert nodes.get(f"/v1/benchmark-runs/{lease.id}")["node_id"] == "b"
        assert (standing_of(nodes, first), standing_of(nodes, second)) == (("late", False), ("current", True))


@ON_SQLITE
class TestRefused:
    def test_of_another_node(self, nodes, lease):
        nodes.node("b")
        result = nodes.measured(1, "a", lease)
        assert refusal(nodes.put("b", result)) == (422, "NOT_AS_ASKED", ["/node_id"])
        assert rows(nodes) == []

    def test_at_another_address(self, nodes, lease):
        content = nodes.measured(1, "a", lease).to_json()
        headers = {"content-type": "application/json", "content-digest": content_digest(content)}
        url = f"/v1/benchmark-results/{uuid(2)}"
        answer = nodes.call("PUT", url, by="a", content=content, headers=headers)
        assert refusal(answer) == (422, "NOT_AS_ASKED", ["/result_id"])

    @pytest.mark.parametrize(
        ("members", "pointers"),
        [
            ({"seed": 1}, ["/seed"]),
            ({"suite_version": 1, "device": "cuda"}, ["/suite_version", "/device"]),
            ({"suite_id": "another"}, ["/suite_id"]),
            ({"repeat": 11}, ["/repeat"]),
        ],
    )
    def test_what_the_run_did_not_ask_for(self, nodes, lease, members, pointers):
        result = nodes.measured(1, "a", lease, **members)
        assert refusal(nodes.put("a", result)) == (422, "NOT_AS_ASKED", pointers)

    def test_a_benchmark_that_was_changed_on_the_way(self, nodes, lease):
        document = json.loads(nodes.measured(1, "a", lease).to_json())
        document["benchmark"]["work"]["m"] = 1024
        result = BenchmarkResultReport.model_validate_json(json.dumps(document))
        assert refusal(nodes.put("a", result)) == (422, "NOT_AS_ASKED", ["/benchmark"])

    def test_a_size_to_which_the_benchmark_does_not_go_down(self, nodes, lease):
        document = json.loads(nodes.measured(1, "a", lease, benchmark=COPY).to_json())
        for size, status in ((2**27, 200), (2**24, 200), (2**23, 422), (2**26 + 2**25, 422), (2**29, 422)):
            document["benchmark"]["work"]["array_bytes"] = size
            document["result_id"] = uuid(size)
            result = BenchmarkResultReport.model_validate_json(json.dumps(document))
            assert nodes.put("a", result).status_code == status, size
        found = {each.work_sha256: each.figure for each in rows(nodes)}
        sizes = SUITE.find_benchmark(COPY).map_sizes()
        moved = {sha: 2 * sizes[sha].work.array_bytes for sha in found}
        (seconds,) = {round(moved[sha] / figure, 9) for sha, figure in found.items()}
        assert sorted(moved.values()) == [2**25, 2**28]
        assert seconds == pytest.approx(0.003, rel=0.1)

    @pytest.mark.parametrize(("name", "samples"), [(POWER, {}), (GEMM, {"readings": [0.0]})])
    def test_samples_of_another_kind(self, nodes, lease, name, samples):
        result = nodes.measured(1, "a", lease, benchmark=name, **samples)
        assert refusal(nodes.put("a", result)) == (422, "NOT_AS_ASKED", ["/measurement"])

    def test_a_body_that_was_damaged(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        damaged = result.to_json().replace(b"host_clock", b"cuda_event")
        sent = content_digest(result.to_json())
        answer = nodes.put("a", result, content=damaged, **{"content-digest": sent})
        assert refusal(answer) == (400, "DIGEST_MISMATCH", ["/header/Content-Digest"])
        assert rows(nodes) == []

    @pytest.mark.parametrize("digest", ["", "sha-256=:AAAA:", "md5=:AAAA:", "sha-512=:AAAA:"])
    def test_another_digest_than_sha_256(self, nodes, lease, digest):
        answer = nodes.put("a", nodes.measured(1, "a", lease), **{"content-digest": digest})
        assert refusal(answer) == (422, "UNPROCESSABLE", ["/header/content-digest"])

    def test_no_digest(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        headers = {"content-type": "application/json"}
        url = f"/v1/benchmark-results/{result.result_id}"
        answer = nodes.call("PUT", url, by="a", content=result.to_json(), headers=headers)
        assert answer.status_code == 422

    def test_more_bytes_than_a_result_may_have(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        room = MOST_RESULT_BYTES - len(result.to_json())
        too_large = nodes.put("a", result, content=result.to_json() + b" " * (room + 1))
        assert refusal(too_large) == (413, "PAYLOAD_TOO_LARGE", [])
        assert nodes.put("a", result, content=result.to_json() + b" " * room).status_code == 200

    def test_more_values_than_a_result_may_have(self, nodes, lease):
        """Each of 20 missing members would make a copy of what is there."""
        result = nodes.measured(1, "a", lease)
        most = json.dumps({"content": [[]] * ((MOST_RESULT_VALUES - 2) // 2)}).encode()
        assert refusal(nodes.put("a", result, content=most))[:2] == (422, "UNPROCESSABLE")
        too_many = json.dumps({"content": [[]] * MOST_RESULT_VALUES}).encode()
        assert refusal(nodes.put("a", result, content=too_many)) == (413, "PAYLOAD_TOO_LARGE", [])

    def test_from_anybody_but_a_node(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        assert refusal(nodes.put("operator", result))[:2] == (403, "NOT_A_NODE")
        assert refusal(nodes.complete("operator", lease))[:2] == (403, "NOT_A_NODE")


def test_the_limits_are_documented():
    told = report_benchmark_result.__doc__
    assert f"{MOST_RESULT_VALUES:,} members and elements" in told
    assert f"{MOST_RESULT_BYTES // 2**20} MiB" in told


class TestRuns:
    """A result is of a run that its node was granted: of others nothing is kept."""

    NEVER = (422, "RUN_NOT_GRANTED", ["/run_id"])

    def test_a_run_that_never_was(self, nodes, lease):
        result = nodes.measured(1, "a", lease, run_id="never-asked-for", seed=1)
        assert refusal(nodes.put("a", result)) == self.NEVER
        assert rows(nodes) == []

    def test_a_run_of_another_node(self, nodes, lease):
        nodes.node("b")
        assert refusal(nodes.put("b", nodes.measured(1, "b", lease))) == self.NEVER

    def test_a_run_that_waits(self, nodes, lease):
        run_id = nodes.run(node_id="a")
        seed = nodes.get(f"/v1/benchmark-runs/{run_id}")["seed"]
        assert refusal(nodes.put("a", nodes.measured(1, "a", lease, run_id=run_id, seed=seed))) == self.NEVER

    def test_a_run_of_another_tenant(self, nodes, lease):
        nodes.node("x", tenant="other")
        assert refusal(nodes.put("x", nodes.measured(1, "x", lease))) == self.NEVER

    def test_a_node_that_is_set_aside_hands_over_what_it_has(self, nodes, lease):
        result = nodes.measured(1, "a", lease)
        with nodes.database.open_writer() as session:
            quarantine_by_operator(session, lock_node(session, "default", "a"))
        assert nodes.put("a", result).json()["lease"] == "late"


class TestQuota:
    """What a node may hand in on a day."""

    @pytest.fixture
    def clock(self, database):
        clock = Clock(database)
        yield clock
        unset(database)

    @staticmethod
    def allow(nodes, **quota):
        nodes.app.state.node_quota = QUOTA._replace(**quota)

    def test_so_many_a_day_and_again_the_next(self, nodes, clock, lease):
        self.allow(nodes, results=2)
        clock.set(clock.at.replace(hour=23, minute=59, second=30))
        first, *_ = [nodes.reported(number, "a", lease, repeat=number) for number in (1, 2)]
        third = nodes.measured(3, "a", lease, repeat=3)
        refused = nodes.put("a", third)
        assert refusal(refused) == (429, "NODE_QUOTA_SPENT", [])
        assert 30 <= int(refused.headers["retry-after"]) <= 31
        assert len(rows(nodes)) == 2
        assert nodes.put("a", first).status_code == 200
        clock.move(seconds=int(refused.headers["retry-after"]))
        assert nodes.put("a", third).status_code == 200

    @ON_SQLITE
    def test_so_many_bytes(self, nodes, lease):
        one, other = nodes.measured(1, "a", lease), nodes.measured(2, "a", lease, repeat=2)
        self.allow(nodes, result_bytes=len(one.to_json()) + len(other.to_json()) - 1)
        assert nodes.put("a", one).status_code == 200
        assert refusal(nodes.put("a", other))[:2] == (429, "NODE_QUOTA_SPENT")

    @ON_SQLITE
    def test_what_is_refused_does_not_count(self, nodes, lease):
        self.allow(nodes, results=1)
        for _ in range(3):
            assert nodes.put("a", nodes.measured(9, "a", lease, run_id="none", seed=1)).status_code == 422
        assert nodes.put("a", nodes.measured(1, "a", lease)).status_code == 200

    def test_each_node_has_its_own(self, nodes, lease):
        self.allow(nodes, results=1)
        nodes.reported(1, "a", lease)
        nodes.node("b")
        nodes.run()
        nodes.reported(2, "b", nodes.claim("b"))
        assert nodes.put("a", nodes.measured(3, "a", lease, repeat=2)).status_code == 429

    def test_many_at_once_are_no_way_round(self, nodes, lease):
        quota = QUOTA._replace(results=3)
        results = [nodes.measured(number, "a", lease, repeat=number) for number in range(1, 9)]
        start = threading.Barrier(len(results))

        def keep(result):
            values = service.parse_result(nodes.subjects["a"], result, result.to_json())
            start.wait()
            try:
                with nodes.database.open_writer() as session:
                    return service.keep(session, nodes.subjects["a"], result, values, quota)
            except NodeQuotaSpent:
                return None

        with ThreadPoolExecutor(len(results)) as pool:
            kept = [receipt for receipt in pool.map(keep, results) if receipt]
        assert len(kept) == len(rows(nodes)) == 3

    @ON_SQLITE
    def test_zero_is_any_number(self, nodes, lease):
        self.allow(nodes, results=0, result_bytes=0)
        for number in (1, 2, 3):
            nodes.reported(number, "a", lease, repeat=number)


class TestCompletion:
    def test_once_every_result_is_stored(self, nodes, lease):
        stored, spooled = nodes.reported(1, "a", lease), nodes.measured(2, "a", lease, repeat=2)
        early = nodes.complete("a", lease, stored, spooled)
        assert refusal(early) == (409, "RESULTS_MISSING", ["/results/1"])
        assert nodes.get(f"/v1/benchmark-runs/{lease.id}")["state"] == "running"
        nodes.put("a", spooled)
        for _ in range(2):
            answer = nodes.complete("a", lease, stored, spooled)
            assert (answer.status_code, answer.json()) == (200, {"state": "completed"})
        run = nodes.get(f"/v1/benchmark-runs/{lease.id}")
        assert (run["state"], run["figures"][0]["repeats"]) == ("completed", 2)

    def test_the_digest_counts_too(self, nodes, lease):
        result = nodes.reported(1, "a", lease)
        named = [{"result_id": result.result_id, "content_sha256": "0" * 64}]
        answer = nodes.complete("a", lease, results=named)
        assert refusal(answer) == (409, "RESULTS_MISSING", ["/results/0"])

    def test_what_another_tenant_stored_is_not_stored(self, nodes, lease):
        nodes.node("x", tenant="other")
        nodes.run(by="other")
        result = nodes.reported(1, "x", nodes.claim("x"))
        assert refusal(nodes.complete("a", lease, result)) == (409, "RESULTS_MISSING", ["/results/0"])

    def test_twenty_of_many_are_named(self, nodes, lease):
        missing = [nodes.measured(number, "a", lease, repeat=number) for number in range(1, 31)]
        assert len(refusal(nodes.complete("a", lease, *missing))[2]) == 20

    def test_under_a_lease_that_was_lost_it_is_refused(self, nodes, lease):
        nodes.lose(lease)
        nodes.node("b")
        nodes.claim("b")
        assert refusal(nodes.complete("a", lease))[:2] == (409, "STALE_LEASE")

    def test_digests_that_are_not_stored_are_asked_for_again(self, nodes, lease):
        result = nodes.reported(1, "a", lease)
        stored = sha256(result.to_json()).hexdigest()
        with nodes.database.open_reader() as session:
            asked = ["f" * 64, stored]
            assert service.list_missing_results(session, nodes.subjects["a"], asked) == ["f" * 64]
            assert service.list_missing_results(session, nodes.subjects["other"], asked) == asked
            assert service.list_missing_results(session, nodes.subjects["a"], []) == []


class TestListed:
    def test_by_what_they_are(self, nodes, lease):
        nodes.reported(1, "a", lease)
        nodes.reported(2, "a", lease, benchmark=COPY)
        nodes.reported(3, "a", lease, repeat=2, status="failed", failure={"reason": "CRASHED"})
        nodes.reported(4, "a", lease, nonce="b" * 32)

        def ids(**filters):
            items = nodes.get("/v1/benchmark-results", **filters)["items"]
            return [int(item["id"][-3:], 16) for item in items]

        assert ids() == [4, 3, 2, 1]
        assert ids(benchmark=GEMM) == [4, 3, 1]
        assert ids(benchmark=[GEMM, COPY], status="ok", lease="current") == [2, 1]
        assert ids(status="failed") == [3]
        assert ids(lease="unknown") == [4]
        assert ids(run_id=lease.id, node_id="a", suite_id=SUITE.id) == [4, 3, 2, 1]
        assert ids(node_id="b") == []
        assert nodes.get("/v1/benchmark-results", by="other")["items"] == []

    def test_in_pages(self, nodes, lease):
        for number in range(1, 6):
            nodes.reported(number, "a", lease, repeat=number)
        seen, token = [], ""
        while token is not None:
            page = nodes.get("/v1/benchmark-results", page_size=2, page_token=token, node_id="a")
            seen += [item["repeat"] for item in page["items"]]
            token = page["next_page_token"]
        assert seen == [5, 4, 3, 2, 1]

    def test_of_another_tenant_it_is_not_found(self, nodes, lease):
        result = nodes.reported(1, "a", lease)
        answer = nodes.call("GET", f"/v1/benchmark-results/{result.result_id}", by="other")
        assert refusal(answer)[:2] == (404, "BENCHMARK_RESULT_NOT_FOUND")

    def test_two_tenants_may_have_the_same_id(self, nodes, lease):
        mine = nodes.reported(1, "a", lease)
        nodes.node("x", tenant="other")
        nodes.run(by="other")
        theirs = nodes.reported(1, "x", nodes.claim("x"), samples=[5, 6, 7])
        assert mine.result_id == theirs.result_id
        assert len(rows(nodes)) == 2
        assert shown(nodes, mine)["node_id"] == "a"
