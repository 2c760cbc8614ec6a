"""Operations on actuals."""

from functools import partial
from typing import Annotated

from fastapi import Path, Query, Response

from service.audit.service import Read, Write
from service.budgets.actuals import accuracy, repository, service
from service.budgets.actuals.schemas import (
    Actuals,
    ActualsAccuracy,
    ActualsId,
    ActualsImportRequest,
    ActualsPage,
    ActualsWithdrawalRequest,
    QuoteActuals,
)
from service.evidence.snapshot import Snapshots
from service.kit.http.pages import NEWEST_FIRST, PageQuery
from service.kit.http.web import LOCATED, OffloadedLargeWork, OffloadedSearch, api_router, json_response
from service.quotes.schemas import QuoteId

router = api_router("/v1/actuals", tag="actuals")
of_quotes = api_router("/v1/quotes", tag="actuals")
ImportPath = Annotated[ActualsId, Path(description="Id of the import.")]


@router.get("", summary="List imported bills", response_model=ActualsPage)
def list_actuals(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the tenant's imported bills, the newest first."""
    page = read.page(query, NEWEST_FIRST, "actuals")
    with read.session() as session:
        rows = repository.list_page(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response(service.list_imports(session, read.tenant_id, rows)))


@router.post(":import", summary="Import a bill", status_code=201, response_model=Actuals, responses=LOCATED)
async def import_actuals(
    write: Write,
    snapshots: Snapshots,
    aside: OffloadedSearch,
    beside: OffloadedLargeWork,
    body: ActualsImportRequest,
) -> Response:
    """Imports a bill as a table in the columns of FOCUS 1.0 to 1.3, to compare with quotes and budgets.

    A charge belongs to the quote that its tag `quote_id` names, and to a cost centre by its quote, tags or
    account. A bill with a wrong row is refused as a whole, with the line and column of each fault. A bill
    that was imported before is refused too, unless `replaces` names the earlier import.
    """
    bill = await aside(partial(service.parse_bill, body))

    def store() -> Response:
        catalog = snapshots.get_current(write.tenant_id)
        # Matched before the transaction: an embedded database has one writer.
        with write.transactions.open_reader() as session:
            matched = service.match_bill(session, write.tenant_id, bill)
        return write.run(
            body, lambda session: service.store_bill(session, write.tenant_id, body, matched, catalog)
        )

    return await beside(store)


@router.get(":accuracy", summary="Get how far quotes are from their bills", response_model=ActualsAccuracy)
def get_actuals_accuracy(read: Read, snapshots: Snapshots) -> Response:
    """Returns how far quotes deviate from their bills: error, bias, and how often the interval held."""
    with read.session() as session:
        return json_response(
            accuracy.compute_accuracy(session, read.tenant_id, snapshots.get_current(read.tenant_id))
        )


@router.get("/{id:name}", summary="Get an imported bill", response_model=Actuals)
def get_actuals(read: Read, id: ImportPath) -> Response:
    """Returns an imported bill: its billing periods, its sums, and the number of its rows that matched."""
    with read.session() as session:
        return json_response(service.get_import(session, read.tenant_id, id))


@router.post("/{id:name}:withdraw", summary="Withdraw an imported bill", response_model=Actuals)
def withdraw_actuals(write: Write, id: ImportPath, body: ActualsWithdrawalRequest) -> Response:
    """Withdraws a bill, which no longer counts. An earlier bill that it replaced does not count again."""
    return write.run(
        body.reason, lambda session: service.withdraw_import(session, write.tenant_id, id, body.reason)
    )


@of_quotes.get("/{id:name}/actuals", summary="Get what was billed for a quote", response_model=QuoteActuals)
def get_quote_actuals(
    read: Read, snapshots: Snapshots, id: Annotated[QuoteId, Path(description="Id of the quote.")]
) -> Response:
    """Returns what was billed for a quote so far, and what was quoted for the time that is billed."""
    with read.session() as session:
        catalog = snapshots.get_current(read.tenant_id)
        return json_response(accuracy.compare_quote_actuals(session, read.tenant_id, id, catalog))
