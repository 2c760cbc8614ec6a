"""The electricity of a run: at a flat price, or what a tariff bills for it."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

import numpy as np
from pydantic import MISSING

from service.estimates.allowance import take
from service.estimates.bill_lines import electricity_lines, period_totals, rounded_total
from service.estimates.charges import to_lines, to_money
from service.kit.http.wanted import check_wanted
from service.planning.cost.charges import Charges, charge_quantities
from service.planning.energy.load_profile import LoadProfile, series
from service.planning.errors import PlanningError
from service.planning.estimates.energy import Energy
from service.planning.estimates.load import Ends
from service.planning.notes import Notes
from service.planning.quantity import Basis, Quantity, weakest
from service.planning.tariff.allocation import (
    Allocated,
    Allocation,
    MeteringPoint,
    TimeDependence,
    allocate,
    allocation_effort,
    local_midnight,
    time_dependence,
)
from service.planning.tariff.bill import Load
from service.planning.tariff.calendar import zone_of
from service.resolve.catalog import CatalogView
from service.resolve.contract import ELECTRICITY, Contract, located, resolve_contract
from service.resolve.prices import multiply_price, resolve_price
from service.resolve.site import find_site
from service.schemas.base import MoneyInput
from service.schemas.bill_answers import (
    ElectricityAnswer,
    ElectricityLine,
)
from service.schemas.estimates import UtilityBillQuestion
from service.schemas.site import Electricity, RunSite

_MILLIWATT_DIGITS = 6
_STALE_DAYS = 400
_DUE_ANYWAY = ("fixed", "demand", "overrun", "coincident_peak", "minimum")
"""Kinds of charges that a meter of one's own brings with it."""


class Billed(NamedTuple):
    """The electricity of a run: its answer, and its sum where it is known."""

    answer: ElectricityAnswer
    charged: Charges | None = None


