"""Every kind of background job and every schedule of the service, and the processes that work on them."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from service.background.calibrations import DRAWING
from service.background.fleet import SETTLING
from service.background.plans import RANKING, SEARCHING
from service.background.plans import SWEEPING as PLANS_SWEEPING
from service.background.retention import EXPIRIES
from service.benchmarks.validation.jobs import SWEEPING, VALIDATE
from service.kit.database import Database
from service.kit.jobs.kinds import Kind
from service.kit.jobs.runner import Runner
from service.kit.jobs.schedules import retention

_REGULAR = (*EXPIRIES, SETTLING, SWEEPING, PLANS_SWEEPING)
KINDS: tuple[Kind[Any], ...] = (
    VALIDATE,
    DRAWING,
    SEARCHING,
    RANKING,
    *(schedule.job for schedule in _REGULAR),
)
SCHEDULES = (retention(KINDS), *_REGULAR)
GRACE_SECONDS = 8.0
"""For chunks to end; a process is killed ten seconds after it was asked to stop, unless told otherwise."""


def runner(database: Database, threads: int) -> Runner:
    """A runner of everything that there is to do."""
    return Runner(database, KINDS, SCHEDULES, threads=threads)


@asynccontextmanager
async def working(database: Database, threads: int) -> AsyncIterator[None]:
    """Work beside an application; without threads, only ask for work."""
    if not threads:
        yield
        return
    running = runner(database, threads)
    running.start()
    try:
        yield
    finally:
        await asyncio.to_thread(running.stop, GRACE_SECONDS)


def work(database: Database, threads: int) -> None:
    """Work until asked to stop."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    running = runner(database, threads)
    running.start()
    asked.wait()
    running.stop(GRACE_SECONDS)
