"""Operations that token prices alone have."""

from functools import partial

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteCall
from service.catalog.answers import IMPORTED
from service.catalog.registry import TOKEN_PRICES
from service.catalog.token_prices.importing import answer, known_models, read_list, store_list
from service.catalog.token_prices.schemas import ImportedTokenPrices, TokenPriceImport
from service.catalog.transactions import Transactions
from service.kit.http.web import LargeAside, WorkAside, api_router

router = api_router("/v1/token-prices", tag="token-prices")


@router.post(":import", response_model=ImportedTokenPrices, responses=IMPORTED)
async def import_token_prices(
    transactions: Transactions, call: WriteCall, aside: WorkAside, beside: LargeAside, body: TokenPriceImport
) -> Response:
    """Create or version the token prices of a list in the format of its publisher, all or none of them."""
    known = partial(known_models, tenant_id=call.subject.tenant_id)
    models = await run_in_threadpool(transactions.read, known)
    listed = await aside(partial(read_list, body, models))
    store, tell = partial(store_list, body=body, listed=listed), partial(answer, listed)
    return await beside(partial(transactions.import_rows, call, body, TOKEN_PRICES, store, tell))
