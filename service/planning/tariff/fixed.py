"""Fixed charges, minimum bills and percentages."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from service.planning.tariff.amounts import price_quantity, quantize_amount
from service.planning.tariff.bill import BillLine
from service.planning.tariff.charges import (
    FixedCharge,
    FixedChargePeriod,
    MinimumCharge,
    PercentageCharge,
    TariffCharge,
)
from service.planning.tariff.spans import RevisionSpan, count_charged_days, count_charged_months

_MONTHS: Final = Decimal(12)


def build_fixed_lines(charge: FixedCharge, part: RevisionSpan) -> list[BillLine]:
    """Builds the line of price x meters x days, months, or twelfths of a year of a part."""
    count, amount = _compute_due_amount(charge.price * charge.meters, charge.per, part, charge)
    if not count:
        return []
    quantity = count * charge.meters
    return [BillLine(charge.name, "fixed", quantity, charge.per.value, charge.price, amount)]


def _compute_due_amount(
    price: Decimal, per: FixedChargePeriod, part: RevisionSpan, charge: FixedCharge | MinimumCharge
) -> tuple[float, Decimal]:
    if per is FixedChargePeriod.DAY:
        days = count_charged_days(part, charge.months)
        return float(days), quantize_amount(price * days)
    months = count_charged_months(part, charge.proration, charge.months)
    if per is FixedChargePeriod.MONTH:
        return months, price_quantity(months, price)
    return months / 12.0, quantize_amount(price * Decimal(months) / _MONTHS)


class ChargedAmounts:
    """Amounts of a part's charges so far, for charges on other charges; summed when first read."""

    def __init__(self) -> None:
        self._added: list[tuple[TariffCharge, Sequence[BillLine]]] = []
        self._by_charge: dict[str, Decimal] = {}
        self._all = self._without_riders = Decimal(0)

    def add(self, charge: TariffCharge, lines: Sequence[BillLine]) -> None:
        """Adds the lines of a charge."""
        self._added.append((charge, lines))

    def _sum_added(self) -> None:
        for charge, lines in self._added:
            amount = sum((line.amount for line in lines), Decimal(0))
            self._by_charge[charge.name] = self._by_charge.get(charge.name, Decimal(0)) + amount
            self._all += amount
            if not isinstance(charge, PercentageCharge):
                self._without_riders += amount
        self._added = []

    @property
    def total(self) -> Decimal:
        """Sum of all charges."""
        self._sum_added()
        return self._all

    @property
    def without_riders(self) -> Decimal:
        """Sum of all charges but taxes and riders."""
        self._sum_added()
        return self._without_riders

    def sum_charges(self, names: Sequence[str]) -> Decimal:
        """Returns the sum of the named charges."""
        self._sum_added()
        return sum((self._by_charge.get(name, Decimal(0)) for name in dict.fromkeys(names)), Decimal(0))


def build_minimum_lines(charge: MinimumCharge, part: RevisionSpan, before: ChargedAmounts) -> list[BillLine]:
    """Builds the line that lifts the charges in ``of`` to the minimum.

    Without names, all but taxes and riders.
    """
    counted = before.sum_charges(charge.of) if charge.of else before.without_riders
    _, least = _compute_due_amount(charge.amount, charge.per, part, charge)
    if counted >= least:
        return []
    return [BillLine(charge.name, "minimum", 1.0, "period", least - counted, least - counted)]


def build_percentage_line(charge: PercentageCharge, before: ChargedAmounts) -> BillLine:
    """Builds the line of a percentage of the charges named in ``of``, or of all lines before it."""
    base = before.sum_charges(charge.of) if charge.of else before.total
    share = charge.percent / 100
    amount = quantize_amount(base * share)
    return BillLine(charge.name, "tax" if charge.tax else "percentage", float(base), "amount", share, amount)
