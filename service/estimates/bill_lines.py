"""The lines of a bill, and the totals of its billing periods, as shapes of the API."""

from decimal import Decimal

from service.planning.cost import round_amount
from service.planning.tariff.allocation import BillAllocation, PeriodShare
from service.planning.tariff.bill import BillLine
from service.schemas.bill_answers import BillingPeriod, BillingPeriodTotal, ElectricityBillLine

_QUANTITY_DIGITS = 9
"""Fewer than a difference of two readings has for sure."""
_PRICE_DIGITS = 12
"""Digits of a price that is a quotient; more than any tariff states."""


def to_electricity_lines(
    allocation: BillAllocation, source: str, *, is_dated: bool = True
) -> list[ElectricityBillLine]:
    """Each charge, rounded once; without days where the bill stands for any time."""
    return [
        _to_line(line, share, allocation.currency_code, source, is_dated=is_dated)
        for share in allocation.periods
        for line in share.lines
    ]


def to_period_totals(allocation: BillAllocation) -> list[BillingPeriodTotal]:
    """What each billing period amounts to, of rounded lines."""
    return [_to_period_total(share, allocation.currency_code) for share in allocation.periods]


def sum_rounded_lines(allocation: BillAllocation) -> Decimal:
    """The sum of its rounded lines."""
    code = allocation.currency_code
    lines = (line for share in allocation.periods for line in share.lines)
    return sum((round_amount(line.amount, code) for line in lines), round_amount(Decimal(0), code))


def _to_line(
    line: BillLine, share: PeriodShare, currency: str, source: str, *, is_dated: bool
) -> ElectricityBillLine:
    answer: ElectricityBillLine = {
        "name": line.charge,
        "kind": line.kind,  # type: ignore[typeddict-item]
        "quantity": round(line.quantity, _QUANTITY_DIGITS),
        "unit": line.unit,
        "unit_price": {"amount": f"{_shorten_price(line.price):f}", "currency_code": currency},
        "amount": {"amount": f"{round_amount(line.amount, currency):f}", "currency_code": currency},
        "source": source,
    }
    if line.kind == "tax":
        answer["category"] = "tax"
    elif line.price < 0:
        answer["category"] = "credit"
    if line.period is not None:
        answer["price_period"] = line.period
    if line.tier is not None:
        answer["tier"] = line.tier
    if line.note is not None:
        answer["note"] = line.note
    if is_dated:
        answer["billing_period"] = _to_billing_period(share)
        if line.peak_at is not None:
            answer["peak_at"] = line.peak_at.isoformat()
    if share.after_run:
        answer["after_run"] = True
    return answer


def _shorten_price(price: Decimal) -> Decimal:
    """A price without the digits that only a quotient has."""
    return min(price, round(price, _PRICE_DIGITS), key=lambda one: len(one.as_tuple().digits))


def _to_billing_period(share: PeriodShare) -> BillingPeriod:
    return {"start_date": str(share.period.start), "end_date": str(share.period.end)}


def _to_period_total(share: PeriodShare, currency: str) -> BillingPeriodTotal:
    amounts = (round_amount(line.amount, currency) for line in share.lines)
    total = sum(amounts, round_amount(Decimal(0), currency))
    answer: BillingPeriodTotal = {
        "billing_period": _to_billing_period(share),
        "energy_kwh": share.energy_kwh,
        "peak_kw": share.peak_kw,
        "total": {"amount": f"{total:f}", "currency_code": currency},
    }
    if share.after_run:
        answer["after_run"] = True
    return answer
