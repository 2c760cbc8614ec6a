"""Resolution of list prices of tokens, for comparison with a question."""

from collections.abc import Iterator
from decimal import Decimal

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.charges import UnitPrice
from service.planning.estimates.list_prices import TokenPrices
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.resolve.catalog import CatalogView, KnownTokenPrice, resolve_row
from service.resolve.offer_warnings import warn_of_age
from service.schemas.estimates import CostEstimateRequest
from service.schemas.references import CatalogModel


def resolve_token_prices(
    question: CostEstimateRequest, catalog: CatalogView, notes: AnswerNotes
) -> dict[str, KnownTokenPrice]:
    """Returns the list prices that a question names, or those of its model, in the order of their ids."""
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
    elif isinstance(question.model, CatalogModel):
        model_id = catalog.models[question.model.id].source["id"]
        for name, price in catalog.token_prices.items():
            if price.model_id == model_id:
                notes.cite(price.source, "/model")
                yield name, price


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
