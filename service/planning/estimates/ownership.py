"""Cost of buying the devices of a run, and the share of each year's cost that the run bears."""

from decimal import Decimal
from typing import NamedTuple

from service.planning.cost import round_amount, share_of_year, used_device_hours, yearly_cost
from service.planning.cost.charges import (
    GIVEN,
    CurrencyCharges,
    UnitPrice,
    add_charges,
    charge_quantities,
    sum_charges,
)
from service.planning.cost.currencies import TotalCurrency
from service.planning.cost.terms import OwnershipTerms, PurchaseTerms
from service.planning.errors import PlanningError
from service.planning.estimates.device_hours import estimate_device_hours
from service.planning.estimates.runs import Run
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity, assumed, exact, scaled

_RUNNING = ("maintenance", "staff", "space")


class OwnershipCost(NamedTuple):
    """Yearly cost of bought devices, and the run's share of it."""

    yearly: CurrencyCharges
    running: CurrencyCharges | None
    """Part of the yearly cost for maintenance, staff and space, whatever the devices cost."""
    run: CurrencyCharges | None
    """Share of the run; None where the duration is not known."""
    device_hours: Quantity
    """Used device-hours of a year."""


def charge_purchase(
    terms: PurchaseTerms, currencies: TotalCurrency, notes: AnswerNotes
) -> CurrencyCharges | None:
    """Returns the cost of the purchase.

    None without an exchange rate or with prices in several currencies.
    """
    parts = []
    for name, price, unit, number in terms.parts:
        exchanged = currencies.exchange_price(price, "/purchase/total", notes)
        if exchanged is None:
            return None
        parts.append(charge_quantities(exchanged, unit, (name, assumed(number)), category="purchase"))
    if len({part.currency_code for part in parts}) > 1:
        notes.add_gap("/purchase/total", "CURRENCY_MISMATCH", "the amounts are in different currencies")
        return None
    return sum_charges(parts)


def estimate_ownership(
    run: Run, terms: OwnershipTerms, bought: CurrencyCharges, currencies: TotalCurrency
) -> OwnershipCost | None:
    """Returns the cost of ownership per year and of the run; None without an exchange rate."""
    prices = _list_yearly_prices(terms, bought, currencies, run.notes)
    if prices is None:
        return None
    year, hours = exact(1.0), estimate_device_hours(run)
    found = {name: charge_quantities(price, "year", (name, year)) for name, price in prices.items()}
    yearly = add_charges(*found.values())
    devices, utilization = float(run.case.cluster.accelerator_count), terms.utilization
    used = assumed(used_device_hours(devices, utilization))
    share = hours and scaled(hours, share_of_year(1.0, devices, utilization))
    borne = share and sum_charges(
        charge_quantities(price, "year", (name, share)) for name, price in prices.items()
    )
    return OwnershipCost(yearly, sum_charges(found.get(name) for name in _RUNNING), borne, used)


def estimate_device_hour_cost(
    terms: PurchaseTerms, devices: int, currencies: TotalCurrency, notes: AnswerNotes
) -> Decimal | None:
    """Returns the cost of ownership per used device-hour; None where it is not known."""
    bought = charge_purchase(terms, currencies, notes)
    if bought is None or terms.ownership is None:
        return None
    prices = _list_yearly_prices(terms.ownership, bought, currencies, notes)
    if prices is None:
        return None
    used = used_device_hours(float(devices), terms.ownership.utilization)
    return sum((price.amount for price in prices.values()), Decimal(0)) / Decimal(used)


def _list_yearly_prices(
    terms: OwnershipTerms, bought: CurrencyCharges, currencies: TotalCurrency, notes: AnswerNotes
) -> dict[str, UnitPrice] | None:
    """Returns the amounts of a year by purpose, each at the ends of the purchase."""
    costs = [yearly_cost(end, terms.yearly) for end in (bought.amount, bought.low, bought.high)]
    prices, currency = {}, bought.currency_code
    for name, *amounts in zip(costs[0]._fields, *costs, strict=True):
        value, low, high = (round_amount(amount, currency) for amount in amounts)
        if high or name == "depreciation":
            prices[name] = UnitPrice(value, currency, GIVEN, EvidenceBasis.ASSUMED, low, high)
    for name, given in (("staff", terms.staff_per_year), ("space", terms.space_per_year)):
        if given is None:
            continue
        price = currencies.exchange_price(given, "/ownership/total", notes)
        if price is None:
            return None
        if price.currency_code != currency:
            pointer = f"/purchase/ownership/{name}_per_year/currency_code"
            raise PlanningError("CURRENCY_MISMATCH", pointer, "must be the currency of the purchase")
        prices[name] = price
    return prices
