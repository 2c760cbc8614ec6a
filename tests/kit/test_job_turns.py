"""Turns of tenants at background jobs, on both databases: who waits for whom, and for how many jobs."""

import contextlib
import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel
from sqlalchemy import delete, event, insert, select, text

from service.kit.jobs import chunks, leases, repository
from service.kit.jobs.chunks import ClaimedJob
from service.kit.jobs.kinds import CompletedJob, ContinueJob, JobLease, RunnableJobType
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.runner import JobRunner
from service.kit.jobs.tables import JobRow
from tests.clocks import START, Clock
from tests.waiting import until

LEASE = timedelta(seconds=30)


class Arguments(BaseModel):
    pass


def kind(run=lambda _: CompletedJob(), name="work", **options):
    return RunnableJobType(name=name, arguments=Arguments, run=run, lease=LEASE, **options)


WORK = kind()


@pytest.fixture
def jobs(databases):
    database = databases.empty()
    JobRow.__table__.create(database.engine)
    return database


def ask(database, tenant_id, *keys, of=WORK, due_at=None):
    for key in keys:
        with database.open_writer() as session:
            enqueue_job(session, of, Arguments(), tenant_id=tenant_id, effect_key=str(key), due_at=due_at)


def claim(database, of=WORK):
    with database.open_writer() as session:
        return repository.claim_job(session, of)


def end(database, row, outcome=None, of=WORK):
    """End a chunk as a runner would."""
    hold = JobLease(lease=row.lease, ends_at=time.monotonic() + 60, is_cancelled=False, stopping=None)
    with database.open_writer() as session:
        chunks.record_outcome(session, ClaimedJob(of, row, hold), outcome or CompletedJob())


def do(database, of=WORK, most=1000):
    """Do jobs one after the other; the tenant and key of each."""
    done = []
    while len(done) < most and (row := claim(database, of)) is not None:
        done.append((row.tenant_id, row.effect_key))
        end(database, row)
    return done


def test_one_job_does_not_wait_behind_twenty_of_another_tenant(jobs):
    ask(jobs, "a", *range(20))
    running = claim(jobs)
    ask(jobs, "b", "only")
    assert running.tenant_id == "a"
    assert claim(jobs).tenant_id == "b"
    assert {tenant_id for tenant_id, _ in do(jobs)} == {"a"}


@pytest.mark.parametrize("later", ["a", "m", "z"])
def test_nor_does_it_by_the_name_of_its_tenant(jobs, later):
    ask(jobs, "k", *range(20))
    assert {tenant_id for tenant_id, _ in do(jobs, most=2)} == {"k"}
    ask(jobs, later, "only")
    assert do(jobs, most=1) == [(later, "only")]


def test_a_tenant_is_served_in_order(jobs):
    for number in range(5):
        ask(jobs, "a", number)
        ask(jobs, "b", number)
        time.sleep(0.002)  # the clock of SQLite has milliseconds
    done = do(jobs)
    for tenant_id in "ab":
        assert [key for of, key in done if of == tenant_id] == ["0", "1", "2", "3", "4"]
    assert all(before != after for (before, _), (after, _) in pairwise(done))


def test_a_job_of_many_chunks_holds_up_nobody(jobs):
    ask(jobs, "a", "long")
    ask(jobs, "b", *range(3))
    order = []
    for number in range(7):
        row = claim(jobs)
        order.append(row.tenant_id)
        end(jobs, row, ContinueJob({"reached": number}) if row.tenant_id == "a" else None)
    assert "".join(order) in ("abababa", "bababaa")


def test_a_lease_that_has_ended_is_taken_over_in_its_tenants_turn(jobs):
    clock = Clock(jobs)
    ask(jobs, "a", "killed")
    killed = claim(jobs)
    ask(jobs, "b", *range(5))
    clock.move(seconds=30)
    assert [tenant_id for tenant_id, _ in do(jobs, most=2)] == ["b", "a"]
    with jobs.open_reader() as session:
        assert session.get_one(JobRow, killed.id).fencing_token == 2


