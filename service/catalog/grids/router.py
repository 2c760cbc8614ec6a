"""Operations that only grids have."""

from functools import partial

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteContextDependency
from service.catalog import service
from service.catalog.answers import CREATED
from service.catalog.grids.schemas import GridImportRequest, ImportedGrid
from service.catalog.grids.service import read_table
from service.catalog.registry import GRIDS
from service.catalog.transactions import Transactions
from service.kit.http.web import OffloadedWork, api_router

router = api_router("/v1/grids", tag="grids")


@router.post(
    ":import",
    summary="Import a grid with its intensity over time",
    status_code=201,
    response_model=ImportedGrid,
    responses=CREATED,
)
async def import_grid(
    transactions: Transactions, call: WriteContextDependency, aside: OffloadedWork, body: GridImportRequest
) -> Response:
    """Creates a grid with its intensity over time from a published table."""
    read = await aside(partial(read_table, body))
    create = partial(service.create_row, document=read.document)
    return await run_in_threadpool(
        transactions.write_row, call, read.document, GRIDS, create, read.to_response
    )
