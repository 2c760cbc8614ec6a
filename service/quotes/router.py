"""Operations on quotes."""

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import MISSING

from service.audit.service import Read, Write
from service.kit.http.pages import NEWEST_FIRST, Order, PageQuery
from service.kit.http.web import (
    CSV,
    LOCATED,
    OffloadedSearch,
    OffloadedWork,
    api_router,
    csv_response,
    json_response,
)
from service.quotes import repository, service
from service.quotes.documents import to_summary
from service.quotes.errors import QuoteChanged, QuoteNotFound
from service.quotes.schemas import (
    Quote,
    QuoteComparison,
    QuoteComparisonQuery,
    QuoteId,
    QuotePage,
    QuoteQuery,
    QuoteRepriceRequest,
    QuoteRequest,
    QuoteVersionQuery,
)
from service.quotes.service import QuoteFreezing

router = api_router("/v1/quotes", tag="quotes")
_NEWEST_VERSION_FIRST: Order[int | None] = Order(("version",), int, None)
QuotePath = Annotated[QuoteId, Path(description="Id of the quote.")]


@router.get("", summary="List quotes", response_model=QuotePage)
def list_quotes(read: Read, query: Annotated[QuoteQuery, Query()]) -> Response:
    """Lists the tenant's quotes in their newest version, the last frozen first."""
    page = read.page(query, NEWEST_FIRST, "quotes", query.state, query.operation, query.cost_center_id)
    with read.session() as session:
        rows = repository.list_page(
            session,
            read.tenant_id,
            states=query.state,
            operations=query.operation,
            cost_centers=query.cost_center_id,
            after=page.after,
            limit=page.limit,
        )
        return json_response(page.to_response([to_summary(row) for row in rows]))


@router.post(
    "",
    summary="Freeze an estimate or a plan as a quote",
    status_code=201,
    response_model=Quote,
    responses=LOCATED,
)
async def create_quote(
    write: Write,
    freezing: QuoteFreezing,
    aside: OffloadedWork,
    searching: OffloadedSearch,
    body: QuoteRequest,
) -> Response:
    """Freezes an estimate or a row of a plan as a quote. The service computes all figures itself.

    The questions within the requested one are answered with it, all under one catalog revision.
    """
    return await write.run_prepared(
        body,
        searching if service.is_search(body) else aside,
        lambda: freezing.build_from_body(write.tenant_id, body),
        lambda session, frozen: service.create_quote(
            session, write.tenant_id, frozen, write.subject.name, days=body.valid_for_days
        ),
    )


@router.get("/{id:name}", summary="Get a version of a quote", response_model=Quote)
def get_quote(read: Read, id: QuotePath, query: Annotated[QuoteVersionQuery, Query()]) -> Response:
    """Returns a version of a quote with its requests, answers and prices as they were frozen."""
    with read.session() as session:
        return json_response(service.get_quote(session, read.tenant_id, id, query.version))


@router.get("/{id:name}/versions", summary="List the versions of a quote", response_model=QuotePage)
def get_quote_versions(read: Read, id: QuotePath, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the versions of a quote, the newest first."""
    page = read.page(query, _NEWEST_VERSION_FIRST, "quote versions", id)
    with read.session() as session:
        rows = repository.list_versions(session, read.tenant_id, id, below=page.after, limit=page.limit)
        if not rows and page.after is None:
            raise QuoteNotFound
        return json_response(page.to_response([to_summary(row) for row in rows]))


@router.post(
    "/{id:name}:reprice",
    summary="Reprice a quote under the present catalog",
    status_code=201,
    response_model=Quote,
    responses=LOCATED,
)
async def reprice_quote(
    write: Write, freezing: QuoteFreezing, aside: OffloadedWork, id: QuotePath, body: QuoteRepriceRequest
) -> Response:
    """Answers a quote anew under the present catalog, as its next version. Earlier versions stay.

    Refused while an approval of the quote is pending: amend the quote to restart its approval. Of several
    concurrent requests on one version, one succeeds and the others are refused.
    """
    version = None if body.version is MISSING else body.version
    try:
        return await write.run_prepared(
            body,
            aside,
            lambda: freezing.rebuild_newest(write.tenant_id, id, version),
            lambda session, frozen: service.add_version(
                session, write.tenant_id, id, frozen, write.subject.name, days=body.valid_for_days
            ),
        )
    except QuoteChanged:
        # A retry that was sent while the first request was still being answered finds the version of that
        # request.
        answered = await write.replayed(body)
        if answered is None:
            raise
        return answered


@router.get(
    "/{id:name}:compare", summary="Compare two versions or two quotes", response_model=QuoteComparison
)
def compare_quote(read: Read, id: QuotePath, query: Annotated[QuoteComparisonQuery, Query()]) -> Response:
    """Compares a quote with its preceding version or another quote: question, prices and figures."""
    with read.session() as session:
        return json_response(service.compare(session, read.tenant_id, id, query))


@router.get(
    "/{id:name}/focus",
    summary="Get the charges of a quote as CSV",
    response_class=Response,
    responses=CSV | {409: {}},
)
def get_quote_focus(read: Read, id: QuotePath, query: Annotated[QuoteVersionQuery, Query()]) -> Response:
    """Returns the charges of a version as CSV in the columns of FOCUS 1.2, tagged with the quote.

    A quote whose run has no start, or whose total is unknown, has no such rows.
    """
    with read.session() as session:
        return csv_response(service.get_focus_csv(session, read.tenant_id, id, query.version), f"quote-{id}")
