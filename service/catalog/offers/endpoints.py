"""Operations that offers alone have."""

from functools import partial

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteCall
from service.catalog.answers import IMPORTED
from service.catalog.offers.importing import answer, known_accelerators, read_list, store_list
from service.catalog.offers.schemas import ImportedOffers, OfferImport
from service.catalog.registry import OFFERS
from service.catalog.transactions import Transactions
from service.kit.http.web import LargeAside, WorkAside, api_router

router = api_router("/v1/offers", tag="offers")


@router.post(":import", response_model=ImportedOffers, responses=IMPORTED)
async def import_offers(
    transactions: Transactions, call: WriteCall, aside: WorkAside, beside: LargeAside, body: OfferImport
) -> Response:
    """Create or version the offers of a price list in the format of its publisher, all or none of them."""
    known = partial(known_accelerators, tenant_id=call.subject.tenant_id)
    accelerators = await run_in_threadpool(transactions.read, known)
    listed = await aside(partial(read_list, body, body.content, accelerators))
    store, tell = partial(store_list, body=body, listed=listed), partial(answer, listed)
    return await beside(partial(transactions.import_rows, call, body, OFFERS, store, tell))
