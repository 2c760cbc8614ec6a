"""Operations on delegations."""

from typing import Annotated

from fastapi import Query, Response

from service.approvals.delegations.face import DelegationPath, Face
from service.approvals.delegations.schemas import (
    ApprovalDelegation,
    ApprovalDelegationInput,
    ApprovalDelegationPage,
)
from service.audit.service import Caller, WriteCall
from service.kit.http.pages import PageQuery
from service.kit.http.web import LOCATED, api_router

router = api_router("/v1/approval-delegations", tag="approval-delegations")


@router.get("", response_model=ApprovalDelegationPage)
def list_approval_delegations(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's delegations, the newest first."""
    return face.list(caller.tenant_id, query)


@router.post("", status_code=201, response_model=ApprovalDelegation, responses=LOCATED)
def create_approval_delegation(face: Face, call: WriteCall, body: ApprovalDelegationInput) -> Response:
    """Let somebody decide in the caller's place for a time."""
    return face.create(call, body)


@router.delete("/{id:name}", status_code=204)
def revoke_approval_delegation(face: Face, call: WriteCall, id: DelegationPath) -> Response:
    """End a delegation of the caller's own now; what was decided by it stays."""
    return face.revoke(call, id)
