"""Windows of price periods and the grid of month by hour that URDB states them in."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from service.planning.tariff.charges import DAY_MINUTES, WEEKDAYS, HolidayTreatment, LocalTimeWindow

MONTHS_OF_YEAR = range(1, 13)
HOURS_OF_DAY = 24
HOUR_MINUTES = 60
WORKING_DAYS = frozenset(range(1, 6))
WEEKEND = WEEKDAYS - WORKING_DAYS

HourSchedule: TypeAlias = Sequence[Sequence[int]]
"""Period by month and hour, 12 x 24."""
HourCell: TypeAlias = tuple[int, bool, int]
"""Month from 1, whether Saturday or Sunday, hour from 0."""


def build_windows(weekday: HourSchedule, weekend: HourSchedule) -> dict[int, tuple[LocalTimeWindow, ...]]:
    """Windows of each period of two schedules, in one order for the same hours."""
    spans: dict[int, dict[tuple[int, int], dict[int, set[bool]]]] = {}
    for at_weekend, schedule in ((False, weekday), (True, weekend)):
        for month, row in zip(MONTHS_OF_YEAR, schedule, strict=True):
            for period, start, end in _list_runs(row):
                months = spans.setdefault(period, {}).setdefault((start, end), {})
                months.setdefault(month, set()).add(at_weekend)
    return {period: tuple(_build_span_windows(found)) for period, found in sorted(spans.items())}


def _list_runs(row: Sequence[int]) -> Iterable[tuple[int, int, int]]:
    """Period, first hour and the hour after the last of each run of a day."""
    hour = 0
    for period, run in groupby(row):
        start, hour = hour, hour + len(list(run))
        yield period, start, hour


def _build_span_windows(
    spans: Mapping[tuple[int, int], Mapping[int, set[bool]]],
) -> Iterable[LocalTimeWindow]:
    for (start, end), months in sorted(spans.items()):
        for days, chosen in ((WEEKDAYS, {False, True}), (WORKING_DAYS, {False}), (WEEKEND, {True})):
            of_days = frozenset(month for month, found in months.items() if found == chosen)
            if of_days:
                yield LocalTimeWindow(
                    months=of_days,
                    weekdays=days,
                    from_minute=start * HOUR_MINUTES,
                    to_minute=end * HOUR_MINUTES,
                )


def build_month_windows(entries: Sequence[int]) -> dict[int, tuple[LocalTimeWindow, ...]]:
    """Windows of each entry that twelve months choose."""
    found: dict[int, set[int]] = {}
    for month, entry in zip(MONTHS_OF_YEAR, entries, strict=True):
        found.setdefault(entry, set()).add(month)
    return {entry: (LocalTimeWindow(months=frozenset(months)),) for entry, months in sorted(found.items())}


def list_cells(windows: Iterable[LocalTimeWindow]) -> frozenset[HourCell] | None:
    """The cells that windows cover, or None where a grid of hours and two kinds of day cannot say them."""
    found: set[HourCell] = set()
    for window in windows:
        if window.from_minute % HOUR_MINUTES or window.to_minute % HOUR_MINUTES:
            return None
        if window.holidays is not HolidayTreatment.AS_WEEKDAY:
            return None
        kinds = [at_weekend for at_weekend, days in _KINDS if days <= window.weekdays]
        if (
            frozenset().union(*(days for at_weekend, days in _KINDS if at_weekend in kinds))
            != window.weekdays
        ):
            return None
        passes_midnight = window.to_minute <= window.from_minute
        if passes_midnight and (window.weekdays != WEEKDAYS or set(window.months) != set(MONTHS_OF_YEAR)):
            return None
        end = window.to_minute + (DAY_MINUTES if passes_midnight else 0)
        hours = {
            hour % HOURS_OF_DAY for hour in range(window.from_minute // HOUR_MINUTES, end // HOUR_MINUTES)
        }
        found.update((month, kind, hour) for month in window.months for kind in kinds for hour in hours)
    return frozenset(found)


_KINDS = ((False, WORKING_DAYS), (True, WEEKEND))


def list_all_cells() -> frozenset[HourCell]:
    """Every hour of the year."""
    return frozenset(
        (month, at_weekend, hour)
        for month in MONTHS_OF_YEAR
        for at_weekend in (False, True)
        for hour in range(HOURS_OF_DAY)
    )


def build_schedule(places: Mapping[HourCell, int], *, at_weekend: bool) -> list[list[int]]:
    """The schedule in which each cell has its period."""
    return [[places[month, at_weekend, hour] for hour in range(HOURS_OF_DAY)] for month in MONTHS_OF_YEAR]
