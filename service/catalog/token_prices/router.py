"""Operations that only token prices have."""

from functools import partial

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteContextDependency
from service.catalog.answers import IMPORTED
from service.catalog.token_prices.importing import list_known_models, list_rows, read_list, to_response
from service.catalog.token_prices.schemas import ImportedTokenPrices, TokenPriceImportRequest
from service.catalog.transactions import Transactions
from service.kit.http.web import OffloadedLargeWork, OffloadedSearch, api_router

router = api_router("/v1/token-prices", tag="token-prices")


@router.post(
    ":import",
    summary="Import token prices from a list",
    response_model=ImportedTokenPrices,
    responses=IMPORTED,
)
async def import_token_prices(
    transactions: Transactions,
    call: WriteContextDependency,
    aside: OffloadedSearch,
    beside: OffloadedLargeWork,
    body: TokenPriceImportRequest,
) -> Response:
    """Creates or updates the token prices of a list in the format of its publisher, all or none of them."""
    known = partial(list_known_models, tenant_id=call.subject.tenant_id)
    models = await run_in_threadpool(transactions.read, known)
    listed = await aside(partial(read_list, body, models))
    sent = list_rows(call.subject.tenant_id, body, listed)
    return await beside(partial(transactions.import_rows, call, body, sent, partial(to_response, listed)))
