"""The electricity of a run: at a flat price, or what a tariff bills for it."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

import numpy as np
from pydantic import MISSING

from service.estimates.allowance import spend_effort
from service.estimates.bill_lines import sum_rounded_lines, to_electricity_lines, to_period_totals
from service.estimates.charges import to_lines, to_money
from service.kit.http.cancellation import check_cancelled
from service.planning.cost.charges import CurrencyCharges, charge_quantities
from service.planning.energy.load_profile import LoadProfile, build_load_series
from service.planning.errors import PlanningError
from service.planning.estimates.energy import RunEnergy
from service.planning.estimates.load import ProfileBounds
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity, weakest
from service.planning.tariff.allocation import (
    AllocatedVersions,
    BillAllocation,
    MeteringPoint,
    TimeDependence,
    allocate_bill,
    compute_local_midnight,
    estimate_allocation_effort,
    find_time_dependence,
)
from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.calendar import resolve_zone
from service.resolve.catalog import CatalogView
from service.resolve.contract import ELECTRICITY, TariffContract, relocate_errors, resolve_contract
from service.resolve.prices import multiply_price, resolve_price
from service.resolve.site import find_site
from service.schemas.base import MoneyInput
from service.schemas.bill_answers import (
    ElectricityBill,
    ElectricityBillLine,
)
from service.schemas.estimates import UtilityBillRequest
from service.schemas.site import ElectricityPriceInput, RunSiteInput

_MILLIWATT_DIGITS = 6
_STALE_DAYS = 400
_DUE_ANYWAY = ("fixed", "demand", "overrun", "coincident_peak", "minimum")
"""Kinds of charges that a meter of one's own brings with it."""


class BilledElectricity(NamedTuple):
    """The electricity of a run: its answer, and its sum where it is known."""

    answer: ElectricityBill
    charged: CurrencyCharges | None = None


