"""Rules of approvals: submission, amendment, cancellation, comments and reading."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import uuid4

from pydantic_core import to_json

from service.approvals import deadlines, matching, repository, steps
from service.approvals.decisions import build_change, check_digest, complete_approval, end_undecided
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
from service.approvals.matching import ApprovalSubject, MatchedPolicies
from service.approvals.people import is_barred
from service.approvals.presenters import to_audit_document, to_detail, to_summary, write_event
from service.approvals.repository import ApprovalFilters, LoadedApproval
from service.approvals.tables import (
    APPROVED,
    CANCELLED,
    PENDING,
    SUPERSEDED,
    ApprovalCommentRow,
    ApprovalRow,
)
from service.audit import service as audit
from service.audit.service import WriteOutcome, compute_document_digest, list_history
from service.auth.service import build_named_subject, is_active, resolve_lineage
from service.budgets import commitments
from service.budgets import service as budgets
from service.budgets.actuals import records as actuals
from service.cost_centers import service as cost_centers
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import ERROR_LIMIT, FieldError
from service.kit.jobs import leases
from service.kit.security.principals import Principal
from service.policies import service as policies
from service.policies.changes import service as changes
from service.policies.people import count_distinct_people, is_author, resolve_person
from service.quotes import service as quotes
from service.resolve.catalog import CatalogView
from service.schemas.events import WebhookEventType

MOST_COMMENTS: Final = 200
_DRAFT: Final = "draft"


def get_approval(session: Reader | Writer, tenant_id: str, approval_id: str) -> dict[str, Any]:
    """Returns an approval with all parts."""
    held = repository.get_approval(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    return to_detail(held)


def get_with_outstanding(
    session: Reader, tenant_id: str, approval_id: str, catalog: CatalogView
) -> dict[str, Any]:
    """Returns an approval with all parts and the amount that is not yet billed."""
    held = repository.get_approval(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    return _add_outstanding(session, held, catalog)


def _add_outstanding(session: Reader | Writer, held: LoadedApproval, catalog: CatalogView) -> dict[str, Any]:
    approval = to_detail(held)
    left = commitments.compute_outstanding(session, held.row, catalog.exchange_rates)
    if left is not None:
        approval["commitment"]["outstanding"] = left
    return approval


def list_deciding_names(session: Reader, subject: Principal) -> frozenset[str]:
    """Returns the approvers on whose behalf a subject may decide now, including the subject."""
    standing_for = delegations.resolve_delegators(
        session, subject.tenant_id, subject.name, leases.read_database_time(session)
    )
    return frozenset({subject.name, *standing_for})


def list_waiting_approvals(session: Reader, subject: Principal) -> list[dict[str, Any]]:
    """Returns the newest approvals that a subject can decide."""
    filters = ApprovalFilters(waiting_for=list_deciding_names(session, subject))
    return [to_summary(row) for row in repository.list_page(session, subject.tenant_id, filters, None, 100)]


def submit_quote(
    session: Writer, subject: Principal, quote_id: str, content_digest: str, catalog: CatalogView
) -> WriteOutcome:
    """Submits the newest version of a quote for approval."""
    _lock_approved(session, subject.tenant_id, quote_id)
    quote = quotes.lock_version(session, subject.tenant_id, quote_id)
    check_digest(content_digest, quote.content_digest)
    if quote.state != _DRAFT:
        raise QuoteNotDraft(f"This version of the quote is {quote.state}")
    quotes.check_integrity(session, subject.tenant_id, quote_id, quote.version, content_digest)
    return _create_approval(session, subject, quote, catalog, None)


class QuoteAmendment(NamedTuple):
    """The next version of a quote, and the digest of the version that it replaces."""

    seen_digest: str
    frozen: quotes.QuoteSnapshot
    days: int


def amend_quote(
    session: Writer, subject: Principal, quote_id: str, amendment: QuoteAmendment, catalog: CatalogView
) -> WriteOutcome:
    """Submits the next version of a quote for approval and supersedes the previous approval."""
    tenant_id = subject.tenant_id
    earlier = _lock_current_approval(session, tenant_id, quote_id, amendment.seen_digest)
    _lock_approved(session, tenant_id, quote_id)
    quote = quotes.lock_version(session, tenant_id, quote_id)
    check_digest(amendment.seen_digest, quote.content_digest)
    also = []
    if earlier is not None:
        also.append(
            end_undecided(session, earlier, SUPERSEDED, WebhookEventType.APPROVAL_SUPERSEDED, by=subject.name)
        )
    also.append(
        quotes.add_version(session, tenant_id, quote_id, amendment.frozen, subject.name, days=amendment.days)
    )
    asked = _create_approval(
        session, subject, quotes.lock_version(session, tenant_id, quote_id), catalog, earlier
    )
    return replace(asked, also=(*also, *asked.also))


def _lock_current_approval(
    session: Writer, tenant_id: str, quote_id: str, content_digest: str
) -> LoadedApproval | None:
    """Returns the pending or approved approval of a version, locked before the quote, or None."""
    found = repository.find_by_content(session, tenant_id, quote_id, content_digest)
    held = None if found is None else repository.lock_approval(session, tenant_id, found)
    return held if held is not None and held.row.state in (PENDING, APPROVED) else None


def _lock_approved(session: Writer, tenant_id: str, quote_id: str) -> None:
    """Locks approvals that may be superseded before the quote, in the order that decisions use."""
    repository.lock_approved(session, tenant_id, quote_id)


def _create_approval(
    session: Writer,
    subject: Principal,
    quote: quotes.QuoteRow,
    catalog: CatalogView,
    earlier: LoadedApproval | None,
) -> WriteOutcome:
    time = leases.read_database_time(session)
    if quote.valid_until <= time:
        raise QuoteNoLongerValid
    askers, whole = _resolve_requesters(session, subject, quote), quotes.to_detail(quote)
    asked = ApprovalSubject(whole, resolve_lineage(session, subject), askers.barred)
    applied = changes.apply_due_changes(session, subject.tenant_id, catalog.exchange_rates, budgets.APPLIERS)
    known = policies.list_policies(session, subject.tenant_id)
    matched = matching.match_policies(known, asked, catalog.exchange_rates, time.date())
    if not matched.policies:
        raise NoApprovalPolicy(
            "", *(FieldError("", each["code"], each["detail"]) for each in matched.warnings[:ERROR_LIMIT])
        )
    _check_own_policies(session, subject.tenant_id, matched, whole, askers.names)
    row = _build_row(subject, quote, askers, matched=matched, earlier=earlier, time=time)
    held = steps.add_approval(session, row, steps.order_steps(matched.policies))
    _check_enough_approvers(session, held, time)
    quotes.set_state(session, quote, PENDING)
    taken = commitments.estimate_budget_effects(session, row.tenant_id, whole, catalog.exchange_rates)
    row.budgets = [{**effect} for effect in taken]
    also = applied
    if steps.open_next_step(held, time) is None:
        also = (*applied, *complete_approval(session, held, time, catalog))
    else:
        write_event(session, held, WebhookEventType.APPROVAL_REQUESTED)
        deadlines.enqueue_deadline(session, held)
    session.flush()
    return build_change(held, None, status=201, headers={"Location": f"/v1/approvals/{row.id}"}, also=also)


def _check_own_policies(
    session: Writer, tenant_id: str, matched: MatchedPolicies, quote: Mapping[str, Any], names: frozenset[str]
) -> None:
    """Refuses a request under policies, budgets or rates that the requester has written."""
    own = policies.list_own_policies(session, tenant_id, matched.policies, names)
    faults = [FieldError("", "OWN_POLICY", f"the policy {each} was written by the requester") for each in own]
    raised = commitments.list_raised_budgets(session, tenant_id, quote, names)
    faults += [
        FieldError("", "OWN_BUDGET", f"the budget {each} was raised by the requester") for each in raised
    ]
    for each in matched.judged["exchange_rates"]:
        if "id" in each and _is_writer(session, tenant_id, f"exchange-rates/{each['id']}", names):
            faults.append(
                FieldError("", "OWN_RATE", f"the exchange rate {each['id']} was written by the requester")
            )
    if faults:
        raise OwnPolicy("", *faults[:ERROR_LIMIT])


def _is_writer(session: Writer, tenant_id: str, resource: str, names: frozenset[str]) -> bool:
    """Returns true if one of ``names`` is, or acts for, a writer of a resource."""
    return is_author(session, tenant_id, audit.list_writers(session, tenant_id, resource), names)


class _Requesters(NamedTuple):
    """Requesters of a version of a quote, and the makers of their keys."""

    names: frozenset[str]
    barred: frozenset[str]


def _resolve_requesters(session: Writer, subject: Principal, quote: quotes.QuoteRow) -> _Requesters:
    """Returns the requesters of this and all earlier versions, who may not decide on this one."""
    tenant_id = subject.tenant_id
    earlier = repository.list_by_quote(session, tenant_id, quote.id)
    names = {
        subject.name,
        *(each["created_by"] for each in quotes.list_summaries(session, tenant_id, [quote.id])),
    }
    names.update(*(each.asked_by for each in earlier))
    lines = (resolve_lineage(session, build_named_subject(tenant_id, name)) for name in names)
    return _Requesters(frozenset(names), frozenset().union(*lines, *(each.barred for each in earlier)))


def _build_row(
    subject: Principal,
    quote: quotes.QuoteRow,
    askers: _Requesters,
    *,
    matched: MatchedPolicies,
    earlier: LoadedApproval | None,
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
        headlines=to_json(quotes.to_summary(quote)["headlines"]).decode(),
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


def _check_enough_approvers(session: Writer, held: LoadedApproval, time: datetime) -> None:
    """Refuses an approval whose remaining distinct approvers cannot reach a quorum."""
    tenant_id = held.row.tenant_id
    for step in held.steps:
        names = {*held.list_approvers(step), *step.escalates_to}
        working = (name for name in names if is_active(session, build_named_subject(tenant_id, name), time))
        people = (resolve_person(session, tenant_id, name) for name in working)
        if count_distinct_people(one for one in people if not is_barred(held.row, one)) < step.quorum:
            raise TooFewApprovers


def cancel_approval(session: Writer, subject: Principal, quote_id: str, content_digest: str) -> WriteOutcome:
    """Ends the approval of a version, even after it was approved. Repeating it returns the same answer."""
    tenant_id = subject.tenant_id
    found = repository.find_by_content(session, tenant_id, quote_id, content_digest)
    held = None if found is None else repository.lock_approval(session, tenant_id, found)
    if held is None:
        quotes.get_quote(session, tenant_id, quote_id)  # raises if the quote does not exist
        raise QuoteNotSubmitted
    if held.row.state in (PENDING, APPROVED):
        return end_undecided(session, held, CANCELLED, WebhookEventType.APPROVAL_CANCELLED, by=subject.name)
    if held.row.state != CANCELLED:
        raise ApprovalEnded(f"The approval is {held.row.state}")
    return build_change(held, to_audit_document(held))


def close_approval(
    session: Writer, subject: Principal, approval_id: str, catalog: CatalogView
) -> WriteOutcome:
    """Ends the commitment of an approved approval. Repeating it returns the same answer."""
    held = repository.lock_approval(session, subject.tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    before, row = to_audit_document(held), held.row
    if row.state != APPROVED:
        raise ApprovalNotApproved(f"The approval is {row.state}")
    if row.released_at is None:
        commitments.release_commitment(row, leases.read_database_time(session))
        row.version += 1
        write_event(session, held, WebhookEventType.APPROVAL_CLOSED, decided_by=subject.name)
        session.flush()
    return replace(build_change(held, before), body=_add_outstanding(session, held, catalog))


def add_comment(session: Writer, subject: Principal, approval_id: str, text: str) -> WriteOutcome:
    """Adds a comment to an approval in any state."""
    held = repository.lock_approval(session, subject.tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    if len(held.comments) >= MOST_COMMENTS:
        raise TooManyComments
    before, row = to_audit_document(held), held.row
    added = ApprovalCommentRow(
        tenant_id=row.tenant_id,
        approval_id=row.id,
        number=len(held.comments) + 1,
        written_by=subject.name,
        text=text,
        written_at=leases.read_database_time(session),
    )
    held.comments.append(added)
    session.add(added)
    row.version += 1
    write_event(session, held, WebhookEventType.APPROVAL_COMMENTED)
    session.flush()
    return build_change(held, before)


def get_history(session: Reader, tenant_id: str, approval_id: str) -> dict[str, Any]:
    """Returns every recorded change of an approval, and the result of the comparison with the last one."""
    held = repository.get_approval(session, tenant_id, approval_id)
    if held is None:
        raise ApprovalNotFound
    digest = compute_document_digest(to_audit_document(held))
    events = list_history(session, tenant_id, f"approvals/{approval_id}")
    return {
        "items": [_event_to_response(event) for event in events],
        "is_as_recorded": bool(events) and events[-1].get("after_digest") == digest,
    }


def _event_to_response(event: dict[str, Any]) -> dict[str, Any]:
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


def find_deviations(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Yields rows of approvals, quotes, budgets and bills that were changed outside of the service."""
    held = (
        repository.get_approval(session, tenant_id, each)
        for each in list(repository.list_ids(session, tenant_id))
    )
    approvals = ((each.row.id, to_audit_document(each)) for each in held if each is not None)
    yield from audit.find_deviations(session, tenant_id, "approvals", approvals)
    yield from audit.find_deviations(
        session, tenant_id, "approval-policies", policies.list_audit_documents(session, tenant_id)
    )
    yield from audit.find_deviations(
        session, tenant_id, "approval-delegations", delegations.list_audit_documents(session, tenant_id)
    )
    yield from audit.find_deviations(
        session, tenant_id, "cost-centers", cost_centers.list_audit_documents(session, tenant_id)
    )
    yield from audit.find_deviations(
        session, tenant_id, "budgets", budgets.list_audit_documents(session, tenant_id)
    )
    yield from changes.find_deviations(session, tenant_id)
    yield from actuals.find_deviations(session, tenant_id)
    frozen = audit.find_deviations(
        session, tenant_id, "quotes", quotes.list_audit_documents(session, tenant_id)
    )
    yield from dict.fromkeys([*frozen, *_find_moved_quotes(session, tenant_id)])


def _find_moved_quotes(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Yields versions of quotes whose state contradicts their approvals, in both directions."""
    decided = repository.get_version_states(session, tenant_id)
    for quote_id, version, state, content_digest in quotes.list_version_states(session, tenant_id):
        wanted = decided.pop((quote_id, version), None)
        found = (state, content_digest)
        if found != wanted and (wanted is not None or state not in _UNDECIDED):
            yield f"quotes/{quote_id}?version={version}", "CHANGED"
    yield from ((f"quotes/{quote_id}?version={version}", "MISSING") for quote_id, version in decided)


_UNDECIDED: Final = frozenset({"draft", "superseded"})
"""States of versions that were never submitted."""
