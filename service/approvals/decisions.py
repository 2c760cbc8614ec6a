"""Decisions on approvals by the approvers of the open step.

Locks are taken in this order: the approval, its quote, its cost centre, the head of the audit chain.
"""

from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic import MISSING

from service.approvals import deadlines, repository, steps
from service.approvals.delegations.service import resolve_delegators
from service.approvals.errors import (
    AlreadyDecided,
    ApprovalEnded,
    ApprovalExpired,
    ApprovalNotFound,
    ContentChanged,
    DecidedOtherwise,
    NotAnApprover,
)
from service.approvals.people import is_barred
from service.approvals.presenters import to_audit_document, to_detail, write_event
from service.approvals.repository import LoadedApproval
from service.approvals.schemas import ApprovalDecisionChannel, ApprovalDecisionKind, ApprovalDecisionRequest
from service.approvals.steps import Vote
from service.approvals.tables import (
    APPROVED,
    PENDING,
    REJECTED,
    SUPERSEDED,
    ApprovalDecisionRow,
    ApprovalStepRow,
)
from service.audit.service import WriteOutcome
from service.auth.service import build_named_subject, is_active, resolve_lineage
from service.budgets import commitments
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.kit.security.principals import Principal, PrincipalKind
from service.policies.errors import NobodyInOpenMode, OwnApproval
from service.policies.people import Person, resolve_person
from service.quotes import service as quotes
from service.resolve.catalog import CatalogView
from service.schemas.events import WebhookEventType


