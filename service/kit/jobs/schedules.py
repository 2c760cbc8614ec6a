"""Schedules: each is a job that never ends and enqueues one job at every tick, under the tick's key.

After a stop it fires once, late, for all the ticks that it missed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs import leases
from service.kit.jobs.kinds import CompletedJob, ContinueJob, JobChunk, RunnableJobType
from service.kit.jobs.repository import delete_expired_jobs, enqueue_job
from service.kit.security.principals import SYSTEM_TENANT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITHOUT_LIMIT = 2**31
_LEASE = timedelta(seconds=10)  # longest delay of ticks if a process is killed while it fires one
_EXPIRED_AT_ONCE = 500


class NoArguments(BaseModel):
    """No arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSchedule:
    """One job of kind ``job`` at every whole multiple of ``every`` since 1970, plus ``offset``."""

    name: str
    every: timedelta
    offset: timedelta = timedelta()
    job: RunnableJobType[Any]
    arguments: BaseModel = field(default_factory=NoArguments)

    @property
    def kind(self) -> RunnableJobType[NoArguments]:
        """The kind of the job that waits for the ticks."""
        name = f"schedule.{self.name}"
        return RunnableJobType(
            name=name, arguments=NoArguments, run=self._run_tick, attempts=_WITHOUT_LIMIT, lease=_LEASE
        )

    def begin(self, session: Writer) -> None:
        """Enqueues the job that waits for the ticks, unless it exists already."""
        enqueue_job(session, self.kind, NoArguments(), tenant_id=SYSTEM_TENANT, effect_key=self.name)

    def _run_tick(self, job: JobChunk[NoArguments]) -> ContinueJob:
        with job.open_writer() as session:
            now = leases.read_database_time(session)
            since = (now - _EPOCH - self.offset) % self.every
            tick = f"{self.name} {(now - since).isoformat()}"
            enqueue_job(session, self.job, self.arguments, tenant_id=SYSTEM_TENANT, effect_key=tick)
        return ContinueJob({}, self.every - since)


def build_retention(kinds: Iterable[RunnableJobType[Any]]) -> JobSchedule:
    """Returns a schedule that deletes finished jobs of ``kinds`` every hour, once their retention is over."""

    def delete_expired(job: JobChunk[NoArguments]) -> ContinueJob | CompletedJob:
        with job.open_writer() as session:
            deleted = [delete_expired_jobs(session, kind, limit=_EXPIRED_AT_ONCE) for kind in known]
        progress = {"deleted": job.progress.get("deleted", 0) + sum(deleted)}
        return ContinueJob(progress) if max(deleted) == _EXPIRED_AT_ONCE else CompletedJob(progress)

    kind = RunnableJobType(name="jobs.expire", arguments=NoArguments, run=delete_expired, concurrency=1)
    known = (*kinds, kind)
    return JobSchedule(name=kind.name, every=timedelta(hours=1), job=kind)
