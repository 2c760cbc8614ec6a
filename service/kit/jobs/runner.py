"""Threads that look for jobs, run them, and hold their leases.

One thread at a time looks for work and runs the job that it claims; then the next thread looks. A separate
thread renews the leases of running jobs. None of them ends before :meth:`JobRunner.stop`, whatever happens to
the database meanwhile.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.kit.database.engine import Database
from service.kit.database.failures import warn_of_error
from service.kit.jobs import chunks, leases, repository
from service.kit.jobs.chunks import UNWRITABLE, ChunkOutcome, ClaimedJob, FailedChunk
from service.kit.jobs.kinds import JobLease, RunnableJobType
from service.kit.jobs.leases import LeaseLost, RowLease
from service.kit.jobs.notifier import JobNotifier, listen_for_jobs, notify_after_commit
from service.kit.jobs.repository import JobQueueState
from service.kit.jobs.schedules import JobSchedule
from service.kit.jobs.tables import JobRow
from service.kit.memory import MemoryWatch
from service.kit.tracing import SpanRole, mark_failed, open_span

SQLITE_POLL_SECONDS = 1.0
POSTGRESQL_POLL_SECONDS = 5.0  # a notification comes sooner
SHORTEST_WAIT_SECONDS = 0.05
ERROR_PAUSE_SECONDS = 0.5
RENEWAL_TICK_SECONDS = 0.25
RENEWED_AFTER = 1 / 3  # of a lease, so that two renewals may fail

_UNAVAILABLE = (OperationalError, InterfaceError, PoolTimeoutError)
_logger = logging.getLogger(__name__)


class JobRunner:
    """Runs jobs of ``kinds`` and fires ``schedules`` in threads of this process."""

    def __init__(
        self,
        database: Database,
        kinds: Iterable[RunnableJobType[Any]],
        schedules: Iterable[JobSchedule] = (),
        *,
        threads: int,
        memory: MemoryWatch | None = None,
    ) -> None:
        self._database, self._memory = database, memory
        self._schedules = tuple(schedules)
        scheduled = (kind for schedule in self._schedules for kind in (schedule.kind, schedule.job))
        self._kinds = {kind.name: kind for kind in (*kinds, *scheduled)}
        self._poll_seconds = SQLITE_POLL_SECONDS if database.is_sqlite else POSTGRESQL_POLL_SECONDS
        self._bell = JobNotifier()
        self._stopping = threading.Event()
        self._closed = threading.Event()
        self._holding = threading.Event()
        self._looking = threading.Lock()
        self._latest: datetime | None = None
        self._turns: dict[str, int] = {}  # the last of each kind in this process
        self._running: dict[RowLease, ClaimedJob] = {}
        self._workers = [self._build_thread(self._run_worker, f"jobs-{number}") for number in range(threads)]
        self._helpers = [self._build_thread(self._renew_leases, "jobs-leases")]
        if not database.is_sqlite:
            self._helpers.append(self._build_thread(self._listen_for_jobs, "jobs-bell"))

    @staticmethod
    def _build_thread(target: Any, name: str) -> threading.Thread:  # noqa: ANN401
        # A chunk that does not end must not keep the process from ending; its lease expires.
        return threading.Thread(target=target, name=name, daemon=True)

    def start(self) -> None:
        """Start the threads."""
        for thread in (*self._helpers, *self._workers):
            thread.start()

    def ask_to_stop(self) -> None:
        """Stops claiming jobs."""
        self._stopping.set()
        self._bell.set()

    def stop(self, grace_seconds: float) -> None:
        """Stops claiming jobs, lets chunks end for ``grace_seconds``, and releases the rest."""
        deadline = time.monotonic() + grace_seconds
        self.ask_to_stop()
        for thread in self._workers:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._closed.set()
        self._holding.set()
        for claimed in tuple(self._running.values()):
            with contextlib.suppress(LeaseLost, *_UNAVAILABLE), self._database.open_writer() as session:
                chunks.release_job(session, claimed)
        with contextlib.suppress(*_UNAVAILABLE), self._database.open_writer() as session:
            notify_after_commit(session)
        for thread in self._helpers:
            thread.join()

    def _run_worker(self) -> None:
        while not self._stopping.is_set():
            with self._looking:
                claimed = self._claim_next()
            if claimed is not None:
                self._run_job(claimed)

    def _claim_next(self) -> ClaimedJob | None:
        """Waits for a job and claims it; returns None once the runner stops."""
        while True:
            self._bell.clear()
            if self._stopping.is_set():  # a stop after this line has set the notifier
                return None
            try:
                claimed, wait = self._look_for_work()
            except Exception as error:  # noqa: BLE001  # the database recovers, an ended thread would not
                warn_of_error(_logger, "not looking for jobs", error)
                self._stopping.wait(ERROR_PAUSE_SECONDS)
                continue
            if claimed is not None:
                return claimed
            self._bell.wait(wait)

    def _look_for_work(self) -> tuple[ClaimedJob | None, float]:
        """Returns the claimed job, or the seconds to wait."""
        with self._database.open_reader() as session:
            found = repository.list_queues(session, self._kinds)
        now = found[0].now
        if self._latest is None or now < self._latest:
            self._begin_schedules()
            self._latest = now
            return None, 0.0
        self._latest = now
        wait = self._poll_seconds
        # The kind with the fewest running jobs goes first, of equals the one whose last turn is longest ago,
        # so that a long queue of one kind holds up no other.
        for queue in sorted(filter(self._has_room, found), key=self._rank_queue):
            if queue.due_at is None:
                continue
            ahead = (queue.due_at - now).total_seconds()
            claimed = self._claim_job(self._kinds[queue.kind]) if ahead <= 0 else None
            if claimed is not None:
                self._turns[queue.kind] = max(self._turns.values(), default=0) + 1
                return claimed, 0.0
            wait = min(wait, max(ahead, SHORTEST_WAIT_SECONDS))
        return None, wait

    def _rank_queue(self, queue: JobQueueState) -> tuple[int, int, datetime]:
        return queue.running, self._turns.get(queue.kind, 0), queue.due_at or queue.now

    def _has_room(self, queue: JobQueueState) -> bool:
        kind = self._kinds[queue.kind]
        if kind.is_heavy and self._memory is not None and self._memory.is_short:
            return False
        limit = kind.concurrency
        return limit is None or queue.running < limit

    def _begin_schedules(self) -> None:
        """Repairs times and enqueues every schedule, at the start and once the clock has been set back."""
        with self._database.open_writer() as session:
            leases.repair_spans(session, JobRow)
            for schedule in self._schedules:
                schedule.begin(session)

    def _claim_job(self, kind: RunnableJobType[Any]) -> ClaimedJob | None:
        ends_at = time.monotonic() + kind.lease.total_seconds()
        with self._database.open_writer() as session:
            row = repository.claim_job(session, kind)
        if row is None:
            return None
        hold = JobLease(
            lease=row.lease, ends_at=ends_at, is_cancelled=row.cancel_requested, stopping=self._stopping
        )
        claimed = ClaimedJob(kind, row, hold)
        self._running[row.lease] = claimed
        self._holding.set()
        return claimed

    def _run_job(self, claimed: ClaimedJob) -> None:
        kind, row, _ = claimed
        about = {"ironlaw__tenant_id": row.tenant_id, "ironlaw__job_id": row.id}
        try:
            with open_span(
                f"job {kind.name}", role=SpanRole.CONSUMER, parent=row.traceparent, **about
            ) as span:
                outcome = chunks.run_chunk(self._database, claimed)
                if span is not None and isinstance(outcome, FailedChunk):
                    mark_failed(span, outcome.code)
                self._record_outcome(claimed, outcome)
        except LeaseLost:
            told = (claimed.row.id, claimed.kind.name, claimed.hold.lease.token)
            _logger.warning("job %s of kind %s: lease %d lost", *told)
        finally:
            del self._running[claimed.hold.lease]
            self._bell.set()  # there is room now, and perhaps a next chunk

    def _record_outcome(self, claimed: ClaimedJob, outcome: ChunkOutcome) -> None:
        """Writes the outcome, however long the database is away; it is valid until another claim."""
        while not self._closed.is_set():
            try:
                with self._database.open_writer() as session:
                    chunks.record_outcome(session, claimed, outcome)
            except LeaseLost:
                raise
            except Exception as error:  # noqa: BLE001  # this thread continues, whatever was returned
                warn_of_error(_logger, f"outcome of job {claimed.row.id} not written", error)
                if not isinstance(error, _UNAVAILABLE):
                    outcome = UNWRITABLE
                self._closed.wait(ERROR_PAUSE_SECONDS)
            else:
                return

    def _renew_leases(self) -> None:
        while not self._closed.wait(RENEWAL_TICK_SECONDS):
            for claimed in tuple(self._running.values()):
                seconds = claimed.kind.lease.total_seconds()
                left = claimed.hold.ends_at - time.monotonic()
                if 0 < left < seconds * (1 - RENEWED_AFTER):
                    self._renew_lease(claimed, seconds)
            self._holding.clear()
            if not (self._running or self._closed.is_set()):
                self._holding.wait()

    def _renew_lease(self, claimed: ClaimedJob, seconds: float) -> None:
        hold = claimed.hold
        ends_at = time.monotonic() + seconds
        try:
            with self._database.open_writer() as session:
                row = leases.renew_lease(session, JobRow, hold.lease, seconds=seconds)
        except LeaseLost:
            hold.ends_at = 0.0
        except Exception as error:  # noqa: BLE001  # tried again while the lease lasts
            warn_of_error(_logger, f"lease of job {claimed.row.id} not renewed", error)
        else:
            hold.ends_at = ends_at
            hold.is_cancelled = row.cancel_requested

    def _listen_for_jobs(self) -> None:
        listen_for_jobs(self._database, self._closed)