def decide_approval(
    session: Writer,
    subject: Principal,
    approval_id: str,
    *,
    decision: ApprovalDecisionKind,
    sent: ApprovalDecisionRequest,
    catalog: CatalogView,
    via: ApprovalDecisionChannel = "api",
    linked_by: str | None = None,
) -> WriteOutcome:
    """Approves or rejects. Repeating the same decision returns the same answer.

    ``linked_by`` is the maker of the link by which ``subject`` decides, and could decide on their behalf.
    """
    held = repository.lock_approval(session, subject.tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    before = to_audit_document(held)
    check_digest(sent.content_digest, held.row.content_digest)
    own = next((one for one in held.decisions if one.decided_by == subject.name), None)
    if own is not None and own.decision != decision:
        raise DecidedOtherwise
    makers = (
        resolve_lineage(session, build_named_subject(subject.tenant_id, linked_by))
        if linked_by
        else frozenset[str]()
    )
    made = ApprovalDecisionRow(
        decided_by=subject.name,
        lineage=sorted(resolve_lineage(session, subject) | makers),
        linked_by=linked_by,
        decision=decision,
        via=via,
        comment=None if sent.comment is MISSING else sent.comment,
        content_digest=sent.content_digest,
        decided_at=steps.get_decision_time(session, held),
    )
    also: tuple[WriteOutcome, ...] = ()
    if own is None:
        also = _count_decision(session, held, subject, made, catalog)
    elif held.row.state == PENDING:
        # Since the first request, the decision may also count on behalf of another approver.
        with suppress(ApprovalExpired, NotAnApprover, AlreadyDecided):
            also = _count_decision(session, held, subject, made, catalog)
    session.flush()
    return build_change(held, before, also=also)


def build_change(held: LoadedApproval, before: object, **values: Any) -> WriteOutcome:  # noqa: ANN401
    """Returns the outcome of a write, with the representation for the caller and the audit documents."""
    resource = f"approvals/{held.row.id}"
    return WriteOutcome(
        resource=resource, body=to_detail(held), before=before, after=to_audit_document(held), **values
    )


def check_digest(seen: str, current: str) -> None:
    """Refuses a request that is based on other content than the current one."""
    if seen != current:
        raise ContentChanged(
            "", FieldError("/content_digest", "CONTENT_CHANGED", "must equal the digest of the quote")
        )


def check_may_decide(session: Reader | Writer, subject: Principal, held: LoadedApproval) -> None:
    """Raises the reason why a subject cannot decide the open step of an approval now, if there is one."""
    time = steps.get_decision_time(session, held)
    step = _get_open_step(held, time)
    decider = resolve_person(session, held.row.tenant_id, subject.name, resolve_lineage(session, subject))
    _check_barred(held, decider, subject)
    _check_quote_integrity(session, held)
    _select_mandate(session, held, step, decider, time)


def _count_decision(
    session: Writer, held: LoadedApproval, subject: Principal, made: ApprovalDecisionRow, catalog: CatalogView
) -> tuple[WriteOutcome, ...]:
    """Records a decision in the open step. Returns the other changes that it made."""
    time = made.decided_at
    step = _get_open_step(held, time)
    decider = resolve_person(session, held.row.tenant_id, made.decided_by, frozenset(made.lineage))
    _check_barred(held, decider, subject)
    _check_quote_integrity(session, held)
    if any(one.decided_by == subject.name for one in held.list_decisions(step)):
        return ()
    if steps.is_escalation_due(step, time):
        steps.escalate_step(session, held, step, time)
        write_event(session, held, WebhookEventType.APPROVAL_ESCALATED)
        held.row.version += 1
    steps.record_decision(session, held, step, _select_mandate(session, held, step, decider, time), made)
    held.row.version += 1
    if made.decision == "reject":
        _reject_approval(session, held, made)
        return ()
    return _advance_steps(session, held, made, catalog)


def _get_open_step(held: LoadedApproval, time: datetime) -> ApprovalStepRow:
    step = held.open_step
    if step is None:
        raise ApprovalEnded(f"The approval is {held.row.state}")
    if held.row.expires_at is None or time >= min(held.row.expires_at, held.row.valid_until):
        raise ApprovalExpired
    return step


def _check_barred(held: LoadedApproval, decider: Person, subject: Principal) -> None:
    if subject.kind == PrincipalKind.LOCAL:
        raise NobodyInOpenMode
    if is_barred(held.row, decider):
        raise OwnApproval


def _check_quote_integrity(session: Reader | Writer, held: LoadedApproval) -> None:
    row = held.row
    quotes.check_integrity(session, row.tenant_id, row.quote_id, row.quote_version, row.content_digest)


def _list_mandates(
    session: Reader | Writer, held: LoadedApproval, decider: Person, time: datetime
) -> list[Vote]:
    """Returns the votes of a decider: in person and for delegators who are not requesters."""
    tenant_id = held.row.tenant_id
    found = [Vote(decider, decider)]
    for name, delegation_id in resolve_delegators(session, tenant_id, decider.name, time).items():
        place = resolve_person(session, tenant_id, name)
        if not is_barred(held.row, place):
            found.append(Vote(place, decider, delegation_id))
    return found


def _list_used_mandates(session: Reader | Writer, held: LoadedApproval, step: ApprovalStepRow) -> list[Vote]:
    """Returns the votes that were cast in a step."""
    tenant_id = held.row.tenant_id
    return [
        Vote(
            resolve_person(session, tenant_id, one.approver),
            resolve_person(session, tenant_id, one.decided_by, frozenset(one.lineage)),
        )
        for one in held.list_decisions(step)
    ]


def _select_mandate(
    session: Reader | Writer, held: LoadedApproval, step: ApprovalStepRow, decider: Person, time: datetime
) -> Vote:
    voices = _list_mandates(session, held, decider, time)
    found = steps.select_free_mandate(held, step, voices, _list_used_mandates(session, held, step))
    if found is None:
        entitled = {voice.place.name for voice in voices}
        raise NotAnApprover if entitled.isdisjoint(held.list_approvers(step)) else AlreadyDecided
    return found


def _reject_approval(session: Writer, held: LoadedApproval, made: ApprovalDecisionRow) -> None:
    _move_quote(session, held, REJECTED)
    write_event(session, held, WebhookEventType.APPROVAL_REJECTED, decided_by=made.decided_by)
    steps.end_approval(held, REJECTED, made.decided_at, step_state=REJECTED)


def _advance_steps(
    session: Writer, held: LoadedApproval, made: ApprovalDecisionRow, catalog: CatalogView
) -> tuple[WriteOutcome, ...]:
    """Closes steps with a quorum and opens the next ones."""
    while (step := held.open_step) and steps.has_quorum(held, step):
        steps.close_step(step)
        following = steps.open_next_step(held, made.decided_at)
        if following is None:
            return complete_approval(session, held, made.decided_at, catalog, decided_by=made.decided_by)
        _recount_decisions(session, held, following, made.decided_at)
        if not steps.has_quorum(held, following):
            write_event(session, held, WebhookEventType.APPROVAL_REQUESTED)
    deadlines.enqueue_deadline(session, held)
    return ()


def _recount_decisions(session: Writer, held: LoadedApproval, step: ApprovalStepRow, time: datetime) -> None:
    """Counts earlier decisions in a newly opened step that names their deciders."""
    tenant_id = held.row.tenant_id
    # Decisions by a key that has ended since do not count, as it may have been stolen.
    for made in {one.decided_by: one for one in held.decisions}.values():
        if is_active(session, build_named_subject(tenant_id, made.decided_by), time):
            decider = resolve_person(session, tenant_id, made.decided_by, frozenset(made.lineage))
            voices = _list_mandates(session, held, decider, time)
            voice = steps.select_free_mandate(held, step, voices, _list_used_mandates(session, held, step))
            if voice is not None:
                steps.record_decision(session, held, step, voice, made)


def complete_approval(
    session: Writer, held: LoadedApproval, time: datetime, catalog: CatalogView, *, decided_by: str = ""
) -> tuple[WriteOutcome, ...]:
    """Approves an approval if its budgets allow it. The approval of an earlier version is superseded."""
    row = held.row
    also = tuple(
        end_undecided(session, earlier, SUPERSEDED, WebhookEventType.APPROVAL_SUPERSEDED)
        for earlier in repository.lock_approved(session, row.tenant_id, row.quote_id)
    )
    _move_quote(session, held, APPROVED)
    quote = quotes.get_quote(session, row.tenant_id, row.quote_id, row.quote_version)
    taken, moved = commitments.commit_budgets(session, row, quote, time, catalog.exchange_rates)
    row.budgets = [{**effect} for effect in taken]
    steps.end_approval(held, APPROVED, time)
    write_event(session, held, WebhookEventType.APPROVAL_APPROVED, decided_by=decided_by)
    return (*also, *moved)


def end_undecided(
    session: Writer, held: LoadedApproval, state: str, event: WebhookEventType, *, by: str = ""
) -> WriteOutcome:
    """Ends an approval without a decision and releases its commitment."""
    row, before, time = held.row, to_audit_document(held), steps.get_decision_time(session, held)
    commitments.release_commitment(row, time)
    write_event(session, held, event, decided_by=by)
    _move_quote(session, held, state)
    steps.end_approval(held, state, time)
    row.version += 1
    session.flush()
    return build_change(held, before)


def _move_quote(session: Writer, held: LoadedApproval, state: str) -> None:
    row = held.row
    quote = quotes.lock_version(session, row.tenant_id, row.quote_id, row.quote_version)
    quotes.set_state(session, quote, state)
