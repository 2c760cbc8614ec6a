"""The lines of a bill, and the totals of its billing periods, as shapes of the API."""

from decimal import Decimal

from service.planning.cost import rounded
from service.planning.tariff.allocation import Allocation, PeriodShare
from service.planning.tariff.bill import BillLine
from service.schemas.bill_answers import BillingPeriodAnswer, ElectricityLine, PeriodTotal

_QUANTITY_DIGITS = 9
"""Fewer than a difference of two readings has for sure."""
_PRICE_DIGITS = 12
"""Digits of a price that is a quotient; more than any tariff states."""


def electricity_lines(allocation: Allocation, source: str, *, is_dated: bool = True) -> list[ElectricityLine]:
    """Each charge, rounded once; without days where the bill stands for any time."""
    return [
        _line(line, share, allocation.currency_code, source, is_dated=is_dated)
        for share in allocation.periods
        for line in share.lines
    ]


def period_totals(allocation: Allocation) -> list[PeriodTotal]:
    """What each billing period amounts to, of rounded lines."""
    return [_period_total(share, allocation.currency_code) for share in allocation.periods]


def rounded_total(allocation: Allocation) -> Decimal:
    """The sum of its rounded lines."""
    code = allocation.currency_code
    lines = (line for share in allocation.periods for line in share.lines)
    return sum((rounded(line.amount, code) for line in lines), rounded(Decimal(0), code))


def _line(
    line: BillLine, share: PeriodShare, currency: str, source: str, *, is_dated: bool
) -> ElectricityLine:
    answer: ElectricityLine = {
        "name": line.charge,
        "kind": line.kind,  # type: ignore[typeddict-item]
        "quantity": round(line.quantity, _QUANTITY_DIGITS),
        "unit": line.unit,
        "unit_price": {"amount": f"{_shortened(line.price):f}", "currency_code": currency},
        "amount": {"amount": f"{rounded(line.amount, currency):f}", "currency_code": currency},
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
        answer["billing_period"] = _billing_period(share)
        if line.peak_at is not None:
            answer["peak_at"] = line.peak_at.isoformat()
    if share.after_run:
        answer["after_run"] = True
    return answer


def _shortened(price: Decimal) -> Decimal:
    """A price without the digits that only a quotient has."""
    return min(price, round(price, _PRICE_DIGITS), key=lambda one: len(one.as_tuple().digits))


def _billing_period(share: PeriodShare) -> BillingPeriodAnswer:
    return {"start_date": str(share.period.start), "end_date": str(share.period.end)}


def _period_total(share: PeriodShare, currency: str) -> PeriodTotal:
    amounts = (rounded(line.amount, currency) for line in share.lines)
    total = sum(amounts, rounded(Decimal(0), currency))
    answer: PeriodTotal = {
        "billing_period": _billing_period(share),
        "energy_kwh": share.energy_kwh,
        "peak_kw": share.peak_kw,
        "total": {"amount": f"{total:f}", "currency_code": currency},
    }
    if share.after_run:
        answer["after_run"] = True
    return answer
