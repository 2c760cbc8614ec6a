"""Operations that only models have."""

from functools import partial

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteContextDependency
from service.catalog import service
from service.catalog.answers import CREATED
from service.catalog.models.schemas import ImportedModel, ModelImportRequest
from service.catalog.models.service import read_config
from service.catalog.registry import MODELS
from service.catalog.transactions import Transactions
from service.kit.http.web import OffloadedWork, api_router

router = api_router("/v1/models", tag="models")


@router.post(
    ":import",
    summary="Import a model from its Hugging Face config",
    status_code=201,
    response_model=ImportedModel,
    responses=CREATED,
)
async def import_model(
    transactions: Transactions, call: WriteContextDependency, aside: OffloadedWork, body: ModelImportRequest
) -> Response:
    """Creates a model from a published Hugging Face config.json."""
    read = await aside(partial(read_config, body))
    create = partial(service.create_row, document=read.document)
    return await run_in_threadpool(
        transactions.write_row, call, read.document, MODELS, create, read.to_response
    )
