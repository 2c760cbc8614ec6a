"""Files of dated token prices that their keeper fills row by row, each with its source.

``provider``, ``model``, ``input_per_million``, ``output_per_million``, ``currency``, ``as_of`` and
``source_url``; ``hub_id`` (the model's name at its hub, by which the catalog is searched), ``via``,
``cached_input_per_million``, ``confidence`` and ``licence`` may be left out. Prices are those of the base
tier; columns of batches are not read. Of rows of one model the newest stands.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from service.formats.dated_cells import (
    DatedPrice,
    keep_newest,
    parse_confidence,
    parse_currency,
    parse_day,
    parse_required,
    read_cell,
    read_source,
)
from service.formats.offers.listed import build_slug, parse_price, parse_text, read_table
from service.formats.token_prices import ListedTokenPrice, ReadTokenPrices

COLUMNS: Final = (
    "provider",
    "model",
    "input_per_million",
    "output_per_million",
    "currency",
    "as_of",
    "source_url",
)


def token_prices_from_dated_csv(
    content: str, *, provider: str | None, models: Mapping[str, str]
) -> ReadTokenPrices:
    """The token prices of a file of dated prices, or those of one provider.

    ``models`` leads from names of models in lower case to ids of the catalog. Raises PlanningError if a
    column is missing.
    """
    confidences: dict[str, int] = {}

    def read_price(pointer: str, cells: Mapping[str, str]) -> ListedTokenPrice:
        confidences[pointer] = read_cell(cells, "confidence", parse_confidence)
        return _read_price(pointer, cells, models)

    def describe_price(price: ListedTokenPrice) -> DatedPrice:
        amounts = (price.input_per_million, price.output_per_million, price.cached_input_per_million)
        return DatedPrice(price.id, price.pointer, price.as_of or "", confidences[price.pointer], amounts)

    rows, refused, total = read_table(content, COLUMNS, read_price)
    asked = [price for price in rows if provider is None or price.provider == build_slug(provider)]
    kept, older = keep_newest(asked, describe_price)
    return ReadTokenPrices(tuple(kept), (*refused, *older), total)


def _read_price(pointer: str, cells: Mapping[str, str], models: Mapping[str, str]) -> ListedTokenPrice:
    provider = read_cell(cells, "provider", parse_required)
    model = read_cell(cells, "model", parse_required)
    hub = read_cell(cells, "hub_id", parse_text) or model
    return ListedTokenPrice(
        id=build_slug(provider, model),
        pointer=pointer,
        provider=build_slug(provider),
        model_name=model,
        model_id=models.get(hub.lower()) or models.get(model.lower()),
        input_per_million=read_cell(cells, "input_per_million", parse_price),
        output_per_million=read_cell(cells, "output_per_million", parse_price),
        cached_input_per_million=read_cell(cells, "cached_input_per_million", _parse_optional_price),
        note=None,
        currency_code=read_cell(cells, "currency", parse_currency),
        as_of=read_cell(cells, "as_of", parse_day),
        source=read_source(cells, provider),
    )


def _parse_optional_price(text: str) -> Decimal | None:
    return parse_price(text) if text.strip() else None
