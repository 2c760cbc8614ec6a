"""What a meter tells of a load: energy by price period, demand by price period, month and year."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, Protocol

import numpy as np

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod, Finding, Load
from service.planning.tariff.calendar import (
    Integers,
    boundary_minutes,
    calendar_months,
    date_of,
    day_number,
    days_between,
    price_period_table,
    utc_minute,
    zone_of,
)
from service.planning.tariff.cells import Cells, cells_of
from service.planning.tariff.charges import (
    DAY_MINUTES,
    DemandCharge,
    EnergyCharge,
    OverrunCharge,
    PricePeriod,
    Span,
    Tariff,
)
from service.planning.tariff.demands import (
    Demand,
    Floats,
    Groups,
    Peak,
    demand_by_interval,
    demand_by_window,
    demand_rolling,
    grouped,
    highest,
    mean_peaks_of,
    peaks_of,
)
from service.planning.tariff.ladders import energy_reaches
from service.planning.tariff.spans import Part, checked, month_billed, parts_of

_CACHED: Final = 16
"""Compiled loads that are kept: some 3 MB for a year of quarter hours under one tariff."""


class PeaksByPeriod(NamedTuple):
    """Demand of one charge: by billing period and price period, and by month for ratchets."""

    own: Sequence[Sequence[Peak | None]]
    by_month: dict[int, Sequence[Peak | None]]
    """By month key and price period."""
    month: dict[int, Peak]
    """By month key, whatever the price period."""


class Meter(Protocol):
    """What charges ask of a load, whether it is a series or its billing quantities."""

    periods: Sequence[BillingPeriod]
    parts: Sequence[Part]
    months: Sequence[int]
    """Month key of each billing period."""

    def energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        """Energy in kWh by part and price period."""

    def peaks(self, charge: DemandCharge) -> PeaksByPeriod:
        """Demand in kW."""


class Compiled:
    """Where the intervals of a load lie in a tariff's calendar; says nothing of its kW."""

    def __init__(
        self,
        tariff: Tariff,
        first: int,
        interval_minutes: int,
        count: int,
        periods: tuple[BillingPeriod, ...] | None,
    ) -> None:
        self.zone = zone_of(tariff.time_zone)
        charges = [charge for revision in tariff.revisions for charge in revision.charges]
        timed = [
            period
            for charge in charges
            if isinstance(charge, EnergyCharge | DemandCharge)
            for period in charge.periods
        ]
        self.slots = boundary_minutes(timed)
        self.cells: Cells = cells_of(
            first,
            interval_minutes,
            count,
            self.zone,
            {*self.slots, *_window_starts(charges, interval_minutes)},
        )
        cell_days = self.cells.days
        first_day, last_day = int(cell_days[0]), int(cell_days[-1])
        self.days = days_between(first_day, last_day, tariff.holidays)
        self.day = cell_days - first_day
        slot_of = np.searchsorted(self.slots, np.arange(DAY_MINUTES), side="right") - 1
        self.place = self.day * len(self.slots) + slot_of[self.cells.local_starts - cell_days * DAY_MINUTES]
        self.periods = checked(
            calendar_months(date_of(first_day), date_of(last_day)) if periods is None else periods
        )
        self.parts = parts_of(self.periods, tariff.revisions)
        self.months = [month_billed(period) for period in self.periods]
        self._group_days()
        self._energy: dict[int, Integers] = {}
        self._demand: dict[tuple[object, ...], Groups] = {}

    def _group_days(self) -> None:
        """Groups of days: billing periods, then the calendar months of days in none of them."""
        numbers = np.arange(self.days.first, self.days.first + self.days.number)
        period = _place_of(numbers, [(one.start, one.end) for one in self.periods])
        self.part_of_day = _place_of(numbers, [(one.start, one.end) for one in self.parts])
        own = self.days.month_keys[1:]
        others, place = np.unique(own, return_inverse=True)
        self.group_of_day = np.where(period >= 0, period, len(self.periods) + place)
        self.group_months = [*self.months, *others.tolist()]
        self.year_of_group = np.array(self.group_months) // 12
        self.first_year = int(self.year_of_group.min())

    def energy_keys(self, charge: EnergyCharge) -> Integers:
        """For each cell 1 + part x price periods + price period, 0 where the charge does not apply."""
        if id(charge) not in self._energy:
            table = price_period_table(charge.periods, self.days, self.slots)
            applies = np.isin(self.days.months[1:], list(charge.months)) & (self.part_of_day >= 0)
            table[~applies] = -1
            keys = 1 + self.part_of_day[:, None] * len(charge.periods) + table
            self._energy[id(charge)] = np.where(table < 0, 0, keys).ravel()[self.place]
        return self._energy[id(charge)]

    def demand_groups(self, periods: Sequence[PricePeriod] | None, span: Span) -> Groups:
        """Cells by billing period (or month, or calendar year) and price period; None: all hours."""
        known = (id(periods), span)
        if known not in self._demand:
            group, count = self.group_of_day, len(self.group_months)
            if span is Span.CALENDAR_YEAR:
                group = self.year_of_group[group] - self.first_year
                count = int(self.year_of_group.max()) - self.first_year + 1
            if periods is None:
                self._demand[known] = grouped(group[self.day], count)
            else:
                table = price_period_table(periods, self.days, self.slots)
                keys = np.where(table < 0, -1, group[:, None] * len(periods) + table)
                self._demand[known] = grouped(keys.ravel()[self.place], count * len(periods))
        return self._demand[known]


