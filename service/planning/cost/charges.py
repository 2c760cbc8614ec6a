"""Charges: quantities at unit prices, and their amounts at the ends of their intervals."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

from service.planning.cost.money import compute_charge
from service.planning.quantity import EvidenceBasis, Quantity, weakest

GIVEN = "given with the question"
"""Source of a price that no catalog gives."""
UNIT_PRICE_DIGITS = Decimal("0.000001")
"""Digits of a price per unit, finer than the minor unit of its currency."""
REQUEST_PRICE_DIGITS = Decimal("0.000000001")
ChargeCategoryName = Literal["usage", "purchase", "tax", "credit"]


class UnitPrice(NamedTuple):
    """A unit price with its source and, where it is not one number, its ends."""

    amount: Decimal
    currency_code: str
    source: str
    basis: EvidenceBasis
    low: Decimal | None = None
    high: Decimal | None = None

    @property
    def ends(self) -> tuple[Decimal, Decimal, Decimal]:
        """Value, low and high."""
        low = self.amount if self.low is None else self.low
        return self.amount, low, self.amount if self.high is None else self.high

    def times(self, factor: float) -> "UnitPrice":
        """Returns the price multiplied by a factor, which its source then names."""
        amount, low, high = (end * Decimal(repr(factor)) for end in self.ends)
        return self._replace(amount=amount, low=low, high=high, source=f"{self.source}, times {factor:.6g}")


class Money(NamedTuple):
    """An amount with its interval and the weakest evidence that it rests on."""

    amount: Decimal
    low: Decimal
    high: Decimal
    currency_code: str
    basis: EvidenceBasis


class ChargeLine(NamedTuple):
    """One charge: quantity times unit price, rounded once."""

    name: str
    quantity: float
    unit: str
    unit_price: Decimal
    amount: Decimal
    currency_code: str
    source: str
    category: ChargeCategoryName | None = None
    """Category of the charge; None for usage."""


class CurrencyCharges(NamedTuple):
    """Lines in one currency and their sum, with its ends."""

    lines: tuple[ChargeLine, ...]
    amount: Decimal
    low: Decimal
    high: Decimal
    currency_code: str
    basis: EvidenceBasis

    @property
    def total(self) -> Money:
        """Sum of the lines."""
        return Money(*self[1:])

    @property
    def quantity(self) -> Quantity:
        """Sum of the lines as a number, for ratios."""
        return Quantity(float(self.amount), float(self.low), float(self.high), self.basis)

    def per_million(self, count: Quantity) -> Money:
        """Returns the cost of a million of ``count`` units."""
        return self.per(count, 1_000_000)

    def per(
        self, count: Quantity, units: int = 1, share: float = 1.0, digits: Decimal = UNIT_PRICE_DIGITS
    ) -> Money:
        """Returns the cost of ``units`` of ``count``, where they bear a ``share`` of the sum."""
        amounts = (self.amount, self.low, self.high)
        counts = (count.value, count.high, count.low)
        part = Decimal(units) if share == 1.0 else Decimal(units) * Decimal(share)
        amount, low, high = (
            (end * part / Decimal(number)).quantize(digits)
            for end, number in zip(amounts, counts, strict=True)
        )
        return Money(amount, low, high, self.currency_code, weakest(self.quantity, count))


def charge_quantities(
    price: UnitPrice, unit: str, *quantities: tuple[str, Quantity], category: ChargeCategoryName | None = None
) -> CurrencyCharges:
    """Builds one line for each named quantity at one unit price.

    The ends of a quantity correspond to the ends of its inputs, in either order.
    """
    currency = price.currency_code
    lines: list[ChargeLine] = []
    totals = [Decimal(0)] * 3
    for name, quantity in quantities:
        ends = (quantity.value, quantity.low, quantity.high)
        amounts = [
            compute_charge(end, unit_price, currency)
            for end, unit_price in zip(ends, price.ends, strict=True)
        ]
        totals = [total + amount for total, amount in zip(totals, amounts, strict=True)]
        lines.append(
            ChargeLine(name, quantity.value, unit, price.amount, amounts[0], currency, price.source, category)
        )
    basis = weakest(
        *(quantity for _, quantity in quantities),
        Quantity(float(price.amount), float(price.ends[1]), float(price.ends[2]), price.basis),
    )
    return _sum_lines(tuple(lines), totals, currency, basis)


def _sum_lines(
    lines: tuple[ChargeLine, ...], totals: Sequence[Decimal], currency: str, basis: EvidenceBasis
) -> CurrencyCharges:
    amount, low, high = totals
    # Lines round separately, so that nearly equal ends may cross by a minor unit.
    return CurrencyCharges(lines, amount, min(low, amount), max(high, amount), currency, basis)


def add_charges(first: CurrencyCharges, *rest: CurrencyCharges | None) -> CurrencyCharges:
    """Adds all lines. Charges are in one currency."""
    known = [first, *(part for part in rest if part)]
    lines = tuple(line for part in known for line in part.lines)
    ends = [(part.amount, part.low, part.high) for part in known]
    totals = [sum(amounts, Decimal(0)) for amounts in zip(*ends, strict=True)]
    basis = weakest(*(part.quantity for part in known))
    return _sum_lines(lines, totals, first.currency_code, basis)


def sum_charges(parts: Iterable[CurrencyCharges | None]) -> CurrencyCharges | None:
    """Adds all lines; None where there are none. Charges are in one currency."""
    known = [part for part in parts if part]
    return add_charges(*known) if known else None
