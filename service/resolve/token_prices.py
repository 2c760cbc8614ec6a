"""Resolution of list prices of tokens, for comparison with a question."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.charges import UnitPrice
from service.planning.estimates.list_prices import TokenPrices
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.resolve.catalog import CatalogView, KnownTokenPrice, resolve_row
from service.resolve.offer_warnings import warn_of_age
from service.resolve.price_age import find_newest_day, is_used_by_id_only
from service.schemas.estimates import CostEstimateRequest
from service.schemas.references import CatalogModel

_NAMED_PRICES: Final = 10
"""Most token prices that a warning names."""


def resolve_token_prices(
    question: CostEstimateRequest, catalog: CatalogView, notes: AnswerNotes
) -> dict[str, KnownTokenPrice]:
    """Returns the list prices that a question names, else the current ones of its model, by id."""
    return dict(sorted(dict(_resolve_list_prices(question, catalog, notes)).items()))


def _resolve_list_prices(
    question: CostEstimateRequest, catalog: CatalogView, notes: AnswerNotes
) -> Iterator[tuple[str, KnownTokenPrice]]:
    if question.token_price_ids is not MISSING:
        for place, name in enumerate(question.token_price_ids):
            pointer = f"/token_price_ids/{place}"
            price = resolve_row(catalog.token_prices, name, pointer)
            notes.cite(price.source, pointer)
            warn_of_age(notes, price.as_of, pointer, on=now().date())
            yield name, price
        return
    for name, price in _list_prices_of_model(question, catalog):
        if not is_used_by_id_only(price, catalog):
            notes.cite(price.source, "/model")
            yield name, price


def _list_prices_of_model(
    question: CostEstimateRequest, catalog: CatalogView
) -> Iterator[tuple[str, KnownTokenPrice]]:
    if isinstance(question.model, CatalogModel):
        model_id = catalog.models[question.model.id].source["id"]
        yield from catalog.token_prices.list_of_key("model_id", model_id).items()


def warn_of_old_token_prices(question: CostEstimateRequest, catalog: CatalogView, notes: AnswerNotes) -> None:
    """Warns of token prices that a question names in spite of their age, or that are left out for it."""
    newest = find_newest_day(catalog, "token_prices").isoformat()
    reason = f"more than a year older than the newest of the catalog, of {newest}"
    if question.token_price_ids is not MISSING:
        for place, name in enumerate(question.token_price_ids):
            price = catalog.token_prices[name]
            if is_used_by_id_only(price, catalog):
                detail = (
                    f"the token price of {price.as_of} is {reason}; only a question that names it uses it"
                )
                notes.warn("TOKEN_PRICE_OLD", f"/token_price_ids/{place}", detail)
        return
    prices = _list_prices_of_model(question, catalog)
    left = sorted(name for name, price in prices if is_used_by_id_only(price, catalog))
    if left:
        more = f" and {len(left) - _NAMED_PRICES} more" if len(left) > _NAMED_PRICES else ""
        detail = (
            f"token prices are left out, since they are {reason}; name them under token_price_ids to compare "
            f"them: {', '.join(left[:_NAMED_PRICES])}{more}"
        )
        notes.warn("TOKEN_PRICE_OLD", "/token_price_ids", detail)


def to_token_prices(known: KnownTokenPrice) -> TokenPrices:
    """Returns list prices as planning values."""

    def build_price(amount: Decimal) -> UnitPrice:
        return UnitPrice(amount, known.currency_code, f"list of {known.as_of}", EvidenceBasis.REFERENCE)

    cached = known.cached_input_per_million
    return TokenPrices(
        build_price(known.input_per_million),
        build_price(known.output_per_million),
        None if cached is None else build_price(cached),
    )
