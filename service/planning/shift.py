"""What if a run began at another time: its bill and its emissions for every start of a window.

A bill reads of a load only energies and peaks by charge and group of hours. For a run that is moved along a
baseline b these are

    energy  E_g(s) = sum_i b_i c_gi + sum_j w_j c_g(s+j)             sliding sum       kWh
    peak    P_g(s) = max(max_{i in g} b_i, max_{s+j in g} (b_(s+j) + w_j))   sliding maximum   kW

with w the run's kW, c_gi the hours of interval i within group g. They are worked out for all starts at once;
the prices are then those of :mod:`service.planning.tariff.billing`, so that a start costs what a bill of it
says. What no sum or maximum gives (means of several peaks, demand over longer windows, tiers in order of
time) is read from the load of each start.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from service.planning.errors import PlanningError
from service.planning.tariff.allocation import (
    MeteringPoint,
    Reach,
    allocate,
    history_of,
    metered,
    reach_of,
    tied_periods,
    together,
    touched_by,
)
from service.planning.tariff.bill import Bill, BillingPeriod, Load
from service.planning.tariff.billing import bill_by_meter
from service.planning.tariff.charges import DemandCharge, EnergyCharge, PricePeriod, Span, Tariff
from service.planning.tariff.demands import Peak
from service.planning.tariff.meter import SeriesMeter

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_STARTS = 5_000
"""Most starts that are compared: 52 days of quarters of an hour."""
_MOST_CELLS = 60_000_000
"""Most pairs of a start and an interval of the run."""
_CHUNK = 2_000_000
"""Pairs that are held at a time."""


class Starts(NamedTuple):
    """Moments at which a run may begin: ``number`` of them, ``step_minutes`` apart."""

    first: datetime
    step_minutes: int
    number: int

    def at(self, place: int) -> datetime:
        """One of them."""
        return self.first + place * timedelta(minutes=self.step_minutes)


def starts_within(first: datetime, last: datetime, step_minutes: int, interval_minutes: int) -> Starts:
    """Moments from ``first`` to ``last``, both counted.

    Refuses windows that run back, and steps that are no multiple of the interval or are more than can be
    compared (SHIFT_WINDOW).
    """
    if step_minutes % interval_minutes:
        detail = f"a step is a multiple of the interval of {interval_minutes} minutes"
        raise PlanningError("SHIFT_WINDOW", "/window/step_minutes", detail)
    if last < first:
        raise PlanningError("SHIFT_WINDOW", "/window/latest_start_at", "the window ends before it begins")
    count = int((last - first).total_seconds() // (60 * step_minutes)) + 1
    if count > MOST_STARTS:
        detail = f"at most {MOST_STARTS} starts are compared: take a longer step"
        raise PlanningError("SHIFT_WINDOW", "/window/step_minutes", detail)
    return Starts(first, step_minutes, count)


def sliding_sums(weights: Floats, kw: Floats, first: int, step: int, count: int) -> Floats:
    """The sum of ``kw`` times the ``weights`` that it lies on, at each of ``count`` places from ``first``."""
    reach = weights[first : first + (count - 1) * step + kw.size]
    if (kw == kw[0]).all():
        until = np.concatenate(([0.0], np.cumsum(reach)))
        return (until[kw.size :] - until[: -kw.size])[::step] * float(kw[0])
    found: Floats = np.correlate(reach, kw, "valid")[::step]
    return found


def sliding_maxima(values: Floats, kw: Floats, first: int, step: int, count: int) -> tuple[Floats, Integers]:
    """The highest sum of ``kw`` and the ``values`` that it lies on, and its place among them, by start."""
    windows = sliding_window_view(values[first : first + (count - 1) * step + kw.size], kw.size)[::step]
    highest, places = np.empty(count), np.empty(count, np.int64)
    rows = max(1, _CHUNK // kw.size)
    for begin in range(0, count, rows):
        sums = windows[begin : begin + rows] + kw
        found = sums.argmax(axis=1)
        highest[begin : begin + rows] = sums[np.arange(len(found)), found]
        places[begin : begin + rows] = found
    return highest, places + first + step * np.arange(count)


class _Moved:
    """What the meter reads for every start, by charge; worked out when it is first asked for."""

    def __init__(self, baseline: SeriesMeter, kw: Floats, first: int, step: int, count: int) -> None:
        self.baseline = baseline
        self.kw, self.place = kw, (first, step, count)
        self._sums: dict[object, Floats] = {}
        self._peaks: dict[object, list[tuple[Floats, Integers]]] = {}

    @cached_property
    def _interval(self) -> Integers:
        cells = self.baseline.compiled.cells
        return np.arange(len(cells.starts)) if cells.interval is None else cells.interval

    def sums(self, keys: Integers, groups: int) -> Floats:
        """Energy in kWh by start and group of cells."""
        hours = self.baseline.compiled.cells.minutes / 60.0
        found = np.empty((self.place[2], groups))
        for group in range(groups):
            counted = np.where(keys == group, hours, 0.0)
            weights: Floats = np.bincount(self._interval, counted, len(self.baseline.kw)).astype(np.float64)
            own = float(weights @ self.baseline.kw)
            found[:, group] = own + sliding_sums(weights, self.kw, *self.place)
        return found

    def energy(self, charge: EnergyCharge) -> Floats:
        """Energy in kWh by start, part and price period."""
        if id(charge) not in self._sums:
            keys, groups = self.baseline.compiled.energy_keys(charge), len(charge.periods)
            count = len(self.baseline.parts) * groups
            self._sums[id(charge)] = self.sums(keys - 1, count).reshape(-1, len(self.baseline.parts), groups)
        return self._sums[id(charge)]

    @cached_property
    def part_kwh(self) -> Floats:
        """Energy in kWh by start and part of a billing period."""
        compiled = self.baseline.compiled
        return self.sums(compiled.part_of_day[compiled.day], len(self.baseline.parts))

    def peaks(self, periods: Sequence[PricePeriod] | None, span: Span) -> list[tuple[Floats, Integers]]:
        """Highest interval and its place by start, for each group of cells; place -1 where it has none."""
        key = (id(periods), span)
        if key not in self._peaks:
            order, bounds = self.baseline.compiled.demand_groups(periods, span)
            self._peaks[key] = [
                self._highest(np.unique(self._interval[order[begin:end]])) for begin, end in pairwise(bounds)
            ]
        return self._peaks[key]

    def _highest(self, intervals: Integers) -> tuple[Floats, Integers]:
        first, step, count = self.place
        if not intervals.size:
            return np.zeros(count), np.full(count, -1)
        own = self.baseline.kw
        base = int(intervals[own[intervals].argmax()])
        highest, places = np.full(count, own[base]), np.full(count, base)
        if intervals[-1] < first or intervals[0] >= first + (count - 1) * step + self.kw.size:
            return highest, places
        values = np.full(own.size, -np.inf)
        values[intervals] = own[intervals]
        sums, at = sliding_maxima(values, self.kw, *self.place)
        raised = (sums > highest) | ((sums == highest) & (at < places))
        return np.where(raised, sums, highest), np.where(raised, at, places)


class _Start(SeriesMeter):
    """The meter with the run at one of its starts: what sums and maxima give is not read from the load."""

    def __init__(self, tariff: Tariff, load: Load, moved: _Moved, place: int) -> None:
        super().__init__(tariff, load, moved.baseline.periods)
        self._moved, self._place = moved, place

    def energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        rows: list[list[float]] = self._moved.energy(charge)[self._place].tolist()
        return rows

    def highest(self, charge: DemandCharge, periods: Sequence[PricePeriod] | None) -> list[Peak | None]:
        window = charge.window_minutes
        is_of_intervals = window is None or self.load.interval_minutes % window == 0
        if charge.peaks > 1 or charge.rolling or not is_of_intervals:
            return super().highest(charge, periods)
        return self._read(self._moved.peaks(periods, charge.span))

    def _read(self, groups: Sequence[tuple[Floats, Integers]]) -> list[Peak | None]:
        cells, found = self.compiled.cells, list[Peak | None]()
        for kw, places in groups:
            at = int(places[self._place])
            minute = cells.first + at * cells.interval_minutes
            found.append(None if at < 0 else Peak(float(kw[self._place]), minute))
        return found

    @property
    def period_peaks(self) -> Sequence[Peak | None]:
        return self._read(self._moved.peaks(None, Span.BILLING_PERIOD))[: len(self.periods)]

    @cached_property
    def part_kwh(self) -> Sequence[float]:
        found: list[float] = self._moved.part_kwh[self._place].tolist()
        return found


def costs_of_starts(point: MeteringPoint, run: Load, starts: Starts) -> list[Decimal]:
    """What the run is billed for each start, not rounded: what it adds to the baseline, or all of it.

    ``run`` is the load of the first start; its shape does not depend on when it is. The same as
    :func:`service.planning.tariff.allocation.allocate` gives one by one.
    """
    step = starts.step_minutes // run.interval_minutes
    if starts.number * run.kw.size > _MOST_CELLS:
        detail = "the run and the window are too long to compare so many starts: take a longer step"
        raise PlanningError("SHIFT_WINDOW", "/window/step_minutes", detail)
    if point.baseline is None and reach_of(point.tariff) != Reach():
        # What ties months makes each start a bill of its own span.
        loads = (moved_by(run, place * starts.step_minutes) for place in range(starts.number))
        return [allocate(point, [load]).allocations[0].total for load in loads]
    whole = run._replace(kw=np.ones(run.kw.size + step * (starts.number - 1)))
    periods, _ = tied_periods(point, touched_by(point, whole))
    load = metered(point, periods)
    kw = run.kw * (1.0 + point.tariff.secondary_loss_factor * point.secondary)
    first = round((run.start - load.start).total_seconds() / 60.0 / run.interval_minutes)
    history = history_of(point, periods)
    baseline = SeriesMeter(point.tariff, load, periods)
    moved = _Moved(baseline, kw, first, step, starts.number)
    runs = [moved_by(run, place * starts.step_minutes) for place in range(starts.number)]
    meters = (_Start(point.tariff, together(load, one), moved, place) for place, one in enumerate(runs))
    bills = (bill_by_meter(point.tariff, meter, history=history) for meter in meters)
    if point.baseline is None:
        touched = (touched_by(point, one) for one in runs)
        return [_total_of(bill, own) for bill, own in zip(bills, touched, strict=True)]
    without = bill_by_meter(point.tariff, baseline, history=history).total
    return [bill.total - without for bill in bills]


def moved_by(load: Load, minutes: int) -> Load:
    """The same load, so much later."""
    return load._replace(start=load.start + timedelta(minutes=minutes))


def _total_of(bill: Bill, touched: Sequence[BillingPeriod]) -> Decimal:
    return sum((period.total for period in bill.periods if period.period in touched), Decimal(0))
