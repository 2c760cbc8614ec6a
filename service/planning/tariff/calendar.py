"""Local calendar of a load: days, holidays, windows and the UTC offsets of its zone.

Times are whole minutes since 1970-01-01T00:00Z; days are counted from 1970-01-01 on the local clock.
Intervals stay on the UTC line, so that a day of 23 or 25 hours loses and doubles nothing.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.charges import DAY_MINUTES, HolidayTreatment, LocalTimeWindow, PricePeriod

Integers = NDArray[np.int64]
BooleanArray = NDArray[np.bool_]
IndexArray = NDArray[np.int16]
"""Indices of price periods."""

_EPOCH: Final = date(1970, 1, 1).toordinal()
_EPOCH_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS_PER_YEAR: Final = 12
_STRETCH_MINUTES: Final = 64 * DAY_MINUTES
_STRETCHES_KEPT: Final = 4096
"""Number of cached stretches of days with their clock changes: 17 zones over 40 years."""
_FIRST_MINUTE: Final = (date(1, 1, 2).toordinal() - _EPOCH) * DAY_MINUTES
_LAST_MINUTE: Final = (date(9999, 12, 30).toordinal() - _EPOCH) * DAY_MINUTES
"""First and last minute between which every zone has a local time that a calendar can represent."""


def resolve_zone(name: str, pointer: str = "/time_zone") -> ZoneInfo:
    """Returns the IANA zone called ``name``; raises ``TIME_ZONE_UNKNOWN`` where there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as cause:
        raise PlanningError("TIME_ZONE_UNKNOWN", pointer, "no such IANA time zone") from cause


def compute_local_midnight(day: date, time_zone: str) -> datetime:
    """Returns the instant (UTC) at which a local day begins.

    Where the clock skips midnight, the end of the gap.
    """
    return datetime.combine(day, time(), resolve_zone(time_zone)).astimezone(UTC)


def to_day_number(day: date) -> int:
    """Returns the days since 1970-01-01."""
    return day.toordinal() - _EPOCH


def to_date(day: int) -> date:
    """Returns the date of a day number."""
    return date.fromordinal(day + _EPOCH)


def to_month_key(year: int, month: int) -> int:
    """Returns the months since January of year 0."""
    return year * _MONTHS_PER_YEAR + month - 1


def split_month_key(key: int) -> tuple[int, int]:
    """Returns year and month of a month key."""
    return key // _MONTHS_PER_YEAR, key % _MONTHS_PER_YEAR + 1


def to_utc_minute(instant: datetime, pointer: str = "/start") -> int:
    """Returns whole minutes since the epoch; ``INTERVAL_START`` for a time without zone or with seconds."""
    if instant.utcoffset() is None:
        raise PlanningError("INTERVAL_START", pointer, "a start needs its offset from UTC")
    minutes, rest = divmod(instant - _EPOCH_START, timedelta(minutes=1))
    if rest:
        raise PlanningError("INTERVAL_START", pointer, "a start is at a whole minute")
    return minutes


class ZoneClock(NamedTuple):
    """Offsets of a zone: from UTC minute ``starts[i]`` on, local time is ``offsets[i]`` minutes later."""

    starts: Integers
    offsets: Integers

    def get_offset(self, minutes: Integers) -> Integers:
        """Returns the minutes to add to UTC ``minutes``."""
        return self.offsets[np.searchsorted(self.starts, minutes, side="right") - 1]

    def list_spans(self, first: int, end: int) -> Iterable[tuple[int, int, int]]:
        """Yields UTC minutes [from, to) and offset of each stretch within [first, end)."""
        for place, start in enumerate(self.starts):
            until = self.starts[place + 1] if place + 1 < len(self.starts) else end
            if max(start, first) < min(until, end):
                yield max(int(start), first), min(int(until), end), int(self.offsets[place])


def _get_offset(zone: ZoneInfo, minute: int) -> int:
    offset = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds() // 60)


@lru_cache(maxsize=_STRETCHES_KEPT)
def _list_offset_changes(zone: ZoneInfo, first: int, end: int) -> tuple[tuple[int, int], ...]:
    """Returns UTC minutes in (first, end] at which the offset of ``zone`` changes, with the new offset."""
    found, before = [], _get_offset(zone, first)
    for minute in range(first, end, DAY_MINUTES):
        until = min(minute + DAY_MINUTES, end)
        after = _get_offset(zone, until)
        if after == before:
            continue
        low, high = minute, until
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _get_offset(zone, middle) == before else (low, middle)
        found.append((high, after))
        before = after
    return tuple(found)


