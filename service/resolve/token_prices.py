"""List prices of tokens that a question is compared with."""

from collections.abc import Iterator
from decimal import Decimal

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.charges import Price
from service.planning.estimates.list_prices import TokenPrices
from service.planning.notes import Notes
from service.planning.quantity import Basis
from service.resolve.catalog import CatalogView, KnownTokenPrice, lookup
from service.resolve.offer_warnings import warn_of_age
from service.schemas.estimates import CostQuestion
from service.schemas.references import CatalogModel


def resolve_token_prices(
    question: CostQuestion, catalog: CatalogView, notes: Notes
) -> dict[str, KnownTokenPrice]:
    """The list prices that a question names, or those of its model, by id in order."""
    return dict(sorted(dict(_list_prices(question, catalog, notes)).items()))


def _list_prices(
    question: CostQuestion, catalog: CatalogView, notes: Notes
) -> Iterator[tuple[str, KnownTokenPrice]]:
    if question.token_price_ids is not MISSING:
        for place, name in enumerate(question.token_price_ids):
            pointer = f"/token_price_ids/{place}"
            price = lookup(catalog.token_prices, name, pointer)
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
    """The prices of a list as planning sees them."""

    def price(amount: Decimal) -> Price:
        return Price(amount, known.currency_code, f"list of {known.as_of}", Basis.REFERENCE)

    cached = known.cached_input_per_million
    return TokenPrices(
        price(known.input_per_million),
        price(known.output_per_million),
        None if cached is None else price(cached),
    )