def bill_electricity(
    question: UtilityBillRequest, energy: RunEnergy, catalog: CatalogView, notes: AnswerNotes
) -> BilledElectricity:
    """What the run's electricity costs; a gap where no price or no energy is known."""
    check_cancelled()
    given = question.site
    if given is MISSING or not _has_price(given, catalog):
        notes.add_gap("/electricity/total", "PRICE_REQUIRED", "no price of electricity is given")
        return BilledElectricity({"lines": []})
    asked = given.electricity
    if asked is not MISSING and asked.price_per_kwh is not MISSING:
        return _bill_at_flat_price(asked, asked.price_per_kwh, given, energy, notes)
    contract = resolve_contract(question, given, catalog, notes)
    metered = energy.facility_kwh
    if metered is None or energy.profiles is None:
        notes.add_gap("/electricity/total", "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return BilledElectricity({"lines": []})
    return _bill_under_tariff(question, contract, metered, energy.profiles, notes)


def _has_price(given: RunSiteInput, catalog: CatalogView) -> bool:
    """Whether the question or the site of the catalog says what electricity costs."""
    known = find_site(given, catalog)
    return given.electricity is not MISSING or (known is not None and known.tariff_id is not None)


def _bill_at_flat_price(
    asked: ElectricityPriceInput,
    price_per_kwh: MoneyInput,
    given: RunSiteInput,
    energy: RunEnergy,
    notes: AnswerNotes,
) -> BilledElectricity:
    if asked.tariff_id is not MISSING or asked.tariff is not MISSING:
        raise PlanningError("ELECTRICITY_PRICE", ELECTRICITY, "give price_per_kwh or a tariff, not both")
    if given.baseline_load is not MISSING:
        detail = "at a flat price the bill of the run does not depend on what else the meter reads"
        notes.warn("BASELINE_NOT_USED", "/site/baseline_load", detail)
    metered = [(item.name, item.facility_kwh) for item in energy.equipment if item.facility_kwh]
    if not metered:
        notes.add_gap("/electricity/total", "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return BilledElectricity({"lines": []})
    price = multiply_price(resolve_price(price_per_kwh), asked.price_factor)
    charged = charge_quantities(price, "kWh", *metered)
    lines: list[ElectricityBillLine] = [{**line} for line in to_lines(charged)]  # type: ignore[typeddict-item]
    return BilledElectricity({"lines": lines, "total": to_money(charged.total)}, charged)


def _bill_under_tariff(
    question: UtilityBillRequest,
    contract: TariffContract,
    metered: Quantity,
    profiles: ProfileBounds,
    notes: AnswerNotes,
) -> BilledElectricity:
    point = contract.point
    starts_at, is_assumed = resolve_start(question, contract, notes)
    if (
        is_assumed
        and find_time_dependence(point.tariff, alone=point.baseline is None) is TimeDependence.NOTHING
    ):
        point = _merge_billing_periods(point, starts_at, max(profile.elapsed_seconds for profile in profiles))
    # An end that is the middle needs no bill of its own.
    distinct = list(dict.fromkeys(profiles))
    with relocate_errors(contract.pointer):
        loads = [build_metered_load(profile, starts_at, point.interval_minutes) for profile in distinct]
        spend_effort(estimate_allocation_effort(point, loads), contract.pointer)
        allocated = allocate_bill(point, loads)
    _warn_of_age(contract, starts_at, notes)
    _warn_of_unknown_terms(allocated, contract.pointer, notes)
    _warn_of_standing_charges(point, allocated.allocations[0], notes)
    charged = [contract.apply_price_factor(allocation) for allocation in allocated.allocations]
    return _to_billed(charged, contract, metered, is_dated=not is_assumed)


def _warn_of_age(contract: TariffContract, starts_at: datetime, notes: AnswerNotes) -> None:
    """Of a tariff of the catalog whose prices are more than a year old when the run begins."""
    if contract.basis is not EvidenceBasis.REFERENCE:
        return
    begun = [one.effective_from for one in contract.point.tariff.revisions if one.effective_from.year > 1]
    since = max((day for day in begun if day <= starts_at.date()), default=None)
    if since is not None and (starts_at.date() - since).days > _STALE_DAYS:
        detail = f"its prices are those of {since}; the utility may have changed them since"
        notes.warn("TARIFF_STALE", contract.pointer, detail)


def build_metered_load(profile: LoadProfile, starts_at: datetime, interval_minutes: int) -> MeteredLoad:
    """The run at the meter, to the milliwatt: of intervals that are alike the first sets the peak."""
    load = build_load_series(profile, starts_at, interval_minutes)
    return load._replace(kw=np.round(load.kw, _MILLIWATT_DIGITS))


def _merge_billing_periods(point: MeteringPoint, starts_at: datetime, seconds: float) -> MeteringPoint:
    """Where nothing depends on billing periods, one line for each price is enough."""
    last = (starts_at + timedelta(seconds=seconds)).date() + timedelta(days=1)
    return point._replace(starts=(starts_at.date(), last))


def _warn_of_unknown_terms(allocated: AllocatedVersions, pointer: str, notes: AnswerNotes) -> None:
    if allocated.unknown:
        first, last = allocated.unknown[0].start, allocated.unknown[-1].end
        detail = f"the tariff ties the run to what is used from {first} to {last}, where the series has gaps"
        notes.warn("BASELINE_ENDS", "/site/baseline_load", detail)
    for finding in allocated.allocations[0].findings:
        notes.warn(finding.code, pointer, finding.detail)


def resolve_start(
    question: UtilityBillRequest, contract: TariffContract, notes: AnswerNotes
) -> tuple[datetime, bool]:
    """When the run begins, on the site's clock, and whether that is assumed: where it matters little."""
    tariff = contract.point.tariff
    zone = resolve_zone(tariff.time_zone)
    if question.starts_at is not MISSING:
        return question.starts_at.astimezone(zone), False
    dependence = find_time_dependence(tariff, alone=contract.point.baseline is None)
    if dependence is TimeDependence.PRICES or contract.point.starts is not None:
        detail = "what the tariff charges depends on when the run takes place"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    if dependence is TimeDependence.PERIODS:
        detail = "charges by billing period are those of a run that begins with one, of 31 days"
        notes.warn("STARTS_AT_ASSUMED", "/starts_at", detail)
    effective = max(tariff.revisions[0].effective_from, date(2000, 1, 1))
    return compute_local_midnight(date(effective.year + 1, 1, 1), tariff.time_zone).astimezone(zone), True


def _warn_of_standing_charges(point: MeteringPoint, middle: BillAllocation, notes: AnswerNotes) -> None:
    if point.baseline is not None:
        return
    lines = (line for share in middle.periods for line in share.lines if line.kind in _DUE_ANYWAY)
    names = ", ".join(dict.fromkeys(line.charge for line in lines))
    if names:
        detail = (
            f"every billing period that the run touches is billed in full, for the run alone: with {names}"
        )
        notes.warn("STANDALONE_BILL", ELECTRICITY, detail)


def _to_billed(
    allocations: Sequence[BillAllocation], contract: TariffContract, metered: Quantity, *, is_dated: bool
) -> BilledElectricity:
    middle, currency = allocations[0], allocations[0].currency_code
    lines = to_electricity_lines(middle, contract.source, is_dated=is_dated)
    totals = [sum_rounded_lines(allocation) for allocation in allocations]
    basis = weakest(metered, Quantity(0, 0, 0, contract.basis))
    charged = CurrencyCharges((), totals[0], min(totals), max(totals), currency, basis)
    answer: ElectricityBill = {
        "allocation": "standalone" if contract.point.baseline is None else "incremental",
        "lines": lines,
        "total": to_money(charged.total),
    }
    if is_dated:
        answer["periods"] = to_period_totals(middle)
    return BilledElectricity(answer, charged)
