"""Bill of a run for every start of a window.

A bill reads only energies and peaks of a load, by charge and group of hours. For a run that is moved along a
baseline b these are

    energy  E_g(s) = sum_i b_i c_gi + sum_j w_j c_g(s+j)             sliding sum       kWh
    peak    P_g(s) = max(max_{i in g} b_i, max_{s+j in g} (b_(s+j) + w_j))   sliding maximum   kW

with w the run's kW, c_gi the hours of interval i within group g. They are computed for all starts at once;
the prices are then those of :mod:`service.planning.tariff.billing`, so that a start costs the same as its
bill. Figures that no sum or maximum gives (means of several peaks, demand over longer windows, tiers in order
of time) are read from the load of each start.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from service.planning.errors import PlanningError
from service.planning.tariff.allocation import (
    BillAllocation,
    allocate_bill,
    build_allocation,
    compute_difference,
    estimate_allocation_effort,
)
from service.planning.tariff.bill import BillFinding, BillingPeriod, LoadBill, MeteredLoad
from service.planning.tariff.billing import compute_metered_bill
from service.planning.tariff.charges import (
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    PeakSpan,
    PercentageCharge,
    PricePeriod,
    Tariff,
    TierAccumulation,
)
from service.planning.tariff.demands import DemandPeak, group_cells
from service.planning.tariff.effort import (
    MOST_CELLS,
    MOST_STEPS,
    BillingEffort,
    EffortShare,
    LoadExtent,
    build_extent,
    check_size,
    estimate_bill_effort,
    estimate_reading_effort,
    estimate_size,
    estimate_statement_effort,
)
from service.planning.tariff.loads import add_loads
from service.planning.tariff.meter import SeriesMeter
from service.planning.tariff.metering_point import (
    MeteringPoint,
    build_metered_load,
    build_peak_history,
    list_load_periods,
    list_tied_periods,
)
from service.planning.tariff.reach import TariffReach, compute_reach

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_STARTS = 5_000
"""Maximum number of compared starts: 52 days of quarters of an hour."""
_SUM, _PAIR, _GROUP = 0.001, 0.004, 0.5
"""Steps per pair of a start and an interval of the run, in a sum and in a maximum, and per group."""
_SHORT = 11
"""Intervals of a run up to which sums are computed by correlation."""
_WINDOW = "/window"
_CHUNK = 2_000_000
"""Number of pairs that are held at a time."""


class StartTimes(NamedTuple):
    """Possible starts of a run: ``number`` moments, ``step_minutes`` apart."""

    first: datetime
    step_minutes: int
    number: int

    def get_start(self, place: int) -> datetime:
        """Returns one of the starts."""
        return self.first + place * timedelta(minutes=self.step_minutes)


def build_starts(first: datetime, last: datetime, step_minutes: int, interval_minutes: int) -> StartTimes:
    """Builds the starts from ``first`` to ``last``, both included.

    Refuses windows that end before they begin, and steps that are no multiple of the interval or yield too
    many starts (SHIFT_WINDOW).
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
    return StartTimes(first, step_minutes, count)


def check_shift_length(run: MeteredLoad, starts: StartTimes) -> None:
    """Refuses a run and a window that together are longer than a load may be (SHIFT_WINDOW)."""
    reach = run.kw.size + starts.step_minutes // run.interval_minutes * (starts.number - 1)
    if reach > MOST_CELLS:
        detail = (
            f"the run from all its starts is {reach:,} intervals long, of which at most {MOST_CELLS:,} are"
        )
        raise PlanningError("SHIFT_WINDOW", _WINDOW, f"{detail} looked at: take a shorter window")


def estimate_pairs_effort(run: MeteredLoad, starts: StartTimes) -> BillingEffort:
    """Estimates the effort of a sum over the run from every start."""
    what = f"{starts.number:,} starts x {run.kw.size:,} intervals of the run"
    return BillingEffort((EffortShare(_SUM * starts.number * run.kw.size, what),))


def compute_sliding_sums(weights: Floats, kw: Floats, first: int, step: int, count: int) -> Floats:
    """Returns the sums of ``kw`` times the overlapped ``weights``, at ``count`` places from ``first``."""
    reach = weights[first : first + (count - 1) * step + kw.size]
    if (kw == kw[0]).all():
        until = np.concatenate(([0.0], np.cumsum(reach)))
        return (until[kw.size :] - until[: -kw.size])[::step] * float(kw[0])
    if kw.size <= _SHORT:
        # NumPy adds so few products in another order than a dot product.
        found: Floats = np.correlate(reach, kw, "valid")[::step]
        return found
    return np.array([reach[begin : begin + kw.size] @ kw for begin in range(0, count * step, step)])


