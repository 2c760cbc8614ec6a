"""What is deleted by its age, and when; docs/retention.md says why it was kept."""

from collections.abc import Callable
from datetime import timedelta

from service.approvals.links.service import expire as expire_links
from service.audit.service import Change, Writes
from service.auth.ending import expire as expire_ended_sessions
from service.auth.service import expire_keys
from service.kit.database.engine import Writer
from service.kit.http import idempotency
from service.kit.jobs import events
from service.kit.jobs.kinds import Continue, Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule
from service.nodes.service import expire_tokens
from service.plans.stored import expire as expire_plans
from service.webhooks.service import expire as expire_deliveries


def _recorded_expiry(
    writes: Writes, name: str, every: timedelta, expire: Callable[[Writer], list[Change]]
) -> Schedule:
    """A removal of what the audit is held against: each row that goes is an event."""

    def delete(session: Writer) -> int:
        changes = expire(session)
        # The heads of several chains are locked in one order, whatever else goes at the time.
        for change in sorted(changes, key=lambda change: (change.tenant_id, change.resource)):
            writes.note(session, change.tenant_id, "expire", change)
        return len(changes)

    return _expiry(name, every, delete)


def _expiry(name: str, every: timedelta, expire: Callable[[Writer], int]) -> Schedule:
    def run(job: Job[Nothing]) -> Continue | Done:
        with job.writing() as session:
            deleted = expire(session)
        progress = {"deleted": job.progress.get("deleted", 0) + deleted}
        # Each deletes a batch, and goes on until nothing is left: a tick is a day.
        return Continue(progress) if deleted else Done(progress)

    kind = Kind(name=name, arguments=Nothing, run=run, concurrency=1)
    return Schedule(name=name, every=every, job=kind)


_EXPIRIES = (
    _expiry("idempotency-keys.expire", timedelta(hours=1), idempotency.expire),
    _expiry("events.expire", timedelta(days=1), events.expire),
    _expiry("plans.expire", timedelta(days=1), expire_plans),
    _expiry("webhook-deliveries.expire", timedelta(days=1), expire_deliveries),
)
_RECORDED_EXPIRIES: tuple[tuple[str, timedelta, Callable[[Writer], list[Change]]], ...] = (
    ("api-keys.expire", timedelta(days=1), expire_keys),
    ("ended-sessions.expire", timedelta(hours=1), expire_ended_sessions),
    ("enrolment-tokens.expire", timedelta(days=1), expire_tokens),
    ("approval-links.expire", timedelta(days=1), expire_links),
)


def expiries(writes: Writes) -> tuple[Schedule, ...]:
    """Every removal of what has reached its age."""
    return (*_EXPIRIES, *(_recorded_expiry(writes, *one) for one in _RECORDED_EXPIRIES))
