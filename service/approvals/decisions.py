"""Decisions about approvals: by whoever the open step names, once, in time, about what was seen.

Locks are taken in this order: the approval, its quote, its cost centre, the head of the audit chain.
"""

from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic import MISSING

from service.approvals import deadlines, repository, steps
from service.approvals.budgets import commitments
from service.approvals.delegations.service import standing_for
from service.approvals.errors import (
    AlreadyDecided,
    ApprovalEnded,
    ApprovalExpired,
    ApprovalNotFound,
    ContentChanged,
    DecidedOtherwise,
    NobodyInOpenMode,
    NotAnApprover,
    OwnApproval,
)
from service.approvals.people import Person, is_barred, person
from service.approvals.repository import Held
from service.approvals.schemas import DecidedVia, DecisionInput, DecisionKind
from service.approvals.steps import Voice
from service.approvals.tables import (
    APPROVED,
    PENDING,
    REJECTED,
    SUPERSEDED,
    ApprovalDecisionRow,
    ApprovalStepRow,
)
from service.approvals.telling import recorded, shown, tell
from service.audit.service import Change
from service.auth.service import lineage, named, works
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.kit.security.subjects import Subject, SubjectKind
from service.quotes import service as quotes
from service.resolve.catalog import CatalogView
from service.schemas.events import EventType


