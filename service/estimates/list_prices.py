"""What providers ask for the tokens that a served model takes and makes, beside what they cost here."""

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.charges import Charges, Price, added, charges
from service.estimates.currencies import Currencies, currencies_of
from service.estimates.offer_warnings import warn_of_age
from service.estimates.run import Run
from service.kit.clock import now
from service.planning.quantity import Basis, Quantity, combine, inverted, scaled
from service.planning.units import MILLION
from service.planning.workload import InferenceWorkload
from service.resolve.catalog import Catalog, KnownTokenPrice
from service.schemas.answer import quantity
from service.schemas.base import MoneyAmount
from service.schemas.cost_answers import ListPrice
from service.schemas.estimates import CostQuestion
from service.schemas.notes import lookup
from service.schemas.references import CatalogModel
from service.schemas.workloads import InferenceWorkloadInput


class _Tokens(NamedTuple):
    """Requests of a run, and tokens of each."""

    requests: Quantity
    inputs: float
    outputs: float
    cached_share: float
    """Of the inputs, found in a prefix cache."""


def list_prices(
    question: CostQuestion, run: Run, charged: Charges | None, catalog: Catalog
) -> list[ListPrice]:
    """The list prices that the question names, or those of its model; none where no tokens are generated."""
    found = dict(_found(question, run, catalog))
    given, workload, requests = question.workload, run.resolved.workload, run.requests
    if not isinstance(given, InferenceWorkloadInput) or not isinstance(workload, InferenceWorkload):
        return []
    if requests is None or not workload.output_tokens:
        return []
    inputs, outputs = float(workload.input_tokens), float(workload.output_tokens)
    tokens = _Tokens(requests, inputs, outputs, given.prefix_cache_hit_rate)
    currencies = currencies_of(question, catalog, run.notes)
    answers: list[ListPrice] = []
    for place, (name, price) in enumerate(sorted(found.items())):
        answer = _stated(name, price)
        total = _total(price, tokens, currencies, f"/list_prices/{place}/total")
        if total is not None:
            answer["total"] = total.total
            if charged is not None and total.low and total.currency_code == charged.currency_code:
                ratio = combine(lambda own, listed: own / listed, charged.quantity, inverted(total.quantity))
                answer["ratio"] = quantity(ratio)
        answers.append(answer)
    return answers


def _found(question: CostQuestion, run: Run, catalog: Catalog) -> Iterator[tuple[str, KnownTokenPrice]]:
    if question.token_price_ids is not MISSING:
        for place, name in enumerate(question.token_price_ids):
            pointer = f"/token_price_ids/{place}"
            price = lookup(catalog.token_prices, name, pointer)
            run.notes.cite(price.source, pointer)
            warn_of_age(run.notes, price.as_of, pointer, on=now().date())
            yield name, price
    elif isinstance(question.model, CatalogModel):
        model_id = catalog.models[question.model.id].source["id"]
        for name, price in catalog.token_prices.items():
            if price.model_id == model_id:
                run.notes.cite(price.source, "/model")
                yield name, price


def _stated(name: str, price: KnownTokenPrice) -> ListPrice:
    def money(amount: Decimal) -> MoneyAmount:
        return {"amount": f"{amount:f}", "currency_code": price.currency_code}

    answer: ListPrice = {
        "id": name,
        "provider": price.provider,
        "model": price.model_name,
        "as_of": price.as_of,
        "price_per_million_input_tokens": money(price.input_per_million),
        "price_per_million_output_tokens": money(price.output_per_million),
    }
    if price.cached_input_per_million is not None:
        answer["price_per_million_cached_input_tokens"] = money(price.cached_input_per_million)
    return answer


def _total(price: KnownTokenPrice, tokens: _Tokens, currencies: Currencies, gap_at: str) -> Charges | None:
    """What the tokens of the run cost by the list; those found in a prefix cache at their own price."""
    cached = price.cached_input_per_million
    hits = 0.0 if cached is None else tokens.cached_share
    parts = [
        ("input_tokens", price.input_per_million, tokens.inputs * (1.0 - hits)),
        ("output_tokens", price.output_per_million, tokens.outputs),
    ]
    if cached is not None and hits:
        parts.append(("cached_input_tokens", cached, tokens.inputs * hits))
    found = []
    for name, amount, each in parts:
        listed = Price(amount, price.currency_code, f"list of {price.as_of}", Basis.REFERENCE)
        exchanged = currencies.price(listed, gap_at)
        if exchanged is None:
            return None
        million = scaled(tokens.requests, each / MILLION)
        found.append(charges(exchanged, "million_tokens", (name, million)))
    return added(found)
