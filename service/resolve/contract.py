"""Resolution of the tariff of a run, its meter and the inputs of its bill."""

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import numpy as np
from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.calendar import resolve_zone
from service.planning.tariff.charges import Tariff
from service.planning.tariff.contract import ELECTRICITY, TariffContract, relocate_errors
from service.planning.tariff.metering_point import MeteringPoint
from service.resolve.catalog import CatalogView, KnownSite, resolve_row
from service.resolve.site import find_site
from service.schemas.estimates import UtilityBillRequest
from service.schemas.site import ConstantBaselineLoad, ElectricityPriceInput, RunSiteInput
from service.schemas.tariffs import to_planning

GIVEN: Final = "given with the question"


def resolve_contract(
    question: UtilityBillRequest, given: RunSiteInput, catalog: CatalogView, notes: AnswerNotes
) -> TariffContract:
    """Returns the tariff of the question or of its site, on the clock of the site."""
    known = find_site(given, catalog)
    asked = given.electricity if given.electricity is not MISSING else ElectricityPriceInput()
    tariff, source, basis, pointer = _resolve_tariff(asked, known, catalog, notes)
    zone = given.time_zone if given.time_zone is not MISSING else known.time_zone if known else None
    if zone is None:
        zone = tariff.time_zone
        notes.fill("/site/time_zone", zone, "published", "the time zone that the tariff is written for")
    resolve_zone(zone, "/site/time_zone")
    if zone != tariff.time_zone:
        detail = (
            f"the tariff is written for {tariff.time_zone}; its windows are read on the clock of the site"
        )
        notes.warn("TIME_ZONE_DIFFERS", "/site/time_zone", detail)
        tariff = replace(tariff, time_zone=zone)
    for note in tariff.notes:
        notes.warn("TARIFF_NOTE", pointer, note)
    point = MeteringPoint(
        tariff,
        interval_minutes=question.load_profile.interval_minutes,
        power_factor=asked.power_factor,
        secondary=asked.metering_side == "secondary",
        baseline=_resolve_baseline(given, asked, notes),
        history=_resolve_history(asked),
        starts=_resolve_period_starts(asked),
    )
    factor = asked.price_factor
    if factor is MISSING:
        return TariffContract(point, source, basis, pointer)
    source = f"{source}, times {factor:.6g}"
    return TariffContract(point, source, basis, pointer, Decimal(repr(factor)))


def _resolve_tariff(
    asked: ElectricityPriceInput, known: KnownSite | None, catalog: CatalogView, notes: AnswerNotes
) -> tuple[Tariff, str, EvidenceBasis, str]:
    if asked.tariff is not MISSING:
        if asked.tariff_id is not MISSING:
            raise PlanningError("ELECTRICITY_PRICE", ELECTRICITY, "give either tariff_id or tariff")
        with relocate_errors(f"{ELECTRICITY}/tariff"):
            return to_planning(asked.tariff), GIVEN, EvidenceBasis.ASSUMED, f"{ELECTRICITY}/tariff"
    pointer, tariff_id = f"{ELECTRICITY}/tariff_id", asked.tariff_id
    if tariff_id is MISSING:
        if known is None or known.tariff_id is None:
            detail = "give one of price_per_kwh, tariff_id and tariff"
            raise PlanningError("ELECTRICITY_PRICE", ELECTRICITY, detail)
        pointer, tariff_id = "/site/site_id", known.tariff_id
    row = resolve_row(catalog.tariffs, tariff_id, pointer)
    notes.cite(row.source, pointer)
    with relocate_errors(pointer):
        return row.tariff, f"tariff {row.source['id']}", EvidenceBasis.REFERENCE, pointer


def _resolve_baseline(
    given: RunSiteInput, asked: ElectricityPriceInput, notes: AnswerNotes
) -> MeteredLoad | float | None:
    known = given.baseline_load
    if known is MISSING:
        if asked.allocation == "incremental":
            detail = "an incremental bill needs the load that is billed without the run"
            raise PlanningError("BASELINE_REQUIRED", "/site/baseline_load", detail)
        return None
    if asked.allocation == "standalone":
        detail = "a standalone bill counts the run alone: the baseline load is not used"
        notes.warn("BASELINE_NOT_USED", "/site/baseline_load", detail)
        return None
    if isinstance(known, ConstantBaselineLoad):
        return known.kw
    return MeteredLoad(
        datetime.fromisoformat(str(known.starts_at)), known.interval_minutes, np.array(known.kw)
    )


def _resolve_history(asked: ElectricityPriceInput) -> dict[tuple[int, int], float] | None:
    if asked.monthly_peaks is MISSING:
        return None
    months = [(int(peak.month[:4]), int(peak.month[5:])) for peak in asked.monthly_peaks]
    if len(set(months)) < len(months):
        pointer = f"{ELECTRICITY}/monthly_peaks"
        raise PlanningError("MONTH_TWICE", pointer, "each month may have one peak only")
    return dict(zip(months, (peak.peak_kw for peak in asked.monthly_peaks), strict=True))


def _resolve_period_starts(asked: ElectricityPriceInput) -> tuple[date, ...] | None:
    if asked.billing_period_starts is MISSING:
        return None
    try:
        return tuple(date.fromisoformat(day) for day in asked.billing_period_starts)
    except ValueError as error:
        pointer = f"{ELECTRICITY}/billing_period_starts"
        raise PlanningError("DATE_UNKNOWN", pointer, "this day does not exist in the calendar") from error
