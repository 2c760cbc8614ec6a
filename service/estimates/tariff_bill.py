"""What does a tariff charge for a load?"""

from collections.abc import Callable
from itertools import pairwise

from pydantic import MISSING

from service.estimates.bill_lines import electricity_lines, period_totals, rounded_total
from service.planning.errors import PlanningError
from service.planning.notes import Notes
from service.planning.quantity import Basis, exact
from service.planning.tariff.allocation import Allocation, whole_of
from service.planning.tariff.bill import Bill, BillingPeriod
from service.planning.tariff.billing import annual_bill_of, bill, bill_of
from service.planning.tariff.calendar import zone_of
from service.planning.tariff.charges import Tariff
from service.resolve.catalog import CatalogView, lookup
from service.schemas.answer import evidence, money, quantity
from service.schemas.tariff_bills import (
    AnnualDemand,
    CatalogTariff,
    DemandDeterminants,
    TariffBillAnswer,
    TariffBillQuestion,
    TariffPeriodTotal,
)
from service.schemas.tariff_loads import history, local_days, to_determinants, to_load
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


def bill_tariff(question: TariffBillQuestion, catalog: CatalogView) -> TariffBillAnswer:
    """Every line of every billing period, rounded, with what to know of them."""
    notes = Notes()
    tariff, at, source = _tariff(question, catalog, notes)
    for text in tariff.notes:
        notes.warn("TARIFF_NOTE", at, text)
    billed = _told_where(lambda: _bill(question, tariff), at)
    for finding in billed.findings:
        notes.warn(finding.code, "/load", finding.detail)
    whole = whole_of(billed)
    total = rounded_total(whole)
    return {
        "total": money(total, total, total, billed.currency_code, Basis.EXACT),
        "energy_kwh": quantity(exact(sum(period.energy_kwh for period in billed.periods))),
        "peak_kw": quantity(exact(max(period.peak_kw for period in billed.periods))),
        "lines": electricity_lines(whole, source),
        "periods": _periods(billed, whole),
        "evidence": evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }


def _tariff(question: TariffBillQuestion, catalog: CatalogView, notes: Notes) -> tuple[Tariff, str, str]:
    """The tariff, where it stands in the question, and what its lines name as their source."""
    given = question.tariff
    if isinstance(given, CatalogTariff):
        known = lookup(catalog.tariffs, given.id, "/tariff/id")
        notes.cite(known.source, "/tariff/id")
        return known.tariff, "/tariff/id", f"tariff {given.id}"
    at = "/tariff/terms"
    try:
        return to_planning(given.terms), at, "given"
    except PlanningError as error:
        raise PlanningError(error.code, at + error.pointer, error.detail) from error


def _told_where(do: Callable[[], Bill], at: str) -> Bill:
    """What the engine refuses is told of the member of the question."""
    try:
        return do()
    except PlanningError as error:
        if error.pointer.startswith(_OWN):
            raise
        below = at if at == "/tariff/id" else at + error.pointer
        raise PlanningError(error.code, _PLACES.get(error.code, below), error.detail) from error


def _bill(question: TariffBillQuestion, tariff: Tariff) -> Bill:
    shape, secondary = question.load, question.metering_side == "secondary"
    peaks = [] if question.monthly_peaks is MISSING else question.monthly_peaks
    known = history({peak.month: peak.peak_kw for peak in peaks})
    if isinstance(shape, AnnualDemand):
        return annual_bill_of(
            tariff,
            year=shape.year,
            energy_kwh=shape.energy_kwh,
            peak_kw=shape.peak_kw,
            power_factor=question.power_factor,
            secondary=secondary,
        )
    if isinstance(shape, DemandDeterminants):
        determinants = to_determinants(shape, power_factor=question.power_factor, secondary=secondary)
        return bill_of(tariff, determinants, history=known, wraps_year=question.wraps_year)
    zone = zone_of(tariff.time_zone)
    load = to_load(shape, zone, power_factor=question.power_factor, secondary=secondary)
    return bill(
        tariff, load, periods=_billing_periods(question), history=known, wraps_year=question.wraps_year
    )


def _billing_periods(question: TariffBillQuestion) -> list[BillingPeriod] | None:
    if question.billing_period_starts is MISSING:
        return None
    days = local_days(question.billing_period_starts, _PERIODS)
    return [BillingPeriod(start, end) for start, end in pairwise(days)]


def _periods(billed: Bill, whole: Allocation) -> list[TariffPeriodTotal]:
    return [
        {
            **total,
            "billing_demand": [
                {"charge": charge, "kw": kw} for charge, kw in period.billing_demand_kw.items()
            ],
        }
        for total, period in zip(period_totals(whole), billed.periods, strict=True)
    ]