def bill_electricity(
    question: UtilityBillQuestion, energy: Energy, catalog: CatalogView, notes: Notes
) -> Billed:
    """What the run's electricity costs; a gap where no price or no energy is known."""
    check_wanted()
    given = question.site
    if given is MISSING or not _has_price(given, catalog):
        notes.gap("/electricity/total", "PRICE_REQUIRED", "no price of electricity is given")
        return Billed({"lines": []})
    asked = given.electricity
    if asked is not MISSING and asked.price_per_kwh is not MISSING:
        return _at_flat_price(asked, asked.price_per_kwh, given, energy, notes)
    contract = resolve_contract(question, given, catalog, notes)
    metered = energy.facility_kwh
    if metered is None or energy.profiles is None:
        notes.gap("/electricity/total", "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return Billed({"lines": []})
    return _under_tariff(question, contract, metered, energy.profiles, notes)


def _has_price(given: RunSite, catalog: CatalogView) -> bool:
    """Whether the question or the site of the catalog says what electricity costs."""
    known = find_site(given, catalog)
    return given.electricity is not MISSING or (known is not None and known.tariff_id is not None)


def _at_flat_price(
    asked: Electricity, price_per_kwh: MoneyInput, given: RunSite, energy: Energy, notes: Notes
) -> Billed:
    if asked.tariff_id is not MISSING or asked.tariff is not MISSING:
        raise PlanningError("ELECTRICITY_PRICE", ELECTRICITY, "give price_per_kwh or a tariff, not both")
    if given.baseline_load is not MISSING:
        detail = "at a flat price the bill of the run does not depend on what else the meter reads"
        notes.warn("BASELINE_NOT_USED", "/site/baseline_load", detail)
    metered = [(item.name, item.facility_kwh) for item in energy.equipment if item.facility_kwh]
    if not metered:
        notes.gap("/electricity/total", "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return Billed({"lines": []})
    price = multiply_price(resolve_price(price_per_kwh), asked.price_factor)
    charged = charge_quantities(price, "kWh", *metered)
    lines: list[ElectricityLine] = [{**line} for line in to_lines(charged)]  # type: ignore[typeddict-item]
    return Billed({"lines": lines, "total": to_money(charged.total)}, charged)


def _under_tariff(
    question: UtilityBillQuestion, contract: Contract, metered: Quantity, profiles: Ends, notes: Notes
) -> Billed:
    point = contract.point
    starts_at, is_assumed = start_of(question, contract, notes)
    if is_assumed and time_dependence(point.tariff, alone=point.baseline is None) is TimeDependence.NOTHING:
        point = _in_one_period(point, starts_at, max(profile.elapsed_seconds for profile in profiles))
    # An end that is the middle needs no bill of its own.
    distinct = list(dict.fromkeys(profiles))
    with located(contract.pointer):
        loads = [load_of(profile, starts_at, point.interval_minutes) for profile in distinct]
        take(allocation_effort(point, loads), contract.pointer)
        allocated = allocate(point, loads)
    _warn_of_age(contract, starts_at, notes)
    _warn_of_what_is_unknown(allocated, contract.pointer, notes)
    _warn_of_standing_charges(point, allocated.allocations[0], notes)
    charged = [contract.charged(allocation) for allocation in allocated.allocations]
    return _answered(charged, contract, metered, is_dated=not is_assumed)


def _warn_of_age(contract: Contract, starts_at: datetime, notes: Notes) -> None:
    """Of a tariff of the catalog whose prices are more than a year old when the run begins."""
    if contract.basis is not Basis.REFERENCE:
        return
    begun = [one.effective_from for one in contract.point.tariff.revisions if one.effective_from.year > 1]
    since = max((day for day in begun if day <= starts_at.date()), default=None)
    if since is not None and (starts_at.date() - since).days > _STALE_DAYS:
        detail = f"its prices are those of {since}; the utility may have changed them since"
        notes.warn("TARIFF_STALE", contract.pointer, detail)


def load_of(profile: LoadProfile, starts_at: datetime, interval_minutes: int) -> Load:
    """The run at the meter, to the milliwatt: of intervals that are alike the first sets the peak."""
    load = series(profile, starts_at, interval_minutes)
    return load._replace(kw=np.round(load.kw, _MILLIWATT_DIGITS))


def _in_one_period(point: MeteringPoint, starts_at: datetime, seconds: float) -> MeteringPoint:
    """Where nothing depends on billing periods, one line for each price is enough."""
    last = (starts_at + timedelta(seconds=seconds)).date() + timedelta(days=1)
    return point._replace(starts=(starts_at.date(), last))


def _warn_of_what_is_unknown(allocated: Allocated, pointer: str, notes: Notes) -> None:
    if allocated.unknown:
        first, last = allocated.unknown[0].start, allocated.unknown[-1].end
        detail = f"the tariff ties the run to what is used from {first} to {last}, where the series has gaps"
        notes.warn("BASELINE_ENDS", "/site/baseline_load", detail)
    for finding in allocated.allocations[0].findings:
        notes.warn(finding.code, pointer, finding.detail)


def start_of(question: UtilityBillQuestion, contract: Contract, notes: Notes) -> tuple[datetime, bool]:
    """When the run begins, on the site's clock, and whether that is assumed: where it matters little."""
    tariff = contract.point.tariff
    zone = zone_of(tariff.time_zone)
    if question.starts_at is not MISSING:
        return question.starts_at.astimezone(zone), False
    dependence = time_dependence(tariff, alone=contract.point.baseline is None)
    if dependence is TimeDependence.PRICES or contract.point.starts is not None:
        detail = "what the tariff charges depends on when the run takes place"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    if dependence is TimeDependence.PERIODS:
        detail = "charges by billing period are those of a run that begins with one, of 31 days"
        notes.warn("STARTS_AT_ASSUMED", "/starts_at", detail)
    effective = max(tariff.revisions[0].effective_from, date(2000, 1, 1))
    return local_midnight(date(effective.year + 1, 1, 1), tariff.time_zone).astimezone(zone), True


def _warn_of_standing_charges(point: MeteringPoint, middle: Allocation, notes: Notes) -> None:
    if point.baseline is not None:
        return
    lines = (line for share in middle.periods for line in share.lines if line.kind in _DUE_ANYWAY)
    names = ", ".join(dict.fromkeys(line.charge for line in lines))
    if names:
        detail = (
            f"every billing period that the run touches is billed in full, for the run alone: with {names}"
        )
        notes.warn("STANDALONE_BILL", ELECTRICITY, detail)


def _answered(
    allocations: Sequence[Allocation], contract: Contract, metered: Quantity, *, is_dated: bool
) -> Billed:
    middle, currency = allocations[0], allocations[0].currency_code
    lines = electricity_lines(middle, contract.source, is_dated=is_dated)
    totals = [rounded_total(allocation) for allocation in allocations]
    basis = weakest(metered, Quantity(0, 0, 0, contract.basis))
    charged = Charges((), totals[0], min(totals), max(totals), currency, basis)
    answer: ElectricityAnswer = {
        "allocation": "standalone" if contract.point.baseline is None else "incremental",
        "lines": lines,
        "total": to_money(charged.total),
    }
    if is_dated:
        answer["periods"] = period_totals(middle)
    return Billed(answer, charged)
