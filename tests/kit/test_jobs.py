"""Background jobs on both databases: asked for, run in chunks, tried again, cancelled, scheduled."""

import contextlib
import itertools
import logging
import threading
import time
from datetime import datetime, timedelta

import pytest
from pydantic import BaseModel
from sqlalchemy import delete, insert, select, text, update

from service.kit.http.problems import Conflict, NotFound
from service.kit.jobs import chunks, leases, notifier, repository
from service.kit.jobs import runner as runners
from service.kit.jobs.chunks import ClaimedJob
from service.kit.jobs.kinds import CompletedJob, ContinueJob, JobError, JobLease, RunnableJobType
from service.kit.jobs.leases import LeaseLost
from service.kit.jobs.repository import JobCount, enqueue_job
from service.kit.jobs.runner import JobRunner
from service.kit.jobs.schedules import JobSchedule, build_retention
from service.kit.jobs.tables import JobRow
from service.kit.security.principals import SYSTEM_TENANT
from tests.clocks import START, Clock, unset
from tests.waiting import until

SHORT = timedelta(milliseconds=1)


class Arguments(BaseModel):
    number: int = 0


def kind(run, name="work", **options):
    return RunnableJobType(name=name, arguments=Arguments, run=run, **{"backoff": SHORT, **options})


def done(_):
    return CompletedJob()


@pytest.fixture(scope="module")
def _made():
    return {}


@pytest.fixture
def jobs(databases, _made):
    """A database with the table alone, empty."""
    if databases.kind not in _made:
        _made[databases.kind] = databases.lasting()
        JobRow.__table__.create(_made[databases.kind].engine)
    database = _made[databases.kind]
    yield database
    unset(database)
    with database.engine.begin() as connection:
        connection.execute(delete(JobRow))
        connection.execute(text("DROP TABLE IF EXISTS effects"))
    database.dispose()


@pytest.fixture
def working(jobs):
    """Starts runners of some kinds; they are stopped at the end."""
    with contextlib.ExitStack() as stack:

        def start(*kinds, threads=2, schedules=()):
            runner = JobRunner(jobs, kinds, schedules, threads=threads)
            runner.start()
            stack.callback(runner.stop, 5.0)
            return runner

        yield start


def ask(database, asked, key="once", *, tenant_id="t", due_at=None, **arguments):
    with database.open_writer() as session:
        return enqueue_job(
            session, asked, Arguments(**arguments), tenant_id=tenant_id, effect_key=key, due_at=due_at
        )


def rows(database, **filters):
    with database.open_reader() as session:
        return list(session.scalars(select(JobRow).filter_by(**filters).order_by(JobRow.created_at)))


def job(database, job_id):
    with database.open_reader() as session:
        return repository.get_job(session, "t", job_id)


def ended(database, job_id, state="done"):
    until(lambda: job(database, job_id).state == state)
    return job(database, job_id)


def act(database, function, *arguments, **options):
    with database.open_writer() as session:
        return function(session, *arguments, **options)


def claimed(database, of, ends_in=60.0):
    """A job claimed as a runner would."""
    row = act(database, repository.claim_job, of)
    if row is None:
        return None
    ends_at = time.monotonic() + ends_in
    hold = JobLease(lease=row.lease, ends_at=ends_at, is_cancelled=False, stopping=threading.Event())
    return ClaimedJob(of, row, hold)


def step(database, of):
    """Claim and run one chunk of a kind in this thread; whether there was one."""
    chunk = claimed(database, of)
    if chunk:
        act(database, chunks.record_outcome, chunk, chunks.run_chunk(database, chunk))
    return chunk is not None


