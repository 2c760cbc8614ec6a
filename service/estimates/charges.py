"""Charges of a run: one line each, and what they amount to at the ends of their quantity's interval."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

from pydantic import MISSING

from service.estimates.run import Run
from service.planning.cost import charge
from service.planning.errors import PlanningError
from service.planning.quantity import Basis, Quantity, scaled, weakest
from service.planning.units import HOUR_SECONDS
from service.planning.workload import InferenceWorkload, TrainingWorkload
from service.schemas.answer import money
from service.schemas.base import Line, MoneyInput, MoneyQuantity
from service.schemas.notes import Notes
from service.schemas.rental import PriceRange

GIVEN = "given with the question"
UNIT_PRICE_DIGITS = Decimal("0.000001")
"""A price per unit is finer than the minor unit of its currency."""
REQUEST_PRICE_DIGITS = Decimal("0.000000001")
Category = Literal["usage", "purchase", "tax", "credit"]


class Price(NamedTuple):
    """A unit price, where it comes from and, where it is not one number, its ends."""

    amount: Decimal
    currency_code: str
    source: str
    basis: Basis
    low: Decimal | None = None
    high: Decimal | None = None

    @property
    def ends(self) -> tuple[Decimal, Decimal, Decimal]:
        """Value, low and high."""
        low = self.amount if self.low is None else self.low
        return self.amount, low, self.amount if self.high is None else self.high

    def times(self, factor: float | MISSING) -> "Price":
        """The price multiplied by a factor of the question, if there is one."""
        if factor is MISSING:
            return self
        amount, low, high = (end * Decimal(repr(factor)) for end in self.ends)
        return self._replace(amount=amount, low=low, high=high, source=f"{self.source}, times {factor:.6g}")

    def divided(self, parts: int) -> "Price":
        """The price of one of equal parts."""
        amount, low, high = (end / parts for end in self.ends)
        return self._replace(amount=amount, low=low, high=high)


class Charges(NamedTuple):
    """Lines in one currency and their sum, with its ends."""

    lines: list[Line]
    amount: Decimal
    low: Decimal
    high: Decimal
    currency_code: str
    basis: Basis

    @property
    def total(self) -> MoneyQuantity:
        """The headline amount."""
        return money(self.amount, self.low, self.high, self.currency_code, self.basis)

    @property
    def quantity(self) -> Quantity:
        """The sum as a number, for ratios."""
        return Quantity(float(self.amount), float(self.low), float(self.high), self.basis)

    def per_million(self, count: Quantity) -> MoneyQuantity:
        """What a million of ``count`` units costs."""
        return self.per(count, 1_000_000)

    def per(
        self, count: Quantity, units: int = 1, share: float = 1.0, digits: Decimal = UNIT_PRICE_DIGITS
    ) -> MoneyQuantity:
        """What ``units`` of ``count`` cost, where they bear a ``share`` of the sum."""
        amounts = (self.amount, self.low, self.high)
        counts = (count.value, count.high, count.low)
        part = Decimal(units) if share == 1.0 else Decimal(units) * Decimal(share)
        amount, low, high = (
            (end * part / Decimal(number)).quantize(digits)
            for end, number in zip(amounts, counts, strict=True)
        )
        return money(amount, low, high, self.currency_code, weakest(self.quantity, count))


def given_price(price: MoneyInput, ends: PriceRange | MISSING = MISSING, at: str = "") -> Price:
    """A price of the question, with its ends where it has any; ``at`` names the member of these."""
    amount = Decimal(price.amount)
    if ends is MISSING:
        return Price(amount, price.currency_code, GIVEN, Basis.ASSUMED)
    low, high = Decimal(ends.low), Decimal(ends.high)
    if not low <= amount <= high:
        raise PlanningError("PRICE_RANGE", at, "the price lies outside its range")
    return Price(amount, price.currency_code, GIVEN, Basis.ASSUMED, low, high)


def charges(
    price: Price, unit: str, *quantities: tuple[str, Quantity], category: Category | None = None
) -> Charges:
    """One line for each named quantity at one unit price.

    The ends of a quantity are those at the ends of what it follows from, in either order.
    """
    currency = price.currency_code
    lines: list[Line] = []
    totals = [Decimal(0)] * 3
    for name, quantity in quantities:
        ends = (quantity.value, quantity.low, quantity.high)
        amounts = [
            charge(end, unit_price, currency) for end, unit_price in zip(ends, price.ends, strict=True)
        ]
        totals = [total + amount for total, amount in zip(totals, amounts, strict=True)]
        line: Line = {
            "name": name,
            "quantity": quantity.value,
            "unit": unit,
            "unit_price": {"amount": f"{price.amount:f}", "currency_code": currency},
            "amount": {"amount": f"{amounts[0]:f}", "currency_code": currency},
            "source": price.source,
        }
        if category:
            line["category"] = category
        lines.append(line)
    basis = weakest(
        *(quantity for _, quantity in quantities),
        Quantity(float(price.amount), float(price.ends[1]), float(price.ends[2]), price.basis),
    )
    return _summed(lines, totals, currency, basis)


def _summed(lines: list[Line], totals: Sequence[Decimal], currency: str, basis: Basis) -> Charges:
    amount, low, high = totals
    # Lines round on their own, so that nearly equal ends may pass each other by a minor unit.
    return Charges(lines, amount, min(low, amount), max(high, amount), currency, basis)


def added(parts: Iterable[Charges | None]) -> Charges | None:
    """All lines and their sum; None where there are none. Parts are in one currency."""
    known = [part for part in parts if part]
    if not known:
        return None
    lines = [line for part in known for line in part.lines]
    ends = [(part.amount, part.low, part.high) for part in known]
    totals = [sum(amounts, Decimal(0)) for amounts in zip(*ends, strict=True)]
    basis = weakest(*(part.quantity for part in known))
    return _summed(lines, totals, known[0].currency_code, basis)


def in_one_currency(parts: Sequence[Charges | None], notes: Notes, pointer: str) -> bool:
    """Whether amounts may be added or compared; if not, ``pointer`` is a gap."""
    if len({part.currency_code for part in parts if part}) <= 1:
        return True
    notes.gap(pointer, "CURRENCY_MISMATCH", "the amounts are in different currencies")
    return False


def device_hours(run: Run) -> Quantity | None:
    """Hours of all devices together; refuses a question that does not say how long the run lasts."""
    workload = run.resolved.workload
    if isinstance(workload, TrainingWorkload) and run.resolved.total_tokens is None:
        raise PlanningError(
            "TOTAL_REQUIRED", "/workload/total_tokens", "give total_tokens, total_steps or total_samples"
        )
    if isinstance(workload, InferenceWorkload) and workload.horizon is None:
        raise PlanningError(
            "HORIZON_REQUIRED", "/workload/horizon", "a cost needs to know how long the service runs"
        )
    if run.duration_seconds is None:
        return None
    devices = float(run.cluster.accelerator_count)
    return scaled(run.duration_seconds, devices / HOUR_SECONDS)
