"""Deadlines of approvals, handled by a job at the due time and by a sweep for missed jobs.

Obsolete jobs are not cancelled, since that would lock rows that their holders have locked before they wait
for the approval. They find that nothing is due.
"""

from datetime import datetime
from typing import Final

from pydantic import BaseModel

from service.approvals import repository, steps
from service.approvals.presenters import to_audit_document, write_event
from service.approvals.repository import DueApproval, LoadedApproval
from service.approvals.tables import EXPIRED, PENDING
from service.audit.service import WriteOutcome
from service.kit.database.engine import Reader, Writer
from service.kit.jobs.kinds import JobType
from service.kit.jobs.repository import enqueue_job
from service.quotes import service as quotes
from service.schemas.events import WebhookEventType


class ApprovalToSettle(BaseModel):
    """Arguments of a job that settles an approval."""

    approval_id: str


SETTLE: Final = JobType(name="approvals.settle", arguments=ApprovalToSettle)
AT_ONCE: Final = 100
"""Number of approvals that a sweep reads at once."""


def enqueue_deadline(session: Writer, held: LoadedApproval) -> None:
    """Enqueues a job for the next deadline of an approval."""
    if held.row.acts_at is not None:
        enqueue_job(
            session,
            SETTLE,
            ApprovalToSettle(approval_id=held.row.id),
            tenant_id=held.row.tenant_id,
            effect_key=f"{held.row.id} {held.row.acts_at.isoformat()}",
            due_at=held.row.acts_at,
        )


def settle_deadline(session: Writer, tenant_id: str, approval_id: str) -> tuple[str, WriteOutcome] | None:
    """Acts on the passed deadlines of an approval. Returns the operation and its outcome, or None."""
    held = repository.lock_approval(session, tenant_id, approval_id)
    step = held.open_step if held is not None else None
    if held is None or step is None or held.row.state != PENDING:
        return None
    time = steps.get_decision_time(session, held)
    before = to_audit_document(held)
    if step.due_at is not None and step.due_at <= time:
        operation = "expire_approval"
        _expire_approval(session, held, time)
    elif steps.is_escalation_due(step, time):
        operation = "escalate_approval"
        steps.escalate_step(session, held, step, time)
        write_event(session, held, WebhookEventType.APPROVAL_ESCALATED)
    elif step.due_soon_at is not None and step.due_soon_at <= time:
        operation = "remind_approvers"
        step.due_soon_at = None
        steps.schedule_step(held)
        write_event(session, held, WebhookEventType.APPROVAL_DUE_SOON)
    else:
        return None
    held.row.version += 1
    enqueue_deadline(session, held)
    session.flush()
    return operation, WriteOutcome(
        resource=f"approvals/{approval_id}", before=before, after=to_audit_document(held)
    )


def _expire_approval(session: Writer, held: LoadedApproval, time: datetime) -> None:
    row = held.row
    write_event(session, held, WebhookEventType.APPROVAL_EXPIRED)
    quote = quotes.lock_version(session, row.tenant_id, row.quote_id, row.quote_version)
    quotes.set_state(session, quote, EXPIRED)
    steps.end_approval(held, EXPIRED, time)


def list_due_approvals(session: Reader, after: DueApproval | None = None) -> list[DueApproval]:
    """Returns approvals with a passed deadline after ``after``, the most overdue first."""
    return repository.list_due(session, after, AT_ONCE)