class TestAsking:
    def test_a_job_comes_with_the_transaction_that_asks_for_it(self, jobs):
        def ask_and_fail():
            with jobs.open_writer() as session:
                enqueue_job(session, kind(done), Arguments(), tenant_id="t", effect_key="k")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            ask_and_fail()
        assert rows(jobs) == []

    def test_an_effect_asked_for_twice_is_one_job(self, jobs):
        first = ask(jobs, kind(done), "k", number=1)
        assert ask(jobs, kind(done), "k", number=2) == first
        assert step(jobs, kind(done))
        assert ask(jobs, kind(done), "k") == first
        others = {ask(jobs, kind(done), "k", tenant_id="u"), ask(jobs, kind(done, "other"), "k")}
        assert len({first, *others}) == 3
        assert job(jobs, first).arguments == {"number": 1}
        assert job(jobs, first).state == "done"

    def test_tenants_see_their_own(self, jobs):
        mine = [ask(jobs, kind(done), f"k{number}") for number in range(5)]
        ask(jobs, kind(done), tenant_id="u")
        ask(jobs, kind(done, "other"))
        with jobs.open_reader() as session:
            first = repository.list_page(session, "t", kinds=["work"], limit=3)
            last = first[-1]
            rest = repository.list_page(
                session, "t", kinds=["work"], after=(last.created_at, last.id), limit=3
            )
            found = [row.id for row in (*first, *rest)]
            assert sorted(found) == sorted(mine)
            assert [row.created_at for row in first] == sorted(
                (row.created_at for row in first), reverse=True
            )
            assert repository.list_page(session, "t", states=["done"], limit=9) == []
        with jobs.open_writer() as session:
            for function in (repository.get_job, repository.cancel_job, repository.retry_job):
                with pytest.raises(NotFound):
                    function(session, "u", mine[0])


class TestRunning:
    def test_arguments_in_result_out(self, jobs, working):
        double = kind(lambda job: CompletedJob({"doubled": 2 * job.arguments.number}))
        working(double)
        assert ended(jobs, ask(jobs, double, number=21)).result == {"doubled": 42}

    def test_chunks_go_on_from_their_progress(self, jobs, working):
        def count(job):
            reached = job.progress.get("reached", 0) + 1
            return CompletedJob({"reached": reached}) if reached == 5 else ContinueJob({"reached": reached})

        counting = kind(count, attempts=2)
        job_id = ask(jobs, counting)
        working(counting)
        row = ended(jobs, job_id)
        assert row.result == {"reached": 5}
        assert row.fencing_token == 5

    def test_a_job_waits_for_its_date_and_for_its_delay(self, jobs):
        clock = Clock(jobs)
        later = kind(
            lambda job: ContinueJob({"n": 1}, timedelta(hours=2)) if not job.progress else CompletedJob()
        )
        job_id = ask(jobs, later, due_at=START + timedelta(days=3))
        assert not step(jobs, later)
        clock.move(days=3)
        assert step(jobs, later)
        clock.move(seconds=7199)
        assert not step(jobs, later)
        clock.move(seconds=1)
        assert step(jobs, later)
        assert job(jobs, job_id).state == "done"

    def test_work_asked_for_by_another_process_starts_at_once(self, jobs, working, monkeypatch):
        """PostgreSQL notifies, where nothing looks by itself; on SQLite others are found by polling."""
        monkeypatch.setattr(runners, "POSTGRESQL_POLL_SECONDS", 600.0)
        own = kind(done)
        working(own)
        time.sleep(0.5)
        with jobs.open_writer() as session:
            asked = enqueue_job(session, own, Arguments(), tenant_id="t", effect_key="once")
            session.info.clear()  # what this process hears of its own transaction
        ended(jobs, asked)

    def test_a_lease_is_renewed_while_its_chunk_runs(self, jobs, working):
        starts = []

        def sleep(job):
            starts.append(job.attempt)
            time.sleep(3.5)
            return CompletedJob({"lost": job.should_stop})

        slow = kind(sleep, lease=timedelta(seconds=3))
        working(slow, threads=3)
        row = ended(jobs, ask(jobs, slow))
        assert (starts, row.result, row.fencing_token) == ([1], {"lost": False}, 1)

    def test_what_a_process_left_is_taken_up_when_its_lease_ends(self, jobs, working):
        own = kind(done, lease=timedelta(milliseconds=300))
        job_id = ask(jobs, own)
        assert claimed(jobs, own)
        working(own)
        assert ended(jobs, job_id).fencing_token == 2

    def test_a_holder_that_is_late_writes_nothing(self, jobs):
        clock = Clock(jobs)
        own = kind(lambda job: CompletedJob({"by": job.attempt}))
        job_id = ask(jobs, own)
        late = claimed(jobs, own)
        clock.move(minutes=1)
        assert step(jobs, own)
        with pytest.raises(LeaseLost):
            act(jobs, chunks.record_outcome, late, CompletedJob({"by": "the late one"}))
        assert job(jobs, job_id).result == {"by": 2}

    def test_effects_are_undone_with_the_lease_and_stand_with_the_progress(self, jobs):
        clock = Clock(jobs)
        with jobs.engine.begin() as connection:
            connection.execute(text("CREATE TABLE effects (name VARCHAR(10))"))

        def effect(job):
            if "written" not in job.progress:
                if job.attempt == 1:
                    clock.move(minutes=1)
                    claimed(jobs, own)
                with job.open_writer({"written": True}) as session:
                    session.execute(text("INSERT INTO effects VALUES ('one')"))
                raise JobError("AFTER", "after the effect")
            return CompletedJob()

        own = kind(effect, backoff=timedelta(0))
        job_id = ask(jobs, own)
        with pytest.raises(LeaseLost):
            step(jobs, own)
        with jobs.open_reader() as session:
            assert session.execute(text("SELECT * FROM effects")).all() == []
        clock.move(minutes=1)
        assert step(jobs, own)
        assert step(jobs, own)
        assert job(jobs, job_id).state == "done"
        with jobs.open_reader() as session:
            assert session.execute(text("SELECT * FROM effects")).all() == [("one",)]

    def test_a_long_queue_of_one_kind_holds_up_no_other(self, jobs, working):
        release = threading.Event()
        slow = kind(lambda _: CompletedJob({"released": release.wait(60)}), "slow")
        quick = kind(done, "quick")
        for number in range(20):
            ask(jobs, slow, str(number))
        job_id = ask(jobs, quick)
        working(slow, quick, threads=2)
        ended(jobs, job_id)
        release.set()

    def test_no_more_of_a_kind_run_than_may(self, jobs, working):
        lock, now, most = threading.Lock(), [0], [0]

        def busy(_):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.02)
            with lock:
                now[0] -= 1
            return CompletedJob()

        limited = kind(busy, concurrency=2)
        ids = [ask(jobs, limited, str(number)) for number in range(24)]
        for _ in range(3):
            working(limited, threads=3)
        for job_id in ids:
            ended(jobs, job_id)
        assert most == [2]


