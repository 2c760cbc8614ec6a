"""Operations on approval policies."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.approvals.changes.endpoints import PROPOSED
from service.approvals.policies.face import Face, PolicyPath
from service.approvals.policies.schemas import (
    ApprovalPolicy,
    ApprovalPolicyInput,
    ApprovalPolicyPage,
    ApprovalPolicyPatch,
    ApprovalPolicyQuery,
)
from service.audit.service import Caller, WriteCall
from service.kit.http.versions import ETAG, IfMatch
from service.kit.http.web import LOCATED, api_router

router = api_router("/v1/approval-policies", tag="approval-policies")
_SEEN: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}}
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | LOCATED[201]["headers"]}, **PROPOSED}


@router.get("", response_model=ApprovalPolicyPage)
def list_approval_policies(
    face: Face, caller: Caller, query: Annotated[ApprovalPolicyQuery, Query()]
) -> Response:
    """A page of the tenant's policies, by id."""
    return face.list(caller.tenant_id, query)


@router.post("", status_code=201, response_model=ApprovalPolicy, responses=_CREATED)
def create_approval_policy(face: Face, call: WriteCall, body: ApprovalPolicyInput) -> Response:
    """Say who has to approve which quotes; it holds for what is submitted from then on.

    It holds at once (201) where it is the tenant's first one, or has steps and speaks only of quotes of which
    another policy with steps does. Else it waits (202) for its approval or the end of the tenant's delay.
    """
    return face.create(call, body)


@router.get("/{id:name}", response_model=ApprovalPolicy, responses=_SEEN)
def get_approval_policy(face: Face, caller: Caller, id: PolicyPath) -> Response:
    """The current version of a policy."""
    return face.get(caller.tenant_id, id)


@router.patch("/{id:name}", response_model=ApprovalPolicy, responses=_SEEN | PROPOSED)
def update_approval_policy(
    face: Face, call: WriteCall, id: PolicyPath, body: ApprovalPolicyPatch, if_match: IfMatch = ""
) -> Response:
    """Change members of a policy, if it is still at the version of the ETag.

    A change that only adds steps or names holds at once (200); any other one waits (202) for its approval or
    the end of the tenant's delay.
    """
    return face.change(call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=PROPOSED)
def delete_approval_policy(face: Face, call: WriteCall, id: PolicyPath, if_match: IfMatch = "") -> Response:
    """Delete a policy, if it is still at the version of the ETag; approvals under way keep its steps.

    The deletion waits (202) for its approval or the end of the tenant's delay, if there is one (else 204).
    """
    return face.delete(call, id, if_match)
