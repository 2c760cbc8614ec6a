"""Operations on the audit."""

from typing import Annotated

from fastapi import Query, Response

from service.audit import repository
from service.audit.schemas import AuditEventPage, AuditVerdict, AuditVerification
from service.audit.service import Read, event_to_response
from service.audit.verification import Verifier, parse_head
from service.kit.http.pages import Order, PageQuery
from service.kit.http.web import OffloadedVerification, api_router, from_state, json_response

router = api_router("/v1/audit-events", tag="audit-events")
AuditVerifier = Annotated[Verifier, from_state("audit_verifier")]
_NEWEST_FIRST: Order[int | None] = Order(("sequence",), int, None)


@router.get("", summary="List audit events", response_model=AuditEventPage)
def list_audit_events(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the tenant's writes, the newest first."""
    page = read.page(query, _NEWEST_FIRST, "audit-events")
    with read.session() as session:
        rows = repository.list_page(session, read.tenant_id, before=page.after, limit=page.limit)
        return json_response(page.to_response([event_to_response(row) for row in rows]))


@router.get(":verify", summary="Verify the audit chain", response_model=AuditVerdict)
async def verify_audit_events(
    read: Read,
    verifier: AuditVerifier,
    aside: OffloadedVerification,
    query: Annotated[AuditVerification, Query()],
) -> Response:
    """Verifies the whole audit chain of the tenant, and the stored resources that control access.

    Finds any event that was changed, dropped or reordered, and any approval, policy, delegation, budget,
    bill, quote, key, link, webhook or node that was changed outside the service.
    """
    expected = [parse_head(read.tenant_id, text) for text in query.expected_head]

    def verify() -> Response:
        with read.session() as session:
            return json_response(verifier.verify_tenant(session, read.tenant_id, expected).to_response())

    return await aside(verify)