class TestFailing:
    def test_it_is_tried_again_until_it_is_dead_and_can_be_run_again(self, jobs, working):
        broken = [True]

        def run(job):
            if broken[0]:
                raise JobError("UPSTREAM_DOWN", "The receiver answered 503.")
            return CompletedJob({"attempt": job.attempt})

        flaky = kind(run, attempts=3)
        job_id = ask(jobs, flaky)
        working(flaky)
        row = ended(jobs, job_id, "dead")
        assert (row.attempt, row.error_code, row.error_summary) == (
            3, "UPSTREAM_DOWN", "The receiver answered 503."
        )  # fmt: skip
        assert row.finished_at
        broken[0] = False
        assert act(jobs, repository.retry_job, "t", job_id).state == "waiting"
        row = ended(jobs, job_id)
        assert row.result == {"attempt": 1}
        with pytest.raises(Conflict):
            act(jobs, repository.retry_job, "t", job_id)

    def test_waits_double_up_to_the_longest_and_are_drawn_below(self, jobs):
        own = kind(done, backoff=timedelta(seconds=2), longest_backoff=timedelta(seconds=30))
        ask(jobs, own)
        chunk = claimed(jobs, own)
        for attempt, bound in ((1, 2), (2, 4), (4, 16), (5, 30), (2000, 30)):
            chunk.row.attempt = attempt
            drawn = [chunks._compute_backoff(chunk) for _ in range(200)]
            assert 0 <= min(drawn) < bound / 4
            assert bound * 3 / 4 < max(drawn) <= bound

    def test_a_final_error_is_not_tried_again(self, jobs):
        def run(_):
            raise JobError("GONE", "The receiver is gone.", is_final=True)

        job_id = ask(jobs, kind(run))
        assert step(jobs, kind(run))
        assert (job(jobs, job_id).state, job(jobs, job_id).attempt) == ("dead", 1)

    def test_the_message_of_an_unexpected_error_is_neither_kept_nor_logged(self, jobs, caplog):
        sent = "sesame"

        def run(_):
            raise ValueError(sent)

        job_id = ask(jobs, kind(run))
        with caplog.at_level(logging.DEBUG, "service"):
            assert step(jobs, kind(run))
        row = job(jobs, job_id)
        assert (row.state, row.error_code) == ("waiting", "UNEXPECTED")
        assert row.error_summary.startswith("ValueError at test_jobs.py:")
        assert "test_jobs.py" in caplog.text
        assert sent not in caplog.text

    def test_arguments_that_the_kind_no_longer_takes(self, jobs):
        job_id = ask(jobs, kind(done))
        with jobs.open_writer() as session:
            session.execute(update(JobRow).values(arguments={"number": "sesame"}))
        assert step(jobs, kind(done))
        row = job(jobs, job_id)
        assert (row.state, row.error_code) == ("dead", "ARGUMENTS_INVALID")
        assert row.error_summary == "/number: int_parsing"

    def test_a_job_that_kills_its_process_each_time_is_dead_in_the_end(self, jobs):
        clock = Clock(jobs)
        deadly = kind(done, attempts=3)
        job_id = ask(jobs, deadly)
        for _ in range(3):
            assert claimed(jobs, deadly)
            clock.move(minutes=1)
        assert step(jobs, deadly)
        assert (job(jobs, job_id).state, job(jobs, job_id).error_code) == ("dead", "ABANDONED")

    def test_progress_gives_all_attempts_back(self, jobs):
        def run(job):
            if job.attempt == 1:
                raise JobError("ONCE", "the first attempt fails")
            return ContinueJob({"chunks": job.progress.get("chunks", 0) + 1})

        own = kind(run, attempts=2, backoff=timedelta(0))
        job_id = ask(jobs, own)
        for _ in range(8):
            assert step(jobs, own)
        assert (job(jobs, job_id).state, job(jobs, job_id).progress) == ("waiting", {"chunks": 4})

    @pytest.mark.parametrize("result", [{"a": object()}, {"a": "\x00"}])
    def test_a_result_that_cannot_be_stored(self, jobs, working, result):
        own = kind(lambda _: CompletedJob(result), attempts=1)
        job_id = ask(jobs, own)
        working(own, threads=1)
        if jobs.is_sqlite and result == {"a": "\x00"}:
            assert ended(jobs, job_id).result == result
            return
        assert ended(jobs, job_id, "dead").error_code == "OUTCOME_UNWRITABLE"
        ended(jobs, ask(jobs, own, "the thread lives"), "dead")

    def test_work_of_a_kind_that_is_not_known_here_is_left_alone(self, jobs, working):
        newer, older = kind(done, "newer"), kind(done, "older")
        waiting, left = ask(jobs, newer), ask(jobs, newer, "left")
        with jobs.open_writer() as session:
            session.execute(update(JobRow).where(JobRow.id == left).values(state="running"))
        working(older)
        ended(jobs, ask(jobs, older))
        assert [job(jobs, job_id).fencing_token for job_id in (waiting, left)] == [0, 0]
        working(newer)
        ended(jobs, waiting)
        ended(jobs, left)


