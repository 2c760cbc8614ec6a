"""List prices of tokens as litellm publishes them (``model_prices_and_context_window.json``).

An object by model: ``input_cost_per_token``, ``output_cost_per_token`` and ``cache_read_input_token_cost`` in
USD, ``litellm_provider`` and ``mode``. Read are models that generate tokens; ``sample_spec`` describes the
format. Prices of other tiers (batch, priority, long contexts) are not read.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from service.formats.offers.listed import (
    ListedSource,
    RefusedOffer,
    RowError,
    build_slug,
    parse_document,
    parse_price,
    parse_text,
)
from service.planning.errors import PlanningError

_MILLION: Final = 1_000_000
_MODES: Final = frozenset({"chat", "completion", "responses"})
_EXPLANATION: Final = "sample_spec"


class ListedTokenPrice(NamedTuple):
    """A provider's price of a million tokens of a model."""

    id: str
    pointer: str
    provider: str
    model_name: str
    model_id: str | None
    input_per_million: Decimal
    output_per_million: Decimal
    cached_input_per_million: Decimal | None
    note: str | None
    currency_code: str = "USD"
    as_of: str | None = None
    source: ListedSource | None = None


class ReadTokenPrices(NamedTuple):
    """Prices that were read, and refused ones; ``rows`` counts the models of the list."""

    prices: tuple[ListedTokenPrice, ...]
    refused: tuple[RefusedOffer, ...]
    rows: int


def token_prices_from_litellm(
    content: str, *, provider: str | None, models: Mapping[str, str]
) -> ReadTokenPrices:
    """The token prices of a litellm list, or those of one provider; raises PlanningError if it is none.

    ``models`` leads from names of models in lower case to ids of the catalog.
    """
    listed = parse_document(content)
    if not isinstance(listed, Mapping) or not any(_is_model(entry) for entry in listed.values()):
        raise PlanningError("FORMAT", "/content", "the document names no litellm_provider")
    prices: dict[str, ListedTokenPrice] = {}
    refused: list[RefusedOffer] = []
    rows = 0
    for name, entry in _select_provider(provider, listed):
        rows += 1
        try:
            price = _read_price(name, entry, models)
        except RowError as error:
            refused.append(RefusedOffer(_build_pointer(name), error.code, error.detail))
            continue
        if prices.setdefault(price.id, price) is not price:
            detail = "another model of the list has the same id"
            refused.append(RefusedOffer(price.pointer, "CONTRADICTS_ANOTHER_ROW", detail))
    return ReadTokenPrices(tuple(prices.values()), tuple(refused), rows)


def _is_model(entry: object) -> bool:
    return isinstance(entry, Mapping) and "litellm_provider" in entry


def _select_provider(provider: str | None, listed: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, entry in listed.items():
        asked = isinstance(entry, Mapping) and entry.get("litellm_provider") == provider
        if name != _EXPLANATION and (provider is None or asked):
            yield name, entry


def _build_pointer(name: str) -> str:
    return "/" + name[:100].replace("~", "~0").replace("/", "~1")


def _read_price(name: str, entry: object, models: Mapping[str, str]) -> ListedTokenPrice:
    if not isinstance(entry, Mapping):
        raise RowError("NOT_A_MODEL", "the entry is not an object")
    if entry.get("mode") not in _MODES:
        raise RowError("NOT_TOKENS", "the model does not generate tokens")
    provider = parse_text(entry.get("litellm_provider"))
    if provider is None:
        raise RowError("PROVIDER_MISSING", "the model has no provider")
    model_name = parse_text(name.removeprefix(f"{provider}/"))
    if model_name is None:
        raise RowError("TEXT_INVALID", "the model has no name")
    cached = entry.get("cache_read_input_token_cost")
    short = model_name.rpartition("/")[2].lower()
    tiered = any(str(member).startswith("input_cost_per_token_above_") for member in entry)
    return ListedTokenPrice(
        id=build_slug(provider, model_name),
        pointer=_build_pointer(name),
        provider=provider,
        model_name=model_name,
        model_id=models.get(model_name.lower()) or models.get(short),
        input_per_million=_convert_per_million(entry.get("input_cost_per_token")),
        output_per_million=_convert_per_million(entry.get("output_cost_per_token")),
        cached_input_per_million=_convert_per_million(cached) if cached else None,
        note="Long inputs cost more." if tiered else None,
    )


def _convert_per_million(cost: object) -> Decimal:
    if cost is None or isinstance(cost, bool) or not isinstance(cost, Decimal | int):
        raise RowError("PRICE_MISSING", "the model has no price of a token")
    return parse_price(str(Decimal(cost) * _MILLION))
