"""Conversion of the load of a request to the load of planning."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingDeterminants, MeteredLoad
from service.planning.tariff.calendar import build_clock, build_days, find_window_days, to_utc_minute
from service.planning.tariff.charges import DAY_MINUTES
from service.schemas.tariff_bills import (
    ConstantDemand,
    DemandDeterminants,
    DemandRule,
    DemandRuleIncrement,
    DemandSeries,
    MonthlyBillingQuantity,
)
from service.schemas.tariffs import TariffWindow, build_window

MOST_INTERVALS = 211_000
"""Most intervals of a load: two years of five minutes."""

_LOAD = "/load"
Floats = NDArray[np.float64]


def to_load(
    shape: ConstantDemand | DemandSeries | DemandRule,
    zone: ZoneInfo,
    *,
    power_factor: float,
    secondary: bool,
) -> MeteredLoad:
    """Returns the load in intervals. Raises :class:`PlanningError` with the pointer of a wrong member."""
    start = _parse_instant(shape.starts_at, zone, f"{_LOAD}/starts_at")
    if isinstance(shape, DemandSeries):
        kw = np.array(shape.kw, dtype=np.float64)
    else:
        count = _count_intervals(
            start, _parse_instant(shape.ends_at, zone, f"{_LOAD}/ends_at"), shape.interval_minutes
        )
        kw = (
            np.full(count, shape.kw)
            if isinstance(shape, ConstantDemand)
            else _apply_demand_rule(shape, start, count, zone)
        )
    return MeteredLoad(start, shape.interval_minutes, kw, power_factor, secondary)


def to_determinants(
    shape: DemandDeterminants, *, power_factor: float, secondary: bool
) -> BillingDeterminants:
    """Returns the billing quantities of a year."""
    peaks = _group_by_month(shape.peak_kw, "peak_kw")
    return BillingDeterminants(
        year=shape.year,
        energy_kwh=_group_by_month(shape.energy_kwh, "energy_kwh"),
        period_peak_kw={key: kw for key, kw in peaks.items() if key[1]},
        month_peak_kw={month: kw for (month, period), kw in peaks.items() if not period},
        coincident_kw=tuple(shape.coincident_kw),
        power_factor=power_factor,
        secondary=secondary,
    )


def _group_by_month(given: list[MonthlyBillingQuantity], member: str) -> dict[tuple[int, str], float]:
    found: dict[tuple[int, str], float] = {}
    for place, one in enumerate(given):
        key = (one.month, "" if one.period is MISSING else one.period)
        if key in found:
            detail = "the month and period are given twice"
            raise PlanningError("DETERMINANT_TWICE", f"{_LOAD}/{member}/{place}", detail)
        found[key] = one.value
    return found


def _parse_instant(text: str, zone: ZoneInfo, pointer: str) -> datetime:
    """Returns the time; a local time that occurs twice, as a clock is set back, means the first."""
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise PlanningError("TIME_UNKNOWN", pointer, "the calendar has no such time") from None
    if given.tzinfo is not None:
        return given
    instant = given.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) != given:
        raise PlanningError("TIME_UNKNOWN", pointer, "the local clock is set forward past this time")
    return instant


def _count_intervals(start: datetime, end: datetime, interval_minutes: int) -> int:
    count, rest = divmod(end - start, timedelta(minutes=interval_minutes))
    if count < 1 or rest:
        detail = "the end is a whole number of intervals after the start"
        raise PlanningError("LOAD_END", f"{_LOAD}/ends_at", detail)
    if count > MOST_INTERVALS:
        detail = f"a load has at most {MOST_INTERVALS} intervals"
        raise PlanningError("LOAD_TOO_LONG", f"{_LOAD}/ends_at", detail)
    return count


def _apply_demand_rule(rule: DemandRule, start: datetime, count: int, zone: ZoneInfo) -> Floats:
    places = np.arange(count)
    kw = np.full(count, rule.base_kw, dtype=np.float64)
    np.add(kw, rule.step_kw * places, out=kw)
    times = _LocalTimes(start, rule.interval_minutes, count, zone)
    for added in rule.add:
        kw[times.match_window(added)] += added.kw
    for number, fixed in enumerate(rule.set):
        if max(fixed.intervals) > count:
            detail = f"the load has {count} intervals"
            raise PlanningError("INTERVAL_UNKNOWN", f"{_LOAD}/set/{number}/intervals", detail)
        kw[np.array(fixed.intervals) - 1] = fixed.kw
    if kw.min() < 0.0:
        raise PlanningError("LOAD_KW", f"{_LOAD}/step_kw", "the rule falls below 0 kW")
    return kw


class _LocalTimes:
    """Day and minute of the local clock at which each interval begins."""

    def __init__(self, start: datetime, interval_minutes: int, count: int, zone: ZoneInfo) -> None:
        first = to_utc_minute(start)
        minutes = first + interval_minutes * np.arange(count)
        local = minutes + build_clock(zone, first, int(minutes[-1]) + 1).get_offset(minutes)
        self._day, self._minute = local // DAY_MINUTES, local % DAY_MINUTES
        self._days = build_days(int(self._day[0]), int(self._day[-1]), ())

    def match_window(self, added: DemandRuleIncrement) -> NDArray[np.bool_]:
        """Returns for each interval whether it begins within the times of ``added``."""
        given = {name: value for name, value in added if name != "kw"}
        window = build_window(TariffWindow(**given))
        begins = find_window_days(window, self._days)
        place = self._day - self._days.first + 1
        after: NDArray[np.bool_] = self._minute >= window.from_minute
        before: NDArray[np.bool_] = self._minute < window.to_minute
        if window.to_minute > window.from_minute:
            after &= begins[place] & before
        else:
            after = (begins[place] & after) | (begins[place - 1] & before)
        return after


def parse_history(peaks: Mapping[str, float]) -> dict[tuple[int, int], float]:
    """Returns peaks by year and month, from peaks by text such as 2026-11."""
    return {(int(month[:4]), int(month[5:])): kw for month, kw in peaks.items()}


def parse_days(starts: list[str], pointer: str) -> list[date]:
    """Returns the days, which must be ascending."""
    found: list[date] = []
    for place, text in enumerate(starts):
        try:
            found.append(date.fromisoformat(text))
        except ValueError:
            raise PlanningError("DAY_UNKNOWN", f"{pointer}/{place}", "the calendar has no such day") from None
        if found[:-1] and found[-1] <= found[-2]:
            raise PlanningError("BILLING_PERIODS", f"{pointer}/{place}", "the days are ascending")
    return found