class TestCancelling:
    def test_at_once_while_it_waits(self, jobs):
        job_id = ask(jobs, kind(done))
        row = act(jobs, repository.cancel_job, "t", job_id)
        assert (row.state, row.due_at) == ("cancelled", None)
        assert row.finished_at
        assert act(jobs, repository.cancel_job, "t", job_id).state == "cancelled"
        assert not step(jobs, kind(done))

    def test_a_chunk_sees_the_flag(self, jobs, working):
        running = threading.Event()

        def run(job):
            running.set()
            until(lambda: job.should_stop)
            return ContinueJob({"seen": True})

        own = kind(run, lease=timedelta(seconds=3))
        job_id = ask(jobs, own)
        working(own)
        assert running.wait(30)
        assert act(jobs, repository.cancel_job, "t", job_id).state == "running"
        assert ended(jobs, job_id, "cancelled").progress == {"seen": True}

    @pytest.mark.parametrize("fails", [True, False])
    def test_between_chunks_and_instead_of_another_attempt(self, jobs, fails):
        def run(_):
            act(jobs, repository.cancel_job, "t", job_id)
            if fails:
                raise JobError("FAILED", "failed")
            return ContinueJob({"reached": 1})

        job_id = ask(jobs, kind(run))
        assert step(jobs, kind(run))
        assert job(jobs, job_id).state == "cancelled"

    def test_a_flag_left_by_a_dead_process_is_read_before_anything_runs(self, jobs):
        clock = Clock(jobs)
        job_id = ask(jobs, kind(done))
        assert claimed(jobs, kind(done))
        act(jobs, repository.cancel_job, "t", job_id)
        clock.move(minutes=1)
        assert step(jobs, kind(done))
        assert job(jobs, job_id).state == "cancelled"

    def test_what_is_done_stays_done_and_what_is_dead_may_be_given_up(self, jobs):
        finished = ask(jobs, kind(done))
        assert step(jobs, kind(done))
        with pytest.raises(Conflict):
            act(jobs, repository.cancel_job, "t", finished)
        with jobs.open_writer() as session:
            session.execute(update(JobRow).values(state="dead"))
        assert act(jobs, repository.cancel_job, "t", finished).state == "cancelled"


