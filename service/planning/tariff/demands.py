"""Demand in time: means over demand windows, and the highest of them in each group of cells."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.tariff.calendar import Integers
from service.planning.tariff.cells import CalendarCells

Floats = NDArray[np.float64]
_LONG = 100_000
"""Cells from which on a load is long; to index by numbers of half the width takes a little more time."""


class DemandPeak(NamedTuple):
    """A demand in kW and the UTC minute at which its interval begins, None where that is not known."""

    kw: float
    at: int | None = None


class CellGroups(NamedTuple):
    """Cells sorted by group, in order of time within one: group g is ``order[bounds[g]:bounds[g + 1]]``."""

    order: Integers
    bounds: Integers


class CellDemand(NamedTuple):
    """The demand that counts in each cell, and the window that it is the mean of."""

    kw: Floats
    window: Integers
    """Number of the window of each cell."""
    starts: Integers
    """UTC minute at which the window of each cell begins."""


def compact_integers(numbers: Integers) -> Integers:
    """The same numbers, which are held for each kind of charge: those of a long load in half the width."""
    return numbers.astype(np.int32) if len(numbers) > _LONG else numbers


def group_cells(keys: Integers, count: int) -> CellGroups:
    """Groups of cells by key; a key below 0 is in none."""
    small = keys.astype(np.int16) if count < np.iinfo(np.int16).max else keys
    order = np.argsort(small, kind="stable")
    bounds = np.searchsorted(small[order], np.arange(count + 1))
    return CellGroups(compact_integers(order), bounds)


def number_windows(cells: CalendarCells, window_minutes: int) -> Integers:
    """Number of the window of each cell: windows begin at multiples of their length past local midnight.

    The hour that is repeated when clocks go back has windows of its own.
    """
    local = cells.local_starts // window_minutes
    offsets = cells.local_starts - cells.starts
    begins = np.flatnonzero((np.diff(local) != 0) | (np.diff(offsets) != 0)) + 1
    numbers = np.zeros(len(local), np.int64)
    numbers[begins] = 1
    return np.cumsum(numbers)


def compute_interval_demand(kw: Floats, cells: CalendarCells) -> CellDemand:
    """The mean of each interval of the load; one that a boundary cuts counts on both sides."""
    place = cells.interval if cells.interval is not None else np.arange(len(cells.starts))
    return CellDemand(kw[place], place, cells.first + place * cells.interval_minutes)


def compute_window_demand(kw: Floats, cells: CalendarCells, window_minutes: int) -> CellDemand:
    """The mean of each fixed window of the clock, over the minutes of it that the load covers."""
    numbers = number_windows(cells, window_minutes)
    energy = kw if cells.interval is None else kw[cells.interval]
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    minutes = np.add.reduceat(cells.minutes, firsts)
    means = np.add.reduceat(energy * cells.minutes, firsts) / minutes
    return CellDemand(means[numbers], numbers, cells.starts[firsts][numbers])


def compute_rolling_demand(kw: Floats, cells: CalendarCells, window_minutes: int) -> CellDemand:
    """The mean of the window that ends with each interval; the first ones cover what there is."""
    length = max(window_minutes // cells.interval_minutes, 1)
    sums = np.cumsum(np.concatenate(([0.0], kw)))
    ends = np.arange(1, len(kw) + 1)
    begins = np.maximum(ends - length, 0)
    means = (sums[ends] - sums[begins]) / (ends - begins)
    place = cells.interval if cells.interval is not None else ends - 1
    return CellDemand(means[place], place, (cells.first + begins * cells.interval_minutes)[place])


def find_group_peaks(demand: CellDemand, groups: CellGroups) -> list[DemandPeak | None]:
    """The highest demand of each group, the earliest of equals; None for a group without cells."""
    values = demand.kw[groups.order]
    bounds, found = groups.bounds.tolist(), list[DemandPeak | None]()
    for start, end in pairwise(bounds):
        if start == end:
            found.append(None)
            continue
        highest = start + int(values[start:end].argmax())
        found.append(DemandPeak(float(values[highest]), int(demand.starts[groups.order[highest]])))
    return found


def find_mean_peaks(
    demand: CellDemand, groups: CellGroups, count: int, days: Integers | None
) -> list[DemandPeak | None]:
    """The mean of the ``count`` highest windows of each group, of as many as there are.

    With ``days`` (day number of each cell) at most one window of a day counts. The start is that of the
    highest.
    """
    bounds, found = groups.bounds.tolist(), list[DemandPeak | None]()
    for start, end in pairwise(bounds):
        cells = groups.order[start:end]
        if not len(cells):
            found.append(None)
            continue
        falling = cells[np.argsort(-demand.kw[cells], kind="stable")]
        counted = demand.window[falling] if days is None else days[falling]
        chosen = falling[np.sort(np.unique(counted, return_index=True)[1])[:count]]
        found.append(DemandPeak(float(demand.kw[chosen].mean()), int(demand.starts[chosen[0]])))
    return found


def find_highest_peak(peaks: Sequence[DemandPeak | None]) -> DemandPeak | None:
    """The highest of peaks, the first of equals."""
    known = [peak for peak in peaks if peak is not None]
    return max(known, key=lambda peak: peak.kw) if known else None
