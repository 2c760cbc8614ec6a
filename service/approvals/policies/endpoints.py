"""Operations on approval policies."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.approvals.policies.face import Face, PolicyPath
from service.approvals.policies.schemas import (
    ApprovalPolicy,
    ApprovalPolicyInput,
    ApprovalPolicyPage,
    ApprovalPolicyPatch,
    ApprovalPolicyQuery,
)
from service.audit.service import Caller, WriteCall
from service.kit.versions import ETAG, IfMatch
from service.kit.web import LOCATED, api_router

router = api_router("/v1/approval-policies", tag="approval-policies")
_SEEN: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}}
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | LOCATED[201]["headers"]}}


@router.get("", response_model=ApprovalPolicyPage)
def list_approval_policies(
    face: Face, caller: Caller, query: Annotated[ApprovalPolicyQuery, Query()]
) -> Response:
    """A page of the tenant's policies, by id."""
    return face.list(caller.tenant_id, query)


@router.post("", status_code=201, response_model=ApprovalPolicy, responses=_CREATED)
def create_approval_policy(face: Face, call: WriteCall, body: ApprovalPolicyInput) -> Response:
    """Say who has to approve which quotes; it holds for what is submitted from now on."""
    return face.create(call, body)


@router.get("/{id:name}", response_model=ApprovalPolicy, responses=_SEEN)
def get_approval_policy(face: Face, caller: Caller, id: PolicyPath) -> Response:
    """The current version of a policy."""
    return face.get(caller.tenant_id, id)


@router.patch("/{id:name}", response_model=ApprovalPolicy, responses=_SEEN)
def update_approval_policy(
    face: Face, call: WriteCall, id: PolicyPath, body: ApprovalPolicyPatch, if_match: IfMatch = ""
) -> Response:
    """Change members of a policy, if it is still at the version of the ETag."""
    return face.change(call, id, body, if_match)


@router.delete("/{id:name}", status_code=204)
def delete_approval_policy(face: Face, call: WriteCall, id: PolicyPath, if_match: IfMatch = "") -> Response:
    """Delete a policy, if it is still at the version of the ETag; approvals under way keep its steps."""
    return face.delete(call, id, if_match)