class TestStopping:
    def test_a_chunk_that_reads_the_flag_keeps_its_progress(self, jobs, working):
        running = threading.Event()

        def run(job):
            running.set()
            until(lambda: job.should_stop)
            return ContinueJob({"kept": True})

        job_id = ask(jobs, kind(run))
        runner = working(kind(run))
        assert running.wait(30)
        runner.stop(5.0)
        row = job(jobs, job_id)
        assert (row.state, row.progress, row.attempt) == ("waiting", {"kept": True}, 0)

    def test_a_chunk_that_does_not_end_is_given_back(self, jobs, working):
        running, release = threading.Event(), threading.Event()

        def run(_):
            running.set()
            release.wait(60)
            return CompletedJob({"by": "the one that was stopped"})

        job_id = ask(jobs, kind(run))
        runner = working(kind(run))
        assert running.wait(30)
        runner.stop(0.3)
        row = job(jobs, job_id)  # one that was waited for would be done
        assert (row.state, row.attempt) == ("waiting", 0)
        assert step(jobs, kind(lambda _: CompletedJob({"by": "another"})))
        release.set()
        time.sleep(0.1)
        assert job(jobs, job_id).result == {"by": "another"}


class TestClock:
    def test_set_back_strands_nothing_and_runs_nothing_twice(self, jobs, working):
        clock = Clock(jobs)
        running, release, starts = threading.Event(), threading.Event(), []

        def run(job):
            starts.append(job.id)
            running.set()
            release.wait(60)
            return CompletedJob()

        def wait(job):
            return CompletedJob() if job.progress else ContinueJob({"waited": True}, timedelta(seconds=5))

        long, quick, delayed = kind(run, "long"), kind(done, "quick"), kind(wait, "delayed")
        held, later = ask(jobs, long), ask(jobs, delayed)
        runner = working(long, quick, delayed)
        assert running.wait(30)
        until(lambda: job(jobs, later).progress)
        clock.move(days=-1)
        waiting = [ask(jobs, quick, str(number)) for number in range(3)]
        for job_id in waiting:
            ended(jobs, job_id)
        dated = ask(jobs, quick, "dated", due_at=START)
        clock.move(seconds=5)
        runner._bell.set()
        ended(jobs, later)
        release.set()
        ended(jobs, held)
        assert starts == [held]
        assert job(jobs, dated).state == "waiting"
        clock.set(START)
        runner._bell.set()
        ended(jobs, dated)

    def test_set_back_under_what_waits_and_what_a_dead_process_holds(self, jobs, working):
        clock = Clock(jobs)
        own, dead = kind(done), kind(done, "dead")
        left = ask(jobs, dead)
        assert claimed(jobs, dead)
        waiting = ask(jobs, own)
        clock.move(days=-1)
        working(own, dead)
        ended(jobs, waiting)
        assert job(jobs, left).state == "running"
        clock.move(seconds=30)
        with jobs.open_writer() as session:
            notifier.notify_after_commit(session)
        ended(jobs, left)


