"""The page that makes a quote of a candidate of a plan."""

import re
import secrets
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_json

from service.audit.service import Transactions
from service.auth.sessions import AuthenticatedPageRoute, SameSessionForm, VisitorDependency
from service.cost_centers.service import list_cost_centers
from service.evidence.snapshot import Snapshots
from service.kit.http.html import Form, page_response, page_router, render_template
from service.kit.http.problems import BadRequest
from service.kit.http.shapes import load_shape
from service.kit.http.validation import build_body_problem
from service.kit.http.web import OffloadedWork
from service.kit.security.principals import build_permission
from service.plans.service import describe_plan_candidate
from service.quotes.errors import PlanNotQuotable
from service.quotes.pages.creation import check_once, create_quote_once
from service.quotes.schemas import CandidateQuoteRequest, CandidateRank, QuoteId
from service.quotes.service import QuoteFreezing

_RANK: Final = re.compile("[1-9][0-9]{0,6}")
_QUOTE: Final = TypeAdapter(CandidateQuoteRequest)


class QuoteFormRoute(AuthenticatedPageRoute):
    """The form of a quote, for visitors who may make one."""

    needs = build_permission("quotes", "write")


class CandidateQuery(BaseModel):
    """The candidate of a plan that is quoted."""

    model_config = ConfigDict(extra="forbid")

    candidate: CandidateRank = 1


PlanPath = Annotated[QuoteId, Path(alias="id")]
router = page_router(tag="quotes", route_class=QuoteFormRoute)


@router.get("/plans/{id:name}/quote")
def candidate_page(
    transactions: Transactions,
    snapshots: Snapshots,
    visitor: VisitorDependency,
    id: PlanPath,
    query: Annotated[CandidateQuery, Query()],
) -> Response:
    """Shows the form that makes a quote of a candidate."""
    tenant_id = visitor.subject.tenant_id
    with transactions.open_reader() as session:
        catalog = snapshots.get_current(tenant_id)
        name = describe_plan_candidate(session, tenant_id, id, query.candidate, catalog)
        payers = list_cost_centers(session, tenant_id)
    if name is None:
        raise PlanNotQuotable
    page = render_template(
        "quotes/pages/candidate.html",
        visitor=visitor,
        plan_id=id,
        candidate=query.candidate,
        name=name,
        payers=payers,
        once=secrets.token_hex(16),
    )
    return page_response(page)


@router.post("/plans/{id:name}/quote")
async def quote_candidate(
    *,
    request: Request,
    visitor: VisitorDependency,
    id: PlanPath,
    form: SameSessionForm,
    transactions: Transactions,
    freezing: QuoteFreezing,
    aside: OffloadedWork,
) -> Response:
    """Freezes a candidate as a quote, once for each form that is shown, and redirects to the quote."""
    once = check_once(form)
    body = _build_quote_request(id, form)
    return await create_quote_once(
        request,
        visitor,
        body,
        once,
        operation="quote_candidate",
        transactions=transactions,
        freezing=freezing,
        aside=aside,
    )


def _build_quote_request(plan_id: str, form: Form) -> CandidateQuoteRequest:
    if not _RANK.fullmatch(form.get("candidate", "")):
        raise BadRequest("The form lacks its candidate")
    given = {name: form.get(name, "").strip() for name in ("name", "cost_center_id", "note")}
    body: dict[str, Any] = {name: text for name, text in given.items() if text}
    raw = to_json({**body, "plan_id": plan_id, "candidate": int(form["candidate"])})
    try:
        return _QUOTE.validate_json(raw)
    except ValidationError as error:
        raise build_body_problem(error, raw, load_shape(_QUOTE)) from None
