"""Lines of a tariff's bill as charges: each rounded once to the currency, and their sums."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Final, NamedTuple

from service.planning.cost.charges import ChargeLine
from service.planning.cost.money import round_amount
from service.planning.tariff.allocation import BillAllocation, PeriodShare
from service.planning.tariff.bill import BillLine

_QUANTITY_DIGITS: Final = 9
"""Fewer digits than a difference of two readings has for sure."""
_PRICE_DIGITS: Final = 12
"""Digits of a price that is a quotient; more than any tariff states."""


class TariffLine(NamedTuple):
    """A line of a bill, the billing period that it belongs to, and its charge."""

    line: BillLine
    share: PeriodShare
    charge: ChargeLine


def build_tariff_lines(allocation: BillAllocation, source: str) -> tuple[TariffLine, ...]:
    """Returns every line of a bill as a rounded charge, in order of billing periods."""
    return tuple(
        TariffLine(line, share, _build_charge(line, allocation.currency_code, source))
        for share in allocation.periods
        for line in share.lines
    )


def _build_charge(line: BillLine, currency: str, source: str) -> ChargeLine:
    return ChargeLine(
        name=line.charge,
        quantity=round(line.quantity, _QUANTITY_DIGITS),
        unit=line.unit,
        unit_price=_shorten_price(line.price),
        amount=round_amount(line.amount, currency),
        currency_code=currency,
        source=source,
        category="tax" if line.kind == "tax" else "credit" if line.price < 0 else None,
    )


def _shorten_price(price: Decimal) -> Decimal:
    """Returns a price without the digits that only a quotient has."""
    return min(price, round(price, _PRICE_DIGITS), key=lambda one: len(one.as_tuple().digits))


def sum_rounded_lines(lines: Iterable[BillLine], currency: str) -> Decimal:
    """Returns the sum of lines, each rounded to the currency first."""
    return sum((round_amount(line.amount, currency) for line in lines), round_amount(Decimal(0), currency))


def sum_rounded_bill(allocation: BillAllocation) -> Decimal:
    """Returns the sum of all rounded lines of a bill."""
    lines = (line for share in allocation.periods for line in share.lines)
    return sum_rounded_lines(lines, allocation.currency_code)
