"""Reminders of undecided quotes that expire soon: one event to the requester for each version."""

from datetime import UTC, timedelta
from typing import Final

from service.kit.jobs.events import emit_event
from service.kit.jobs.kinds import CompletedJob, ContinueJob, JobChunk, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.quotes import repository
from service.quotes.tables import QuoteRow
from service.schemas.events import QuoteEvent, WebhookEventType

SOON: Final = timedelta(days=1)
AT_ONCE: Final = 200


def _report_expiring(job: JobChunk[NoArguments]) -> ContinueJob | CompletedJob:
    """Emits the events of a batch and continues after it, so that one tick covers all quotes."""
    after = job.progress.get("after")
    with job.database.open_reader() as session:
        rows = repository.expiring(session, SOON, tuple(after) if after else None, AT_ONCE)
    told = job.progress.get("quotes", 0) + len(rows)
    if not rows:
        return CompletedJob({"quotes": told})
    last = [rows[-1].tenant_id, rows[-1].id, rows[-1].version]
    progress = {"after": last, "quotes": told}
    with job.open_writer(progress) as session:
        for row in rows:
            once = f"{row.id} {row.version}"
            emit_event(
                session, row.tenant_id, WebhookEventType.QUOTE_EXPIRES_SOON, _to_event(row), once_for=once
            )
    return ContinueJob(progress)


def _to_event(row: QuoteRow) -> QuoteEvent:
    event: QuoteEvent = {
        "quote_id": row.id,
        "quote_version": row.version,
        "name": row.name,
        "created_by": row.created_by,
        "valid_until": row.valid_until.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    if row.cost_center_id is not None:
        event["cost_center_id"] = row.cost_center_id
    return event


SWEEPING: Final = JobSchedule(
    name="quotes.sweep",
    every=timedelta(hours=1),
    job=RunnableJobType(name="quotes.sweep", arguments=NoArguments, run=_report_expiring, concurrency=1),
)