def test_turns_outlive_the_process_and_the_rows(jobs):
    ask(jobs, "a", *range(5))
    ask(jobs, "b", *range(5))
    first = do(jobs, most=1)
    jobs.dispose()
    assert do(jobs, most=1)[0][0] != first[0][0]
    with jobs.open_writer() as session:
        session.execute(delete(JobRow).where(JobRow.state == "done"))
    order = [tenant_id for tenant_id, _ in do(jobs)]
    assert all(before != after for before, after in pairwise(order))


def test_what_another_holds_locked_keeps_nobody_waiting(jobs):
    """On SQLite nobody else writes meanwhile."""
    if jobs.is_sqlite:
        return
    ask(jobs, "a", "locked")
    ask(jobs, "b", "free")
    with jobs.open_writer() as other:
        other.execute(select(JobRow.id).where(JobRow.tenant_id == "a").with_for_update())
        assert do(jobs) == [("b", "free")]
    assert do(jobs) == [("a", "locked")]


@pytest.mark.parametrize("limit", [None, 1000])
def test_claims_at_once_take_other_jobs_and_keep_the_order(jobs, limit):
    own = kind(concurrency=limit)
    for tenant_id in "abc":
        ask(jobs, tenant_id, *range(20), of=own)

    def drain(_):
        return list(iter(lambda: claim(jobs, own), None))

    with ThreadPoolExecutor(6) as pool:
        rows = [row for found in pool.map(drain, range(6)) for row in found]
    assert len({row.id for row in rows}) == len(rows) == 60
    order = [row.tenant_id for row in sorted(rows, key=lambda row: row.turn)]
    assert [row.turn for row in sorted(rows, key=lambda row: row.turn)] == list(range(1, 61))
    assert order == list("abc") * 20


TENANTS = st.sampled_from("abcd")
STEPS = st.one_of(
    st.tuples(st.just("ask"), TENANTS, st.integers(1, 4)),
    st.tuples(st.just("ask later"), TENANTS, st.sampled_from([1, 40])),
    st.tuples(st.just("claim")),
    st.tuples(st.just("claim")),
    st.tuples(st.just("claim")),
    st.tuples(st.just("end"), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1, 40])),
)


class Waiting:
    """What each tenant that waits has seen of the others since its last turn."""

    def __init__(self, database, clock):
        self.database, self.clock = database, clock
        self.seen, self.running, self.asked = {}, [], 0

    def run(self, step):
        match step:
            case ("ask", tenant_id, number):
                self.ask(tenant_id, number)
            case ("ask later", tenant_id, seconds):
                self.ask(tenant_id, 1, self.clock.at + timedelta(seconds=seconds))
            case ("claim",):
                self.claim()
            case ("end", place, goes_on) if self.running:
                row = self.running.pop(place % len(self.running))
                with contextlib.suppress(leases.LeaseLost):
                    end(self.database, row, ContinueJob({}) if goes_on else None)
            case ("wait", seconds):
                self.clock.move(seconds=seconds)

    def ask(self, tenant_id, number, due_at=None):
        self.asked += number
        ask(self.database, tenant_id, *range(self.asked - number, self.asked), due_at=due_at or self.clock.at)

    def claim(self):
        first = self.first_due()
        self.seen = {tenant_id: self.seen.get(tenant_id, Counter()) for tenant_id in first}
        row = claim(self.database)
        assert (row is None) == (not first)
        if row is None:
            return
        assert row.id in first[row.tenant_id]
        del self.seen[row.tenant_id]
        for others in self.seen.values():
            others[row.tenant_id] += 1
            assert others[row.tenant_id] == 1
        self.running.append(row)

    def first_due(self):
        """The jobs of each tenant that have been due longest."""
        with self.database.open_reader() as session:
            due = session.scalars(select(JobRow).where(JobRow.due_at <= self.clock.at)).all()
        first = {}
        for row in due:
            first[row.tenant_id] = min(first.get(row.tenant_id, row.due_at), row.due_at)
        return {
            of: {row.id for row in due if (row.tenant_id, row.due_at) == (of, at)} for of, at in first.items()
        }


