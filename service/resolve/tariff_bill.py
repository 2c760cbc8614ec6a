"""Tariff and load of a bill, from a question."""

from itertools import pairwise
from typing import Final, NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.tariff.bill import BillingPeriod, LoadBill
from service.planning.tariff.billing import compute_annual_bill, compute_bill, compute_determinants_bill
from service.planning.tariff.calendar import resolve_zone
from service.planning.tariff.charges import Tariff
from service.resolve.catalog import CatalogView, resolve_row
from service.schemas.tariff_bills import AnnualDemand, CatalogTariff, DemandDeterminants, TariffBillRequest
from service.schemas.tariff_loads import parse_days, parse_history, to_determinants, to_load
from service.schemas.tariffs import to_planning

_PERIODS: Final = "/billing_period_starts"
_PLACES: Final = {
    "BILLING_PERIODS": _PERIODS,
    "LOAD_TOO_LONG": "/load",
    "SERIES_REQUIRED": "/load/kind",
    "DETERMINANT_MISSING": "/load",
    "DETERMINANT_UNKNOWN": "/load",
}
"""Members of the question that refusals of a bill belong to; all others belong to the tariff."""
_OWN: Final = ("/load", _PERIODS, "/power_factor")
"""Pointers into the question."""


class NamedTariff(NamedTuple):
    """A tariff, its place in the question, and the source that its lines name."""

    tariff: Tariff
    pointer: str
    source: str


def resolve_named_tariff(
    question: TariffBillRequest, catalog: CatalogView, notes: AnswerNotes
) -> NamedTariff:
    """Returns the tariff of a question, inline or of the catalog, with its notes as warnings."""
    found = _find_tariff(question, catalog, notes)
    for text in found.tariff.notes:
        notes.warn("TARIFF_NOTE", found.pointer, text)
    return found


def _find_tariff(question: TariffBillRequest, catalog: CatalogView, notes: AnswerNotes) -> NamedTariff:
    given = question.tariff
    if isinstance(given, CatalogTariff):
        known = resolve_row(catalog.tariffs, given.id, "/tariff/id")
        notes.cite(known.source, "/tariff/id")
        return NamedTariff(known.tariff, "/tariff/id", f"tariff {given.id}")
    at = "/tariff/terms"
    try:
        return NamedTariff(to_planning(given.terms), at, "given")
    except PlanningError as error:
        raise PlanningError(error.code, at + error.pointer, error.detail) from error


def bill_load(question: TariffBillRequest, named: NamedTariff) -> LoadBill:
    """Returns the bill of a question's load; a refusal names the member of the question at fault."""
    try:
        return _compute_bill(question, named.tariff)
    except PlanningError as error:
        if error.pointer.startswith(_OWN):
            raise
        at = named.pointer
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
