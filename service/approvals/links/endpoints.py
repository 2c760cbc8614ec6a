"""The operation that makes links."""

from fastapi import Response

from service.approvals.face import ApprovalPath
from service.approvals.links.face import Face
from service.approvals.links.schemas import ApprovalLinkInput, IssuedApprovalLink
from service.audit.service import WriteCall
from service.kit.subjects import permission
from service.kit.web import api_router, route_needing

router = api_router(
    "/v1/approvals", tag="approvals", route_class=route_needing(permission("approval-links", "write"))
)


@router.post("/{id:name}:link", status_code=201, response_model=IssuedApprovalLink)
def link_approval(face: Face, call: WriteCall, id: ApprovalPath, body: ApprovalLinkInput) -> Response:
    """Make an address by which one approver of the open step decides once, without credentials."""
    return face.create(call, id, body)
