"""The rules of approvals: asked for, amended, cancelled, commented on, read."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

from pydantic_core import to_json

from service.approvals import deadlines, matching, repository, steps
from service.approvals.actuals import records as actuals
from service.approvals.budgets import commitments
from service.approvals.budgets import service as budgets
from service.approvals.changes import service as changes
from service.approvals.changes.authors import is_author
from service.approvals.cost_centers import service as cost_centers
from service.approvals.decisions import approve, changed, check_digest, end
from service.approvals.delegations import service as delegations
from service.approvals.errors import (
    ApprovalEnded,
    ApprovalNotApproved,
    ApprovalNotFound,
    NoApprovalPolicy,
    OwnPolicy,
    QuoteNoLongerValid,
    QuoteNotDraft,
    QuoteNotSubmitted,
    TooFewApprovers,
    TooManyComments,
)
from service.approvals.matching import Asked, Matched
from service.approvals.people import is_barred, person
from service.approvals.policies import service as policies
from service.approvals.repository import Filters, Held
from service.approvals.tables import (
    APPROVED,
    CANCELLED,
    PENDING,
    SUPERSEDED,
    ApprovalCommentRow,
    ApprovalRow,
)
from service.approvals.telling import recorded, shown, shown_summary, tell
from service.audit import service as audit
from service.audit.service import Change, document_digest, history
from service.auth.service import lineage, named, works
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import ERROR_LIMIT, FieldError
from service.kit.jobs import leases
from service.kit.security.subjects import Subject
from service.quotes import service as quotes
from service.resolve.catalog import CatalogView
from service.schemas.events import EventType

MOST_COMMENTS: Final = 200
_DRAFT: Final = "draft"


def get(session: Reader | Writer, tenant_id: str, approval_id: str) -> dict[str, Any]:
    """An approval, whole."""
    held = repository.get(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    return shown(held)


def with_outstanding(
    session: Reader, tenant_id: str, approval_id: str, catalog: CatalogView
) -> dict[str, Any]:
    """An approval, whole, with what of it nobody has billed yet."""
    held = repository.get(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    return _with_outstanding(session, held, catalog)


def _with_outstanding(session: Reader | Writer, held: Held, catalog: CatalogView) -> dict[str, Any]:
    approval = shown(held)
    left = commitments.outstanding(session, held.row, catalog.exchange_rates)
    if left is not None:
        approval["commitment"]["outstanding"] = left
    return approval


def names_of(session: Reader, subject: Subject) -> frozenset[str]:
    """Approvers in whose place somebody may decide now, themselves included."""
    standing_for = delegations.standing_for(session, subject.tenant_id, subject.name, leases.time(session))
    return frozenset({subject.name, *standing_for})


def waiting_for(session: Reader, subject: Subject) -> list[dict[str, Any]]:
    """The newest approvals that wait for somebody."""
    filters = Filters(waiting_for=names_of(session, subject))
    return [shown_summary(row) for row in repository.page(session, subject.tenant_id, filters, None, 100)]


def submit(
    session: Writer, subject: Subject, quote_id: str, content_digest: str, catalog: CatalogView
) -> Change:
    """Ask for the newest version of a quote to be approved."""
    _lock_approved(session, subject.tenant_id, quote_id)
    quote = quotes.locked(session, subject.tenant_id, quote_id)
    check_digest(content_digest, quote.content_digest)
    if quote.state != _DRAFT:
        raise QuoteNotDraft(f"This version of the quote is {quote.state}")
    quotes.check_frozen(session, subject.tenant_id, quote_id, quote.version, content_digest)
    return _asked(session, subject, quote, catalog, None)


class Amendment(NamedTuple):
    """The next version of a quote, and the digest of the one that it stands instead of."""

    seen_digest: str
    frozen: quotes.Frozen
    days: int


def amend(
    session: Writer, subject: Subject, quote_id: str, amendment: Amendment, catalog: CatalogView
) -> Change:
    """Ask for the next version of a quote to be approved; the approval of the one before is superseded."""
    tenant_id = subject.tenant_id
    earlier = _current(session, tenant_id, quote_id, amendment.seen_digest)
    _lock_approved(session, tenant_id, quote_id)
    quote = quotes.locked(session, tenant_id, quote_id)
    check_digest(amendment.seen_digest, quote.content_digest)
    also = []
    if earlier is not None:
        also.append(end(session, earlier, SUPERSEDED, EventType.APPROVAL_SUPERSEDED, by=subject.name))
    also.append(
        quotes.add_version(session, tenant_id, quote_id, amendment.frozen, subject.name, days=amendment.days)
    )
    asked = _asked(session, subject, quotes.locked(session, tenant_id, quote_id), catalog, earlier)
    return replace(asked, also=(*also, *asked.also))


def _current(session: Writer, tenant_id: str, quote_id: str, content_digest: str) -> Held | None:
    """The approval of a version of a quote that is pending or approved, locked before the quote."""
    found = repository.of_content(session, tenant_id, quote_id, content_digest)
    held = None if found is None else repository.locked(session, tenant_id, found)
    return held if held is not None and held.row.state in (PENDING, APPROVED) else None


def _lock_approved(session: Writer, tenant_id: str, quote_id: str) -> None:
    """Lock what may be superseded before the quote, as whoever decides does."""
    repository.locked_approved(session, tenant_id, quote_id)


def _asked(
    session: Writer, subject: Subject, quote: quotes.QuoteRow, catalog: CatalogView, earlier: Held | None
) -> Change:
    time = leases.time(session)
    if quote.valid_until <= time:
        raise QuoteNoLongerValid
    askers, whole = _askers(session, subject, quote), quotes.whole(quote)
    asked = Asked(whole, lineage(session, subject), askers.barred)
    applied = changes.apply_due(session, subject.tenant_id, catalog.exchange_rates)
    known = policies.every(session, subject.tenant_id)
    matched = matching.match(known, asked, catalog.exchange_rates, time.date())
    if not matched.policies:
        raise NoApprovalPolicy(
            "", *(FieldError("", each["code"], each["detail"]) for each in matched.warnings[:ERROR_LIMIT])
        )
    _check_own(session, subject.tenant_id, matched, whole, askers.names)
    row = _row(subject, quote, askers, matched=matched, earlier=earlier, time=time)
    held = steps.add(session, row, steps.in_order(matched.policies))
    _check_enough(session, held, time)
    quotes.set_state(session, quote, PENDING)
    taken = commitments.effects(session, row.tenant_id, whole, catalog.exchange_rates)
    row.budgets = [{**effect} for effect in taken]
    also = applied
    if steps.open_next(held, time) is None:
        also = (*applied, *approve(session, held, time, catalog))
    else:
        tell(session, held, EventType.APPROVAL_REQUESTED)
        deadlines.ask(session, held)
    session.flush()
    return changed(held, None, status=201, headers={"Location": f"/v1/approvals/{row.id}"}, also=also)


def _check_own(
    session: Writer, tenant_id: str, matched: Matched, quote: Mapping[str, Any], names: frozenset[str]
) -> None:
    """Refuse to judge somebody by what they have written themselves."""
    own = policies.own(session, tenant_id, matched.policies, names)
    faults = [FieldError("", "OWN_POLICY", f"the policy {each} was written by whoever asks") for each in own]
    raised = commitments.raised(session, tenant_id, quote, names)
    faults += [
        FieldError("", "OWN_BUDGET", f"the budget {each} was raised by whoever asks") for each in raised
    ]
    for each in matched.judged["exchange_rates"]:
        if "id" in each and _wrote(session, tenant_id, f"exchange-rates/{each['id']}", names):
            faults.append(FieldError("", "OWN_RATE", f"the exchange rate {each['id']} is of whoever asks"))
    if faults:
        raise OwnPolicy("", *faults[:ERROR_LIMIT])


def _wrote(session: Writer, tenant_id: str, resource: str, names: frozenset[str]) -> bool:
    """Returns true where one of ``names`` is, or acts for, whoever has written a resource."""
    return is_author(session, tenant_id, audit.writers(session, tenant_id, resource), names)


class _Askers(NamedTuple):
    """Who has asked for a version of a quote, and whoever made the keys that they act by."""

    names: frozenset[str]
    barred: frozenset[str]


def _askers(session: Writer, subject: Subject, quote: quotes.QuoteRow) -> _Askers:
    """Who decides about no version that follows the one they asked for, whatever became of it."""
    tenant_id = subject.tenant_id
    earlier = repository.of_quote(session, tenant_id, quote.id)
    names = {subject.name, *(each["created_by"] for each in quotes.summaries(session, tenant_id, [quote.id]))}
    names.update(*(each.asked_by for each in earlier))
    lines = (lineage(session, named(tenant_id, name)) for name in names)
    return _Askers(frozenset(names), frozenset().union(*lines, *(each.barred for each in earlier)))


def _row(
    subject: Subject,
    quote: quotes.QuoteRow,
    askers: _Askers,
    *,
    matched: Matched,
    earlier: Held | None,
    time: datetime,
) -> ApprovalRow:
    return ApprovalRow(
        tenant_id=subject.tenant_id,
        id=uuid4().hex,
        state=PENDING,
        quote_id=quote.id,
        quote_version=quote.version,
        content_digest=quote.content_digest,
        name=quote.name,
        cost_center_id=quote.cost_center_id,
        headlines=to_json(quotes.summary_of(quote)["headlines"]).decode(),
        requester=subject.name,
        asked_by=sorted(askers.names),
        barred=sorted(askers.barred),
        supersedes=earlier.row.id if earlier else None,
        budgets=[],
        warnings=list(matched.warnings),
        judged={**matched.judged},
        valid_until=quote.valid_until,
        submitted_at=time,
        version=1,
    )


def _check_enough(session: Writer, held: Held, time: datetime) -> None:
    """Refuse what could never be approved: by the approvers that are left, one person counted once."""
    tenant_id = held.row.tenant_id
    for step in held.steps:
        names = {*held.approvers_of(step), *step.escalates_to}
        working = (name for name in names if works(session, named(tenant_id, name), time))
        people = (person(session, tenant_id, name) for name in working)
        if steps.able(one for one in people if not is_barred(held.row, one)) < step.quorum:
            raise TooFewApprovers


def cancel(session: Writer, subject: Subject, quote_id: str, content_digest: str) -> Change:
    """End the approval of a version of a quote, be it approved; cancelled before, it is the same answer."""
    tenant_id = subject.tenant_id
    found = repository.of_content(session, tenant_id, quote_id, content_digest)
    held = None if found is None else repository.locked(session, tenant_id, found)
    if held is None:
        quotes.get(session, tenant_id, quote_id)  # not found is another answer
        raise QuoteNotSubmitted
    if held.row.state in (PENDING, APPROVED):
        return end(session, held, CANCELLED, EventType.APPROVAL_CANCELLED, by=subject.name)
    if held.row.state != CANCELLED:
        raise ApprovalEnded(f"The approval is {held.row.state}")
    return changed(held, recorded(held))


def close(session: Writer, subject: Subject, approval_id: str, catalog: CatalogView) -> Change:
    """Let an approval that is approved commit nothing more; closed before, it is the same answer."""
    held = repository.locked(session, subject.tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    before, row = recorded(held), held.row
    if row.state != APPROVED:
        raise ApprovalNotApproved(f"The approval is {row.state}")
    if row.released_at is None:
        commitments.release(row, leases.time(session))
        row.version += 1
        tell(session, held, EventType.APPROVAL_CLOSED, decided_by=subject.name)
        session.flush()
    return replace(changed(held, before), body=_with_outstanding(session, held, catalog))


def comment(session: Writer, subject: Subject, approval_id: str, text: str) -> Change:
    """Say something about an approval, whatever its state."""
    held = repository.locked(session, subject.tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    if len(held.comments) >= MOST_COMMENTS:
        raise TooManyComments
    before, row = recorded(held), held.row
    added = ApprovalCommentRow(
        tenant_id=row.tenant_id,
        approval_id=row.id,
        number=len(held.comments) + 1,
        written_by=subject.name,
        text=text,
        written_at=leases.time(session),
    )
    held.comments.append(added)
    session.add(added)
    row.version += 1
    tell(session, held, EventType.APPROVAL_COMMENTED)
    session.flush()
    return changed(held, before)


def history_of(session: Reader, tenant_id: str, approval_id: str) -> dict[str, Any]:
    """Every recorded change of an approval, and whether it still is what the last one says."""
    held = repository.get(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    digest = document_digest(recorded(held))
    events = history(session, tenant_id, f"approvals/{approval_id}")
    return {
        "items": [_shown_event(event) for event in events],
        "is_as_recorded": bool(events) and events[-1].get("after_digest") == digest,
    }


def _shown_event(event: dict[str, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {name: event[name] for name in _EVENT if name in event}
    if "subject_id" in event:
        members["subject"] = f"{event['subject_kind']}:{event['subject_id']}"
    return members


_EVENT: Final = (
    "sequence",
    "occurred_at",
    "operation",
    "request_id",
    "before_digest",
    "after_digest",
    "hash",
)


def unlike_recorded(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """What of a tenant's decisions, quotes, budgets and bills somebody has changed beside the service."""
    held = (repository.get(session, tenant_id, each) for each in list(repository.ids(session, tenant_id)))
    approvals = ((each.row.id, recorded(each)) for each in held if each is not None)
    yield from audit.unlike_recorded(session, tenant_id, "approvals", approvals)
    yield from audit.unlike_recorded(
        session, tenant_id, "approval-policies", policies.recorded(session, tenant_id)
    )
    yield from audit.unlike_recorded(
        session, tenant_id, "approval-delegations", delegations.recorded(session, tenant_id)
    )
    yield from audit.unlike_recorded(
        session, tenant_id, "cost-centers", cost_centers.recorded(session, tenant_id)
    )
    yield from audit.unlike_recorded(session, tenant_id, "budgets", budgets.recorded(session, tenant_id))
    yield from changes.unlike_recorded(session, tenant_id)
    yield from actuals.unlike_recorded(session, tenant_id)
    frozen = audit.unlike_recorded(session, tenant_id, "quotes", quotes.recorded(session, tenant_id))
    yield from dict.fromkeys([*frozen, *_moved_quotes(session, tenant_id)])


def _moved_quotes(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Versions of quotes in a state that no approval has moved them to, and approvals of none."""
    decided = repository.states(session, tenant_id)
    for quote_id, version, state, content_digest in quotes.states(session, tenant_id):
        wanted = decided.pop((quote_id, version), None)
        found = (state, content_digest)
        if found != wanted and (wanted is not None or state not in _UNDECIDED):
            yield f"quotes/{quote_id}?version={version}", "CHANGED"
    yield from ((f"quotes/{quote_id}?version={version}", "MISSING") for quote_id, version in decided)


_UNDECIDED: Final = frozenset({"draft", "superseded"})
"""States of versions that nobody has submitted."""
