"""List prices of tokens beside the cost of a served model, as they are answered."""

from decimal import Decimal

from service.estimates.charges import to_money
from service.planning.cost.charges import CurrencyCharges
from service.planning.cost.currencies import TotalCurrency
from service.planning.estimates import Run, TrainingRun
from service.planning.estimates.list_prices import estimate_list_cost
from service.resolve.catalog import CatalogView, KnownTokenPrice
from service.resolve.token_prices import resolve_token_prices, to_token_prices, warn_of_old_token_prices
from service.schemas.answer import to_quantity
from service.schemas.base import MoneyAmount
from service.schemas.cost_answers import TokenListPrice
from service.schemas.estimates import CostEstimateRequest


def to_list_prices(
    question: CostEstimateRequest,
    run: Run,
    total: CurrencyCharges | None,
    currencies: TotalCurrency,
    catalog: CatalogView,
) -> list[TokenListPrice]:
    """Maps the list prices of a question or of its model; none where no tokens are generated."""
    found = resolve_token_prices(question, catalog, run.notes)
    if isinstance(run, TrainingRun) or run.requests is None or not run.case.workload.output_tokens:
        return []
    warn_of_old_token_prices(question, catalog, run.notes)
    answers: list[TokenListPrice] = []
    for place, (name, known) in enumerate(found.items()):
        answer = _to_list_price(name, known)
        gap_at = f"/list_prices/{place}/total"
        cost = estimate_list_cost(run, to_token_prices(known), total, currencies, gap_at)
        if cost is not None:
            answer["total"] = to_money(cost.total.total)
            if cost.ratio is not None:
                answer["ratio"] = to_quantity(cost.ratio)
        answers.append(answer)
    return answers


def _to_list_price(name: str, price: KnownTokenPrice) -> TokenListPrice:
    def to_amount(amount: Decimal) -> MoneyAmount:
        return {"amount": f"{amount:f}", "currency_code": price.currency_code}

    answer: TokenListPrice = {
        "id": name,
        "provider": price.provider,
        "model": price.model_name,
        "as_of": price.as_of,
        "price_per_million_input_tokens": to_amount(price.input_per_million),
        "price_per_million_output_tokens": to_amount(price.output_per_million),
    }
    if price.cached_input_per_million is not None:
        answer["price_per_million_cached_input_tokens"] = to_amount(price.cached_input_per_million)
    return answer
