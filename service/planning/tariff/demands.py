"""Demand over time: means over demand windows, and the highest of them in each group of cells."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.tariff.calendar import Integers
from service.planning.tariff.cells import CalendarCells

Floats = NDArray[np.float64]
_LONG = 100_000
"""Number of cells above which a load is long; half-width indices then save memory for a little time."""


class DemandPeak(NamedTuple):
    """A demand in kW and the UTC minute at which its interval begins, None where it is not known."""

    kw: float
    at: int | None = None


class CellGroups(NamedTuple):
    """Cells sorted by group, in order of time within one: group g is ``order[bounds[g]:bounds[g + 1]]``."""

    order: Integers
    bounds: Integers


class CellDemand(NamedTuple):
    """Demand that counts in each cell, and the window that it is the mean of."""

    kw: Floats
    window: Integers
    """Number of the window of each cell."""
    starts: Integers
    """UTC minute at which the window of each cell begins."""


def compact_integers(numbers: Integers) -> Integers:
    """Returns the numbers, in half the width for a long load, as they are kept for each kind of charge."""
    return numbers.astype(np.int32) if len(numbers) > _LONG else numbers


def group_cells(keys: Integers, count: int) -> CellGroups:
    """Groups cells by key; a key below 0 is in no group."""
    small = keys.astype(np.int16) if count < np.iinfo(np.int16).max else keys
    order = np.argsort(small, kind="stable")
    bounds = np.searchsorted(small[order], np.arange(count + 1))
    return CellGroups(compact_integers(order), bounds)


def number_windows(cells: CalendarCells, window_minutes: int) -> Integers:
    """Returns the number of each cell's window.

    Windows begin at multiples of their length after local midnight. The hour that is repeated when clocks go
    back has separate windows.
    """
    local = cells.local_starts // window_minutes
    offsets = cells.local_starts - cells.starts
    begins = np.flatnonzero((np.diff(local) != 0) | (np.diff(offsets) != 0)) + 1
    numbers = np.zeros(len(local), np.int64)
    numbers[begins] = 1
    return np.cumsum(numbers)


def compute_interval_demand(kw: Floats, cells: CalendarCells) -> CellDemand:
    """Returns the mean of each interval of the load.

    An interval that a boundary splits counts on both sides.
    """
    place = cells.interval if cells.interval is not None else np.arange(len(cells.starts))
    return CellDemand(kw[place], place, cells.first + place * cells.interval_minutes)


def compute_window_demand(kw: Floats, cells: CalendarCells, window_minutes: int) -> CellDemand:
    """Returns the mean of each fixed window of the clock, over the minutes of it that the load covers."""
    numbers = number_windows(cells, window_minutes)
    energy = kw if cells.interval is None else kw[cells.interval]
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1))
    minutes = np.add.reduceat(cells.minutes, firsts)
    means = np.add.reduceat(energy * cells.minutes, firsts) / minutes
    return CellDemand(means[numbers], numbers, cells.starts[firsts][numbers])


def compute_rolling_demand(kw: Floats, cells: CalendarCells, window_minutes: int) -> CellDemand:
    """Returns the mean of the window that ends with each interval; the first windows are shorter."""
    length = max(window_minutes // cells.interval_minutes, 1)
    sums = np.cumsum(np.concatenate(([0.0], kw)))
    ends = np.arange(1, len(kw) + 1)
    begins = np.maximum(ends - length, 0)
    means = (sums[ends] - sums[begins]) / (ends - begins)
    place = cells.interval if cells.interval is not None else ends - 1
    return CellDemand(means[place], place, (cells.first + begins * cells.interval_minutes)[place])


def find_group_peaks(demand: CellDemand, groups: CellGroups) -> list[DemandPeak | None]:
    """Returns the highest demand of each group, the earliest of equals; None for a group without cells."""
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
    """Returns the mean of the ``count`` highest windows of each group, or of fewer where there are fewer.

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
    """Returns the highest of ``peaks``, the first of equals."""
    known = [peak for peak in peaks if peak is not None]
    return max(known, key=lambda peak: peak.kw) if known else None
