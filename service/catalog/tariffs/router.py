"""Operations that only tariffs have."""

from functools import partial
from typing import Annotated

from fastapi import Query, Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import Caller, WriteContextDependency
from service.catalog import service
from service.catalog.answers import CREATED, READ, IfNoneMatch, RowId, build_row_response
from service.catalog.registry import TARIFFS
from service.catalog.tariffs.schemas import ExportedTariff, ExportQuery, ImportedTariff, TariffImportRequest
from service.catalog.tariffs.service import export_rate, read_tariff
from service.catalog.transactions import Transactions
from service.kit.http.web import OffloadedWork, api_router

router = api_router("/v1/tariffs", tag="tariffs")


@router.post(
    ":import",
    summary="Import a tariff from a published rate",
    status_code=201,
    response_model=ImportedTariff,
    responses=CREATED,
)
async def import_tariff(
    transactions: Transactions, call: WriteContextDependency, aside: OffloadedWork, body: TariffImportRequest
) -> Response:
    """Creates a tariff from a rate of OpenEI's utility rate database, or from the prices of a market."""
    read = await aside(partial(read_tariff, body))
    create = partial(service.create_row, document=read.document)
    return await run_in_threadpool(
        transactions.write_row, call, read.document, TARIFFS, create, read.to_response
    )


@router.get(
    "/{id:name}:export",
    summary="Export a tariff as a rate of OpenEI",
    response_model=ExportedTariff,
    responses=READ,
)
def export_tariff(
    transactions: Transactions,
    caller: Caller,
    row_id: RowId,
    query: Annotated[ExportQuery, Query()],
    if_none_match: IfNoneMatch = "",
) -> Response:
    """Returns a tariff as a rate of OpenEI's utility rate database, with the terms that such a rate lacks."""
    row = transactions.read(lambda session: service.get_row(session, TARIFFS, caller.tenant_id, row_id))
    return build_row_response(row, if_none_match, lambda row: export_rate(row, query.on))
