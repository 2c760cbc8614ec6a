"""Kinds of jobs, the arguments of their run functions and the outcomes that these return."""

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
from service.kit.jobs.leases import RowLease
from service.kit.jobs.tables import JobRow

JobArguments = TypeVar("JobArguments", bound=BaseModel)
JobDocument = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ContinueJob:
    """The chunk is done, the job is not: the next one starts from ``progress`` after ``delay``."""

    progress: JobDocument
    delay: timedelta = timedelta()


@dataclass(frozen=True, slots=True)
class CompletedJob:
    """The job is done."""

    result: JobDocument = field(default_factory=dict)


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
class JobLease:
    """A lease as the process that holds it knows it; its end is on the monotonic clock."""

    lease: RowLease
    ends_at: float
    is_cancelled: bool
    stopping: threading.Event

    @property
    def should_stop(self) -> bool:
        """True if the job is cancelled, the lease has ended, or the process stops."""
        return self.is_cancelled or self.stopping.is_set() or time.monotonic() > self.ends_at


@dataclass(slots=True, kw_only=True)
class JobChunk(Generic[JobArguments]):
    """One chunk of a job, as its run function sees it."""

    database: Database
    id: str
    tenant_id: str
    arguments: JobArguments
    progress: JobDocument
    attempt: int
    hold: JobLease

    @property
    def should_stop(self) -> bool:
        """True if a chunk that takes long should return its progress so far."""
        return self.hold.should_stop

    @contextmanager
    def open_writer(self, progress: JobDocument | None = None) -> Iterator[Writer]:
        """A write transaction that is undone if the lease is lost.

        Its writes happen exactly once if ``progress`` records them: a repeated chunk, even the last one,
        starts from there.
        """
        values = {} if progress is None else {"progress": dict(progress)}
        with self.database.open_writer() as session:
            leases.write_row(session, JobRow, self.hold.lease, **values)
            yield session
        self.progress = self.progress if progress is None else progress


@dataclass(frozen=True, slots=True, kw_only=True)
class JobType(Generic[JobArguments]):
    """A kind of job as its callers know it. They need not import the code that runs it."""

    name: str
    arguments: type[JobArguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnableJobType(JobType[JobArguments]):
    """A kind of job. A chunk may run more than once: each effect outside carries a key of its own."""

    run: Callable[[JobChunk[JobArguments]], ContinueJob | CompletedJob]
    is_heavy: bool = False
    """True if a chunk may take much memory. None begins while memory is short."""
    concurrency: int | None = None
    """Most jobs that run at a time, over all processes. Defaults to no limit."""
    attempts: int = 10
    """Starts without progress, crashes included, after which the job is dead."""
    backoff: timedelta = timedelta(seconds=1)
    """Longest wait after the first failure; doubles with each, and the wait is drawn below it."""
    longest_backoff: timedelta = timedelta(minutes=15)
    lease: timedelta = timedelta(seconds=30)
    retention: timedelta = timedelta(days=7)
    """Time during which a job is kept once it is done or cancelled."""
    dead_retention: timedelta = timedelta(days=90)
