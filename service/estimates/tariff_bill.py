"""What does a tariff charge for a load?"""

from collections.abc import Callable
from itertools import pairwise

from pydantic import MISSING

from service.estimates.bill_lines import sum_rounded_lines, to_electricity_lines, to_period_totals
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, exact
from service.planning.tariff.allocation import BillAllocation, build_allocation
from service.planning.tariff.bill import BillingPeriod, LoadBill
from service.planning.tariff.billing import compute_annual_bill, compute_bill, compute_determinants_bill
from service.planning.tariff.calendar import resolve_zone
from service.planning.tariff.charges import Tariff
from service.resolve.catalog import CatalogView, resolve_row
from service.schemas.answer import to_evidence, to_money_quantity, to_quantity
from service.schemas.tariff_bills import (
    AnnualDemand,
    CatalogTariff,
    DemandDeterminants,
    TariffBill,
    TariffBillPeriodTotal,
    TariffBillRequest,
)
from service.schemas.tariff_loads import parse_days, parse_history, to_determinants, to_load
from service.schemas.tariffs import to_planning

_PERIODS = "/billing_period_starts"
_PLACES = {
    "BILLING_PERIODS": _PERIODS,
    "LOAD_TOO_LONG": "/load",
    "SERIES_REQUIRED": "/load/kind",
    "DETERMINANT_MISSING": "/load",
    "DETERMINANT_UNKNOWN": "/load",
}
"""Where in the question a refusal of the engine belongs; all others are of the tariff."""
_OWN = ("/load", _PERIODS, "/power_factor")
"""Pointers into the question."""


def bill_tariff(question: TariffBillRequest, catalog: CatalogView) -> TariffBill:
    """Every line of every billing period, rounded, with what to know of them."""
    notes = AnswerNotes()
    tariff, at, source = _resolve_tariff(question, catalog, notes)
    for text in tariff.notes:
        notes.warn("TARIFF_NOTE", at, text)
    billed = _relocate_errors(lambda: _compute_bill(question, tariff), at)
    for finding in billed.findings:
        notes.warn(finding.code, "/load", finding.detail)
    whole = build_allocation(billed)
    total = sum_rounded_lines(whole)
    return {
        "total": to_money_quantity(total, total, total, billed.currency_code, EvidenceBasis.EXACT),
        "energy_kwh": to_quantity(exact(sum(period.energy_kwh for period in billed.periods))),
        "peak_kw": to_quantity(exact(max(period.peak_kw for period in billed.periods))),
        "lines": to_electricity_lines(whole, source),
        "periods": _to_periods(billed, whole),
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }


def _resolve_tariff(
    question: TariffBillRequest, catalog: CatalogView, notes: AnswerNotes
) -> tuple[Tariff, str, str]:
    """The tariff, where it stands in the question, and what its lines name as their source."""
    given = question.tariff
    if isinstance(given, CatalogTariff):
        known = resolve_row(catalog.tariffs, given.id, "/tariff/id")
        notes.cite(known.source, "/tariff/id")
        return known.tariff, "/tariff/id", f"tariff {given.id}"
    at = "/tariff/terms"
    try:
        return to_planning(given.terms), at, "given"
    except PlanningError as error:
        raise PlanningError(error.code, at + error.pointer, error.detail) from error


def _relocate_errors(do: Callable[[], LoadBill], at: str) -> LoadBill:
    """What the engine refuses is told of the member of the question."""
    try:
        return do()
    except PlanningError as error:
        if error.pointer.startswith(_OWN):
            raise
        below = at if at == "/tariff/id" else at + error.pointer
        raise PlanningError(error.code, _PLACES.get(error.code, below), error.detail) from error


def _compute_bill(question: TariffBillRequest, tariff: Tariff) -> LoadBill:
    shape, secondary = question.load, question.metering_side == "secondary"
    peaks = [] if question.monthly_peaks is MISSING else question.monthly_peaks
    known = parse_history({peak.month: peak.peak_kw for peak in peaks})
    if isinstance(shape, AnnualDemand):
        return compute_annual_bill(
            tariff,
            year=shape.year,
            energy_kwh=shape.energy_kwh,
            peak_kw=shape.peak_kw,
            power_factor=question.power_factor,
            secondary=secondary,
        )
    if isinstance(shape, DemandDeterminants):
        determinants = to_determinants(shape, power_factor=question.power_factor, secondary=secondary)
        return compute_determinants_bill(tariff, determinants, history=known, wraps_year=question.wraps_year)
    zone = resolve_zone(tariff.time_zone)
    load = to_load(shape, zone, power_factor=question.power_factor, secondary=secondary)
    return compute_bill(
        tariff, load, periods=_build_billing_periods(question), history=known, wraps_year=question.wraps_year
    )


def _build_billing_periods(question: TariffBillRequest) -> list[BillingPeriod] | None:
    if question.billing_period_starts is MISSING:
        return None
    days = parse_days(question.billing_period_starts, _PERIODS)
    return [BillingPeriod(start, end) for start, end in pairwise(days)]


def _to_periods(billed: LoadBill, whole: BillAllocation) -> list[TariffBillPeriodTotal]:
    return [
        {
            **total,
            "billing_demand": [
                {"charge": charge, "kw": kw} for charge, kw in period.billing_demand_kw.items()
            ],
        }
        for total, period in zip(to_period_totals(whole), billed.periods, strict=True)
    ]
