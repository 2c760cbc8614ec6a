"""What a node may do with a lease, and when it is another's."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update
from sqlalchemy.exc import IntegrityError

from service.kit.http.problems import Unprocessable
from service.nodes import leases
from service.nodes.errors import (
    InventoryUnknown,
    LeaseNotFound,
    NodeBusy,
    NodeNotActive,
    NodeNotFound,
    RunEnded,
    StaleLease,
)
from service.nodes.tables import LeaseRow, NodeRow
from service.protocol.leases import BenchmarkProgress, LeaseProgress
from service.protocol.suites import SUITE_FORM, shipped_suites
from tests.nodes.fleet import (
    RUNTIME_SECONDS,
    SUITE,
    add_node,
    add_run,
    at_receipt,
    at_receipt_within,
    cancel,
    claim,
    complete,
    grants,
    renew,
    request_id,
    settle,
    standing,
    stored,
    subject,
)

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def node(database):
    return add_node(database, "node-1")


@pytest.fixture
def other(database):
    return add_node(database, "node-2")


class TestClaim:
    def test_a_run_is_granted_once_with_all_that_the_node_needs(self, database, node, other):
        add_run(database, "run-1")
        lease = claim(database, node)
        assert (lease.id, lease.fencing_token, lease.attempt, lease.seed) == ("run-1", 1, 1, 7)
        assert lease.suite == SUITE
        assert (lease.lease_seconds, lease.renew_seconds) == (90.0, 30.0)
        assert lease.runtime_seconds == RUNTIME_SECONDS
        assert claim(database, other) is None
        row = standing(database, "run-1")
        assert (row.state, row.node_id, row.attempt) == ("running", "node-1", 1)

    def test_a_node_gets_the_benchmarks_that_it_reads(self, database, node):
        """Of a claim that says nothing, as those of the first release, the ones that its worker read."""
        standard = shipped_suites()["gpu-standard"]
        add_run(database, "run-1", suite=standard)
        request = request_id()
        older, newer = claim(database, node, request), claim(database, node, request, suite_form=SUITE_FORM)
        assert {one.work.suite_form for one in older.suite.benchmarks} == {1}
        assert older.suite == standard.narrow_to_form(1) != standard
        assert newer.suite == standard

    def test_asked_again_under_the_same_id_it_is_the_same_lease(self, database, clock, node):
        add_run(database, "run-1")
        add_run(database, "run-2")
        request = request_id()
        lease = claim(database, node, request)
        clock.move(seconds=80)
        again = claim(database, node, request)
        assert again.model_dump(exclude={"server_time"}) == lease.model_dump(exclude={"server_time"})
        clock.move(seconds=80)
        renew(database, node, again)

    def test_a_node_holds_one_lease(self, database, node):
        add_run(database, "run-1")
        add_run(database, "run-2")
        claim(database, node)
        with pytest.raises(NodeBusy):
            claim(database, node)

    def test_the_database_itself_allows_one_running_lease_a_node(self, database, node):
        add_run(database, "run-1")
        add_run(database, "run-2")
        claim(database, node)
        running = update(LeaseRow).where(LeaseRow.id == "run-2").values(state="running", node_id=node.id)
        with pytest.raises(IntegrityError), database.open_writer() as session:
            session.execute(running)

    def test_the_run_asked_for_first_comes_first(self, database, clock, node, other):
        for run in ("run-b", "run-a"):
            add_run(database, run)
            clock.move(seconds=1)
        assert [claim(database, each).id for each in (node, other)] == ["run-b", "run-a"]

    @pytest.mark.usefixtures("other")
    @pytest.mark.parametrize(
        "asked",
        [{"device": "cuda"}, {"target": "node-2"}, {"tenant": "other"}],
        ids=lambda asked: next(iter(asked)),
    )
    def test_what_is_not_for_a_node_is_not_granted_to_it(self, database, node, asked):
        add_run(database, "run-1", **asked)
        assert claim(database, node) is None

    def test_a_run_for_one_node_waits_for_it(self, database, node, other):
        add_run(database, "run-1", target="node-2")
        assert claim(database, node) is None
        assert claim(database, other).id == "run-1"

    @pytest.mark.usefixtures("node")
    @pytest.mark.parametrize(("target", "device"), [("nobody", "cpu"), ("node-1", "cuda")])
    def test_a_run_for_a_node_that_cannot_run_it_is_refused(self, database, target, device):
        with pytest.raises(Unprocessable) as refused:
            add_run(database, "run-1", target=target, device=device)
        assert refused.value.errors[0][:2] == ("/node_id", "UNKNOWN_REFERENCE")

    @pytest.mark.parametrize("state", ["draining", "quarantined"])
    def test_a_node_that_is_not_active_claims_nothing(self, database, state):
        node = add_node(database, "node-1", state=state)
        add_run(database, "run-1")
        with pytest.raises(NodeNotActive):
            claim(database, node)

    def test_a_draining_node_still_gets_the_lease_that_it_holds(self, database, node):
        add_run(database, "run-1")
        request = request_id()
        lease = claim(database, node, request)
        with database.open_writer() as session:
            session.execute(update(NodeRow).values(state="draining"))
        assert claim(database, node, request).fencing_token == lease.fencing_token
        renew(database, node, lease)
        assert complete(database, node, lease) == "completed"

    def test_an_inventory_that_was_not_sent_is_refused(self, database, node):
        with pytest.raises(InventoryUnknown) as refused:
            claim(database, node, inventory="d" * 64)
        assert refused.value.errors[0].pointer == "/inventory_sha256"

    def test_an_unknown_node_claims_nothing(self, database):
        with pytest.raises(NodeNotFound):
            claim(database, subject("nobody"))
        add_node(database, "theirs", tenant="other")
        with pytest.raises(NodeNotFound):
            claim(database, subject("theirs"))


class TestRenewal:
    def test_a_lease_lasts_while_it_is_renewed(self, database, clock, node, other):
        add_run(database, "run-1")
        lease = claim(database, node)
        for _ in range(10):
            clock.move(seconds=30)
            assert renew(database, node, lease).cancel is False
        assert claim(database, other) is None

    def test_progress_is_kept(self, database, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        step = BenchmarkProgress(benchmark="gemm.fp64", state="running", repeat=1)
        renew(database, node, lease, progress=LeaseProgress(steps=[step]))
        renew(database, node, lease)
        assert standing(database, "run-1").progress == {
            "steps": [{"benchmark": "gemm.fp64", "state": "running", "repeat": 1}]
        }

    def test_a_cancelled_run_hears_of_it(self, database, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        assert cancel(database, "run-1").cancel_requested
        assert renew(database, node, lease).cancel is True
        assert complete(database, node, lease, "cancelled") == "cancelled"

    def test_an_attempt_that_takes_too_long_is_to_end_and_then_not_renewed(self, database, clock, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        waited = 0
        while waited <= RUNTIME_SECONDS:
            assert renew(database, node, lease).cancel is False
            clock.move(seconds=60)
            waited += 60
        assert renew(database, node, lease).cancel is True
        while waited <= RUNTIME_SECONDS + leases.OVERRUN_SECONDS:
            assert renew(database, node, lease).cancel is True
            clock.move(seconds=60)
            waited += 60
        with pytest.raises(StaleLease):
            renew(database, node, lease)
        clock.move(seconds=120)
        assert settle(database)["lost"] == 1
        assert standing(database, "run-1").state == "waiting"

    def test_ended_for_its_runtime_a_run_has_failed(self, database, clock, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        for _ in range(6):
            clock.move(seconds=60)
            renew(database, node, lease)
        assert complete(database, node, lease, "cancelled", reason="RUNTIME_OVER") == "failed"
        assert standing(database, "run-1").reason == "RUNTIME_OVER"


class TestFencing:
    def test_after_an_expiry_and_its_grace_the_run_is_anothers(self, database, clock, node, other):
        add_run(database, "run-1")
        first = claim(database, node)
        clock.move(seconds=119.9)
        assert claim(database, other) is None
        clock.move(seconds=0.1)
        second = claim(database, other)
        assert second.id == first.id
        assert second.fencing_token > first.fencing_token
        assert (second.attempt, second.nonce != first.nonce) == (2, True)
        before = stored(database)["run-1"].__dict__ | {"_sa_instance_state": None}
        for write in (renew, complete):
            with pytest.raises(StaleLease) as refused:
                write(database, node, first)
            assert refused.value.errors[0][:2] == ("/fencing_token", "STALE")
        assert stored(database)["run-1"].__dict__ | {"_sa_instance_state": None} == before
        assert complete(database, other, second) == "completed"

    def test_the_same_node_is_fenced_from_its_own_earlier_attempt(self, database, clock, node):
        add_run(database, "run-1")
        first = claim(database, node)
        clock.move(seconds=120)
        second = claim(database, node)
        assert second.fencing_token > first.fencing_token
        with pytest.raises(StaleLease):
            renew(database, node, first)
        with pytest.raises(StaleLease):
            complete(database, node, first, "failed")
        renew(database, node, second)

    @pytest.mark.usefixtures("other")
    @pytest.mark.parametrize("who", [("node-2", "default"), ("node-1", "other"), ("nobody", "default")])
    def test_who_never_held_a_lease_does_not_find_it(self, database, node, who):
        add_run(database, "run-1")
        lease = claim(database, node)
        for write in (renew, complete):
            with pytest.raises(LeaseNotFound):
                write(database, subject(*who), lease)
        assert at_receipt(database, subject(*who), lease) == "unknown"

    def test_a_token_that_was_never_granted_is_stale(self, database, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        for token in (2, 2**53 - 1):
            for write in (renew, complete):
                with pytest.raises(StaleLease):
                    write(database, node, lease.model_copy(update={"fencing_token": token}))

    def test_what_was_done_counts_until_the_run_is_granted_anew(self, database, clock, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        clock.move(hours=1)
        assert at_receipt(database, node, lease) == "current"
        with pytest.raises(StaleLease):
            renew(database, node, lease)
        assert complete(database, node, lease) == "completed"

    def test_a_lease_at_the_receipt_of_a_result(self, database, clock, node, other):
        add_run(database, "run-1")
        first = claim(database, node)
        assert at_receipt(database, node, first) == "current"
        assert at_receipt(database, node, first, nonce="0" * 32) == "unknown"
        assert at_receipt(database, other, first) == "unknown"
        clock.move(seconds=120)
        second = claim(database, other)
        assert at_receipt(database, node, first) == "late"
        assert at_receipt(database, other, second) == "current"
        complete(database, other, second)
        assert at_receipt(database, other, second) == "late"
        assert at_receipt(database, other, second.model_copy(update={"id": "run-9"})) == "unknown"

    def test_until_a_result_is_stored_the_lease_that_it_came_under_does_not_end(self, database, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        with ThreadPoolExecutor(1) as pool:
            with database.open_writer() as session:
                assert at_receipt_within(session, node, lease) == "current"
                ending = pool.submit(complete, database, node, lease)
                time.sleep(0.2)
                assert not ending.done()
            assert ending.result(timeout=60) == "completed"


class TestCompletion:
    @pytest.mark.parametrize(
        ("outcome", "state"),
        [
            ("completed", "completed"),
            ("failed", "failed"),
            ("cancelled", "cancelled"),
            ("released", "waiting"),
        ],
    )
    def test_said_again_the_answer_is_the_same(self, database, node, outcome, state):
        add_run(database, "run-1")
        lease = claim(database, node)
        for _ in range(2):
            assert complete(database, node, lease, outcome, reason="WHY", detail="because") == state
        row = standing(database, "run-1")
        assert (row.state, row.reason, row.detail) == (state, "WHY", "because")
        with pytest.raises(StaleLease):
            complete(database, node, lease, "completed" if outcome == "failed" else "failed")

    def test_the_answer_is_the_same_after_another_has_claimed_the_run(self, database, clock, node, other):
        add_run(database, "run-1")
        lease = claim(database, node)
        assert complete(database, node, lease, "released") == "waiting"
        assert claim(database, other) is None
        clock.move(seconds=leases.RELEASED_SECONDS)
        second = claim(database, other)
        assert complete(database, node, lease, "released") == "waiting"
        assert standing(database, "run-1").node_id == "node-2"
        assert complete(database, other, second) == "completed"

    def test_a_released_run_that_was_cancelled_is_cancelled(self, database, node):
        add_run(database, "run-1")
        lease = claim(database, node)
        cancel(database, "run-1")
        assert complete(database, node, lease, "released") == "cancelled"

    def test_the_node_is_free_for_the_next(self, database, node):
        add_run(database, "run-1")
        complete(database, node, claim(database, node))
        add_run(database, "run-2")
        assert claim(database, node).id == "run-2"


class TestLoss:
    def test_three_losses_on_one_node_are_the_end(self, database, clock, node):
        add_run(database, "run-1")
        for attempt in (1, 2, 3):
            assert claim(database, node).attempt == attempt
            clock.move(seconds=120)
        assert claim(database, node) is None
        row = standing(database, "run-1")
        assert (row.state, row.reason, row.node_id) == ("dead", "ATTEMPTS_SPENT", "node-1")
        assert row.finished_at == clock.at
        assert [grant.outcome for grant in grants(database, "run-1")] == ["lost"] * 3

    def test_lost_on_two_nodes_it_is_dead_at_once(self, database, clock, node, other):
        add_run(database, "run-1")
        claim(database, node)
        clock.move(seconds=120)
        claim(database, other)
        clock.move(seconds=120)
        assert claim(database, node) is None
        row = standing(database, "run-1")
        assert (row.state, row.attempt, row.reason) == ("dead", 2, "LOST_ON_TWO_NODES")

    def test_a_released_attempt_is_not_a_loss(self, database, clock, node):
        add_run(database, "run-1")
        for _ in range(5):
            complete(database, node, claim(database, node), "released")
            clock.move(seconds=30)
        for _ in range(3):
            assert claim(database, node) is not None
            clock.move(seconds=120)
        assert claim(database, node) is None
        assert standing(database, "run-1").state == "dead"

    def test_a_run_that_is_given_back_for_ever_ends(self, database, clock, node):
        add_run(database, "run-1")
        states = []
        while (lease := claim(database, node)) is not None:
            states.append(complete(database, node, lease, "released"))
            clock.move(seconds=30)
        assert states == ["waiting"] * (leases.MOST_ATTEMPTS - 1) + ["dead"]

    @pytest.mark.usefixtures("other")
    def test_nobody_need_claim_for_a_run_to_end(self, database, clock, node):
        add_run(database, "run-1")
        add_run(database, "run-2", target="node-2")
        for _ in range(3):
            claim(database, node)
            clock.move(seconds=120)
            assert settle(database)["lost"] == 1
        assert standing(database, "run-1").state == "dead"
        assert settle(database) == {"lost": 0, "failed": 0}
        clock.move(days=7)
        assert settle(database) == {"lost": 0, "failed": 1}
        assert standing(database, "run-2").state == "failed"
        assert standing(database, "run-2").reason == "NOT_BEGUN"

    def test_a_cancelled_run_whose_node_is_gone_is_cancelled(self, database, clock, node):
        add_run(database, "run-1")
        claim(database, node)
        cancel(database, "run-1")
        clock.move(seconds=120)
        settle(database)
        assert standing(database, "run-1").state == "cancelled"

    def test_a_clock_set_back_holds_nothing_up(self, database, clock, node, other):
        add_run(database, "run-1")
        claim(database, node)
        clock.move(hours=-1)
        settle(database)
        clock.move(seconds=120)
        assert claim(database, other).attempt == 2


class TestCancel:
    def test_a_waiting_run_ends_at_once_and_stays_so(self, database, node):
        add_run(database, "run-1")
        for _ in range(2):
            assert cancel(database, "run-1").state == "cancelled"
        assert claim(database, node) is None

    def test_what_has_ended_is_not_cancelled(self, database, node):
        add_run(database, "run-1")
        complete(database, node, claim(database, node))
        with pytest.raises(RunEnded):
            cancel(database, "run-1")

    def test_another_tenants_run_is_not_found(self, database):
        add_run(database, "run-1")
        with pytest.raises(LeaseNotFound):
            cancel(database, "run-1", tenant="other")


class TestRaces:
    def test_claims_of_many_nodes_at_once_grant_each_run_once(self, database):
        nodes = [add_node(database, f"node-{number}") for number in range(8)]
        runs = {add_run(database, f"run-{number}") for number in range(5)}
        with ThreadPoolExecutor(8) as pool:
            granted = [lease for lease in pool.map(lambda node: claim(database, node), nodes) if lease]
        # On PostgreSQL a claim skips what another is about to take; nothing is left for all that.
        holders = {row.node_id for row in stored(database).values()}
        granted += filter(None, (claim(database, node) for node in nodes if node.id not in holders))
        assert sorted(lease.id for lease in granted) == sorted(runs)
        assert len({row.node_id for row in stored(database).values()}) == len(runs)

    def test_claims_of_one_node_at_once_grant_one_run(self, database):
        node = add_node(database, "node-1")
        for number in range(4):
            add_run(database, f"run-{number}")
        request = request_id()

        def ask(number):
            try:
                return claim(database, node, request if number % 2 else None)
            except NodeBusy:
                return None

        with ThreadPoolExecutor(6) as pool:
            granted = {(lease.id, lease.fencing_token) for lease in pool.map(ask, range(6)) if lease}
        assert len(granted) == 1
        assert [row.state for row in stored(database).values()].count("running") == 1

    def test_a_completion_said_twice_at_once_ends_the_run_once(self, database):
        node = add_node(database, "node-1")
        for number in range(10):
            add_run(database, f"run-{number}")
            lease = claim(database, node)
            with ThreadPoolExecutor(4) as pool:
                said = list(pool.map(lambda _, lease=lease: complete(database, node, lease), range(4)))
            assert said == ["completed"] * 4

    def test_an_expiry_is_counted_once_whoever_sees_it(self, database, clock):
        nodes = [add_node(database, f"node-{number}") for number in range(6)]
        add_run(database, "run-1")
        claim(database, nodes[0])
        clock.move(seconds=120)
        with ThreadPoolExecutor(6) as pool:
            granted = list(filter(None, pool.map(lambda node: claim(database, node), nodes)))
        granted += filter(None, (claim(database, node) for node in nodes if not granted))
        assert [lease.attempt for lease in granted] == [2]
        assert stored(database)["run-1"].losses == 1


class TestTenants:
    """A node of another tenant with the same id reaches nothing of a lease, whatever it knows of it."""

    @pytest.fixture
    def stranger(self, database, node):
        add_run(database, "run-1")
        return subject(node.id, "other")

    def test_a_run_is_claimed_by_its_tenants_nodes_alone(self, database, node):
        elsewhere = add_node(database, "node-9", tenant="other")
        add_run(database, "run-1")
        assert claim(database, elsewhere) is None
        assert claim(database, node).id == "run-1"

    def test_a_stranger_neither_renews_nor_completes_a_lease(self, database, node, stranger):
        lease = claim(database, node)
        for write in (renew, complete):
            with pytest.raises(LeaseNotFound):
                write(database, stranger, lease)
        assert at_receipt(database, stranger, lease) == "unknown"
        assert standing(database, "run-1").state == "running"

    def test_a_stranger_completes_no_lapsed_attempt(self, database, clock, node, stranger):
        lease = claim(database, node)
        clock.move(seconds=121)
        settle(database)
        with pytest.raises(LeaseNotFound):
            complete(database, stranger, lease, is_whole=True)
        assert standing(database, "run-1").state == "waiting"

    def test_a_stranger_neither_sees_nor_cancels_a_run(self, database, stranger):
        with database.open_reader() as session:
            assert leases.list_standings(session, stranger.tenant_id, ["run-1"]) == {}
        with pytest.raises(LeaseNotFound):
            cancel(database, "run-1", tenant=stranger.tenant_id)
        assert standing(database, "run-1").state == "waiting"
