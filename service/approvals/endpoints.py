"""Operations on approvals, and on quotes where they move one."""

from typing import Annotated

from fastapi import Query, Response

from service.approvals.face import ApprovalPath, Face, QuotePath
from service.approvals.schemas import (
    AmendmentInput,
    Approval,
    ApprovalCommentInput,
    ApprovalHistory,
    ApprovalPage,
    ApprovalQuery,
    DecisionInput,
    Submission,
)
from service.audit.service import Caller, WriteCall
from service.kit.http.web import LOCATED, WorkAside, api_router

quotes = api_router("/v1/quotes", tag="quotes")
approvals = api_router("/v1/approvals", tag="approvals")


@quotes.post("/{id:name}:submit", status_code=201, response_model=Approval, responses=LOCATED)
def submit_quote(face: Face, call: WriteCall, id: QuotePath, body: Submission) -> Response:
    """Ask for the newest version of a quote to be approved, by whom the policies that match it say.

    With `validate_only` the answer says who would be asked, and nobody is.
    """
    return face.submit(call, id, body)


@quotes.post("/{id:name}:amend", status_code=201, response_model=Approval, responses=LOCATED)
async def amend_quote(
    face: Face, call: WriteCall, aside: WorkAside, id: QuotePath, body: AmendmentInput
) -> Response:
    """Quote something else as the next version and ask for its approval, which begins anew."""
    return await face.amend(call, id, body, aside)


@quotes.post("/{id:name}:cancel", response_model=Approval)
def cancel_quote(face: Face, call: WriteCall, id: QuotePath, body: Submission) -> Response:
    """End the approval of a version, be it approved: what it committed is free again."""
    return face.cancel(call, id, body)


@approvals.get("", response_model=ApprovalPage)
def list_approvals(face: Face, caller: Caller, query: Annotated[ApprovalQuery, Query()]) -> Response:
    """A page of the tenant's approvals, the newest first."""
    return face.list(caller, query)


@approvals.get("/{id:name}", response_model=Approval)
def get_approval(face: Face, caller: Caller, id: ApprovalPath) -> Response:
    """An approval: its steps, who decided what, and what it takes from which budget."""
    return face.get(caller.tenant_id, id)


@approvals.get("/{id:name}/history", response_model=ApprovalHistory)
def get_approval_history(face: Face, caller: Caller, id: ApprovalPath) -> Response:
    """Every change of an approval as the audit chain has it, and whether the approval still is like that."""
    return face.history(caller.tenant_id, id)


@approvals.post("/{id:name}:approve", response_model=Approval)
def approve_approval(face: Face, call: WriteCall, id: ApprovalPath, body: DecisionInput) -> Response:
    """Approve what was seen; sent again it is the same decision, in every step that names the caller."""
    return face.decide(call, id, "approve", body)


@approvals.post("/{id:name}:reject", response_model=Approval)
def reject_approval(face: Face, call: WriteCall, id: ApprovalPath, body: DecisionInput) -> Response:
    """Reject what was seen: one rejection ends the approval."""
    return face.decide(call, id, "reject", body)


@approvals.post("/{id:name}:close", response_model=Approval)
def close_approval(face: Face, call: WriteCall, id: ApprovalPath) -> Response:
    """Say that what was approved is over: budgets get back what nobody has billed; later bills still count.

    The approval stays approved. Closed before, it is the same answer.
    """
    return face.close(call, id)


@approvals.post("/{id:name}:comment", response_model=Approval)
def comment_approval(face: Face, call: WriteCall, id: ApprovalPath, body: ApprovalCommentInput) -> Response:
    """Say something about an approval."""
    return face.comment(call, id, body.text)
