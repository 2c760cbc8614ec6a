"""Import of token price lists in other formats as rows of the catalog."""

from collections.abc import Iterator
from typing import Final

from pydantic import MISSING

from service.catalog import repository
from service.catalog.imports import ImportResult, RowImport
from service.catalog.offers.importing import check_as_of, is_older, list_refusals, to_citation, to_money
from service.catalog.registry import MODELS, TOKEN_PRICES
from service.catalog.rows import RowDocument
from service.catalog.token_prices.schemas import (
    ImportedTokenPrices,
    TokenPriceImportRequest,
    TokenPriceRequest,
)
from service.formats.dated_token_prices import token_prices_from_dated_csv
from service.formats.offers.listed import RefusedOffer
from service.formats.providers import get_provider_name
from service.formats.token_prices import ListedTokenPrice, token_prices_from_litellm
from service.formats.token_prices import ReadTokenPrices as ReadList
from service.kit.database.engine import Reader
from service.kit.http.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError

_READERS: Final = {"litellm": token_prices_from_litellm, "dated_csv": token_prices_from_dated_csv}


def list_known_models(session: Reader, tenant_id: str) -> dict[str, str]:
    """Returns the ids of the models that a tenant sees, by every name in lower case."""
    rows = repository.list_visible_rows(session, MODELS, tenant_id)
    return {name.lower(): row["id"] for row in rows for name in (*row["aliases"], row["id"])}


def read_list(body: TokenPriceImportRequest, models: dict[str, str]) -> ReadList:
    """Returns the prices of a list. Raises a 422 problem if the content is no such list."""
    check_as_of(body.as_of)
    provider = None if body.provider is MISSING else body.provider
    try:
        return _READERS[body.format](body.content, provider=provider, models=models)
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The price list cannot be imported", field) from error


def list_rows(tenant_id: str, body: TokenPriceImportRequest, listed: ReadList) -> RowImport:
    """Returns the prices of a list as rows. A price with a later date in the catalog stays."""
    return RowImport(
        resource=TOKEN_PRICES,
        tenant_id=tenant_id,
        list_documents=lambda: (to_document(price, body) for price in listed.prices),
        is_older=is_older,
    )


def to_document(price: ListedTokenPrice, body: TokenPriceImportRequest) -> RowDocument:
    """Returns a price as a row, checked like a row that a caller sends."""
    as_of = price.as_of or body.as_of
    row = {
        "id": price.id,
        "name": f"{get_provider_name(price.provider)} {price.model_name}"[:500],
        "provider": price.provider,
        "model_name": price.model_name,
        "model_id": price.model_id,
        "input_price_per_million_tokens": to_money(price.input_per_million, price.currency_code),
        "output_price_per_million_tokens": to_money(price.output_per_million, price.currency_code),
        "cached_input_price_per_million_tokens": to_money(
            price.cached_input_per_million, price.currency_code
        ),
        "as_of": as_of,
        "note": price.note,
        "sources": [to_citation(price.source, body.source, as_of)],
    }
    given = {name: value for name, value in row.items() if value is not None}
    return TokenPriceRequest.model_validate(given).model_dump(mode="json")


def to_response(listed: ReadList, imported: ImportResult) -> ImportedTokenPrices:
    """Returns the outcome of every model of a list."""
    refused, reasons = list_refusals([*listed.refused, *_list_not_stored(listed, imported)])
    return {
        "created": imported.created,
        "changed": imported.changed,
        "unchanged": imported.unchanged,
        "refused": refused,
        "refused_reasons": reasons,
        "row_count": listed.rows,
    }


def _list_not_stored(listed: ReadList, imported: ImportResult) -> Iterator[RefusedOffer]:
    older, clashing = set(imported.older), set(imported.clashing)
    for price in listed.prices:
        if price.id in older:
            detail = "the catalog has a newer price of this model, or one of the year without a doubt"
            yield RefusedOffer(price.pointer, "OLDER_THAN_CATALOG", detail)
        elif price.id in clashing:
            yield RefusedOffer(price.pointer, "ID_TAKEN", "the id of this price is an alias of another")
