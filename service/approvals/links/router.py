"""Operations on approval links."""

from typing import Annotated

from fastapi import Path, Response

from service.approvals.links import service
from service.approvals.links.schemas import ApprovalLinkList, ApprovalLinkRequest, IssuedApprovalLink
from service.approvals.links.service import LinkRules
from service.approvals.router import ApprovalPath
from service.audit.service import Read, Write
from service.auth.schemas import KeyId
from service.kit.http.web import api_router, build_route_class, json_response
from service.kit.security.principals import build_permission

router = api_router(
    "/v1/approvals",
    tag="approvals",
    route_class=build_route_class(build_permission("approval-links", "write")),
)
links = api_router("/v1/approval-links", tag="approval-links")
listing = api_router(
    "/v1/approvals",
    tag="approvals",
    route_class=build_route_class(build_permission("approval-links", "read")),
)
LinkPath = Annotated[KeyId, Path(description="Id of the link.")]


@router.post(
    "/{id:name}:link",
    summary="Create a link by which one person decides",
    status_code=201,
    response_model=IssuedApprovalLink,
)
def link_approval(write: Write, rules: LinkRules, id: ApprovalPath, body: ApprovalLinkRequest) -> Response:
    """Creates a link by which one approver of the open step decides once, without credentials.

    In one step, decisions by links of one maker count once, and not beside a decision of the maker.
    """
    return write.run(body, lambda session: rules.create(session, write.subject, id, body))


@listing.get("/{id:name}/links", summary="List the links of an approval", response_model=ApprovalLinkList)
def list_approval_links(read: Read, id: ApprovalPath) -> Response:
    """Lists the links of an approval with their state, without their secrets."""
    with read.session() as session:
        return json_response({"items": service.list_link_states(session, read.tenant_id, id)})


@links.delete("/{id:name}", summary="Revoke a link", status_code=204)
def revoke_approval_link(write: Write, id: LinkPath) -> Response:
    """Revokes a link. A decision made by it stays."""
    return write.run(None, lambda session: service.revoke_link(session, write.tenant_id, id))
