"""Operations on delegations."""

from typing import Annotated

from fastapi import Path, Query, Response

from service.approvals.delegations import repository, service
from service.approvals.delegations.schemas import (
    ApprovalDelegation,
    ApprovalDelegationPage,
    ApprovalDelegationRequest,
    DelegationId,
)
from service.audit.service import Read, Write
from service.kit.http.pages import NEWEST_FIRST, PageQuery
from service.kit.http.web import LOCATED, api_router, json_response

router = api_router("/v1/approval-delegations", tag="approval-delegations")
DelegationPath = Annotated[DelegationId, Path(description="Id of the delegation.")]


@router.get("", summary="List delegations", response_model=ApprovalDelegationPage)
def list_approval_delegations(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the tenant's delegations, the newest first."""
    page = read.page(query, NEWEST_FIRST, "approval-delegations")
    with read.session() as session:
        rows = repository.list_page(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response([service.to_response(row) for row in rows]))


@router.post(
    "",
    summary="Delegate decisions for a time",
    status_code=201,
    response_model=ApprovalDelegation,
    responses=LOCATED,
)
def create_approval_delegation(write: Write, body: ApprovalDelegationRequest) -> Response:
    """Lets another subject decide in the caller's place for a time."""
    return write.run(body, lambda session: service.create_delegation(session, write.subject, body))


@router.delete("/{id:name}", summary="Revoke a delegation", status_code=204)
def revoke_approval_delegation(write: Write, id: DelegationPath) -> Response:
    """Ends one of the caller's delegations now. Decisions made by it stay."""
    return write.run(None, lambda session: service.revoke_delegation(session, write.subject, id))