def test_nobody_waits_for_two_jobs_of_one_other_tenant(jobs):
    clock = Clock(jobs)

    @settings(max_examples=12)
    @given(st.lists(STEPS, min_size=10, max_size=60))
    def hold(steps):
        clock.set(START)
        with jobs.open_writer() as session:
            session.execute(delete(JobRow))
        waiting = Waiting(jobs, clock)
        for step in steps:
            waiting.run(step)
        clock.move(minutes=2)
        while waiting.first_due():
            waiting.claim()
            end(jobs, waiting.running.pop())

    hold()


class TestRunner:
    @pytest.fixture
    def ran(self, jobs):
        """Does jobs of some kinds in threads of a process; the tenants in the order of their turns."""

        def run(*names, threads, jobs_done):
            order, lock = [], threading.Lock()

            def note(job):
                with lock:
                    order.append(job.tenant_id)
                time.sleep(0.005)
                return CompletedJob()

            runner = JobRunner(jobs, [kind(note, name) for name in names], threads=threads)
            runner.start()
            try:
                until(lambda: len(order) >= jobs_done)
            finally:
                runner.stop(5.0)
            return order

        return run

    @pytest.mark.parametrize("threads", [1, 2])
    def test_kinds_take_turns_as_well(self, jobs, ran, threads):
        """A tenant with long queues of several kinds does not hold up the one kind of another."""
        names = ("fleets", "plans", "reports")
        for name in names[:2]:
            ask(jobs, "a", *range(20), of=kind(name=name))
        ask(jobs, "b", "only", of=kind(name=names[2]))
        assert "b" in ran(*names, threads=threads, jobs_done=41)[:4]

    @pytest.mark.parametrize("threads", [1, 2])
    def test_a_plan_behind_twenty(self, jobs, ran, threads):
        ask(jobs, "a", *range(20))
        ask(jobs, "b", "only")
        assert "b" in ran("work", threads=threads, jobs_done=21)[:3]


def fill(database, state, number, **values):
    with database.open_writer() as session:
        session.execute(
            insert(JobRow),
            [
                {
                    "id": f"{state} {n}", "tenant_id": f"t{n % 3}", "kind": "work", "state": state,
                    "effect_key": f"{state} {n}", "arguments": {}, "created_at": START, **values,
                }
                for n in range(number)
            ],
        )  # fmt: skip


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_claim_costs_the_same_whatever_was_done_and_waits(jobs):
    """Steps of SQLite's machine, which are the same on every run."""
    steps = Counter()

    @event.listens_for(jobs.engine, "connect")
    def count(connection, _):
        connection.set_progress_handler(lambda: steps.update(["hundreds"]), 100)

    def cost():
        jobs.dispose()
        steps.clear()
        assert claim(jobs)
        return steps["hundreds"]

    ask(jobs, "t0", *range(10))
    few = cost()
    fill(jobs, "done", 5000, finished_at=START, turn=1)
    fill(jobs, "waiting", 5000, due_at=START)
    assert cost() <= few + 1


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_a_claim_looks_only_into_indexes(jobs):
    fill(jobs, "done", 5000, finished_at=START, turn=1)
    fill(jobs, "waiting", 5000, due_at=START)
    with jobs.engine.begin() as connection:
        connection.execute(text("ANALYZE background_jobs"))
    plans = []

    def explain(connection, _, statement, parameters, *__):
        if "background_jobs" in statement and not statement.startswith("EXPLAIN"):
            found = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
            plans.append("\n".join(found.scalars()))

    event.listen(jobs.engine, "before_cursor_execute", explain)
    assert claim(jobs)
    event.remove(jobs.engine, "before_cursor_execute", explain)
    assert plans
    for plan in plans:
        assert "Index" in plan
        assert not re.search("Seq Scan|Bitmap|Sort", plan), plan
