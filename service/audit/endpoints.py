"""Operations on the audit."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.audit import repository
from service.audit.schemas import AuditEventPage, AuditVerdict
from service.audit.service import Caller, Writes, shown_event
from service.kit.database import Database
from service.kit.pages import PageQuery, PageTokens
from service.kit.web import api_router, json_response

router = api_router("/v1/audit-events", tag="audit-events")


class AuditFace:
    """Reads of one database, as responses."""

    def __init__(self, database: Database, *, writes: Writes, tokens: PageTokens) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens

    def list(self, tenant_id: str, query: PageQuery) -> Response:
        """A page of a tenant's events."""
        filters = f"audit-events {tenant_id}"
        token = query.page_token
        before = int(self._tokens.decode(token, filters)[0]) if token else None
        with self._database.reading() as session:
            rows = repository.page(session, tenant_id, before=before, limit=query.limit + 1)
            shown = [shown_event(row) for row in rows]
        return json_response(self._tokens.page(shown, query.limit, filters, "sequence"))

    def verify(self, tenant_id: str) -> Response:
        """Whether a tenant's chain holds."""
        with self._database.reading() as session:
            verdict = self._writes.verify(session, tenant_id)
        answer = {"valid": not verdict.fault, "events": verdict.events, "head_hash": verdict.head_hash}
        return json_response({**answer, "fault": verdict.fault._asdict()} if verdict.fault else answer)


def _face(request: Request) -> AuditFace:
    face: AuditFace = request.app.state.audit
    return face


Face = Annotated[AuditFace, Depends(_face)]


@router.get("", response_model=AuditEventPage)
def list_audit_events(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's writes, the newest first."""
    return face.list(caller.tenant_id, query)


@router.get(":verify", response_model=AuditVerdict)
def verify_audit_events(face: Face, caller: Caller) -> Response:
    """Read the whole chain of the tenant: any event changed, dropped or reordered is found."""
    return face.verify(caller.tenant_id)
