"""Operations on quotes."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.kit.http.pages import PageQuery
from service.kit.http.web import LOCATED, WorkAside, api_router
from service.quotes.face import Face, QuotePath
from service.quotes.schemas import (
    Quote,
    QuoteComparison,
    QuoteComparisonQuery,
    QuoteInput,
    QuotePage,
    QuoteQuery,
    QuoteVersionQuery,
    RepriceInput,
)

router = api_router("/v1/quotes", tag="quotes")
_CSV: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}},
    409: {},
}
_PAGE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/html": {"schema": {"type": "string"}}}}}


@router.get("", response_model=QuotePage)
def list_quotes(face: Face, caller: Caller, query: Annotated[QuoteQuery, Query()]) -> Response:
    """A page of the tenant's quotes, each in its newest version, the last frozen first."""
    return face.list(caller.tenant_id, query)


@router.post("", status_code=201, response_model=Quote, responses=LOCATED)
async def create_quote(face: Face, call: WriteCall, aside: WorkAside, body: QuoteInput) -> Response:
    """Freeze what an estimate or a row of a plan says: the service answers it, and never takes a number.

    The questions within the one that is asked are answered with it, all under one revision of the catalog.
    """
    return await face.create(call, body, aside)


@router.get("/{id:name}", response_model=Quote)
def get_quote(
    face: Face, caller: Caller, id: QuotePath, query: Annotated[QuoteVersionQuery, Query()]
) -> Response:
    """A version of a quote with its requests, answers and prices as they were frozen."""
    return face.get(caller.tenant_id, id, query.version)


@router.get("/{id:name}/versions", response_model=QuotePage)
def get_quote_versions(
    face: Face, caller: Caller, id: QuotePath, query: Annotated[PageQuery, Query()]
) -> Response:
    """A page of the versions of a quote, the newest first."""
    return face.versions(caller.tenant_id, id, query)


@router.post("/{id:name}:reprice", status_code=201, response_model=Quote, responses=LOCATED)
async def reprice_quote(
    face: Face, call: WriteCall, aside: WorkAside, id: QuotePath, body: RepriceInput
) -> Response:
    """Answer a quote anew under the present catalog, as its next version; what was frozen stays.

    Refused while an approval of it is pending: amending it restarts that. Of several at once one follows the
    version that all of them read, and the others are refused.
    """
    return await face.reprice(call, id, body, aside)


@router.get("/{id:name}:compare", response_model=QuoteComparison)
def compare_quote(
    face: Face, caller: Caller, id: QuotePath, query: Annotated[QuoteComparisonQuery, Query()]
) -> Response:
    """What has changed since the version before, or against another quote: question, prices, figures."""
    return face.compare(caller.tenant_id, id, query)


@router.get("/{id:name}/report", response_class=Response, responses=_PAGE)
def get_quote_report(
    face: Face, caller: Caller, id: QuotePath, query: Annotated[QuoteVersionQuery, Query()]
) -> Response:
    """A version of a quote as a page that stands alone, reads on a phone and prints."""
    return face.report(caller.tenant_id, id, query.version)


@router.get("/{id:name}/focus", response_class=Response, responses=_CSV)
def get_quote_focus(
    face: Face, caller: Caller, id: QuotePath, query: Annotated[QuoteVersionQuery, Query()]
) -> Response:
    """The charges of a version as CSV, in the columns of FOCUS 1.2, tagged with the quote.

    A quote whose run has no start, or whose total is not known, has none.
    """
    return face.focus(caller.tenant_id, id, query.version)