class IntervalOverlap(NamedTuple):
    """Overlap of a run with a stretch of the meter's intervals, by start: rows of a strided view.

    Row r is the run's kW on each interval of the stretch at start ``first`` + r, ``outside`` where it draws
    nothing. Only starts whose run touches the stretch have a row.
    """

    first: int
    kw: Floats


def compute_overlap(
    kw: Floats, place: tuple[int, int, int], begin: int, end: int, outside: float
) -> IntervalOverlap:
    """Returns the run on the intervals from ``begin`` to before ``end``.

    ``place`` is the interval of the first start, the intervals from one start to the next, and their number.
    """
    first, step, count = place
    # Start s touches the stretch where first + s step < end and first + s step + size > begin.
    low = max(0, -((first + kw.size - 1 - begin) // step))
    high = min(count - 1, (end - 1 - first) // step)
    if high < low:
        return IntervalOverlap(low, np.empty((0, end - begin)))
    # Written from the last start to the first, so that a later start begins further left.
    last = begin - (first + high * step)
    length = (high - low) * step + (end - begin)
    padded = np.full(length, outside)
    inside_from, inside_to = max(last, 0), min(last + length, kw.size)
    padded[inside_from - last : inside_to - last] = kw[inside_from:inside_to]
    rows = sliding_window_view(padded, end - begin)[::step][::-1]
    return IntervalOverlap(low, rows)


class _ShiftedMeter:
    """Readings of the meter for every start, by charge, computed on first use."""

    def __init__(self, baseline: SeriesMeter, kw: Floats, first: int, step: int, count: int) -> None:
        self.baseline = baseline
        self.kw, self.place = kw, (first, step, count)
        self._sums: dict[object, Floats] = {}
        self._peaks: dict[object, list[tuple[Floats, Integers]]] = {}

    @cached_property
    def _interval(self) -> Integers:
        cells = self.baseline.compiled.cells
        return np.arange(len(cells.starts)) if cells.interval is None else cells.interval

    def compute_sums(self, keys: Integers, groups: int) -> Floats:
        """Returns the energy in kWh by start and group of cells."""
        order, bounds = group_cells(keys, groups)
        found = np.empty((self.place[2], groups))
        for group, (begin, end) in enumerate(pairwise(bounds.tolist())):
            found[:, group] = self._compute_cell_sums(order[begin:end])
        return found

    def _compute_cell_sums(self, cells: Integers) -> Floats:
        """Returns the energy in kWh by start within some cells.

        Only the overlapping part of the run is read.
        """
        found = np.zeros(self.place[2])
        if not cells.size:
            return found
        intervals = self._interval[cells]
        begin, end = int(intervals[0]), int(intervals[-1]) + 1
        hours = self.baseline.compiled.cells.minutes[cells] / 60.0
        weights: Floats = np.bincount(intervals - begin, hours, end - begin).astype(np.float64)
        found += float(weights @ self.baseline.kw[begin:end])
        run = compute_overlap(self.kw, self.place, begin, end, 0.0)
        found[run.first : run.first + len(run.kw)] += [row @ weights for row in run.kw]
        return found

    def compute_energy(self, charge: EnergyCharge) -> Floats:
        """Returns the energy in kWh by start, part and price period."""
        kind = self.baseline.compiled.get_energy_kind(charge)
        if kind not in self._sums:
            keys, groups = self.baseline.compiled.get_energy_keys(charge), len(charge.periods)
            count = len(self.baseline.parts) * groups
            self._sums[kind] = self.compute_sums(keys - 1, count).reshape(
                -1, len(self.baseline.parts), groups
            )
        return self._sums[kind]

    @cached_property
    def part_kwh(self) -> Floats:
        """Energy in kWh by start and part of a billing period."""
        compiled = self.baseline.compiled
        return self.compute_sums(compiled.part_of_day[compiled.day], len(self.baseline.parts))

    def find_peaks(
        self, periods: Sequence[PricePeriod] | None, span: PeakSpan
    ) -> list[tuple[Floats, Integers]]:
        """Returns the highest interval and its index by start, for each group of cells.

        Index -1 without cells.
        """
        key = (None if periods is None else self.baseline.compiled.get_hours_id(periods), span)
        if key not in self._peaks:
            order, bounds = self.baseline.compiled.get_demand_groups(periods, span)
            self._peaks[key] = [
                self._find_highest(np.unique(self._interval[order[begin:end]]))
                for begin, end in pairwise(bounds)
            ]
        return self._peaks[key]

    def _find_highest(self, intervals: Integers) -> tuple[Floats, Integers]:
        count = self.place[2]
        if not intervals.size:
            return np.zeros(count), np.full(count, -1)
        own = self.baseline.kw
        base = int(intervals[own[intervals].argmax()])
        highest, places = np.full(count, own[base]), np.full(count, base)
        begin, end = int(intervals[0]), int(intervals[-1]) + 1
        values = np.full(end - begin, -np.inf)
        values[intervals - begin] = own[intervals]
        run = compute_overlap(self.kw, self.place, begin, end, -np.inf)
        rows = max(1, _CHUNK // (end - begin))
        for row in range(0, len(run.kw), rows):
            sums = run.kw[row : row + rows] + values
            at = sums.argmax(axis=1)
            here = slice(run.first + row, run.first + row + len(at))
            found, at = sums[np.arange(len(at)), at], at + begin
            raised = (found > highest[here]) | ((found == highest[here]) & (at < places[here]))
            highest[here] = np.where(raised, found, highest[here])
            places[here] = np.where(raised, at, places[here])
        return highest, places


class _StartMeter(SeriesMeter):
    """Meter with the run at one of its starts; sums and maxima are not read from the load."""

    def __init__(self, load: MeteredLoad, run: MeteredLoad, moved: _ShiftedMeter, place: int) -> None:
        self._reset_readings(load, moved.baseline.compiled)
        self._run, self._moved, self._place = run, moved, place

    @cached_property
    def _kw(self) -> Floats:
        """Mean kW of both loads, computed only where a charge reads it."""
        return add_loads(self.load, self._run).kw

    @cached_property
    def findings(self) -> list[BillFinding]:
        """Findings of the first start stand for all."""
        return []

    def compute_energy(self, charge: EnergyCharge) -> Sequence[Sequence[float]]:
        kind = self.compiled.get_energy_kind(charge)
        if kind not in self._energy:
            self._energy[kind] = self._moved.compute_energy(charge)[self._place].tolist()
        return self._energy[kind]

    def read_highest(
        self, charge: DemandCharge, periods: Sequence[PricePeriod] | None
    ) -> list[DemandPeak | None]:
        if not uses_interval_peaks(charge, self.load.interval_minutes):
            return super().read_highest(charge, periods)
        return self._read_peaks(self._moved.find_peaks(periods, charge.span))

    def _read_peaks(self, groups: Sequence[tuple[Floats, Integers]]) -> list[DemandPeak | None]:
        cells, found = self.compiled.cells, list[DemandPeak | None]()
        for kw, places in groups:
            at = int(places[self._place])
            minute = cells.first + at * cells.interval_minutes
            found.append(None if at < 0 else DemandPeak(float(kw[self._place]), minute))
        return found

    @cached_property
    def period_peaks(self) -> Sequence[DemandPeak | None]:
        return self._read_peaks(self._moved.find_peaks(None, PeakSpan.BILLING_PERIOD))[: len(self.periods)]

    @cached_property
    def part_kwh(self) -> Sequence[float]:
        found: list[float] = self._moved.part_kwh[self._place].tolist()
        return found


def uses_interval_peaks(charge: DemandCharge, interval_minutes: int) -> bool:
    """Returns true if a charge bills the highest single interval, which a maximum gives."""
    window = charge.window_minutes
    return charge.peaks == 1 and not charge.rolling and (window is None or interval_minutes % window == 0)


def _needs_load_series(tariff: Tariff, interval_minutes: int) -> bool:
    """Returns true if a charge needs figures that no sum or maximum gives."""
    for charge in (charge for revision in tariff.revisions for charge in revision.charges):
        match charge:
            case FixedCharge() | MinimumCharge() | PercentageCharge():
                reads = False
            case EnergyCharge():
                reads = charge.accumulation is not TierAccumulation.PER_PERIOD
            case DemandCharge():
                reads = not uses_interval_peaks(charge, interval_minutes)
            case _:
                reads = True
        if reads or charge.hours_of_use_from > 0.0 or charge.hours_of_use_below is not None:
            return True
    return tariff.hours_of_use_minimum > 0.0


def estimate_starts_effort(
    tariff: Tariff, run: MeteredLoad, starts: StartTimes, extent: LoadExtent
) -> BillingEffort:
    """Estimates the effort of comparing starts: pairs of a start and an interval, and bills."""
    own = estimate_statement_effort(tariff, extent)
    if _needs_load_series(tariff, run.interval_minutes):
        own = own.add(estimate_reading_effort(tariff, extent))
    timed = {
        tuple(period.windows for period in charge.periods)
        for revision in tariff.revisions
        for charge in revision.charges
        if isinstance(charge, EnergyCharge | DemandCharge)
    }
    periods = sum(map(len, timed)) + 1
    pairs = f"{starts.number:,} starts x {run.kw.size:,} intervals of the run x {periods:,} price periods"
    groups = f"{starts.number:,} starts x {extent.periods:,} billing periods x {periods:,} price periods"
    return own.scale(starts.number, "starts").add(
        BillingEffort(
            (
                EffortShare(_PAIR * starts.number * run.kw.size * periods, pairs),
                EffortShare(_GROUP * starts.number * extent.periods * periods, groups),
            )
        )
    )


def _check_effort(effort: BillingEffort) -> None:
    effort.check(MOST_STEPS, _WINDOW)


def compute_start_bills(
    point: MeteringPoint,
    run: MeteredLoad,
    starts: StartTimes,
    count: Callable[[BillingEffort], None] = _check_effort,
) -> list[BillAllocation]:
    """Returns the bill of the run for each start: its addition to the baseline, or all of it.

    ``run`` is the load of the first start; its shape does not depend on its start. The lines equal those of
    :func:`service.planning.tariff.allocation.allocate_bill` for single starts. ``count`` refuses too much
    effort.
    """
    step = starts.step_minutes // run.interval_minutes
    if point.baseline is None and compute_reach(point.tariff) != TariffReach():
        # Tied months make each start a bill of its own span.
        count(estimate_allocation_effort(point, [run]).scale(starts.number, "starts"))
        loads = (shift_load(run, place * starts.step_minutes) for place in range(starts.number))
        return [allocate_bill(point, [load]).allocations[0] for load in loads]
    whole = run._replace(kw=np.ones(run.kw.size + step * (starts.number - 1)))
    periods, _ = list_tied_periods(point, list_load_periods(point, whole))
    load = build_metered_load(point, periods)
    extent = build_extent(periods, load.interval_minutes)
    check_size(estimate_size(point.tariff, extent))
    count(
        estimate_starts_effort(point.tariff, run, starts, extent).add(
            estimate_bill_effort(point.tariff, extent)
        )
    )
    kw = run.kw * (1.0 + point.tariff.secondary_loss_factor * point.secondary)
    first = round((run.start - load.start).total_seconds() / 60.0 / run.interval_minutes)
    history = build_peak_history(point, periods)
    baseline = SeriesMeter(point.tariff, load, periods)
    moved = _ShiftedMeter(baseline, kw, first, step, starts.number)
    runs = [shift_load(run, place * starts.step_minutes) for place in range(starts.number)]
    meters = (_StartMeter(load, one, moved, place) for place, one in enumerate(runs))
    bills = (compute_metered_bill(point.tariff, meter, history=history) for meter in meters)
    if point.baseline is None:
        touched = (list_load_periods(point, one) for one in runs)
        return [_build_touched_allocation(bill, own) for bill, own in zip(bills, touched, strict=True)]
    without = compute_metered_bill(point.tariff, baseline, history=history)
    return [compute_difference(bill, without, ()) for bill in bills]


def shift_load(load: MeteredLoad, minutes: int) -> MeteredLoad:
    """Returns the load, later by ``minutes``."""
    return load._replace(start=load.start + timedelta(minutes=minutes))


def _build_touched_allocation(bill: LoadBill, touched: Sequence[BillingPeriod]) -> BillAllocation:
    return build_allocation(
        bill._replace(periods=tuple(period for period in bill.periods if period.period in touched))
    )
