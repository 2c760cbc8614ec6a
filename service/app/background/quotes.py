"""Quotes that nobody has decided and that soon hold no more: who asked is told, once for each version."""

from datetime import UTC, timedelta
from typing import Final

from service.kit.jobs.events import emit
from service.kit.jobs.kinds import Continue, Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule
from service.quotes import repository
from service.quotes.tables import QuoteRow
from service.schemas.events import EventType, QuoteEvent

SOON: Final = timedelta(days=1)
AT_ONCE: Final = 200


def _sweep(job: Job[Nothing]) -> Continue | Done:
    """Tell of a batch, and go on after it until there is no more: a tick tells of everything."""
    after = job.progress.get("after")
    with job.database.reading() as session:
        rows = repository.expiring(session, SOON, tuple(after) if after else None, AT_ONCE)
    told = job.progress.get("quotes", 0) + len(rows)
    if not rows:
        return Done({"quotes": told})
    last = [rows[-1].tenant_id, rows[-1].id, rows[-1].version]
    progress = {"after": last, "quotes": told}
    with job.writing(progress) as session:
        for row in rows:
            once = f"{row.id} {row.version}"
            emit(session, row.tenant_id, EventType.QUOTE_EXPIRES_SOON, _event(row), once_for=once)
    return Continue(progress)


def _event(row: QuoteRow) -> QuoteEvent:
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


SWEEPING: Final = Schedule(
    name="quotes.sweep",
    every=timedelta(hours=1),
    job=Kind(name="quotes.sweep", arguments=Nothing, run=_sweep, concurrency=1),
)
