"""Amounts that do not depend on use, minimum bills, percentages."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from service.planning.tariff.amounts import exact, priced
from service.planning.tariff.bill import BillLine
from service.planning.tariff.charges import Charge, FixedCharge, MinimumCharge, Per, PercentageCharge
from service.planning.tariff.spans import Part, days_charged, months_charged

_MONTHS: Final = Decimal(12)


def fixed_lines(charge: FixedCharge, part: Part) -> list[BillLine]:
    """Price x meters x days, months, or twelfths of a year of a part."""
    count, amount = _due(charge.price * charge.meters, charge.per, part, charge)
    if not count:
        return []
    quantity = count * charge.meters
    return [BillLine(charge.name, "fixed", quantity, charge.per.value, charge.price, amount)]


def _due(price: Decimal, per: Per, part: Part, charge: FixedCharge | MinimumCharge) -> tuple[float, Decimal]:
    if per is Per.DAY:
        days = days_charged(part, charge.months)
        return float(days), exact(price * days)
    months = months_charged(part, charge.proration, charge.months)
    if per is Per.MONTH:
        return months, priced(months, price)
    return months / 12.0, exact(price * Decimal(months) / _MONTHS)


class Charged:
    """What the charges of a part amount to so far, for those that are of others: summed when one asks."""

    def __init__(self) -> None:
        self._added: list[tuple[Charge, Sequence[BillLine]]] = []
        self._by_charge: dict[str, Decimal] = {}
        self._all = self._without_riders = Decimal(0)

    def add(self, charge: Charge, lines: Sequence[BillLine]) -> None:
        """Count the lines of a charge."""
        self._added.append((charge, lines))

    def _sum(self) -> None:
        for charge, lines in self._added:
            amount = sum((line.amount for line in lines), Decimal(0))
            self._by_charge[charge.name] = self._by_charge.get(charge.name, Decimal(0)) + amount
            self._all += amount
            if not isinstance(charge, PercentageCharge):
                self._without_riders += amount
        self._added = []

    @property
    def all(self) -> Decimal:
        """The sum of all charges."""
        self._sum()
        return self._all

    @property
    def without_riders(self) -> Decimal:
        """The sum of all but taxes and riders."""
        self._sum()
        return self._without_riders

    def of(self, names: Sequence[str]) -> Decimal:
        """The sum of some charges."""
        self._sum()
        return sum((self._by_charge.get(name, Decimal(0)) for name in dict.fromkeys(names)), Decimal(0))


def minimum_lines(charge: MinimumCharge, part: Part, before: Charged) -> list[BillLine]:
    """What lifts the charges named in ``of`` to the minimum; all but taxes and riders where none is."""
    counted = before.of(charge.of) if charge.of else before.without_riders
    _, least = _due(charge.amount, charge.per, part, charge)
    if counted >= least:
        return []
    return [BillLine(charge.name, "minimum", 1.0, "period", least - counted, least - counted)]


def percentage_line(charge: PercentageCharge, before: Charged) -> BillLine:
    """Percent of the charges named in ``of``, or of all lines before it."""
    base = before.of(charge.of) if charge.of else before.all
    share = charge.percent / 100
    amount = exact(base * share)
    return BillLine(charge.name, "tax" if charge.tax else "percentage", float(base), "amount", share, amount)