@lru_cache(maxsize=64)
def build_clock(zone: ZoneInfo, first: int, end: int) -> ZoneClock:
    """Builds the clock of ``zone`` over the UTC minutes [first, end).

    Whole stretches of days are cached, because loads begin and end at any minute.
    """
    starts, offsets = [first], [_get_offset(zone, first)]
    for begin in range(first // _STRETCH_MINUTES * _STRETCH_MINUTES, end, _STRETCH_MINUTES):
        known = max(begin, _FIRST_MINUTE), min(begin + _STRETCH_MINUTES, _LAST_MINUTE)
        for minute, offset in _list_offset_changes(zone, *known):
            if first < minute <= end:
                starts.append(minute)
                offsets.append(offset)
    return ZoneClock(np.array(starts), np.array(offsets))


class LocalDays(NamedTuple):
    """Consecutive local days, the first numbered ``first``; each array starts with the day before."""

    first: int
    month_keys: Integers
    months: Integers
    weekdays: Integers
    holidays: BooleanArray

    @property
    def number(self) -> int:
        """Number of days, without the one before the first."""
        return len(self.weekdays) - 1


def build_days(first: int, last: int, holidays: Collection[date]) -> LocalDays:
    """Builds the local days from ``first`` to ``last``, both included."""
    numbers = np.arange(first - 1, last + 1)
    keys = numbers.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) + to_month_key(1970, 1)
    free = np.isin(numbers, [to_day_number(day) for day in holidays])
    return LocalDays(first, keys, keys % _MONTHS_PER_YEAR + 1, (numbers + 3) % 7 + 1, free)


def list_boundary_minutes(periods: Iterable[PricePeriod]) -> list[int]:
    """Returns the minutes of the day at which a window of ``periods`` begins or ends, with 0, in order."""
    windows = [window for period in periods for window in period.windows]
    minutes = {0} | {window.from_minute for window in windows} | {window.to_minute for window in windows}
    return sorted(minutes - {DAY_MINUTES})


def find_window_days(window: LocalTimeWindow, days: LocalDays) -> BooleanArray:
    """Returns a mask of the days on which ``window`` begins, starting with the day before the first."""
    months, weekdays = np.zeros(13, np.bool_), np.zeros(8, np.bool_)
    months[list(window.months)] = True
    weekdays[list(window.weekdays)] = True
    matches = weekdays[days.weekdays]
    if window.holidays is HolidayTreatment.INCLUDED:
        matches |= days.holidays
    elif window.holidays is HolidayTreatment.EXCLUDED:
        matches &= ~days.holidays
    return matches & months[days.months]


def build_price_period_table(
    periods: Sequence[PricePeriod], days: LocalDays, slots: Sequence[int]
) -> IndexArray:
    """Returns the index of the price period for each day and each slot of it, -1 where there is none.

    ``slots`` are the minutes at which a slot begins, every boundary of ``periods`` among them.
    """
    table = np.full((days.number, len(slots)), -1, np.int16)
    for place, period in enumerate(periods):
        for window, begins, (from_slot, to_slot) in _list_window_spans(period.windows, days, slots):
            if window.to_minute > window.from_minute:
                table[begins[1:], from_slot:to_slot] = place
            else:
                table[begins[1:], from_slot:] = place
                table[begins[:-1], :to_slot] = place
    return table


def _list_window_spans(
    windows: Iterable[LocalTimeWindow], days: LocalDays, slots: Sequence[int]
) -> Iterable[tuple[LocalTimeWindow, BooleanArray, tuple[int, int]]]:
    place = {minute: slot for slot, minute in enumerate(slots)} | {DAY_MINUTES: len(slots)}
    known: dict[tuple[object, ...], BooleanArray] = {}
    for window in windows:
        kind = (window.months, window.weekdays, window.holidays)
        if kind not in known:
            known[kind] = find_window_days(window, days)
        yield window, known[kind], (place[window.from_minute], place[window.to_minute])


def list_calendar_months(first: date, last: date) -> tuple[BillingPeriod, ...]:
    """Returns the calendar months that the local days from ``first`` to ``last`` touch."""
    keys = range(to_month_key(first.year, first.month), to_month_key(last.year, last.month) + 2)
    starts = [date(*split_month_key(key), 1) for key in keys]
    return tuple(BillingPeriod(start, end) for start, end in pairwise(starts))


def count_days_of_month(day: date) -> int:
    """Returns the number of days in the calendar month of ``day``."""
    following = date(*split_month_key(to_month_key(day.year, day.month) + 1), 1)
    return (following - date(day.year, day.month, 1)).days


def to_local_time(minute: int, zone: ZoneInfo) -> datetime:
    """Returns the local time of a UTC minute."""
    return datetime.fromtimestamp(minute * 60, UTC).astimezone(zone)
