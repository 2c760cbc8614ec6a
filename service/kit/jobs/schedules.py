"""Schedules: each is a job that never ends and asks, at every tick, for one job under the tick's key.

A stop makes it late, not many: it fires once for all the ticks that it missed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs import leases
from service.kit.jobs.kinds import Continue, Done, Job, Kind
from service.kit.jobs.repository import enqueue, expire
from service.kit.security.subjects import SYSTEM_TENANT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WITHOUT_LIMIT = 2**31
_LEASE = timedelta(seconds=10)  # how long ticks are held up when a process is killed while it fires one
_EXPIRED_AT_ONCE = 500


class Nothing(BaseModel):
    """No arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One job of kind ``job`` at every whole multiple of ``every`` since 1970, plus ``offset``."""

    name: str
    every: timedelta
    offset: timedelta = timedelta()
    job: Kind[Any]
    arguments: BaseModel = field(default_factory=Nothing)

    @property
    def kind(self) -> Kind[Nothing]:
        """The kind of the job that waits for the ticks."""
        name = f"schedule.{self.name}"
        return Kind(name=name, arguments=Nothing, run=self._fire, attempts=_WITHOUT_LIMIT, lease=_LEASE)

    def begin(self, session: Writer) -> None:
        """Have the schedule wait for its ticks, if it does not yet."""
        enqueue(session, self.kind, Nothing(), tenant_id=SYSTEM_TENANT, effect_key=self.name)

    def _fire(self, job: Job[Nothing]) -> Continue:
        with job.writing() as session:
            now = leases.time(session)
            since = (now - _EPOCH - self.offset) % self.every
            tick = f"{self.name} {(now - since).isoformat()}"
            enqueue(session, self.job, self.arguments, tenant_id=SYSTEM_TENANT, effect_key=tick)
        return Continue({}, self.every - since)


def retention(kinds: Iterable[Kind[Any]]) -> Schedule:
    """Every hour, delete finished jobs of ``kinds`` that have been kept long enough."""

    def run(job: Job[Nothing]) -> Continue | Done:
        with job.writing() as session:
            deleted = [expire(session, kind, limit=_EXPIRED_AT_ONCE) for kind in known]
        progress = {"deleted": job.progress.get("deleted", 0) + sum(deleted)}
        return Continue(progress) if max(deleted) == _EXPIRED_AT_ONCE else Done(progress)

    kind = Kind(name="jobs.expire", arguments=Nothing, run=run, concurrency=1)
    known = (*kinds, kind)
    return Schedule(name=kind.name, every=timedelta(hours=1), job=kind)
