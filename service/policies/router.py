"""Operations on approval policies."""

from typing import Annotated

from fastapi import Path, Query, Response

from service.kit.http.pages import BY_ID
from service.kit.http.versions import CREATED, VERSIONED, IfMatch, versioned_response
from service.kit.http.web import api_router, json_response
from service.policies import repository, service
from service.policies.changes.schemas import PROPOSED
from service.policies.changes.service import SettledRead, SettledWrite
from service.policies.schemas import (
    ApprovalPolicy,
    ApprovalPolicyPage,
    ApprovalPolicyPatch,
    ApprovalPolicyQuery,
    ApprovalPolicyRequest,
)
from service.schemas.base import ResourceId

router = api_router("/v1/approval-policies", tag="approval-policies")
PolicyPath = Annotated[ResourceId, Path(description="Id of the policy.")]


@router.get("", summary="List approval policies", response_model=ApprovalPolicyPage)
def list_approval_policies(read: SettledRead, query: Annotated[ApprovalPolicyQuery, Query()]) -> Response:
    """Lists the tenant's policies in order of id."""
    page = read.page(query, BY_ID, "approval-policies")
    with read.session() as session:
        rows = repository.list_live_after(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response([service.to_response(row) for row in rows]))


@router.post(
    "",
    summary="Create an approval policy",
    status_code=201,
    response_model=ApprovalPolicy,
    responses=CREATED | PROPOSED,
)
def create_approval_policy(write: SettledWrite, body: ApprovalPolicyRequest) -> Response:
    """Creates a policy: the approvers of the quotes that it applies to, from the next submission on.

    It takes effect at once (201) if it is the tenant's first policy, or if it has steps and applies only to
    quotes that another policy with steps applies to. Otherwise it waits (202) for approval or the end of the
    tenant's delay.
    """
    return write.run(body, lambda session: service.create_policy(session, write.subject, body))


@router.get(
    "/{id:name}", summary="Get an approval policy", response_model=ApprovalPolicy, responses=VERSIONED
)
def get_approval_policy(read: SettledRead, id: PolicyPath) -> Response:
    """Returns the current version of a policy."""
    with read.session() as session:
        return versioned_response(service.get_policy(session, read.tenant_id, id))


@router.patch(
    "/{id:name}",
    summary="Change an approval policy",
    response_model=ApprovalPolicy,
    responses=VERSIONED | PROPOSED,
)
def update_approval_policy(
    write: SettledWrite, id: PolicyPath, body: ApprovalPolicyPatch, if_match: IfMatch = ""
) -> Response:
    """Changes members of a policy, if its version matches the ETag.

    A change that only adds steps or names takes effect at once (200). Any other change waits (202) for
    approval or the end of the tenant's delay.
    """
    patch = body.model_dump(mode="json")
    return write.run(
        [patch, if_match], lambda session: service.change_policy(session, write.subject, id, patch, if_match)
    )


@router.delete("/{id:name}", summary="Delete an approval policy", status_code=204, responses=PROPOSED)
def delete_approval_policy(write: SettledWrite, id: PolicyPath, if_match: IfMatch = "") -> Response:
    """Deletes a policy, if its version matches the ETag. Pending approvals keep its steps.

    The deletion waits (202) for approval or the end of the tenant's delay. Without a delay it is immediate
    (204).
    """
    return write.run(if_match, lambda session: service.delete_policy(session, write.subject, id, if_match))
