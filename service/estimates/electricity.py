"""The electricity of a run: at a flat price, or what a tariff bills for it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from pydantic import MISSING

from service.estimates.allowance import take
from service.estimates.bill_lines import electricity_lines, period_totals, rounded_total
from service.estimates.charges import GIVEN, Charges, charges, given_price
from service.estimates.energy import Energy, Site
from service.estimates.load import Ends
from service.kit.http.wanted import check_wanted
from service.planning.energy.load_profile import LoadProfile, series
from service.planning.errors import PlanningError
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
from service.planning.tariff.charges import Tariff
from service.resolve.catalog import Catalog, KnownSite
from service.schemas.base import Line
from service.schemas.bill_answers import (
    ElectricityAnswer,
    ElectricityLine,
)
from service.schemas.estimates import UtilityBillQuestion
from service.schemas.notes import Notes, lookup
from service.schemas.site import ConstantLoad, Electricity, RunSite
from service.schemas.tariffs import to_planning

_ELECTRICITY = "/site/electricity"
_OF_QUESTION = ("/site", "/starts_at", "/workload", "/load_profile", "/window")
"""Pointers that are of the question already."""
_MILLIWATT_DIGITS = 6
_STALE_DAYS = 400
_DUE_ANYWAY = ("fixed", "demand", "overrun", "coincident_peak", "minimum")
"""Kinds of charges that a meter of one's own brings with it."""


class Billed(NamedTuple):
    """The electricity of a run: its answer, and its sum where it is known."""

    answer: ElectricityAnswer
    charged: Charges | None = None


class Contract(NamedTuple):
    """A tariff at a meter, and where it comes from."""

    point: MeteringPoint
    source: str
    basis: Basis
    pointer: str
    price_factor: Decimal = Decimal(1)
    """What every charge is multiplied by."""

    def charged(self, allocation: Allocation) -> Allocation:
        """What the tariff charges, multiplied."""
        factor = self.price_factor
        if factor == 1:
            return allocation
        periods = tuple(
            share._replace(
                lines=tuple(
                    line._replace(price=line.price * factor, amount=line.amount * factor)
                    for line in share.lines
                )
            )
            for share in allocation.periods
        )
        return allocation._replace(periods=periods)


