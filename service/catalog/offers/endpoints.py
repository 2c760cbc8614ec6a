"""Operations on offers."""

from functools import partial
from typing import Annotated

from fastapi import Query, Response
from starlette.concurrency import run_in_threadpool

from service.audit.service import Caller, WriteCall
from service.catalog.face import (
    CHANGED,
    CREATED,
    DELETED,
    IMPORTED,
    READ,
    Face,
    IfNoneMatch,
    RowId,
)
from service.catalog.nouns import OFFERS
from service.catalog.offers.importing import answer, known_accelerators, read_list, store_list
from service.catalog.offers.schemas import (
    ImportedOffers,
    Offer,
    OfferImport,
    OfferInput,
    OfferPage,
    OfferPatch,
    OfferQuery,
)
from service.catalog.shapes import RowCopy
from service.kit.http.versions import IfMatch
from service.kit.http.web import LargeAside, WorkAside, api_router

router = api_router("/v1/offers", tag="offers")


@router.get("", response_model=OfferPage, responses=READ)
def list_offers(
    face: Face, caller: Caller, query: Annotated[OfferQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the offers that match every filter."""
    return face.list(OFFERS, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=Offer, responses=CREATED)
def create_offer(face: Face, call: WriteCall, body: OfferInput) -> Response:
    """Create an offer under an id that is free."""
    return face.create(OFFERS, call, body)


@router.get("/{id:name}", response_model=Offer, responses=READ)
def get_offer(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of an offer."""
    return face.get(OFFERS, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=Offer, responses=CHANGED)
def update_offer(
    face: Face, call: WriteCall, id: RowId, body: OfferPatch, if_match: IfMatch = ""
) -> Response:
    """Change members of an offer, if it is still at the version of the ETag."""
    return face.change(OFFERS, call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_offer(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete an offer that no row refers to, if it is still at the version of the ETag."""
    return face.delete(OFFERS, call, id, if_match)


@router.post(":import", response_model=ImportedOffers, responses=IMPORTED)
async def import_offers(
    face: Face, call: WriteCall, aside: WorkAside, beside: LargeAside, body: OfferImport
) -> Response:
    """Create or version the offers of a price list in the format of its publisher, all or none of them."""
    tenant_id = call.subject.tenant_id
    accelerators = await run_in_threadpool(face.read, lambda session: known_accelerators(session, tenant_id))
    listed = await aside(partial(read_list, body, body.content, accelerators))
    store = partial(
        face.import_rows,
        OFFERS,
        call,
        body,
        lambda session: store_list(session, tenant_id, body, listed),
        lambda imported: answer(listed, imported),
    )
    return await beside(store)


@router.post("/{id:name}:copy", status_code=201, response_model=Offer, responses=CREATED)
def copy_offer(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy an offer into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(OFFERS, call, id, body)
