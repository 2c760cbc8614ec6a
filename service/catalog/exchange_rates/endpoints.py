"""Operations on exchange rates."""

from typing import Annotated

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.catalog.exchange_rates.schemas import (
    ExchangeRate,
    ExchangeRateInput,
    ExchangeRatePage,
    ExchangeRatePatch,
    ExchangeRateQuery,
)
from service.catalog.face import (
    CHANGED,
    CREATED,
    DELETED,
    READ,
    Face,
    IfNoneMatch,
    RowId,
)
from service.catalog.nouns import EXCHANGE_RATES
from service.catalog.shapes import RowCopy
from service.kit.http.versions import IfMatch
from service.kit.http.web import api_router

router = api_router("/v1/exchange-rates", tag="exchange-rates")


@router.get("", response_model=ExchangeRatePage, responses=READ)
def list_exchange_rates(
    face: Face, caller: Caller, query: Annotated[ExchangeRateQuery, Query()], if_none_match: IfNoneMatch = ""
) -> Response:
    """A page of the exchange rates that match every filter."""
    return face.list(EXCHANGE_RATES, caller.tenant_id, query, if_none_match)


@router.post("", status_code=201, response_model=ExchangeRate, responses=CREATED)
def create_exchange_rate(face: Face, call: WriteCall, body: ExchangeRateInput) -> Response:
    """Create an exchange rate under an id that is free."""
    return face.create(EXCHANGE_RATES, call, body)


@router.get("/{id:name}", response_model=ExchangeRate, responses=READ)
def get_exchange_rate(face: Face, caller: Caller, id: RowId, if_none_match: IfNoneMatch = "") -> Response:
    """The current version of an exchange rate."""
    return face.get(EXCHANGE_RATES, caller.tenant_id, id, if_none_match)


@router.patch("/{id:name}", response_model=ExchangeRate, responses=CHANGED)
def update_exchange_rate(
    face: Face, call: WriteCall, id: RowId, body: ExchangeRatePatch, if_match: IfMatch = ""
) -> Response:
    """Change members of an exchange rate, if it is still at the version of the ETag."""
    return face.change(EXCHANGE_RATES, call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=DELETED)
def delete_exchange_rate(face: Face, call: WriteCall, id: RowId, if_match: IfMatch = "") -> Response:
    """Delete an exchange rate that no row refers to, if it is still at the version of the ETag."""
    return face.delete(EXCHANGE_RATES, call, id, if_match)


@router.post("/{id:name}:copy", status_code=201, response_model=ExchangeRate, responses=CREATED)
def copy_exchange_rate(face: Face, call: WriteCall, id: RowId, body: RowCopy) -> Response:
    """Copy an exchange rate into the tenant's own rows; under the id of a shipped one it takes its place."""
    return face.copy(EXCHANGE_RATES, call, id, body)
