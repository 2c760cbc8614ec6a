"""Cells of a load: stretches within one interval, one local day and one set of windows.

A cell is an interval wherever boundaries lie between intervals. An interval that a boundary splits becomes
several cells, which share its energy by their minutes and each have its demand.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from service.planning.tariff.calendar import Integers, ZoneClock, build_clock
from service.planning.tariff.charges import DAY_MINUTES


class CalendarCells(NamedTuple):
    """Cells in order of time; ``interval`` is the index in the load, None where cells are the intervals."""

    starts: Integers
    """UTC minutes."""
    minutes: Integers
    local_starts: Integers
    interval: Integers | None
    interval_minutes: int
    first: int
    """UTC minute at which the load begins."""

    @property
    def days(self) -> Integers:
        """Day number of each cell."""
        return self.local_starts // DAY_MINUTES

    @property
    def cut_intervals(self) -> Integers:
        """Indices of the intervals that a boundary splits."""
        if self.interval is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(np.bincount(self.interval) > 1)


def build_cells(
    first: int, interval_minutes: int, count: int, zone: ZoneInfo, boundaries: Collection[int]
) -> CalendarCells:
    """Builds cells of ``count`` intervals from UTC minute ``first``, split at each day's ``boundaries``."""
    end = first + count * interval_minutes
    clocked = build_clock(zone, first, end)
    starts = first + interval_minutes * np.arange(count)
    cuts = _find_cuts(clocked, first, end, interval_minutes, sorted(boundaries))
    if not len(cuts):
        minutes = np.full(count, interval_minutes)
        return CalendarCells(
            starts, minutes, starts + clocked.get_offset(starts), None, interval_minutes, first
        )
    starts = sort_unique(np.concatenate((starts, cuts)))
    minutes = np.diff(starts, append=end)
    place = (starts - first) // interval_minutes
    return CalendarCells(starts, minutes, starts + clocked.get_offset(starts), place, interval_minutes, first)


def _find_cuts(clocked: ZoneClock, first: int, end: int, step: int, boundaries: Sequence[int]) -> Integers:
    """Returns UTC minutes at which a boundary or a change of the clock lies within an interval."""
    found = [clocked.starts[(clocked.starts - first) % step != 0]]
    minutes = np.array(boundaries, np.int64)
    for start, until, offset in clocked.list_spans(first, end):
        cutting = minutes[(minutes - offset - first) % step != 0] if DAY_MINUTES % step == 0 else minutes
        if not len(cutting):
            continue
        days = np.arange((start + offset) // DAY_MINUTES, (until + offset) // DAY_MINUTES + 1)
        instants = (days[:, None] * DAY_MINUTES + cutting - offset).ravel()
        inside = (instants > start) & (instants < until) & ((instants - first) % step != 0)
        found.append(instants[inside])
    return sort_unique(np.concatenate(found))


def sort_unique(values: Integers) -> Integers:
    """Returns each of ``values`` once, ascending; sorting mostly ordered values is faster than hashing."""
    ordered = np.sort(values, kind="stable")
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered
