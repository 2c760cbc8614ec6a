"""Interface of a metered load to charges, and the meter that reads a series of intervals."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo

import numpy as np

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillFinding, BillingPeriod, MeteredLoad
from service.planning.tariff.calendar import Integers, to_utc_minute
from service.planning.tariff.charges import (
    DAY_MINUTES,
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    PeakSpan,
    PricePeriod,
    RealTimeCharge,
    Tariff,
    TariffCharge,
)
from service.planning.tariff.coincident import EnergyUntil, accumulate_energy, compute_peak_demands
from service.planning.tariff.compiled import CompiledTariff, compile_calendar
from service.planning.tariff.demands import (
    CellDemand,
    CellGroups,
    DemandPeak,
    Floats,
    compute_interval_demand,
    compute_rolling_demand,
    compute_window_demand,
    find_group_peaks,
    find_highest_peak,
    find_mean_peaks,
    group_cells,
)
from service.planning.tariff.effort import (
    MOST_STEPS,
    LoadExtent,
    check_size,
    estimate_bill_effort,
    estimate_size,
)
from service.planning.tariff.ladders import list_energy_reaches
from service.planning.tariff.market import MarketEnergy, split_market_energy
from service.planning.tariff.spans import FIRST_YEAR, LAST_YEAR, RevisionSpan

_LONGEST_KEPT = 40_000
"""Intervals of the longest load whose calendar is cached: a year of quarter hours."""
_MOST_KEPT = 1_500_000
"""Numbers of the largest calendar that is cached: five per cell, and one per kind of charge."""


class PeaksByPeriod(NamedTuple):
    """Demand of one charge: by billing period and price period, and by month for ratchets."""

    own: Sequence[Sequence[DemandPeak | None]]
    by_month: Mapping[int, Sequence[DemandPeak | None]]
    """Peaks by month key and price period."""
    month: Mapping[int, DemandPeak]
    """Peaks by month key, whatever the price period."""


class AnnualUse(NamedTuple):
    """Energy and peak of a calendar year, and the share of its hours that the load covers."""

    energy_kwh: float
    peak_kw: float
    covered: float

    @property
    def hours(self) -> float:
        """Hours of use: energy over peak, 0 without either."""
        return self.energy_kwh / self.peak_kw if self.peak_kw else 0.0


def find_pointer(tariff: Tariff, charge: TariffCharge) -> str:
    """Returns the JSON pointer of a charge in its tariff."""
    return next(
        f"/revisions/{number}/charges/{place}"
        for number, revision in enumerate(tariff.revisions)
        for place, each in enumerate(revision.charges)
        if each is charge
    )


class LoadMeter(Protocol):
    """A load as charges read it, from a series or from billing quantities."""

    @property
    def zone(self) -> ZoneInfo:
        """Zone of the tariff's clock."""

    @property
    def power_factor(self) -> float:
        """Active over apparent power."""

    @property
    def first_month(self) -> int:
        """Month key of the first month of the load."""

    @property
    def periods(self) -> Sequence[BillingPeriod]:
        """Billing periods, in order of time."""

    @property
    def parts(self) -> Sequence[RevisionSpan]:
        """Parts of the billing periods under one revision."""

    @property
    def months(self) -> Sequence[int]:
        """Month key of each billing period."""

    @property
    def findings(self) -> Sequence[BillFinding]:
        """Remarks on assumptions."""

    @property
    def part_kwh(self) -> Sequence[float]:
        """Energy of each part."""

    @property
    def period_peaks(self) -> Sequence[DemandPeak | None]:
        """Highest demand of each billing period, None where it is not known or there is no load."""

    def find_window_peak(self, period: int, window_minutes: int | None) -> DemandPeak:
        """Returns the highest demand of a billing period over windows of that length."""

    def compute_energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        """Returns energy in kWh by part and price period."""

    def compute_energy_in_order(
        self, charge: EnergyCharge, number: int, billing_kw: float
    ) -> Sequence[Sequence[float]]:
        """Returns kWh of a part by price period and tier; tiers count all kWh since the part began."""

    def find_peaks(self, charge: DemandCharge) -> PeaksByPeriod:
        """Returns the demand in kW by billing period, month and price period."""

    def compute_market_energy(self, charge: RealTimeCharge) -> Sequence[MarketEnergy]:
        """Returns the energy of each part and its market price."""

    def find_coincident_demands(
        self, charge: CoincidentPeakCharge
    ) -> Mapping[int, Sequence[Sequence[DemandPeak]]]:
        """Returns the demands in the grid's peak intervals by year and peak set."""

    def compute_annual_use(self, year: int) -> AnnualUse:
        """Returns energy and peak of a local calendar year."""


