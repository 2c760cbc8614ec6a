"""Runs and months after which bought devices have paid themselves back against the rent."""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from service.planning.cost import PurchaseSaving, break_even_months, break_even_runs, runs_per_month
from service.planning.cost.charges import CurrencyCharges
from service.planning.cost.terms import OwnershipTerms
from service.planning.estimates.ownership import OwnershipCost
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity, combine, inverted, weakest

BreakEvenPart = Literal["purchase", "running_costs", "financing", "electricity"]
"""Parts of the cost of ownership that are set against the rent."""


class BreakEven(NamedTuple):
    """Runs and months until a purchase has paid itself back, under an assumption; None where it may never."""

    counts: tuple[BreakEvenPart, ...]
    utilization: float
    runs: Quantity | None = None
    months: Quantity | None = None


def find_incomparable(rent: CurrencyCharges | None, other: CurrencyCharges | None) -> tuple[str, str] | None:
    """Returns code and detail of the reason why the rent and the other amount do not compare.

    None if they do.
    """
    if not rent or not other:
        return None
    if rent.currency_code != other.currency_code:
        return "CURRENCY_MISMATCH", "the amounts are in different currencies"
    if not rent.low:
        return "RENT_ZERO", "a run that costs nothing never pays a purchase back"
    return None


def estimate_break_even_runs(rent: CurrencyCharges, bought: CurrencyCharges) -> Quantity:
    """Returns the number of runs whose rent equals the purchase: purchase over rent."""
    return combine(lambda r, b: break_even_runs(b, r), inverted(rent.quantity), bought.quantity)


def estimate_saving(
    hours: Quantity, rent: CurrencyCharges, electricity: CurrencyCharges, facility_kw: Quantity
) -> Quantity:
    """Returns the saving of a device-hour on bought devices: its rent less its electricity.

    Both grow with the same hours, so that the power alone makes the saving uncertain.
    """
    rent_per_hour = rent.quantity.value / hours.value
    paid_per_hour = combine(
        lambda kw: electricity.quantity.value * kw / facility_kw.value / hours.value, facility_kw
    )
    return combine(lambda paid: rent_per_hour - paid, inverted(paid_per_hour))


def estimate_runs_of_saving(hours: Quantity, saved_per_hour: Quantity, bought: CurrencyCharges) -> Quantity:
    """Returns the runs of so many device-hours that save the purchase; the saving of an hour is above 0."""
    saved = combine(lambda h, s: h * s, hours, saved_per_hour)
    return combine(lambda s, b: break_even_runs(b, s), inverted(saved), bought.quantity)


class _UtilizationAssumption(NamedTuple):
    counts: tuple[BreakEvenPart, ...]
    utilization: float
    running: CurrencyCharges | None = None
    interest_rate: float = 0.0
    electricity: CurrencyCharges | None = None


def estimate_break_even(
    duration: Quantity,
    rent: CurrencyCharges,
    bought: CurrencyCharges,
    notes: AnswerNotes,
    *,
    terms: OwnershipTerms | None = None,
    owned: OwnershipCost | None = None,
    electricity: CurrencyCharges | None = None,
) -> tuple[BreakEven, ...]:
    """Returns runs and months under each assumption of the terms; each assumption adds one cost to the last.

    Amounts are in one currency and the rent is not 0 (:func:`find_incomparable`). ``electricity`` is the cost
    of the electricity of one run. An assumption under which the purchase never pays back is a gap.
    """
    found: list[BreakEven] = []
    for place, assumption in enumerate(_list_assumptions(terms, owned, electricity)):
        break_even = BreakEven(assumption.counts, assumption.utilization)
        months = _count_months(duration, rent, bought, assumption)
        if math.isinf(months[0]):
            detail = "what owning costs is at least the rent that it saves"
            notes.add_gap(f"/break_even/{place}/months", "NEVER", detail)
        elif math.isinf(months[2]):
            detail = "it may be that owning costs as much as the rent"
            notes.add_gap(f"/break_even/{place}/months", "UNBOUNDED", detail)
        else:
            per_month = [runs_per_month(end, assumption.utilization) for end in duration[:3]]
            value, soonest, latest = months
            # The longest runs are the fewest: they save most each.
            runs = (value * per_month[0], soonest * per_month[2], latest * per_month[1])
            basis = weakest(rent.quantity, bought.quantity)
            break_even = break_even._replace(
                months=Quantity(value, min(months), max(months), basis),
                runs=Quantity(runs[0], min(runs), max(runs), basis),
            )
        found.append(break_even)
    return tuple(found)


def _list_assumptions(
    terms: OwnershipTerms | None, owned: OwnershipCost | None, electricity: CurrencyCharges | None
) -> Iterator[_UtilizationAssumption]:
    """Yields the purchase alone on busy devices, then each further assumption added to the ones before."""
    yield _UtilizationAssumption(("purchase",), 1.0)
    found = _UtilizationAssumption(("purchase",), 1.0 if terms is None else terms.utilization)
    if terms is not None and owned is not None:
        if terms.utilization < 1.0:
            yield found
        if owned.running is not None:
            found = found._replace(counts=(*found.counts, "running_costs"), running=owned.running)
            yield found
        rate = terms.yearly.interest_rate
        if rate:
            found = found._replace(counts=(*found.counts, "financing"), interest_rate=rate)
            yield found
    if electricity is not None:
        yield found._replace(counts=(*found.counts, "electricity"), electricity=electricity)


def _count_months(
    duration: Quantity, rent: CurrencyCharges, bought: CurrencyCharges, assumption: _UtilizationAssumption
) -> tuple[float, float, float]:
    """Returns months at the middle, best and worst of all ends.

    Infinite where the purchase never pays back.
    """
    seconds, shortest, longest, _ = duration
    running = assumption.running
    yearly = (0.0,) * 3 if running is None else (running.quantity.value, *running.quantity[1:3])
    power = _find_power_cost(assumption.electricity, duration)

    def compute_months(
        purchase: float, rent: float, lasting: float, electricity: float, per_year: float
    ) -> float:
        saving = PurchaseSaving(rent, electricity, per_year, assumption.interest_rate)
        return break_even_months(purchase, saving, runs_per_month(lasting, assumption.utilization))

    paid, price = rent.quantity, bought.quantity
    return (
        compute_months(price.value, paid.value, seconds, power[0], yearly[0]),
        compute_months(price.low, paid.high, longest, power[1], yearly[1]),
        compute_months(price.high, paid.low, shortest, power[2], yearly[2]),
    )


def _find_power_cost(electricity: CurrencyCharges | None, duration: Quantity) -> tuple[float, float, float]:
    """Returns the electricity of a run at the value, at its longest with least power, and the reverse.

    The ends of ``electricity`` are the shortest run at the least power and the longest run at the most.
    """
    if electricity is None:
        return 0.0, 0.0, 0.0
    value, low, high, _ = electricity.quantity
    stretch = duration.high / duration.low
    return (
        value,
        min(value * duration.high / duration.value, low * stretch),
        max(value * duration.low / duration.value, high / stretch),
    )
