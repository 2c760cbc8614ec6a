"""Delegations over HTTP: transactions and pages."""

import json
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Path, Request, Response

from service.approvals.delegations import repository, service
from service.approvals.delegations.schemas import ApprovalDelegationInput, DelegationId
from service.audit.service import Call, Writes
from service.kit.database.engine import Database
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.web import json_response


class DelegationsFace:
    """Reads and writes of the delegations of one database, as responses."""

    def __init__(self, database: Database, *, writes: Writes, tokens: PageTokens) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens

    def list(self, tenant_id: str, query: PageQuery) -> Response:
        """A page of delegations."""
        filters = json.dumps(["approval-delegations", tenant_id])
        after = self._tokens.decode(query.page_token, filters) if query.page_token else None
        with self._database.reading() as session:
            behind = (datetime.fromisoformat(after[0]), after[1]) if after else None
            rows = repository.page(session, tenant_id, behind, query.limit + 1)
            shown = [service.shown(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def create(self, call: Call, body: ApprovalDelegationInput) -> Response:
        """A new delegation of the caller's own."""
        sent = body.model_dump(mode="json")
        return self._writes.run(call, sent, lambda session: service.create(session, call.subject, body))

    def revoke(self, call: Call, delegation_id: str) -> Response:
        """A delegation that does not hold any more."""
        return self._writes.run(
            call, None, lambda session: service.revoke(session, call.subject, delegation_id)
        )


def _face(request: Request) -> DelegationsFace:
    face: DelegationsFace = request.app.state.approval_delegations
    return face


Face = Annotated[DelegationsFace, Depends(_face)]
DelegationPath = Annotated[DelegationId, Path(description="Id of the delegation.")]