class TestSchedules:
    def test_two_processes_fire_each_tick_once(self, jobs, working):
        ran = []
        tick = kind(lambda job: ran.append(job.id) or CompletedJob(), "tick")
        schedule = JobSchedule(
            name="often", every=timedelta(milliseconds=300), job=tick, arguments=Arguments()
        )
        for _ in range(2):
            working(schedules=[schedule])
        until(lambda: len(ran) > 5)
        keys = sorted(row.effect_key.removeprefix("often ") for row in rows(jobs, kind="tick"))
        ticks = [datetime.fromisoformat(key) for key in keys]
        # A busy machine comes late to a tick and fires once for those it missed.
        gaps = [later - earlier for earlier, later in itertools.pairwise(ticks)]
        assert all(gap > timedelta() and not gap % schedule.every for gap in gaps)
        assert len(ran) == len(set(ran))
        assert len(rows(jobs, kind="schedule.often", tenant_id=SYSTEM_TENANT)) == 1

    def test_ticks_missed_in_a_stop_fire_once(self, jobs):
        clock = Clock(jobs)
        tick = kind(done, "tick")
        schedule = JobSchedule(
            name="daily", every=timedelta(days=1), offset=timedelta(hours=2), job=tick, arguments=Arguments()
        )
        act(jobs, schedule.begin)
        assert step(jobs, schedule.kind)
        clock.move(hours=13, minutes=59)
        assert not step(jobs, schedule.kind)
        clock.move(days=5)
        act(jobs, schedule.begin)
        assert step(jobs, schedule.kind)
        assert not step(jobs, schedule.kind)
        clock.move(minutes=1)
        assert step(jobs, schedule.kind)
        ticks = [row.effect_key for row in rows(jobs, kind="tick")]
        assert ticks == [f"daily 2026-03-{day}T02:00:00+00:00" for day in ("01", "06", "07")]

    def test_a_tick_fires_once_though_the_clock_is_set_back(self, jobs):
        clock = Clock(jobs)
        schedule = JobSchedule(
            name="hourly", every=timedelta(hours=1), job=kind(done, "tick"), arguments=Arguments()
        )
        act(jobs, schedule.begin)
        for _ in range(3):
            assert step(jobs, schedule.kind)
            clock.move(hours=1)
        clock.move(hours=-3)
        act(jobs, leases.repair_spans, JobRow)
        for _ in range(5):
            step(jobs, schedule.kind)
            clock.move(hours=1)
        ticks = [row.effect_key[-14:-9] for row in rows(jobs, kind="tick")]
        assert ticks == ["12:00", "13:00", "14:00", "15:00", "16:00"]


class TestForgetting:
    def test_finished_jobs_are_kept_for_their_time(self, jobs, monkeypatch):
        clock = Clock(jobs)
        kept = kind(done, retention=timedelta(days=7), dead_retention=timedelta(days=90))
        schedule = build_retention([kept])
        for state, count in (("done", 4), ("cancelled", 1), ("dead", 1)):
            for number in range(count):
                job_id = ask(jobs, kept, f"{state} {number}")
                ends = {"state": state, "due_at": None, "finished_at": clock.at}
                with jobs.open_writer() as session:
                    session.execute(update(JobRow).where(JobRow.id == job_id).values(**ends))
        ask(jobs, kept, "waiting", due_at=START + timedelta(days=900))
        ask(jobs, kind(done, "unknown"), "waiting", due_at=START + timedelta(days=900))
        monkeypatch.setattr("service.kit.jobs.schedules._EXPIRED_AT_ONCE", 2)

        def sweep():
            act(
                jobs,
                enqueue_job,
                schedule.job,
                Arguments(),
                tenant_id=SYSTEM_TENANT,
                effect_key=str(clock.at),
            )
            while step(jobs, schedule.job):
                pass
            (swept,) = rows(jobs, effect_key=str(clock.at))
            return swept.result["deleted"], sorted(row.effect_key for row in rows(jobs, tenant_id="t"))

        clock.move(days=7, seconds=-1)
        assert sweep()[0] == 0
        clock.move(seconds=1)
        assert sweep() == (5, ["dead 0", "waiting", "waiting"])
        clock.move(days=83)
        assert sweep()[1] == ["waiting", "waiting"]

    def test_counts_say_how_long_the_first_has_been_due(self, jobs):
        clock = Clock(jobs)
        own = kind(done)
        ask(jobs, own, "1")
        assert step(jobs, own)
        ask(jobs, own, "2")
        clock.move(seconds=90)
        ask(jobs, own, "3")
        ask(jobs, kind(done, "later"), due_at=clock.at + timedelta(hours=1))
        with jobs.open_reader() as session:
            assert sorted(repository.count_jobs(session)) == [
                JobCount("later", "waiting", 1, 0.0),
                JobCount("work", "done", 1, 0.0),
                JobCount("work", "waiting", 2, 90.0),
            ]


def test_a_row_that_was_written_by_hand_runs(jobs, working):
    """The columns' defaults are enough: migrations and imports may write rows."""
    own = kind(done)
    with jobs.open_writer() as session:
        session.execute(
            insert(JobRow).values(
                id="by-hand", tenant_id="t", kind="work", effect_key="k", arguments={},
                due_at=leases.get_database_time(), created_at=leases.get_database_time(),
            )
        )  # fmt: skip
    working(own)
    ended(jobs, "by-hand")
