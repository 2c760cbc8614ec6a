"""Operations that tariffs alone have."""

from functools import partial
from typing import Annotated

from fastapi import Query, Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import Caller, WriteCall
from service.catalog import service
from service.catalog.answers import CREATED, READ, IfNoneMatch, RowId, row_response
from service.catalog.registry import TARIFFS
from service.catalog.tariffs.schemas import ExportedTariff, ExportQuery, ImportedTariff, TariffImport
from service.catalog.tariffs.service import exported, read_tariff
from service.catalog.transactions import Transactions
from service.kit.http.web import WorkAside, api_router

router = api_router("/v1/tariffs", tag="tariffs")


@router.post(":import", status_code=201, response_model=ImportedTariff, responses=CREATED)
async def import_tariff(
    transactions: Transactions, call: WriteCall, aside: WorkAside, body: TariffImport
) -> Response:
    """Create a tariff from a rate of OpenEI's utility rate database, or from the prices of a market."""
    read = await aside(partial(read_tariff, body))
    create = partial(service.create, document=read.document)
    return await run_in_threadpool(transactions.write_row, call, read.document, TARIFFS, create, read.answer)


@router.get("/{id:name}:export", response_model=ExportedTariff, responses=READ)
def export_tariff(
    transactions: Transactions,
    caller: Caller,
    row_id: RowId,
    query: Annotated[ExportQuery, Query()],
    if_none_match: IfNoneMatch = "",
) -> Response:
    """A tariff as a rate of OpenEI's utility rate database, with what such a rate cannot say."""
    row = transactions.read(lambda session: service.get(session, TARIFFS, caller.tenant_id, row_id))
    return row_response(row, if_none_match, lambda row: exported(row, query.on))
