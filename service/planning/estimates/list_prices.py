"""Cost of the tokens of a served model at the list prices of providers."""

from typing import NamedTuple

from service.planning.cost.charges import CurrencyCharges, UnitPrice, charge_quantities, sum_charges
from service.planning.cost.currencies import TotalCurrency
from service.planning.estimates.runs import ForwardPassRun, ServingRun
from service.planning.quantity import Quantity, combine, inverted, scaled
from service.planning.units import MILLION


class TokenPrices(NamedTuple):
    """Prices of a million tokens; ``cached_inputs`` is that of tokens in a prefix cache, if it differs."""

    inputs: UnitPrice
    outputs: UnitPrice
    cached_inputs: UnitPrice | None = None


class ListCost(NamedTuple):
    """Cost of the tokens of a run at list prices."""

    total: CurrencyCharges
    ratio: Quantity | None = None
    """Cost of the run over the list cost; None where the two do not compare."""


def estimate_list_cost(
    run: ServingRun | ForwardPassRun,
    prices: TokenPrices,
    total: CurrencyCharges | None,
    currencies: TotalCurrency,
    gap_at: str,
) -> ListCost | None:
    """Returns the cost of the run's tokens at list prices, compared with ``total``.

    None where it is not known.
    """
    listed = _charge_tokens(run, prices, currencies, gap_at)
    if listed is None:
        return None
    if total is None or not listed.low or listed.currency_code != total.currency_code:
        return ListCost(listed)
    ratio = combine(lambda own, other: own / other, total.quantity, inverted(listed.quantity))
    return ListCost(listed, ratio)


def _charge_tokens(
    run: ServingRun | ForwardPassRun, prices: TokenPrices, currencies: TotalCurrency, gap_at: str
) -> CurrencyCharges | None:
    """Charges the tokens at list prices; those found in a prefix cache at their own price."""
    case, cached = run.case, prices.cached_inputs
    if run.requests is None:
        return None
    hits = 0.0 if cached is None else case.load.prefix_hit_rate
    parts = [
        ("input_tokens", prices.inputs, case.prompt_tokens * (1.0 - hits)),
        ("output_tokens", prices.outputs, case.workload.output_tokens),
    ]
    if cached is not None and hits:
        parts.append(("cached_input_tokens", cached, case.prompt_tokens * hits))
    found = []
    for name, listed, each in parts:
        price = currencies.exchange_price(listed, gap_at, run.notes)
        if price is None:
            return None
        million = scaled(run.requests, each / MILLION)
        found.append(charge_quantities(price, "million_tokens", (name, million)))
    return sum_charges(found)