def _place_of(numbers: Integers, spans: Sequence[tuple[object, object]]) -> Integers:
    place = np.full(len(numbers), -1)
    for index, (start, end) in enumerate(spans):
        place[(numbers >= day_number(start)) & (numbers < day_number(end))] = index  # type: ignore[arg-type]
    return place


def _window_starts(charges: Sequence[object], interval_minutes: int) -> set[int]:
    """Minutes of the day at which demand windows begin that intervals are not already pieces of."""
    lengths = {
        charge.window_minutes
        for charge in charges
        if isinstance(charge, DemandCharge | OverrunCharge) and charge.window_minutes
    }
    return {
        minute for length in lengths if interval_minutes % length for minute in range(0, DAY_MINUTES, length)
    }


class _Same:
    """A value that is equal to itself only: tariffs may hold arrays, which have no hash."""

    def __init__(self, value: Tariff) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


@lru_cache(maxsize=_CACHED)
def _compiled(
    tariff: _Same, first: int, interval_minutes: int, count: int, periods: tuple[BillingPeriod, ...] | None
) -> Compiled:
    return Compiled(tariff.value, first, interval_minutes, count, periods)


class SeriesMeter:
    """A load read by a tariff's calendar."""

    def __init__(self, tariff: Tariff, load: Load, periods: Sequence[BillingPeriod] | None) -> None:
        self.load = load
        kw = _checked_kw(load)
        self.compiled = _compiled(
            _Same(tariff),
            utc_minute(load.start),
            load.interval_minutes,
            len(kw),
            None if periods is None else tuple(periods),
        )
        self.kw = kw * (1.0 + tariff.secondary_loss_factor) if load.secondary else kw
        self.periods, self.parts = self.compiled.periods, self.compiled.parts
        self.months = self.compiled.months
        self.zone = self.compiled.zone
        self._demands: dict[tuple[int | None, bool], Demand] = {}

    @cached_property
    def kwh(self) -> Floats:
        """Energy in kWh of each cell."""
        cells = self.compiled.cells
        if cells.interval is None:
            return self.kw * (cells.interval_minutes / 60.0)
        return self.kw[cells.interval] * (cells.minutes / 60.0)

    def energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        """Energy in kWh by part and price period."""
        keys, width = self.compiled.energy_keys(charge), len(charge.periods)
        sums = np.bincount(keys, self.kwh, 1 + len(self.parts) * width)[1:]
        return [row.tolist() for row in sums.reshape(len(self.parts), width)]

    def energy_in_time_order(
        self, charge: EnergyCharge, number: int, billing_kw: float
    ) -> Sequence[Sequence[float]]:
        """Energy in kWh of a part by price period and tier; tiers count all kWh since the part began."""
        part, width = self.parts[number], len(charge.periods)
        inside = (self.compiled.part_of_day == number)[self.compiled.day]
        after = np.cumsum(self.kwh[inside])
        before = np.concatenate(([0.0], after[:-1]))
        keys = self.compiled.energy_keys(charge)[inside]
        place = np.where(keys == 0, -1, (keys - 1) % width)
        found = []
        for price_period, period in enumerate(charge.periods):
            mine = place == price_period
            row = [0.0] * len(period.tiers)
            for reach in energy_reaches(period.tiers, billing_kw, part.days, part.share):
                parts = np.clip(after[mine], reach.low, reach.high) - np.clip(
                    before[mine], reach.low, reach.high
                )
                row[reach.place - 1] = float(parts.sum())
            found.append(row)
        return found

    @cached_property
    def findings(self) -> list[Finding]:
        """What reading the load by the calendar of the tariff had to assume."""
        cut = self.compiled.cells.cut_intervals
        if not len(cut):
            return []
        return [
            Finding(
                "INTERVAL_CUT",
                "",
                f"{len(cut)} intervals lie across a boundary of the tariff: their energy is split in "
                "proportion to time, and each counts towards the demand on both sides",
            )
        ]

    def demand(self, window_minutes: int | None, *, rolling: bool = False) -> Demand:
        """Demand of each cell over windows of that length; intervals that are longer count as they are."""
        step = self.load.interval_minutes
        if window_minutes is not None and (window_minutes == step or step % window_minutes == 0):
            window_minutes = None
        known = (window_minutes, rolling)
        if known not in self._demands:
            cells = self.compiled.cells
            if window_minutes is None:
                found = demand_by_interval(self.kw, cells)
            elif rolling:
                found = demand_rolling(self.kw, cells, window_minutes)
            else:
                found = demand_by_window(self.kw, cells, window_minutes)
            self._demands[known] = found
        return self._demands[known]

    def highest(self, charge: DemandCharge, periods: Sequence[PricePeriod] | None) -> list[Peak | None]:
        """What a charge takes as the demand of each group of cells."""
        demand = self.demand(charge.window_minutes, rolling=charge.rolling)
        groups = self.compiled.demand_groups(periods, charge.span)
        if charge.peaks == 1:
            return peaks_of(demand, groups)
        days = self.compiled.day if charge.on_distinct_days else None
        return mean_peaks_of(demand, groups, charge.peaks, days)

    def peaks(self, charge: DemandCharge) -> PeaksByPeriod:
        """Demand in kW by billing period, month and price period."""
        width = len(charge.periods)
        flat = self.highest(charge, charge.periods)
        rows = [flat[place : place + width] for place in range(0, len(flat), width)]
        needs_all = any(ratchet.period is None for ratchet in charge.billing_demand.ratchets)
        alls = self.highest(charge, None) if needs_all else [highest(row) for row in rows]
        if charge.span is Span.CALENDAR_YEAR:
            years = (self.compiled.year_of_group - self.compiled.first_year).tolist()
            rows, alls = [rows[year] for year in years], [alls[year] for year in years]
        by_month: dict[int, Sequence[Peak | None]] = {}
        month: dict[int, Peak] = {}
        for key, row, peak in zip(self.compiled.group_months, rows, alls, strict=True):
            if peak is None:
                continue
            before = by_month.get(key)
            by_month[key] = (
                row if before is None else [highest(pair) for pair in zip(before, row, strict=True)]
            )
            month[key] = max(month.get(key, peak), peak, key=lambda one: one.kw)
        return PeaksByPeriod(rows[: len(self.periods)], by_month, month)

    @cached_property
    def period_peaks(self) -> Sequence[Peak | None]:
        """Highest interval of each billing period."""
        groups = self.compiled.demand_groups(None, Span.BILLING_PERIOD)
        return peaks_of(self.demand(None), groups)[: len(self.periods)]

    @cached_property
    def period_kwh(self) -> Sequence[float]:
        """Energy in kWh of each billing period."""
        groups = self.compiled.group_of_day[self.compiled.day]
        sums: list[float] = np.bincount(groups, self.kwh, len(self.compiled.group_months)).tolist()
        return sums[: len(self.periods)]


def _checked_kw(load: Load) -> Floats:
    kw = np.asarray(load.kw, np.float64)
    if kw.ndim != 1 or not len(kw):
        raise PlanningError("LOAD_EMPTY", "/kw", "a load has at least one interval")
    if not np.isfinite(kw).all() or kw.min() < 0.0:
        raise PlanningError("LOAD_KW", "/kw", "a load is finite and not below 0 kW in every interval")
    if load.interval_minutes < 1:
        raise PlanningError("LOAD_INTERVAL", "/interval_minutes", "an interval lasts at least a minute")
    if not 0.0 < load.power_factor <= 1.0:
        raise PlanningError("POWER_FACTOR", "/power_factor", "a power factor is above 0 and at most 1")
    return kw
