"""Operations that only offers have."""

from functools import partial

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import WriteContextDependency
from service.catalog.answers import IMPORTED
from service.catalog.offers.importing import list_known_accelerators, list_rows, read_list, to_response
from service.catalog.offers.schemas import ImportedOffers, OfferImportRequest
from service.catalog.transactions import Transactions
from service.kit.http.web import OffloadedLargeWork, OffloadedSearch, api_router

router = api_router("/v1/offers", tag="offers")


@router.post(
    ":import", summary="Import offers from a price list", response_model=ImportedOffers, responses=IMPORTED
)
async def import_offers(
    transactions: Transactions,
    call: WriteContextDependency,
    aside: OffloadedSearch,
    beside: OffloadedLargeWork,
    body: OfferImportRequest,
) -> Response:
    """Creates or updates the offers of a price list in the format of its publisher, all or none of them."""
    known = partial(list_known_accelerators, tenant_id=call.subject.tenant_id)
    accelerators = await run_in_threadpool(transactions.read, known)
    listed = await aside(partial(read_list, body, body.content, accelerators))
    sent = list_rows(call.subject.tenant_id, body, listed)
    return await beside(partial(transactions.import_rows, call, body, sent, partial(to_response, listed)))
