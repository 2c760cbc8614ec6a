"""Leases of benchmark runs against a model that says what they are."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, update

from service.kit.jobs import leases as mechanism
from service.nodes import leases, repository
from service.nodes.errors import LeaseNotFound, NodeBusy, NodeNotActive, RunEnded, StaleLease
from service.nodes.service import drain_node, lock_node, quarantine_by_operator, resume_node, revoke_node
from service.nodes.tables import LeaseGrantRow, LeaseRow, NodeRow
from tests.clocks import START, Clock, unset
from tests.nodes.fleet import (
    RUNTIME_SECONDS,
    add_node,
    add_run,
    at_receipt,
    cancel,
    claim,
    complete,
    grants,
    renew,
    request_id,
    settle,
    stored,
    subject,
)

HELD_SECONDS = leases.LEASE_SECONDS + leases.GRACE_SECONDS
NODES = ("node-a", "node-b", "node-c")
WRITE_ROW = mechanism.write_row
FINAL = {"completed", "failed", "cancelled", "dead"}


@dataclass(frozen=True)
class Run:
    """What is known of a run; times are seconds since the beginning."""

    asked_at: float
    due_at: float
    target: str | None
    state: str = "waiting"
    holder: str | None = None
    request: str | None = None
    token: int = 0
    attempt: int = 0
    begun_at: float = 0.0
    losses: int = 0
    lost_by: str | None = None
    is_cancelled: bool = False


@dataclass(frozen=True)
class RememberedGrant:
    """A grant as its holder remembers it, whatever became of it."""

    node: str
    lease: object = field(compare=False)
    request: str = ""


class Machine(RuleBasedStateMachine):
    """Nodes claim, renew, complete, fall silent and repeat themselves; operators cancel and set aside."""

    held = Bundle("held")

    def __init__(self, database, clock):
        super().__init__()
        self.database, self.clock = database, clock
        clock.set(START)
        with database.open_writer() as session:
            for table in (LeaseRow, LeaseGrantRow, NodeRow):
                session.execute(delete(table))
        for node in NODES:
            add_node(database, node)
        self.states = dict.fromkeys(NODES, "active")
        self.runs, self.tokens, self.answers, self.lapsed = {}, {}, {}, set()

    @property
    def now(self):
        return (self.clock.at - START).total_seconds()

    # What the model says

    def lapse(self):
        """Count what ended unsaid, as every claim and the schedule do first."""
        for run_id, run in self.runs.items():
            if run.state == "running" and run.due_at <= self.now:
                self.runs[run_id] = self.lost(run)
                self.lapsed.add((run_id, run.token))

    def lost(self, run):
        losses = run.losses + 1
        counted = {"losses": losses, "lost_by": run.holder, "token": run.token + 1}
        if run.is_cancelled:
            return replace(run, state="cancelled", **counted)
        if losses >= leases.MOST_LOSSES or run.lost_by not in (None, run.holder):
            return replace(run, state="dead", **counted)
        return replace(run, state="waiting", due_at=self.now, holder=None, **counted)

    def holding(self, node):
        return next(
            ((i, r) for i, r in self.runs.items() if r.state == "running" and r.holder == node), (None, None)
        )

    def open_to(self, node):
        return {
            run_id: run
            for run_id, run in self.runs.items()
            if run.state == "waiting" and run.due_at <= self.now and run.target in (None, node)
        }

    def is_current(self, held):
        run = self.runs[held.lease.id]
        return (run.state, run.holder, run.token) == ("running", held.node, held.lease.fencing_token)

    def may_complete_late(self, held):
        """Whether the lease of an attempt lapsed, nobody has completed the run and its node works."""
        is_lapsed = (held.lease.id, held.lease.fencing_token) in self.lapsed
        is_open = self.runs[held.lease.id].state not in FINAL
        return is_lapsed and is_open and self.states[held.node] in ("active", "draining")

    # What happens

    @rule(node=st.sampled_from([None, None, *NODES]))
    def ask(self, node):
        if len(self.runs) >= 6 or (node and self.states[node] == "revoked"):
            return
        run_id = f"run-{len(self.runs)}"
        add_run(self.database, run_id, target=node)
        self.runs[run_id] = Run(asked_at=self.now, due_at=self.now, target=node)

    @rule(target=held, node=st.sampled_from(NODES))
    def claim(self, node):
        return self.claimed(node, request_id())

    @rule(target=held, held=held)
    def claim_again(self, held):
        """The answer was lost: the same request, perhaps long after."""
        return self.claimed(held.node, held.request)

    @rule(target=held, node=st.sampled_from(NODES))
    def take_over(self, node):
        """Everybody has been silent for long; their runs are another's from now on."""
        self.clock.move(seconds=HELD_SECONDS)
        return self.claimed(node, request_id())

    def claimed(self, node, request):
        if self.states[node] == "revoked":
            return multiple()  # refused before it gets here
        self.lapse()
        run_id, run = self.holding(node)
        if run is not None and run.request != request:
            with pytest.raises(NodeBusy):
                claim(self.database, subject(node), request)
            # The refusal undoes what the claim had settled.
            settle(self.database)
            return multiple()
        if run is None and self.states[node] != "active":
            with pytest.raises(NodeNotActive):
                claim(self.database, subject(node), request)
            settle(self.database)
            return multiple()
        lease = claim(self.database, subject(node), request)
        if run is not None:
            assert (lease.id, lease.fencing_token) == (run_id, run.token)
            self.runs[run_id] = replace(run, due_at=self.now + HELD_SECONDS)
            return RememberedGrant(node, lease, request)
        ready = self.open_to(node)
        assert (lease is None) == (not ready)
        if lease is None:
            return multiple()
        was = ready[lease.id]
        assert was.due_at == min(run.due_at for run in ready.values())
        assert (lease.fencing_token, lease.attempt) == (was.token + 1, was.attempt + 1)
        self.runs[lease.id] = replace(
            was,
            state="running",
            holder=node,
            request=request,
            token=lease.fencing_token,
            attempt=lease.attempt,
            begun_at=self.now,
            due_at=self.now + HELD_SECONDS,
        )
        return RememberedGrant(node, lease, request)

    @rule(held=held)
    def renew(self, held):
        run = self.runs[held.lease.id]
        over = self.now - run.begun_at - RUNTIME_SECONDS
        if not self.is_current(held) or run.due_at <= self.now or over > leases.OVERRUN_SECONDS:
            with pytest.raises(StaleLease):
                renew(self.database, subject(held.node), held.lease)
            return
        assert renew(self.database, subject(held.node), held.lease).cancel == (run.is_cancelled or over > 0)
        self.runs[held.lease.id] = replace(run, due_at=self.now + HELD_SECONDS)

    @rule(
        held=held,
        outcome=st.sampled_from(["completed", "failed", "released", "cancelled"]),
        is_whole=st.booleans(),
    )
    def complete(self, held, outcome, is_whole):
        run, grant = self.runs[held.lease.id], (held.lease.id, held.lease.fencing_token)
        if not self.is_current(held):
            if self.answers.get(grant, ("",))[0] == outcome:
                said = complete(self.database, subject(held.node), held.lease, outcome)
                assert said == self.answers[grant][1]
            elif outcome == "completed" and is_whole and self.may_complete_late(held):
                assert complete(self.database, subject(held.node), held.lease, is_whole=True) == "completed"
                self.answers[grant] = ("completed", "completed")
                self.runs[held.lease.id] = replace(run, state="completed", token=run.token + 1)
            else:
                with pytest.raises(StaleLease):
                    complete(self.database, subject(held.node), held.lease, outcome, is_whole=is_whole)
            return
        state = {"completed": "completed", "failed": "failed"}.get(outcome)
        if outcome == "cancelled":
            is_overrun = not run.is_cancelled and self.now - run.begun_at > RUNTIME_SECONDS
            state = "failed" if is_overrun else "cancelled"
        elif outcome == "released":
            state = "cancelled" if run.is_cancelled else "waiting"
        assert complete(self.database, subject(held.node), held.lease, outcome, is_whole=is_whole) == state
        self.answers[grant] = (outcome, state)
        after = {"state": state}
        if state == "waiting":
            after |= {"holder": None, "due_at": self.now + leases.RELEASED_SECONDS}
        self.runs[held.lease.id] = replace(run, **after)

    @rule(number=st.integers(0, 5))
    def cancel(self, number):
        run_id = f"run-{number}"
        run = self.runs.get(run_id)
        if run is None:
            with pytest.raises(LeaseNotFound):
                cancel(self.database, run_id)
        elif run.state in FINAL - {"cancelled"}:
            with pytest.raises(RunEnded):
                cancel(self.database, run_id)
        else:
            cancel(self.database, run_id)
            if run.state == "waiting":
                run = replace(run, state="cancelled", token=run.token + 1, is_cancelled=True)
            elif run.state == "running":
                run = replace(run, is_cancelled=True)
            self.runs[run_id] = run

    @rule(
        node=st.sampled_from(NODES),
        verb=st.sampled_from([drain_node, resume_node, resume_node, quarantine_by_operator]),
    )
    def operate(self, node, verb):
        state = self.states[node]
        if state == "revoked" or (verb is drain_node and state == "quarantined"):
            return
        self.do(node, verb)
        self.states[node] = {
            drain_node: "draining",
            resume_node: "active",
            quarantine_by_operator: "quarantined",
        }[verb]
        if verb is quarantine_by_operator:
            self.withdrawn(node)

    @rule(node=st.sampled_from(NODES), dice=st.integers(0, 5))
    def revoke(self, node, dice):
        if dice or self.states[node] == "revoked":  # seldom, so that most runs keep nodes
            return
        self.do(node, revoke_node)
        self.states[node] = "revoked"
        self.withdrawn(node)
        for run_id, run in self.runs.items():
            if run.state == "waiting" and run.target == node:
                self.runs[run_id] = replace(run, state="failed", token=run.token + 1)

    def do(self, node, verb):
        with self.database.open_writer() as session:
            verb(session, lock_node(session, "default", node))

    def withdrawn(self, node):
        run_id, run = self.holding(node)
        if run is not None:
            state = "cancelled" if run.is_cancelled else "waiting"
            taken = {"state": state, "token": run.token + 1}
            if state == "waiting":
                taken |= {"holder": None, "due_at": self.now}
            self.runs[run_id] = replace(run, **taken)

    @rule(seconds=st.sampled_from([1, 29, 60, 119, 120, 600]))
    def wait(self, seconds):
        self.clock.move(seconds=seconds)

    @rule()
    def tick(self):
        settle(self.database)
        self.lapse()
        for run_id, run in self.runs.items():
            if run.state == "waiting" and self.now - run.asked_at >= leases.LONGEST_WAIT.total_seconds():
                self.runs[run_id] = replace(run, state="failed", token=run.token + 1)

    # What holds at any time

    @invariant()
    def all_holds(self):
        rows, given = stored(self.database), grants(self.database)
        self.the_rows_are_as_known(rows)
        self.a_node_holds_one_lease_at_most(rows)
        self.a_token_grows_with_every_change_of_hands(rows, given)

    def the_rows_are_as_known(self, rows):
        for run_id, row in rows.items():
            run = self.runs[run_id]
            found = (row.state, row.fencing_token, row.attempt, row.losses, row.cancel_requested)
            assert found == (run.state, run.token, run.attempt, run.losses, run.is_cancelled), run_id
            if run.state == "running":
                assert row.node_id == run.holder
            assert (row.due_at is None) == (run.state in FINAL)
            assert (row.finished_at is None) == (run.state not in FINAL)

    def a_node_holds_one_lease_at_most(self, rows):
        holders = [row.node_id for row in rows.values() if row.state == "running"]
        assert len(holders) == len(set(holders))

    def a_token_grows_with_every_change_of_hands(self, rows, given):
        for run_id, row in rows.items():
            assert row.fencing_token >= self.tokens.get(run_id, 0)
            self.tokens[run_id] = row.fencing_token
            own = [grant for grant in given if grant.lease_id == run_id]
            assert len(own) == len({grant.fencing_token for grant in own}) == row.attempt
            still = [grant for grant in own if grant.outcome is None]
            assert len(still) == (row.state == "running")

    @invariant()
    def one_attempt_completes_a_run(self):
        for run_id, row in stored(self.database).items():
            outcomes = [grant.outcome for grant in grants(self.database, run_id)]
            assert outcomes.count("completed") == (row.state == "completed")

    @rule(held=held)
    def a_result_is_what_its_lease_is(self, held):
        expected = "current" if self.is_current(held) else "late"
        assert at_receipt(self.database, subject(held.node), held.lease) == expected

    def teardown(self):
        """However a run stands, it ends: its holders fall silent, and nobody claims it."""
        for _ in range(2):
            settle(self.database)
            self.clock.move(seconds=HELD_SECONDS)
        settle(self.database)
        self.clock.move(days=7)
        settle(self.database)
        assert {row.state for row in stored(self.database).values()} <= FINAL
        super().teardown()


