"""Deletion of expired rows on schedules; docs/retention.md gives the reasons for each period."""

from collections.abc import Callable
from datetime import timedelta

from service.approvals.links.service import expire_links
from service.audit.service import WriteOutcome, Writes
from service.auth.service import expire_keys
from service.auth.session_revocation import delete_expired as expire_ended_sessions
from service.kit.database.engine import Writer
from service.kit.http import idempotency
from service.kit.jobs import events
from service.kit.jobs.kinds import CompletedJob, ContinueJob, JobChunk, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.nodes.service import expire_tokens
from service.plans.stored import delete_expired_plans as expire_plans
from service.webhooks.service import expire_deliveries


def _build_recorded_expiry(
    writes: Writes, name: str, every: timedelta, expire: Callable[[Writer], list[WriteOutcome]]
) -> JobSchedule:
    """Builds the expiry of rows that the audit verifies: each deleted row is an audit event."""

    def delete_recorded(session: Writer) -> int:
        changes = expire(session)
        # The heads of several chains are always locked in one order, whatever else is deleted at the time.
        for change in sorted(changes, key=lambda change: (change.tenant_id, change.resource)):
            writes.record_own_change(session, change.tenant_id, "expire", change)
        return len(changes)

    return _build_expiry(name, every, delete_recorded)


def _build_expiry(name: str, every: timedelta, expire: Callable[[Writer], int]) -> JobSchedule:
    def delete_expired(job: JobChunk[NoArguments]) -> ContinueJob | CompletedJob:
        with job.open_writer() as session:
            deleted = expire(session)
        progress = {"deleted": job.progress.get("deleted", 0) + deleted}
        # Each chunk deletes a batch until nothing is left, since the next tick may be a day away.
        return ContinueJob(progress) if deleted else CompletedJob(progress)

    kind = RunnableJobType(name=name, arguments=NoArguments, run=delete_expired, concurrency=1)
    return JobSchedule(name=name, every=every, job=kind)


_EXPIRIES = (
    _build_expiry("idempotency-keys.expire", timedelta(hours=1), idempotency.delete_expired),
    _build_expiry("events.expire", timedelta(days=1), events.delete_expired_events),
    _build_expiry("plans.expire", timedelta(days=1), expire_plans),
    _build_expiry("webhook-deliveries.expire", timedelta(days=1), expire_deliveries),
)
_RECORDED_EXPIRIES: tuple[tuple[str, timedelta, Callable[[Writer], list[WriteOutcome]]], ...] = (
    ("api-keys.expire", timedelta(days=1), expire_keys),
    ("ended-sessions.expire", timedelta(hours=1), expire_ended_sessions),
    ("enrolment-tokens.expire", timedelta(days=1), expire_tokens),
    ("approval-links.expire", timedelta(days=1), expire_links),
)


def list_expiries(writes: Writes) -> tuple[JobSchedule, ...]:
    """Returns the schedules of every expiry."""
    return (*_EXPIRIES, *(_build_recorded_expiry(writes, *one) for one in _RECORDED_EXPIRIES))
