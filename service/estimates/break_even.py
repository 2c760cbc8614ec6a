"""After how many runs and months bought devices have paid themselves back against the rent."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.charges import Charges
from service.estimates.ownership import Owned
from service.planning.cost import Saving, break_even_months, break_even_runs, runs_per_month
from service.planning.quantity import Quantity, combine, inverted, weakest
from service.schemas.answer import quantity
from service.schemas.base import QuantityAnswer
from service.schemas.cost_answers import BreakEven, Counted
from service.schemas.estimates import CostQuestion
from service.schemas.notes import Notes


def incomparable(rented: Charges | None, other: Charges | None) -> tuple[str, str] | None:
    """Why the rent cannot be set against another amount, if so."""
    if not rented or not other:
        return None
    if rented.currency_code != other.currency_code:
        return "CURRENCY_MISMATCH", "the amounts are in different currencies"
    if not rented.low:
        return "RENT_ZERO", "a run that costs nothing never pays a purchase back"
    return None


def runs_of_purchase(rented: Charges, bought: Charges) -> Quantity:
    """Purchase over rent."""
    return combine(lambda r, b: break_even_runs(b, r), inverted(rented.quantity), bought.quantity)


class _Assumption(NamedTuple):
    counts: list[Counted]
    utilization: float
    running: Charges | None = None
    interest_rate: float = 0.0
    electricity: Charges | None = None


def break_even(
    question: CostQuestion,
    duration: Quantity,
    rented: Charges,
    bought: Charges,
    notes: Notes,
    *,
    owned: Owned | None = None,
    electricity: Charges | None = None,
    at: str = "/break_even",
) -> list[BreakEven]:
    """Runs and months under each assumption that the question makes, one added to the other.

    Amounts are in one currency and the rent is not 0 (:func:`incomparable`). ``electricity`` is that of a
    run. What never pays back is a gap below ``at``.
    """
    answers: list[BreakEven] = []
    for place, assumption in enumerate(_assumptions(question, owned, electricity)):
        answer: BreakEven = {"counts": assumption.counts, "utilization": assumption.utilization}
        months = _months(duration, rented, bought, assumption)
        if math.isinf(months[0]):
            detail = "what owning costs is at least the rent that it saves"
            notes.gap(f"{at}/{place}/months", "NEVER", detail)
        elif math.isinf(months[2]):
            notes.gap(f"{at}/{place}/months", "UNBOUNDED", "it may be that owning costs as much as the rent")
        else:
            answer["months"] = _answered(months, rented, bought)
            per_month = [runs_per_month(end, assumption.utilization) for end in duration[:3]]
            value, soonest, latest = months
            # The longest runs are the fewest: they save most each.
            runs = (value * per_month[0], soonest * per_month[2], latest * per_month[1])
            answer["runs"] = _answered(runs, rented, bought)
        answers.append(answer)
    return answers


def _answered(ends: tuple[float, float, float], rented: Charges, bought: Charges) -> QuantityAnswer:
    value = ends[0]
    basis = weakest(rented.quantity, bought.quantity)
    return quantity(Quantity(value, min(ends), max(ends), basis))


def _assumptions(
    question: CostQuestion, owned: Owned | None, electricity: Charges | None
) -> Iterator[_Assumption]:
    """The purchase alone on busy devices; then at the given utilization, with all that owning costs."""
    yield _Assumption(["purchase"], 1.0)
    given = MISSING if question.purchase is MISSING else question.purchase.ownership
    found = _Assumption(["purchase"], 1.0 if given is MISSING else given.utilization)
    if given is not MISSING and owned is not None:
        if given.utilization < 1.0:
            yield found
        if owned.running is not None:
            found = found._replace(counts=[*found.counts, "running_costs"], running=owned.running)
            yield found
        if given.interest_rate:
            found = found._replace(counts=[*found.counts, "financing"], interest_rate=given.interest_rate)
            yield found
    if electricity is not None:
        yield found._replace(counts=[*found.counts, "electricity"], electricity=electricity)


def _months(
    duration: Quantity, rented: Charges, bought: Charges, assumption: _Assumption
) -> tuple[float, float, float]:
    """Months at the middle, at the best and at the worst of all ends; infinite where never."""
    seconds, shortest, longest, _ = duration
    running = assumption.running
    yearly = (0.0,) * 3 if running is None else (running.quantity.value, *running.quantity[1:3])
    power = _power(assumption.electricity, duration)

    def months(purchase: float, rent: float, lasting: float, electricity: float, per_year: float) -> float:
        saving = Saving(rent, electricity, per_year, assumption.interest_rate)
        return break_even_months(purchase, saving, runs_per_month(lasting, assumption.utilization))

    rent, price = rented.quantity, bought.quantity
    return (
        months(price.value, rent.value, seconds, power[0], yearly[0]),
        months(price.low, rent.high, longest, power[1], yearly[1]),
        months(price.high, rent.low, shortest, power[2], yearly[2]),
    )


def _power(electricity: Charges | None, duration: Quantity) -> tuple[float, float, float]:
    """Electricity of a run of middle length, of the longest at the least power, of the shortest at the most.

    Its own ends are those of the shortest run at the least power and of the longest at the most.
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