def decide(
    session: Writer,
    subject: Subject,
    approval_id: str,
    *,
    decision: DecisionKind,
    sent: DecisionInput,
    catalog: CatalogView,
    via: DecidedVia = "api",
    linked_by: str | None = None,
) -> Change:
    """Approve or reject; the same decision again is the same answer.

    ``linked_by`` made the link by which ``subject`` decides, and so could decide in their place.
    """
    held = repository.locked(session, subject.tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    before = recorded(held)
    check_digest(sent.content_digest, held.row.content_digest)
    own = next((one for one in held.decisions if one.decided_by == subject.name), None)
    if own is not None and own.decision != decision:
        raise DecidedOtherwise
    makers = lineage(session, named(subject.tenant_id, linked_by)) if linked_by else frozenset[str]()
    made = ApprovalDecisionRow(
        decided_by=subject.name,
        lineage=sorted(lineage(session, subject) | makers),
        linked_by=linked_by,
        decision=decision,
        via=via,
        comment=None if sent.comment is MISSING else sent.comment,
        content_digest=sent.content_digest,
        decided_at=steps.moment(session, held),
    )
    also: tuple[Change, ...] = ()
    if own is None:
        also = _count(session, held, subject, made, catalog)
    elif held.row.state == PENDING:
        # Since it was made, it may have come to count in the place of somebody else.
        with suppress(ApprovalExpired, NotAnApprover, AlreadyDecided):
            also = _count(session, held, subject, made, catalog)
    session.flush()
    return changed(held, before, also=also)


def changed(held: Held, before: object, **values: Any) -> Change:  # noqa: ANN401
    """What a write did to an approval, as its caller sees it and as the audit records it."""
    resource = f"approvals/{held.row.id}"
    return Change(resource=resource, body=shown(held), before=before, after=recorded(held), **values)


def check_digest(seen: str, current: str) -> None:
    """Refuse what is based on other content than there is."""
    if seen != current:
        raise ContentChanged("", FieldError("/content_digest", "CONTENT_CHANGED", "is not that of the quote"))


def may_decide(session: Reader | Writer, subject: Subject, held: Held) -> None:
    """Refuse somebody who cannot decide the open step of an approval now, and say why."""
    time = steps.moment(session, held)
    step = _open_step(held, time)
    decider = person(session, held.row.tenant_id, subject.name, lineage(session, subject))
    _check_barred(held, decider, subject)
    _check_frozen(session, held)
    _voice(session, held, step, decider, time)


def _count(
    session: Writer, held: Held, subject: Subject, made: ApprovalDecisionRow, catalog: CatalogView
) -> tuple[Change, ...]:
    """Count a decision in the open step; what else it changed."""
    time = made.decided_at
    step = _open_step(held, time)
    decider = person(session, held.row.tenant_id, made.decided_by, frozenset(made.lineage))
    _check_barred(held, decider, subject)
    _check_frozen(session, held)
    if any(one.decided_by == subject.name for one in held.decisions_of(step)):
        return ()
    if steps.escalates(step, time):
        steps.escalate(session, held, step, time)
        tell(session, held, EventType.APPROVAL_ESCALATED)
        held.row.version += 1
    steps.decide(session, held, step, _voice(session, held, step, decider, time), made)
    held.row.version += 1
    if made.decision == "reject":
        _reject(session, held, made)
        return ()
    return _advance(session, held, made, catalog)


def _open_step(held: Held, time: datetime) -> ApprovalStepRow:
    step = held.open_step
    if step is None:
        raise ApprovalEnded(f"The approval is {held.row.state}")
    if held.row.expires_at is None or time >= min(held.row.expires_at, held.row.valid_until):
        raise ApprovalExpired
    return step


def _check_barred(held: Held, decider: Person, subject: Subject) -> None:
    if subject.kind == SubjectKind.LOCAL:
        raise NobodyInOpenMode
    if is_barred(held.row, decider):
        raise OwnApproval


def _check_frozen(session: Reader | Writer, held: Held) -> None:
    row = held.row
    quotes.check_frozen(session, row.tenant_id, row.quote_id, row.quote_version, row.content_digest)


def _voices(session: Reader | Writer, held: Held, decider: Person, time: datetime) -> list[Voice]:
    """What somebody may say: for themselves, and for those whom they stand in for and who have not asked."""
    tenant_id = held.row.tenant_id
    found = [Voice(decider, decider)]
    for name, delegation_id in standing_for(session, tenant_id, decider.name, time).items():
        place = person(session, tenant_id, name)
        if not is_barred(held.row, place):
            found.append(Voice(place, decider, delegation_id))
    return found


def _used(session: Reader | Writer, held: Held, step: ApprovalStepRow) -> list[Voice]:
    """What has been said in a step, and by whom."""
    tenant_id = held.row.tenant_id
    return [
        Voice(
            person(session, tenant_id, one.approver),
            person(session, tenant_id, one.decided_by, frozenset(one.lineage)),
        )
        for one in held.decisions_of(step)
    ]


def _voice(
    session: Reader | Writer, held: Held, step: ApprovalStepRow, decider: Person, time: datetime
) -> Voice:
    voices = _voices(session, held, decider, time)
    found = steps.free(held, step, voices, _used(session, held, step))
    if found is None:
        entitled = {voice.place.name for voice in voices}
        raise NotAnApprover if entitled.isdisjoint(held.approvers_of(step)) else AlreadyDecided
    return found


def _reject(session: Writer, held: Held, made: ApprovalDecisionRow) -> None:
    _move_quote(session, held, REJECTED)
    tell(session, held, EventType.APPROVAL_REJECTED, decided_by=made.decided_by)
    steps.end(held, REJECTED, made.decided_at, step_state=REJECTED)


def _advance(
    session: Writer, held: Held, made: ApprovalDecisionRow, catalog: CatalogView
) -> tuple[Change, ...]:
    """Close steps that have their quorum, and open what follows."""
    while (step := held.open_step) and steps.has_quorum(held, step):
        steps.close(step)
        following = steps.open_next(held, made.decided_at)
        if following is None:
            return approve(session, held, made.decided_at, catalog, decided_by=made.decided_by)
        _count_again(session, held, following, made.decided_at)
        if not steps.has_quorum(held, following):
            tell(session, held, EventType.APPROVAL_REQUESTED)
    deadlines.ask(session, held)
    return ()


def _count_again(session: Writer, held: Held, step: ApprovalStepRow, time: datetime) -> None:
    """Let earlier decisions count in a step that has opened, where it names who made them."""
    tenant_id = held.row.tenant_id
    # Not what was decided by a key that has ended since: it may have been stolen.
    for made in {one.decided_by: one for one in held.decisions}.values():
        if works(session, named(tenant_id, made.decided_by), time):
            decider = person(session, tenant_id, made.decided_by, frozenset(made.lineage))
            voices = _voices(session, held, decider, time)
            voice = steps.free(held, step, voices, _used(session, held, step))
            if voice is not None:
                steps.decide(session, held, step, voice, made)


def approve(
    session: Writer, held: Held, time: datetime, catalog: CatalogView, *, decided_by: str = ""
) -> tuple[Change, ...]:
    """Let an approval be approved, if its budgets allow it; that of an earlier version is superseded."""
    row = held.row
    also = tuple(
        end(session, earlier, SUPERSEDED, EventType.APPROVAL_SUPERSEDED)
        for earlier in repository.locked_approved(session, row.tenant_id, row.quote_id)
    )
    _move_quote(session, held, APPROVED)
    quote = quotes.get(session, row.tenant_id, row.quote_id, row.quote_version)
    taken, moved = commitments.commit(session, row, quote, time, catalog.exchange_rates)
    row.budgets = [{**effect} for effect in taken]
    steps.end(held, APPROVED, time)
    tell(session, held, EventType.APPROVAL_APPROVED, decided_by=decided_by)
    return (*also, *moved)


def end(session: Writer, held: Held, state: str, event: EventType, *, by: str = "") -> Change:
    """End an approval without a decision, and give back what it committed."""
    row, before, time = held.row, recorded(held), steps.moment(session, held)
    commitments.release(row, time)
    tell(session, held, event, decided_by=by)
    _move_quote(session, held, state)
    steps.end(held, state, time)
    row.version += 1
    session.flush()
    return changed(held, before)


def _move_quote(session: Writer, held: Held, state: str) -> None:
    row = held.row
    quote = quotes.locked(session, row.tenant_id, row.quote_id, row.quote_version)
    quotes.set_state(session, quote, state)
