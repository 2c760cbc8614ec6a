"""Links over HTTP: transactions."""

from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.approvals.links.schemas import ApprovalLinkInput
from service.approvals.links.service import Links, listed, revoke
from service.audit.service import Call, Writes
from service.auth.schemas import KeyId
from service.kit.database.engine import Database
from service.kit.http.web import json_response


class LinksFace:
    """Links of one database, as responses."""

    def __init__(self, database: Database, links: Links, writes: Writes) -> None:
        self._database = database
        self._links = links
        self._writes = writes

    def create(self, call: Call, approval_id: str, body: ApprovalLinkInput) -> Response:
        """A new link."""
        sent = body.model_dump(mode="json")
        return self._writes.run(
            call, sent, lambda session: self._links.create(session, call.subject, approval_id, body)
        )

    def list_links(self, tenant_id: str, approval_id: str) -> Response:
        """The links of an approval, without their secrets."""
        with self._database.reading() as session:
            return json_response({"items": listed(session, tenant_id, approval_id)})

    def revoke(self, call: Call, link_id: str) -> Response:
        """No working link any more."""
        tenant_id = call.subject.tenant_id
        return self._writes.run(call, None, lambda session: revoke(session, tenant_id, link_id))


def _face(request: Request) -> LinksFace:
    face: LinksFace = request.app.state.approval_links
    return face


Face = Annotated[LinksFace, Depends(_face)]
LinkPath = Annotated[KeyId, Path(description="Id of the link.")]
