"""Operations on links."""

from fastapi import Response

from service.approvals.face import ApprovalPath
from service.approvals.links.face import Face, LinkPath
from service.approvals.links.schemas import ApprovalLinkInput, ApprovalLinkList, IssuedApprovalLink
from service.audit.service import Caller, WriteCall
from service.kit.http.web import api_router, route_needing
from service.kit.security.subjects import permission

router = api_router(
    "/v1/approvals", tag="approvals", route_class=route_needing(permission("approval-links", "write"))
)
links = api_router("/v1/approval-links", tag="approval-links")
listing = api_router(
    "/v1/approvals", tag="approvals", route_class=route_needing(permission("approval-links", "read"))
)


@router.post("/{id:name}:link", status_code=201, response_model=IssuedApprovalLink)
def link_approval(face: Face, call: WriteCall, id: ApprovalPath, body: ApprovalLinkInput) -> Response:
    """Make an address by which one person whom the open step names decides once, without credentials.

    In one step, decisions by links of one maker count once, and none beside the maker's own.
    """
    return face.create(call, id, body)


@listing.get("/{id:name}/links", response_model=ApprovalLinkList)
def list_approval_links(face: Face, caller: Caller, id: ApprovalPath) -> Response:
    """The links of an approval, without their secrets, and what has become of each."""
    return face.list_links(caller.tenant_id, id)


@links.delete("/{id:name}", status_code=204)
def revoke_approval_link(face: Face, call: WriteCall, id: LinkPath) -> Response:
    """Let a link decide nothing any more; what was decided by it stays."""
    return face.revoke(call, id)
