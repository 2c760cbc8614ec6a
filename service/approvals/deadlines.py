"""Deadlines of approvals: rows, acted on by a job that is due then and by a sweep for what a job missed.

Jobs that are not needed any more are left to find that nothing is due: to cancel them would lock rows that
their holders have locked before they wait for the approval.
"""

from datetime import datetime
from typing import Final

from pydantic import BaseModel

from service.approvals import repository, steps
from service.approvals.repository import Due, Held
from service.approvals.tables import EXPIRED, PENDING
from service.approvals.telling import recorded, tell
from service.audit.service import Change
from service.kit.database.engine import Reader, Writer
from service.kit.jobs.kinds import Asked
from service.kit.jobs.repository import enqueue
from service.quotes import service as quotes
from service.schemas.events import EventType


class ApprovalToSettle(BaseModel):
    """Which approval."""

    approval_id: str


SETTLE: Final = Asked(name="approvals.settle", arguments=ApprovalToSettle)
AT_ONCE: Final = 100
"""Approvals that a sweep reads together."""


def ask(session: Writer, held: Held) -> None:
    """Have the next deadline of an approval acted on."""
    if held.row.acts_at is not None:
        enqueue(
            session,
            SETTLE,
            ApprovalToSettle(approval_id=held.row.id),
            tenant_id=held.row.tenant_id,
            effect_key=f"{held.row.id} {held.row.acts_at.isoformat()}",
            due_at=held.row.acts_at,
        )


def settle(session: Writer, tenant_id: str, approval_id: str) -> tuple[str, Change] | None:
    """Act on the deadlines of an approval that have passed: what was done, if anything."""
    held = repository.locked(session, tenant_id, approval_id)
    step = held.open_step if held is not None else None
    if held is None or step is None or held.row.state != PENDING:
        return None
    time = steps.moment(session, held)
    before = recorded(held)
    if step.due_at is not None and step.due_at <= time:
        operation = "expire_approval"
        _expire(session, held, time)
    elif steps.escalates(step, time):
        operation = "escalate_approval"
        steps.escalate(session, held, step, time)
        tell(session, held, EventType.APPROVAL_ESCALATED)
    elif step.due_soon_at is not None and step.due_soon_at <= time:
        operation = "remind_approvers"
        step.due_soon_at = None
        steps.schedule(held)
        tell(session, held, EventType.APPROVAL_DUE_SOON)
    else:
        return None
    held.row.version += 1
    ask(session, held)
    session.flush()
    return operation, Change(resource=f"approvals/{approval_id}", before=before, after=recorded(held))


def _expire(session: Writer, held: Held, time: datetime) -> None:
    row = held.row
    tell(session, held, EventType.APPROVAL_EXPIRED)
    quote = quotes.locked(session, row.tenant_id, row.quote_id, row.quote_version)
    quotes.set_state(session, quote, EXPIRED)
    steps.end(held, EXPIRED, time)


def due(session: Reader, after: Due | None = None) -> list[Due]:
    """Some approvals with a deadline that has passed, the most overdue first, behind ``after``."""
    return repository.due(session, after, AT_ONCE)
