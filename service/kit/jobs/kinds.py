"""What a kind of job is, what its run function is given, and what it returns."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from service.kit.database.engine import Database, Writer
from service.kit.jobs import leases
from service.kit.jobs.leases import Lease
from service.kit.jobs.tables import JobRow

Arguments = TypeVar("Arguments", bound=BaseModel)
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Continue:
    """The chunk is done, the job is not: the next one starts from ``progress`` after ``delay``."""

    progress: Document
    delay: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class Done:
    """The job is done."""

    result: Document = field(default_factory=dict)


class JobError(Exception):
    """A chunk failed. Code and summary are shown to the tenant, so they hold no secret.

    A final error is not tried again.
    """

    def __init__(self, code: str, summary: str, *, is_final: bool = False) -> None:
        super().__init__(summary)
        self.code = code
        self.summary = summary
        self.is_final = is_final


@dataclass(slots=True, kw_only=True)
class Hold:
    """A lease as the process that holds it knows it; its end is on the monotonic clock."""

    lease: Lease
    ends_at: float
    is_cancelled: bool
    stopping: threading.Event

    @property
    def should_stop(self) -> bool:
        """Whether the job is cancelled, the lease has ended, or the process stops."""
        return self.is_cancelled or self.stopping.is_set() or time.monotonic() > self.ends_at


@dataclass(slots=True, kw_only=True)
class Job(Generic[Arguments]):
    """One chunk of a job, as its run function sees it."""

    database: Database
    id: str
    tenant_id: str
    arguments: Arguments
    progress: Document
    attempt: int
    hold: Hold

    @property
    def should_stop(self) -> bool:
        """Whether a chunk that takes long should return what it has."""
        return self.hold.should_stop

    @contextmanager
    def writing(self, progress: Document | None = None) -> Iterator[Writer]:
        """A write transaction that is undone if the lease is lost.

        What it writes happens once if ``progress`` says so: a chunk that is repeated, be it the last one,
        starts from there.
        """
        values = {} if progress is None else {"progress": dict(progress)}
        with self.database.writing() as session:
            leases.write(session, JobRow, self.hold.lease, **values)
            yield session
        self.progress = self.progress if progress is None else progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Generic[Arguments]):
    """A kind of job as those know it who ask for it, which may be left of those who can do it."""

    name: str
    arguments: type[Arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Asked[Arguments]):
    """A kind of job. A chunk may run more than once: each effect outside carries a key of its own."""

    run: Callable[[Job[Arguments]], Continue | Done]
    concurrency: int | None = None
    """How many run at a time, over all processes."""
    attempts: int = 10
    """Starts without progress, crashes included, after which the job is dead."""
    backoff: timedelta = timedelta(seconds=1)
    """Longest wait after the first failure; doubles with each, and the wait is drawn below it."""
    longest_backoff: timedelta = timedelta(minutes=15)
    lease: timedelta = timedelta(seconds=30)
    retention: timedelta = timedelta(days=7)
    """How long a job is kept once done or cancelled."""
    dead_retention: timedelta = timedelta(days=90)