@pytest.mark.parametrize(
    ("databases", "examples"), [("sqlite", 12), ("postgresql", 4)], indirect=["databases"]
)
def test_leases_are_what_the_model_says(database, examples):
    clock = Clock(database)
    small = settings(max_examples=examples, stateful_step_count=40, phases=[Phase.generate])
    try:
        run_state_machine_as_test(lambda: Machine(database, clock), settings=small)
    finally:
        unset(database)


def renew_after_a_second_attempt_began(machine):
    machine.ask(node=None)
    first = machine.claim(node="node-a")
    machine.take_over(node="node-a")
    machine.renew(held=first)


def write_without_fence(session, table, lease, *_, **values):
    row = session.get(table, lease.id, populate_existing=True)
    return WRITE_ROW(session, table, row.lease, **values)


def close_without_raise(session, held, **values):
    statement = update(LeaseRow).where(LeaseRow.id == held.id).values(**values).returning(LeaseRow)
    return session.scalars(statement, execution_options={"populate_existing": True}).one()


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("replaced", "broken"),
    [((mechanism, "write_row"), write_without_fence), ((repository, "close_lease"), close_without_raise)],
)
def test_the_model_notices_a_fence_that_is_gone(database, monkeypatch, replaced, broken):
    """Steps that hold fail without the check of the token, or where it is not raised."""
    machine = Machine(database, Clock(database))
    try:
        renew_after_a_second_attempt_began(machine)
        machine.all_holds()
        monkeypatch.setattr(*replaced, broken)
        machine = Machine(database, machine.clock)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            renew_after_a_second_attempt_began(machine)
    finally:
        unset(database)
