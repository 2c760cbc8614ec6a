"""Every kind of background job, every schedule of the service, and the workers that run them."""

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from service.app.background.approvals import build_deadline_sweep, build_settlement_kind
from service.app.background.audit import build_audit_export, build_audit_verification
from service.app.background.calibrations import build_calibration_kind
from service.app.background.fleet import SETTLING
from service.app.background.plans import FLEET_SCHEDULING, FLEET_SEARCHING, RANKING, SEARCHING
from service.app.background.plans import SWEEPING as PLANS_SWEEPING
from service.app.background.policy_changes import build_policy_application
from service.app.background.quotes import SWEEPING as QUOTES_SWEEPING
from service.app.background.regressions import COMPARING
from service.app.background.retention import list_expiries
from service.app.background.webhooks import PUBLISHING
from service.app.memory import SAMPLE_SECONDS, sample_memory
from service.audit.exports import HeadExports
from service.audit.service import Writes
from service.benchmarks.validation.jobs import SWEEPING, build_validation_kind
from service.evidence.snapshot import get_store
from service.kit.database.engine import Database
from service.kit.jobs.kinds import RunnableJobType
from service.kit.jobs.runner import JobRunner
from service.kit.jobs.schedules import JobSchedule, build_retention
from service.kit.memory import MemoryWatch
from service.webhooks.dispatching import Dispatcher
from service.webhooks.service import Webhooks

_REGULAR = (SETTLING, SWEEPING, PLANS_SWEEPING, QUOTES_SWEEPING)
GRACE_SECONDS = 8.0
"""Seconds for chunks to end; supervisors usually kill a process ten seconds after the signal to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDependencies:
    """Dependencies of jobs beyond the database."""

    writes: Writes
    """Records the changes that the service makes by itself."""
    webhooks: Webhooks
    """Receivers of events, and the delivery to them."""
    exports: HeadExports = field(default_factory=HeadExports)
    """Destinations of the audit heads."""
    memory: MemoryWatch | None = None
    """Memory of the process, which begins no heavy job while it is short."""


def list_kinds(means: JobDependencies) -> tuple[RunnableJobType[Any], ...]:
    """Returns every kind of job."""
    writes = means.writes
    jobs = (
        build_validation_kind(writes),
        build_calibration_kind(writes),
        SEARCHING,
        RANKING,
        FLEET_SEARCHING,
        FLEET_SCHEDULING,
        PUBLISHING,
        COMPARING,
        build_settlement_kind(writes),
    )
    return (*jobs, *(schedule.job for schedule in _list_regular_schedules(means)))


def list_schedules(known: Iterable[RunnableJobType[Any]], means: JobDependencies) -> tuple[JobSchedule, ...]:
    """Returns every schedule, including the retention of finished jobs of ``known`` kinds."""
    return (build_retention(known), *_list_regular_schedules(means))


def _list_regular_schedules(means: JobDependencies) -> tuple[JobSchedule, ...]:
    audit = (build_audit_export(means.exports), build_audit_verification(means.writes))
    deciding = (build_deadline_sweep(means.writes), build_policy_application(means.writes))
    return (*list_expiries(means.writes), *_REGULAR, *deciding, *audit)


class BackgroundWorkers:
    """Threads of a process that run all jobs and deliveries, from construction on."""

    def __init__(self, database: Database, means: JobDependencies, threads: int) -> None:
        known = list_kinds(means)
        self._runner = JobRunner(
            database, known, list_schedules(known, means), threads=threads, memory=means.memory
        )
        self._dispatcher = Dispatcher(database, means.writes, means.webhooks)
        self._ends_at: float | None = None
        self._runner.start()
        self._dispatcher.start()

    def ask_to_stop(self) -> None:
        """Starts nothing more; running work has until the end of its grace, which begins now."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + GRACE_SECONDS
            self._dispatcher.ask_to_stop(GRACE_SECONDS)
            self._runner.ask_to_stop()

    def stop(self) -> None:
        """Waits for running work to end, and releases the rest."""
        self.ask_to_stop()
        begun = time.monotonic()
        self._runner.stop(max(0.0, (self._ends_at or begun) - begun))
        self._dispatcher.join()


@asynccontextmanager
async def run_workers(
    database: Database, means: JobDependencies, threads: int
) -> AsyncIterator[BackgroundWorkers | None]:
    """Runs background workers beside an application; without threads, jobs are only enqueued."""
    if not threads:
        yield None
        return
    running = BackgroundWorkers(database, means, threads)
    try:
        yield running
    finally:
        await asyncio.to_thread(running.stop)


def work_until_stopped(database: Database, means: JobDependencies, threads: int) -> None:
    """Runs background workers until a signal to stop."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    running = BackgroundWorkers(database, means, threads)
    while not asked.wait(SAMPLE_SECONDS):
        sample_memory(means.memory, get_store(database))
    running.stop()
