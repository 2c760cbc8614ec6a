"""Leases on both databases, against a model that says what a lease is."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import DeclarativeBase

from service.kit.jobs import leases
from service.kit.jobs.leases import RUNNING, WAITING, LeasedColumns, LeaseLost, RowLease
from tests.clocks import START, Clock


class Base(DeclarativeBase):
    pass


class Thing(LeasedColumns, Base):
    __tablename__ = "things"


@pytest.fixture
def things(databases):
    database = databases.empty()
    Base.metadata.create_all(database.engine)
    return database


@pytest.fixture
def clock(things):
    return Clock(things)


def add(database, *ids, due_at=START, span_seconds=None):
    with database.open_writer() as session:
        for row_id in ids:
            values = {"id": row_id, "tenant_id": "t", "due_at": due_at, "span_seconds": span_seconds}
            session.execute(insert(Thing).values(**values))


def claim(database, seconds=10.0):
    with database.open_writer() as session:
        row = leases.claim_row(session, Thing, seconds=seconds)
        return row and row.lease


def act(database, function, *arguments, **options):
    with database.open_writer() as session:
        return function(session, Thing, *arguments, **options)


def stored(database):
    with database.open_reader() as session:
        return {row.id: row for row in session.scalars(select(Thing))}


@dataclass(frozen=True)
class Known:
    state: str
    due_at: datetime | None
    span: float | None
    attempt: int = 0
    token: int = 0


SECONDS = st.sampled_from([0.0, 0.001, 3.0, 7.5, 20.0])


class Machine(RuleBasedStateMachine):
    """Holders claim, renew, release and finish while the clock goes on, jumps ahead and is set back."""

    held = Bundle("held")

    def __init__(self, database, clock):
        super().__init__()
        self.database = database
        self.clock = clock
        clock.set(START)
        with database.open_writer() as session:
            session.execute(delete(Thing))
        add(database, "a", due_at=START)
        add(database, "b", due_at=START + timedelta(seconds=5), span_seconds=5.0)
        add(database, "c", due_at=START + timedelta(seconds=12))
        self.known = {
            "a": Known(WAITING, START, None),
            "b": Known(WAITING, START + timedelta(seconds=5), 5.0),
            "c": Known(WAITING, START + timedelta(seconds=12), None),
        }

    def due(self, seconds):
        return {"due_at": self.clock.at + timedelta(seconds=seconds), "span": seconds}

    @rule(target=held, seconds=SECONDS)
    def claim(self, seconds):
        ready = {i: row for i, row in self.known.items() if row.due_at and row.due_at <= self.clock.at}
        lease = claim(self.database, seconds)
        assert (lease is None) == (not ready)
        if lease is None:
            return multiple()
        was = self.known[lease.id]
        assert was.due_at == min(row.due_at for row in ready.values())
        assert lease.token == was.token + 1
        self.known[lease.id] = Known(RUNNING, attempt=was.attempt + 1, token=lease.token, **self.due(seconds))
        return lease

    def guarded(self, lease, function, change, *, unexpired=False, **options):
        """The write is taken from the latest holder and refused to any other."""
        was = self.known[lease.id]
        allowed = was.state == RUNNING and was.token == lease.token
        if unexpired:
            allowed = allowed and was.due_at > self.clock.at
        if allowed:
            act(self.database, function, lease, **options)
            self.known[lease.id] = replace(was, **change)
        else:
            with pytest.raises(LeaseLost):
                act(self.database, function, lease, **options)

    @rule(lease=held, seconds=SECONDS)
    def renew(self, lease, seconds):
        self.guarded(lease, leases.renew_lease, self.due(seconds), unexpired=True, seconds=seconds)

    @rule(lease=held)
    def write(self, lease):
        self.guarded(lease, leases.write_row, {"attempt": 0}, attempt=0)

    @rule(lease=held, delay=SECONDS)
    def release(self, lease, delay):
        self.guarded(lease, leases.release_row, {"state": WAITING, **self.due(delay)}, delay=delay)

    @rule(lease=held, back=st.sampled_from([False, False, False, True]))
    def finish(self, lease, back):
        if back:  # seldom, so that most runs keep rows to claim
            change = {"state": "done", "due_at": None, "span": None}
            self.guarded(lease, leases.finish_row, change, state="done")

    @rule(seconds=SECONDS)
    def wait(self, seconds):
        self.clock.move(seconds=seconds)

    @rule(seconds=SECONDS)
    def clock_set_back(self, seconds):
        self.clock.move(seconds=-10 * seconds)
        act(self.database, leases.repair_spans)
        for row_id, row in self.known.items():
            if row.span is not None and row.due_at > self.clock.at + timedelta(seconds=row.span):
                self.known[row_id] = replace(row, **self.due(row.span))

    @invariant()
    def the_rows_are_as_known(self):
        assert self.known == {
            row.id: Known(row.state, row.due_at, row.span_seconds, row.attempt, row.fencing_token)
            for row in stored(self.database).values()
        }


def test_leases_are_what_the_model_says(things, clock):
    small = settings(max_examples=15, stateful_step_count=25)
    run_state_machine_as_test(lambda: Machine(things, clock), settings=small)


def test_an_expired_lease_is_claimed_by_another_under_a_higher_token(things, clock):
    add(things, "a")
    first = claim(things, 10.0)
    clock.move(seconds=9.999)
    assert claim(things) is None
    clock.move(seconds=0.001)
    second = claim(things)
    assert second == RowLease("a", first.token + 1)
    for function, options in (
        (leases.renew_lease, {"seconds": 10.0}),
        (leases.write_row, {}),
        (leases.release_row, {"delay": 0.0}),
        (leases.finish_row, {"state": "done"}),
    ):
        with pytest.raises(LeaseLost):
            act(things, function, first, **options)
    act(things, leases.finish_row, second, state="done")
    assert stored(things)["a"].state == "done"


def test_a_lease_that_has_ended_is_not_renewed_but_what_was_done_under_it_counts(things, clock):
    add(things, "a")
    lease = claim(things, 10.0)
    clock.move(seconds=10)
    with pytest.raises(LeaseLost):
        act(things, leases.renew_lease, lease, seconds=10.0)
    act(things, leases.finish_row, lease, state="done")
    assert stored(things)["a"].state == "done"


def test_what_a_holder_wrote_beside_its_row_is_undone_when_the_lease_is_lost(things, clock):
    add(things, "a")
    first = claim(things, 10.0)
    clock.move(seconds=10)
    claim(things)

    def write_both():
        with things.open_writer() as session:
            session.execute(insert(Thing).values(id="effect", tenant_id="t"))
            leases.write_row(session, Thing, first)

    with pytest.raises(LeaseLost):
        write_both()
    assert set(stored(things)) == {"a"}


def test_a_clock_set_back_strands_nothing_and_gives_no_row_to_two(things, clock):
    add(things, "held", "dead")
    held, dead = claim(things, 30.0), claim(things, 30.0)
    add(things, "now", due_at=START, span_seconds=0.0)
    add(things, "dated", due_at=START, span_seconds=None)
    clock.move(hours=-1)
    act(things, leases.repair_spans)
    assert claim(things, 1000.0).id == "now"
    assert claim(things) is None
    clock.move(seconds=20)
    act(things, leases.renew_lease, held, seconds=30.0)
    clock.move(seconds=10)
    assert claim(things) == RowLease(dead.id, dead.token + 1)
    assert claim(things) is None
    assert stored(things)["dated"].due_at == START


def test_claims_of_many_threads_never_share_a_row(things):
    add(things, *(f"{number:03}" for number in range(60)))

    def drain(_):
        return list(iter(lambda: claim(things, 600.0), None))

    with ThreadPoolExecutor(6) as pool:
        claimed = [lease.id for leases_ in pool.map(drain, range(6)) for lease in leases_]
    # On PostgreSQL a claim skips what another is about to take; nothing is left for all that.
    claimed += [lease.id for lease in iter(lambda: claim(things, 600.0), None)]
    assert sorted(claimed) == sorted(stored(things))


def test_the_clock_is_the_databases_own(things):
    add(things, "a")
    before = datetime.now(START.tzinfo)
    claim(things, 60.0)
    row = stored(things)["a"]
    assert abs(row.due_at - before - timedelta(seconds=60)) < timedelta(seconds=5)
    assert row.lease == RowLease("a", 1)
