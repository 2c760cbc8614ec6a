"""Operations that grids alone have."""

from functools import partial

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteCall
from service.catalog import service
from service.catalog.answers import CREATED
from service.catalog.grids.schemas import GridImport, ImportedGrid
from service.catalog.grids.service import read_table
from service.catalog.registry import GRIDS
from service.catalog.transactions import Transactions
from service.kit.http.web import WorkAside, api_router

router = api_router("/v1/grids", tag="grids")


@router.post(":import", status_code=201, response_model=ImportedGrid, responses=CREATED)
async def import_grid(
    transactions: Transactions, call: WriteCall, aside: WorkAside, body: GridImport
) -> Response:
    """Create a grid with its intensity in time from a published table."""
    read = await aside(partial(read_table, body))
    create = partial(service.create, document=read.document)
    return await run_in_threadpool(transactions.write_row, call, read.document, GRIDS, create, read.answer)
