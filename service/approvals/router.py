"""Operations on approvals, and operations on quotes that change one."""

from typing import Annotated, Any

from fastapi import Path, Query, Response

from service.approvals import decisions, repository, service
from service.approvals.pages.service import render_quote_report
from service.approvals.presenters import to_summary
from service.approvals.repository import ApprovalFilters
from service.approvals.schemas import (
    Approval,
    ApprovalCommentRequest,
    ApprovalDecisionKind,
    ApprovalDecisionRequest,
    ApprovalHistory,
    ApprovalId,
    ApprovalPage,
    ApprovalQuery,
    QuoteAmendmentRequest,
    QuoteSubmissionRequest,
)
from service.approvals.service import QuoteAmendment
from service.audit.service import Read, Write, WriteRequest
from service.evidence.snapshot import Snapshots
from service.kit.http.html import page_response
from service.kit.http.pages import newest_first
from service.kit.http.web import LOCATED, OffloadedSearch, OffloadedWork, api_router, json_response
from service.quotes.schemas import QuoteId, QuoteVersionQuery
from service.quotes.service import QuoteFreezing, is_search
from service.resolve.catalog import CatalogView

_PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}
quotes = api_router("/v1/quotes", tag="quotes")
approvals = api_router("/v1/approvals", tag="approvals")
ApprovalPath = Annotated[ApprovalId, Path(description="Id of the approval.")]
QuotePath = Annotated[QuoteId, Path(description="Id of the quote.")]


@quotes.post(
    "/{id:name}:submit",
    summary="Submit a quote for approval",
    status_code=201,
    response_model=Approval,
    responses=LOCATED,
)
def submit_quote(write: Write, snapshots: Snapshots, id: QuotePath, body: QuoteSubmissionRequest) -> Response:
    """Submits the newest version of a quote for approval by the approvers of the matching policies.

    With `validate_only` the answer names the approvers, and nothing is submitted.
    """
    catalog = snapshots.newest(write.tenant_id)
    return write.run(
        body, lambda session: service.submit_quote(session, write.subject, id, body.content_digest, catalog)
    )


@quotes.post(
    "/{id:name}:amend",
    summary="Amend a quote and submit it again",
    status_code=201,
    response_model=Approval,
    responses=LOCATED,
)
async def amend_quote(
    *,
    write: Write,
    snapshots: Snapshots,
    freezing: QuoteFreezing,
    aside: OffloadedWork,
    searching: OffloadedSearch,
    id: QuotePath,
    body: QuoteAmendmentRequest,
) -> Response:
    """Quotes another request as the next version and submits it. Its approval begins anew."""

    def prepare() -> tuple[QuoteAmendment, CatalogView]:
        frozen = freezing.build_from_body(write.tenant_id, body.quote, "/quote")
        amendment = QuoteAmendment(body.content_digest, frozen, body.quote.valid_for_days)
        return amendment, snapshots.newest(write.tenant_id)

    return await write.run_prepared(
        body,
        searching if is_search(body.quote) else aside,
        prepare,
        lambda session, prepared: service.amend_quote(session, write.subject, id, *prepared),
    )


@quotes.post("/{id:name}:cancel", summary="Cancel the approval of a quote", response_model=Approval)
def cancel_quote(write: Write, id: QuotePath, body: QuoteSubmissionRequest) -> Response:
    """Cancels the approval of a version, even an approved one. Its commitment is released."""
    return write.run(
        body, lambda session: service.cancel_approval(session, write.subject, id, body.content_digest)
    )


@quotes.get(
    "/{id:name}/report",
    summary="Get the report of a quote as a page",
    response_class=Response,
    responses=_PAGE,
)
def get_quote_report(read: Read, id: QuotePath, query: Annotated[QuoteVersionQuery, Query()]) -> Response:
    """Returns a version of a quote as a self-contained page that reads on a phone and prints.

    It names who approved or rejected the version, and when, to callers that may read approvals.
    """
    with read.session() as session:
        return page_response(render_quote_report(session, read.subject, id, query.version))


@approvals.get("", summary="List approvals", response_model=ApprovalPage)
def list_approvals(read: Read, query: Annotated[ApprovalQuery, Query()]) -> Response:
    """Lists the tenant's approvals, the newest first."""
    approver = read.subject.name if query.approver else ""
    filters = (query.state, approver, query.requester, query.quote_id)
    page = read.page(query, newest_first("submitted_at"), "approvals", *filters)
    with read.session() as session:
        wanted = ApprovalFilters(
            states=query.state,
            requester=query.requester,
            quote_ids=query.quote_id,
            waiting_for=service.list_deciding_names(session, read.subject) if approver else None,
        )
        rows = repository.list_page(session, read.tenant_id, wanted, page.after, page.limit)
        return json_response(page.to_response([to_summary(row) for row in rows]))


@approvals.get("/{id:name}", summary="Get an approval", response_model=Approval)
def get_approval(read: Read, snapshots: Snapshots, id: ApprovalPath) -> Response:
    """Returns an approval: its steps, its decisions, and its effect on budgets."""
    catalog = snapshots.newest(read.tenant_id)
    with read.session() as session:
        return json_response(service.get_with_outstanding(session, read.tenant_id, id, catalog))


@approvals.get(
    "/{id:name}/history", summary="List every change of an approval", response_model=ApprovalHistory
)
def get_approval_history(read: Read, id: ApprovalPath) -> Response:
    """Lists every change of an approval from the audit chain, and tells if the stored approval matches it."""
    with read.session() as session:
        return json_response(service.get_history(session, read.tenant_id, id))


@approvals.post("/{id:name}:approve", summary="Approve a version of a quote", response_model=Approval)
def approve_approval(
    write: Write, snapshots: Snapshots, id: ApprovalPath, body: ApprovalDecisionRequest
) -> Response:
    """Approves the version with the digest, in every step of the caller. A repetition changes nothing."""
    return _decide(write, id, "approve", body, snapshots.newest(write.tenant_id))


@approvals.post("/{id:name}:reject", summary="Reject a version of a quote", response_model=Approval)
def reject_approval(
    write: Write, snapshots: Snapshots, id: ApprovalPath, body: ApprovalDecisionRequest
) -> Response:
    """Rejects the version with the digest. A single rejection ends the approval."""
    return _decide(write, id, "reject", body, snapshots.newest(write.tenant_id))


def _decide(
    write: WriteRequest,
    approval_id: str,
    decision: ApprovalDecisionKind,
    body: ApprovalDecisionRequest,
    catalog: CatalogView,
) -> Response:
    return write.run(
        body,
        lambda session: decisions.decide_approval(
            session, write.subject, approval_id, decision=decision, sent=body, catalog=catalog
        ),
    )


@approvals.post("/{id:name}:close", summary="Close an approval whose work is over", response_model=Approval)
def close_approval(write: Write, snapshots: Snapshots, id: ApprovalPath) -> Response:
    """Closes an approval whose work is over. Budgets get back what is not billed; later bills still count.

    The approval stays approved. Closing it again gives the same answer.
    """
    catalog = snapshots.newest(write.tenant_id)
    return write.run(None, lambda session: service.close_approval(session, write.subject, id, catalog))


@approvals.post("/{id:name}:comment", summary="Comment on an approval", response_model=Approval)
def comment_approval(write: Write, id: ApprovalPath, body: ApprovalCommentRequest) -> Response:
    """Adds a comment to an approval."""
    return write.run(body.text, lambda session: service.add_comment(session, write.subject, id, body.text))
