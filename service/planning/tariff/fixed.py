"""Amounts that do not depend on use, minimum bills, percentages."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from service.planning.tariff.amounts import exact, priced
from service.planning.tariff.bill import BillLine
from service.planning.tariff.charges import FixedCharge, MinimumCharge, Per, PercentageCharge
from service.planning.tariff.spans import Part, days_charged, months_charged

_MONTHS: Final = Decimal(12)
_ADJUSTING: Final = frozenset({"percentage", "tax"})


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


def minimum_lines(charge: MinimumCharge, part: Part, lines: Sequence[BillLine]) -> list[BillLine]:
    """What lifts the charges named in ``of`` to the minimum; all but taxes and riders where none is."""

    def counts(line: BillLine) -> bool:
        return line.charge in charge.of if charge.of else line.kind not in _ADJUSTING

    counted = sum((line.amount for line in lines if counts(line)), Decimal(0))
    _, least = _due(charge.amount, charge.per, part, charge)
    if counted >= least:
        return []
    return [BillLine(charge.name, "minimum", 1.0, "period", least - counted, least - counted)]


def percentage_line(charge: PercentageCharge, lines: Sequence[BillLine]) -> BillLine:
    """Percent of the charges named in ``of``, or of all lines before it."""
    base = sum((line.amount for line in lines if not charge.of or line.charge in charge.of), Decimal(0))
    share = charge.percent / 100
    amount = exact(base * share)
    return BillLine(charge.name, "tax" if charge.tax else "percentage", float(base), "amount", share, amount)
