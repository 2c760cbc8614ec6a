"""Operations on the audit."""

from typing import Annotated

from fastapi import Depends, Query, Request, Response

from service.audit import repository
from service.audit.schemas import AuditEventPage, AuditVerdict, AuditVerification
from service.audit.service import Caller, shown_event
from service.audit.verification import Verifier, parsed_head
from service.kit.database.engine import Database
from service.kit.http.pages import PageQuery, PageTokens
from service.kit.http.web import api_router, json_response

router = api_router("/v1/audit-events", tag="audit-events")


class AuditFace:
    """Reads of one database, as responses."""

    def __init__(self, database: Database, *, verifier: Verifier, tokens: PageTokens) -> None:
        self._database = database
        self._verifier = verifier
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

    def verify(self, tenant_id: str, query: AuditVerification) -> Response:
        """Whether a tenant's record holds."""
        expected = [parsed_head(tenant_id, text) for text in query.expected_head]
        with self._database.reading() as session:
            return json_response(self._verifier.tenant(session, tenant_id, expected).shown())


def _face(request: Request) -> AuditFace:
    face: AuditFace = request.app.state.audit
    return face


Face = Annotated[AuditFace, Depends(_face)]


@router.get("", response_model=AuditEventPage)
def list_audit_events(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's writes, the newest first."""
    return face.list(caller.tenant_id, query)


@router.get(":verify", response_model=AuditVerdict)
def verify_audit_events(face: Face, caller: Caller, query: Annotated[AuditVerification, Query()]) -> Response:
    """Read the whole chain of the tenant, and hold against it all that decides who may do what.

    Any event changed, dropped or reordered is found, and so is any approval, policy, delegation, budget,
    bill, quote, key, link, webhook or node that was changed beside the service.
    """
    return face.verify(caller.tenant_id, query)