class SeriesMeter:
    """A load read by a tariff's calendar."""

    def __init__(self, tariff: Tariff, load: MeteredLoad, periods: Sequence[BillingPeriod] | None) -> None:
        self.load = load
        count = len(self._kw)
        known = None if periods is None else tuple(periods)
        extent = LoadExtent(count, load.interval_minutes, 0, load.start.date())
        extent = extent._replace(periods=extent.days // 28 + 2 if known is None else len(known))
        size = estimate_size(tariff, extent)
        check_size(size)
        estimate_bill_effort(tariff, extent).check(MOST_STEPS, "")
        first = to_utc_minute(load.start)
        is_small = extent.intervals <= _LONGEST_KEPT and 5 * size.cells + size.readings <= _MOST_KEPT
        compiled = compile_calendar(
            tariff, first, extent.interval_minutes, extent.intervals, known, keep=is_small
        )
        self._reset_readings(load, compiled)

    def _reset_readings(self, load: MeteredLoad, compiled: CompiledTariff) -> None:
        """Sets the load and its calendar, without any cached reading."""
        self.load, self.compiled = load, compiled
        self.periods, self.parts = compiled.periods, compiled.parts
        self.months = compiled.months
        self.zone, self.power_factor = compiled.zone, load.power_factor
        self.first_month = compiled.first_month
        self._demands: dict[tuple[int | None, bool], CellDemand] = {}
        self._energy: dict[tuple[int, frozenset[int]], list[list[float]]] = {}
        self._highest: dict[tuple[object, ...], list[DemandPeak | None]] = {}
        self._peaks: dict[tuple[object, ...], PeaksByPeriod] = {}

    @cached_property
    def _kw(self) -> Floats:
        return _check_kw(self.load)

    @cached_property
    def kw(self) -> Floats:
        """Mean kW of each interval, with the tariff's addition for a transformer."""
        factor = 1.0 + self.compiled.tariff.secondary_loss_factor
        return self._kw * factor if self.load.secondary else self._kw

    @cached_property
    def kwh(self) -> Floats:
        """Energy in kWh of each cell."""
        cells = self.compiled.cells
        if cells.interval is None:
            return self.kw * (cells.interval_minutes / 60.0)
        return self.kw[cells.interval] * (cells.minutes / 60.0)

    def compute_energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        """Returns energy in kWh by part and price period."""
        kind = self.compiled.get_energy_kind(charge)
        if kind not in self._energy:
            keys, width = self.compiled.get_energy_keys(charge), len(charge.periods)
            sums = np.bincount(keys, self.kwh, 1 + len(self.parts) * width)[1:]
            self._energy[kind] = [row.tolist() for row in sums.reshape(len(self.parts), width)]
        return self._energy[kind]

    def compute_energy_in_order(
        self, charge: EnergyCharge, number: int, billing_kw: float
    ) -> Sequence[Sequence[float]]:
        """Returns kWh of a part by price period and tier; tiers count all kWh since the part began."""
        part, width = self.parts[number], len(charge.periods)
        inside = self._list_cells(number)
        after = np.cumsum(self.kwh[inside])
        before = np.concatenate(([0.0], after[:-1]))
        keys = self.compiled.get_energy_keys(charge)[inside]
        place = np.where(keys == 0, -1, (keys - 1) % width)
        found = []
        for price_period, period in enumerate(charge.periods):
            mine = place == price_period
            row = [0.0] * len(period.tiers)
            for reach in list_energy_reaches(period.tiers, billing_kw, part.days, part.share):
                parts = np.clip(after[mine], reach.low, reach.high) - np.clip(
                    before[mine], reach.low, reach.high
                )
                row[reach.place - 1] = float(parts.sum())
            found.append(row)
        return found

    @cached_property
    def _cells_by_part(self) -> CellGroups:
        return group_cells(self.compiled.part_of_day[self.compiled.day], len(self.parts))

    def _list_cells(self, number: int) -> Integers:
        """Returns the cells of a part, in order of time."""
        order, bounds = self._cells_by_part
        return order[bounds[number] : bounds[number + 1]]

    @cached_property
    def findings(self) -> list[BillFinding]:
        """Assumptions made in reading the load by the calendar of the tariff."""
        compiled, step, found = self.compiled, self.load.interval_minutes, []
        cut = len(compiled.cells.cut_intervals)
        if cut:
            detail = f"{cut} intervals lie across a boundary of the tariff: their energy is split in "
            detail += "proportion to time, and each counts towards the demand on both sides"
            found.append(BillFinding("INTERVAL_CUT", "", detail))
        if compiled.finest_window_minutes < step:
            detail = f"demand over {compiled.finest_window_minutes} minutes may be higher than the mean of "
            detail += f"the {step} minutes in which the load is given"
            found.append(BillFinding("DEMAND_WINDOW", "", detail))
        for name, cells in compiled.unpriced.items():
            unpriced = float(self.kwh[cells].sum())
            if unpriced:
                detail = f"{name or 'no charge'} has {'no' if name else 'a'} price for {unpriced:.10g} kWh"
                found.append(BillFinding("ENERGY_UNPRICED", "", detail))
        return found

    def compute_demand(self, window_minutes: int | None, *, rolling: bool = False) -> CellDemand:
        """Returns the demand of each cell over windows of that length; longer intervals count as they are."""
        step = self.load.interval_minutes
        if window_minutes is not None and step % window_minutes == 0:
            window_minutes = None
        if rolling and window_minutes is not None and window_minutes % step:
            raise PlanningError("DEMAND_WINDOW", "/interval_minutes", "a rolling window is whole intervals")
        known = (window_minutes, rolling)
        if known not in self._demands:
            cells = self.compiled.cells
            if window_minutes is None:
                found = compute_interval_demand(self.kw, cells)
            elif rolling:
                found = compute_rolling_demand(self.kw, cells, window_minutes)
            else:
                found = compute_window_demand(self.kw, cells, window_minutes)
            self._demands[known] = found
        return self._demands[known]

    def get_demand_kind(
        self, charge: DemandCharge, periods: Sequence[PricePeriod] | None
    ) -> tuple[object, ...]:
        """Returns a key that charges with the same demand share."""
        hours = None if periods is None else self.compiled.get_hours_id(periods)
        several = (charge.peaks, charge.on_distinct_days) if charge.peaks > 1 else ()
        return (hours, charge.span, charge.window_minutes, charge.rolling, *several)

    def get_highest_peaks(
        self, charge: DemandCharge, periods: Sequence[PricePeriod] | None
    ) -> list[DemandPeak | None]:
        """Returns the demand of each group of cells for a charge, cached for all charges of the same kind."""
        kind = self.get_demand_kind(charge, periods)
        if kind not in self._highest:
            self._highest[kind] = self.read_highest(charge, periods)
        return self._highest[kind]

    def read_highest(
        self, charge: DemandCharge, periods: Sequence[PricePeriod] | None
    ) -> list[DemandPeak | None]:
        """Returns the demand of each group of cells from the intervals of the load."""
        demand = self.compute_demand(charge.window_minutes, rolling=charge.rolling)
        groups = self.compiled.get_demand_groups(periods, charge.span)
        if charge.peaks == 1:
            return find_group_peaks(demand, groups)
        days = self.compiled.day if charge.on_distinct_days else None
        return find_mean_peaks(demand, groups, charge.peaks, days)

    def find_peaks(self, charge: DemandCharge) -> PeaksByPeriod:
        """Returns the demand in kW by billing period, month and price period."""
        needs_all = any(ratchet.period is None for ratchet in charge.billing_demand.ratchets)
        kind = (needs_all, *self.get_demand_kind(charge, charge.periods))
        if kind not in self._peaks:
            self._peaks[kind] = self._build_peaks(charge, needs_all=needs_all)
        return self._peaks[kind]

    def _build_peaks(self, charge: DemandCharge, *, needs_all: bool) -> PeaksByPeriod:
        width = len(charge.periods)
        flat = self.get_highest_peaks(charge, charge.periods)
        rows = [flat[place : place + width] for place in range(0, len(flat), width)]
        alls = self.get_highest_peaks(charge, None) if needs_all else [find_highest_peak(row) for row in rows]
        if charge.span is PeakSpan.CALENDAR_YEAR:
            years = (self.compiled.year_of_group - self.compiled.first_year).tolist()
            rows, alls = [rows[year] for year in years], [alls[year] for year in years]
        by_month: dict[int, Sequence[DemandPeak | None]] = {}
        month: dict[int, DemandPeak] = {}
        for key, row, peak in zip(self.compiled.group_months, rows, alls, strict=True):
            if peak is None:
                continue
            before = by_month.get(key)
            by_month[key] = (
                row if before is None else [find_highest_peak(pair) for pair in zip(before, row, strict=True)]
            )
            month[key] = max(month.get(key, peak), peak, key=lambda one: one.kw)
        return PeaksByPeriod(rows[: len(self.periods)], by_month, month)

    @cached_property
    def period_peaks(self) -> Sequence[DemandPeak | None]:
        """Highest interval of each billing period."""
        return self._find_period_peaks(None)

    @cached_property
    def _window_peaks(self) -> dict[int, Sequence[DemandPeak | None]]:
        return {}

    def _find_period_peaks(self, window_minutes: int | None) -> Sequence[DemandPeak | None]:
        groups = self.compiled.get_demand_groups(None, PeakSpan.BILLING_PERIOD)
        return find_group_peaks(self.compute_demand(window_minutes), groups)[: len(self.periods)]

    def find_window_peak(self, period: int, window_minutes: int | None) -> DemandPeak:
        """Returns the highest demand of a billing period over windows of that length."""
        if window_minutes is None:
            return self.period_peaks[period] or DemandPeak(0.0)
        if window_minutes not in self._window_peaks:
            self._window_peaks[window_minutes] = self._find_period_peaks(window_minutes)
        return self._window_peaks[window_minutes][period] or DemandPeak(0.0)

    @cached_property
    def part_kwh(self) -> Sequence[float]:
        """Energy of each part."""
        keys = 1 + self.compiled.part_of_day[self.compiled.day]
        sums: list[float] = np.bincount(keys, self.kwh, 1 + len(self.parts)).tolist()
        return sums[1:]

    def compute_market_energy(self, charge: RealTimeCharge) -> Sequence[MarketEnergy]:
        """Returns the energy of each part and its market price."""
        part = self.compiled.part_of_day
        applies = np.isin(self.compiled.days.months[1:], list(charge.months))
        keys = np.where(applies, part, -1)[self.compiled.day]
        return split_market_energy(charge.prices, self.compiled.cells, self.kwh, keys, len(self.parts))

    @cached_property
    def _energy_until(self) -> EnergyUntil:
        return accumulate_energy(self.compiled.cells, self.kwh)

    def find_coincident_demands(
        self, charge: CoincidentPeakCharge
    ) -> Mapping[int, Sequence[Sequence[DemandPeak]]]:
        """Returns demands in the grid's peak intervals by year and peak set.

        0 outside the load, with a finding.
        """
        cells, years = self.compiled.cells, self.compiled.years
        found = compute_peak_demands(charge.sets, self._energy_until, cells, self.zone, years)
        begins = [peak.at for rows in found.values() for row in rows for peak in row if peak.at is not None]
        end = cells.starts[-1] + cells.minutes[-1]
        outside = sum(not cells.first <= at < end for at in begins)
        if outside:
            detail = (
                f"{charge.name}: {outside} of {len(begins)} peak intervals lie outside the load and count 0"
            )
            self.findings.append(BillFinding("COINCIDENT_PEAK_OUTSIDE", "", detail))
        return found

    def compute_annual_use(self, year: int) -> AnnualUse:
        """Returns energy and peak of a local calendar year."""
        inside = (self.compiled.days.month_keys[1:] // 12 == year)[self.compiled.day]
        if not inside.any():
            return AnnualUse(0.0, 0.0, 0.0)
        demand = self.compute_demand(self.compiled.annual_window_minutes).kw[inside]
        minutes = int(self.compiled.cells.minutes[inside].sum())
        days = (date(year + 1, 1, 1) - date(year, 1, 1)).days
        covered = minutes / (days * DAY_MINUTES)
        return AnnualUse(float(self.kwh[inside].sum()), float(demand.max()), covered)


def _check_kw(load: MeteredLoad) -> Floats:
    kw = np.asarray(load.kw, np.float64)
    if kw.ndim != 1 or not len(kw):
        raise PlanningError("LOAD_EMPTY", "/kw", "a load has at least one interval")
    if not np.isfinite(kw).all() or kw.min() < 0.0:
        raise PlanningError("LOAD_KW", "/kw", "a load is finite and not below 0 kW in every interval")
    if load.interval_minutes < 1:
        raise PlanningError("LOAD_INTERVAL", "/interval_minutes", "an interval lasts at least a minute")
    days = len(kw) * load.interval_minutes / DAY_MINUTES
    if load.start.year < FIRST_YEAR or load.start.year + days / 365.0 >= LAST_YEAR - 1:
        raise PlanningError("LOAD_RANGE", "/start", f"a load lies within {FIRST_YEAR} to {LAST_YEAR}")
    if not 0.0 < load.power_factor <= 1.0:
        raise PlanningError("POWER_FACTOR", "/power_factor", "a power factor is above 0 and at most 1")
    return kw
