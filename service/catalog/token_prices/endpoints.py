"""Operations on token prices."""

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
from service.catalog.nouns import TOKEN_PRICES
from service.catalog.shapes import RowCopy
from service.catalog.token_prices.importing import answer, known_models, read_list, store_list
from service.catalog.token_prices.schemas import (
    ImportedTokenPrices,
    TokenPrice,
    TokenPriceImport,
    TokenPriceInput,
    TokenPricePage,
    TokenPricePatch,
    TokenPriceQuery,
)
from service.kit.http.versions import IfMatch
from service.kit.http.web import LargeAside, WorkAside, api_router

router = api_router("/v1/token-prices", tag="token-prices")


@router.get("", response_model=TokenPricePage, responses=READ)
def list_token_prices(
    face: Face, caller: Caller, query: Annotated[TokenPriceQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the token prices that match every filter."""
    return face.list(TOKEN_PRICES, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=TokenPrice, responses=CREATED)
def create_token_price(face: Face, call: WriteCall, body: TokenPriceInput) -> Response:
    """Create a token price under an id that is free."""
    return face.create(TOKEN_PRICES, call, body)


@router.get("/{id:name}", response_model=TokenPrice, responses=READ)
def get_token_price(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of a token price."""
    return face.get(TOKEN_PRICES, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=TokenPrice, responses=CHANGED)
def update_token_price(
    face: Face, call: WriteCall, id: RowId, body: TokenPricePatch, if_match: IfMatch = ""
) -> Response:
    """Change members of a token price, if it is still at the version of the ETag."""
    return face.change(TOKEN_PRICES, call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_token_price(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete a token price that no row refers to, if it is still at the version of the ETag."""
    return face.delete(TOKEN_PRICES, call, id, if_match)


@router.post(":import", response_model=ImportedTokenPrices, responses=IMPORTED)
async def import_token_prices(
    face: Face, call: WriteCall, aside: WorkAside, beside: LargeAside, body: TokenPriceImport
) -> Response:
    """Create or version the token prices of a list in the format of its publisher, all or none of them."""
    tenant_id = call.subject.tenant_id
    models = await run_in_threadpool(face.read, lambda session: known_models(session, tenant_id))
    listed = await aside(partial(read_list, body, models))
    store = partial(
        face.import_rows,
        TOKEN_PRICES,
        call,
        body,
        lambda session: store_list(session, tenant_id, body, listed),
        lambda imported: answer(listed, imported),
    )
    return await beside(store)


@router.post("/{id:name}:copy", status_code=201, response_model=TokenPrice, responses=CREATED)
def copy_token_price(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy a token price into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(TOKEN_PRICES, call, id, body)
