"""Links over HTTP: transactions."""

from typing import Annotated

from fastapi import Depends, Request, Response

from service.approvals.links.schemas import ApprovalLinkInput
from service.approvals.links.service import Links
from service.audit.service import Call, Writes


class LinksFace:
    """Links of one database, as responses."""

    def __init__(self, links: Links, writes: Writes) -> None:
        self._links = links
        self._writes = writes

    def create(self, call: Call, approval_id: str, body: ApprovalLinkInput) -> Response:
        """A new link."""
        sent = body.model_dump(mode="json")
        return self._writes.run(
            call, sent, lambda session: self._links.create(session, call.subject, approval_id, body)
        )


def _face(request: Request) -> LinksFace:
    face: LinksFace = request.app.state.approval_links
    return face


Face = Annotated[LinksFace, Depends(_face)]