def electricity(
    question: UtilityBillQuestion, energy: Energy, site: Site, catalog: Catalog, notes: Notes
) -> Billed:
    """What the run's electricity costs; a gap where no price or no energy is known."""
    check_wanted()
    given = site.given
    known = known_site(given, catalog)
    asked = given.electricity if given and given.electricity is not MISSING else None
    if given is None or (asked is None and (known is None or known.tariff_id is None)):
        notes.gap("/electricity/total", "PRICE_REQUIRED", "no price of electricity is given")
        return Billed({"lines": []})
    if asked is not None and asked.price_per_kwh is not MISSING:
        return _at_flat_price(asked, given, energy, notes)
    contract = resolve_contract(question, known, catalog, notes)
    if energy.facility_kwh is None or energy.profiles is None:
        notes.gap("/electricity/total", "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return Billed({"lines": []})
    return _under_tariff(question, contract, energy, energy.profiles, notes)


def known_site(given: RunSite | None, catalog: Catalog) -> KnownSite | None:
    """The site of the catalog that a question names."""
    if given is None or given.site_id is MISSING:
        return None
    return lookup(catalog.sites, given.site_id, "/site/site_id")


def _at_flat_price(asked: Electricity, given: RunSite, energy: Energy, notes: Notes) -> Billed:
    if asked.tariff_id is not MISSING or asked.tariff is not MISSING:
        raise PlanningError("ELECTRICITY_PRICE", _ELECTRICITY, "give price_per_kwh or a tariff, not both")
    if given.baseline_load is not MISSING:
        detail = "at a flat price the bill of the run does not depend on what else the meter reads"
        notes.warn("BASELINE_NOT_USED", "/site/baseline_load", detail)
    metered = [(item.name, item.facility_kwh) for item in energy.equipment if item.facility_kwh]
    if not metered:
        notes.gap("/electricity/total", "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return Billed({"lines": []})
    assert asked.price_per_kwh is not MISSING  # noqa: S101
    price = given_price(asked.price_per_kwh).times(asked.price_factor)
    charged = charges(price, "kWh", *metered)
    lines: list[ElectricityLine] = [{**line} for line in charged.lines]  # type: ignore[typeddict-item]
    return Billed({"lines": lines, "total": charged.total}, charged)


def resolve_contract(
    question: UtilityBillQuestion, known: KnownSite | None, catalog: Catalog, notes: Notes
) -> Contract:
    """The tariff of the question or of its site, on the clock of the site."""
    assert question.site is not MISSING  # noqa: S101
    given = question.site
    asked = given.electricity if given.electricity is not MISSING else Electricity()
    tariff, source, basis, pointer = _tariff(asked, known, catalog, notes)
    zone = given.time_zone if given.time_zone is not MISSING else known.time_zone if known else None
    if zone is None:
        detail = "a tariff is read on the local clock of the site: give its time zone"
        raise PlanningError("TIME_ZONE_REQUIRED", "/site/time_zone", detail)
    zone_of(zone, "/site/time_zone")
    if zone != tariff.time_zone:
        detail = f"the tariff is kept in {tariff.time_zone}; its windows are read on the clock of the site"
        notes.warn("TIME_ZONE_DIFFERS", "/site/time_zone", detail)
        tariff = replace(tariff, time_zone=zone)
    for note in tariff.notes:
        notes.warn("TARIFF_NOTE", pointer, note)
    point = MeteringPoint(
        tariff,
        interval_minutes=question.load_profile.interval_minutes,
        power_factor=asked.power_factor,
        secondary=asked.metering_side == "secondary",
        baseline=_baseline(given, asked, notes),
        history=_history(asked),
        starts=_period_starts(asked),
    )
    factor = asked.price_factor
    if factor is MISSING:
        return Contract(point, source, basis, pointer)
    source = f"{source}, times {factor:.6g}"
    return Contract(point, source, basis, pointer, Decimal(repr(factor)))


def _tariff(
    asked: Electricity, known: KnownSite | None, catalog: Catalog, notes: Notes
) -> tuple[Tariff, str, Basis, str]:
    if asked.tariff is not MISSING:
        if asked.tariff_id is not MISSING:
            raise PlanningError("ELECTRICITY_PRICE", _ELECTRICITY, "give either tariff_id or tariff")
        with located(f"{_ELECTRICITY}/tariff"):
            return to_planning(asked.tariff), GIVEN, Basis.ASSUMED, f"{_ELECTRICITY}/tariff"
    pointer, tariff_id = f"{_ELECTRICITY}/tariff_id", asked.tariff_id
    if tariff_id is MISSING:
        if known is None or known.tariff_id is None:
            detail = "give one of price_per_kwh, tariff_id and tariff"
            raise PlanningError("ELECTRICITY_PRICE", _ELECTRICITY, detail)
        pointer, tariff_id = "/site/site_id", known.tariff_id
    row = lookup(catalog.tariffs, tariff_id, pointer)
    notes.cite(row.source, pointer)
    with located(pointer):
        return row.tariff, f"tariff {row.source['id']}", Basis.REFERENCE, pointer


@contextmanager
def located(pointer: str) -> Iterator[None]:
    """What is refused of a tariff, at its place in the question."""
    try:
        yield
    except PlanningError as error:
        if error.pointer.startswith(_OF_QUESTION):
            raise
        if error.code == "LOAD_TOO_LONG":
            raise PlanningError(error.code, "/load_profile/interval_minutes", error.detail) from error
        inline = error.pointer if pointer.endswith("/tariff") else ""
        raise PlanningError(error.code, pointer + inline, error.detail) from error


def _baseline(given: RunSite, asked: Electricity, notes: Notes) -> Load | float | None:
    known = given.baseline_load
    if known is MISSING:
        if asked.allocation == "incremental":
            detail = "what a run adds to a bill needs the load that is billed without it"
            raise PlanningError("BASELINE_REQUIRED", "/site/baseline_load", detail)
        return None
    if asked.allocation == "standalone":
        detail = "a standalone bill is that of the run alone"
        notes.warn("BASELINE_NOT_USED", "/site/baseline_load", detail)
        return None
    if isinstance(known, ConstantLoad):
        return known.kw
    return Load(datetime.fromisoformat(str(known.starts_at)), known.interval_minutes, np.array(known.kw))


def _history(asked: Electricity) -> dict[tuple[int, int], float] | None:
    if asked.monthly_peaks is MISSING:
        return None
    months = [(int(peak.month[:4]), int(peak.month[5:])) for peak in asked.monthly_peaks]
    if len(set(months)) < len(months):
        pointer = f"{_ELECTRICITY}/monthly_peaks"
        raise PlanningError("MONTH_TWICE", pointer, "each month has one peak")
    return dict(zip(months, (peak.peak_kw for peak in asked.monthly_peaks), strict=True))


def _period_starts(asked: Electricity) -> tuple[date, ...] | None:
    if asked.billing_period_starts is MISSING:
        return None
    try:
        return tuple(date.fromisoformat(day) for day in asked.billing_period_starts)
    except ValueError as error:
        pointer = f"{_ELECTRICITY}/billing_period_starts"
        raise PlanningError("DATE_UNKNOWN", pointer, "the calendar has no such day") from error


def _under_tariff(
    question: UtilityBillQuestion, contract: Contract, energy: Energy, profiles: Ends, notes: Notes
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
    return _answered(charged, contract, energy, is_dated=not is_assumed)


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
        notes.warn("STANDALONE_BILL", _ELECTRICITY, detail)


def _answered(
    allocations: Sequence[Allocation], contract: Contract, energy: Energy, *, is_dated: bool
) -> Billed:
    middle, currency = allocations[0], allocations[0].currency_code
    lines = electricity_lines(middle, contract.source, is_dated=is_dated)
    totals = [rounded_total(allocation) for allocation in allocations]
    basis = _basis(energy, contract.basis)
    charged = Charges(list[Line](lines), totals[0], min(totals), max(totals), currency, basis)
    answer: ElectricityAnswer = {
        "allocation": "standalone" if contract.point.baseline is None else "incremental",
        "lines": lines,
        "total": charged.total,
    }
    if is_dated:
        answer["periods"] = period_totals(middle)
    return Billed(answer, charged)


def _basis(energy: Energy, price: Basis) -> Basis:
    assert energy.facility_kwh is not None  # noqa: S101
    return weakest(energy.facility_kwh, Quantity(0, 0, 0, price))
