"""Electricity of a run as it is answered: lines, billing periods and their sums."""

from pydantic import MISSING

from service.estimates.allowance import spend_effort
from service.estimates.charges import to_line, to_lines, to_money
from service.kit.http.cancellation import check_cancelled
from service.planning.cost.tariff_lines import TariffLine, build_tariff_lines, sum_rounded_lines
from service.planning.estimates.electricity import RunElectricity, estimate_electricity
from service.planning.estimates.energy import RunEnergy
from service.planning.notes import AnswerNotes
from service.planning.tariff.allocation import BillAllocation, PeriodShare
from service.resolve.catalog import CatalogView
from service.resolve.electricity import resolve_electricity_price
from service.schemas.bill_answers import (
    BillingPeriod,
    BillingPeriodTotal,
    ElectricityBill,
    ElectricityBillLine,
)
from service.schemas.estimates import UtilityBillRequest


def bill_electricity(
    question: UtilityBillRequest, energy: RunEnergy, catalog: CatalogView, notes: AnswerNotes
) -> RunElectricity:
    """Returns the cost of a run's electricity; a gap where no price or no energy is known."""
    check_cancelled()
    price = resolve_electricity_price(question, catalog, notes)
    if price is None:
        return RunElectricity()
    starts_at = None if question.starts_at is MISSING else question.starts_at
    return estimate_electricity(price, energy, starts_at, notes, spend_effort)


def to_electricity_bill(electricity: RunElectricity) -> ElectricityBill:
    """Maps the electricity of a run to its lines and total, and under a tariff to its billing periods."""
    charged, bill = electricity
    if charged is None:
        return {"lines": []}
    total = to_money(charged.total)
    if bill is None:
        return {"lines": to_lines(charged), "total": total}  # type: ignore[typeddict-item]
    answer: ElectricityBill = {
        "allocation": "incremental" if bill.is_incremental else "standalone",
        "lines": to_electricity_lines(bill.allocation, bill.source, is_dated=bill.is_dated),
        "total": total,
    }
    if bill.is_dated:
        answer["periods"] = to_period_totals(bill.allocation)
    return answer


def to_electricity_lines(
    allocation: BillAllocation, source: str, *, is_dated: bool = True
) -> list[ElectricityBillLine]:
    """Maps each charge of a bill; without days where the bill stands for any time."""
    return [_to_electricity_line(one, is_dated=is_dated) for one in build_tariff_lines(allocation, source)]


def to_period_totals(allocation: BillAllocation) -> list[BillingPeriodTotal]:
    """Maps each billing period to the sum of its rounded lines."""
    return [_to_period_total(share, allocation.currency_code) for share in allocation.periods]


def _to_electricity_line(billed: TariffLine, *, is_dated: bool) -> ElectricityBillLine:
    line, charge = billed.line, to_line(billed.charge)
    answer: ElectricityBillLine = {"name": charge["name"], "kind": line.kind, **charge}  # type: ignore[typeddict-item]
    if line.period is not None:
        answer["price_period"] = line.period
    if line.tier is not None:
        answer["tier"] = line.tier
    if line.note is not None:
        answer["note"] = line.note
    if is_dated:
        answer["billing_period"] = _to_billing_period(billed.share)
        if line.peak_at is not None:
            answer["peak_at"] = line.peak_at.isoformat()
    if billed.share.after_run:
        answer["after_run"] = True
    return answer


def _to_billing_period(share: PeriodShare) -> BillingPeriod:
    return {"start_date": str(share.period.start), "end_date": str(share.period.end)}


def _to_period_total(share: PeriodShare, currency: str) -> BillingPeriodTotal:
    total = sum_rounded_lines(share.lines, currency)
    answer: BillingPeriodTotal = {
        "billing_period": _to_billing_period(share),
        "energy_kwh": share.energy_kwh,
        "peak_kw": share.peak_kw,
        "total": {"amount": f"{total:f}", "currency_code": currency},
    }
    if share.after_run:
        answer["after_run"] = True
    return answer
