"""Loads on the grid of a meter: resampled, added, and the baseline of others."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

import numpy as np
from numpy.typing import NDArray

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod, MeteredLoad
from service.planning.tariff.calendar import compute_local_midnight

HOUR_MINUTES = 60


def resample_load(
    load: MeteredLoad, start: datetime, interval_minutes: int, count: int
) -> NDArray[np.float64]:
    """Returns the mean kW of ``load`` in ``count`` intervals from ``start``, 0 outside of it.

    Keeps its energy.
    """
    own_hours = load.interval_minutes / HOUR_MINUTES
    offset = (load.start - start).total_seconds() / 3600.0
    known = offset + own_hours * np.arange(load.kw.size + 1)
    energy = np.concatenate(([0.0], np.cumsum(load.kw))) * own_hours
    hours = interval_minutes / HOUR_MINUTES
    if load.interval_minutes == interval_minutes and offset % hours == 0.0:
        # On the same grid, values are copied, so that no digit is lost.
        first = round(offset / hours)
        kw = np.zeros(count)
        begin, end = max(first, 0), min(first + load.kw.size, count)
        if begin < end:
            kw[begin:end] = load.kw[begin - first : end - first]
        return kw
    until: NDArray[np.float64] = np.interp(hours * np.arange(count + 1), known, energy)
    return np.diff(until) / hours


def build_blank_load(periods: Sequence[BillingPeriod], time_zone: str, interval_minutes: int) -> MeteredLoad:
    """Builds a load of 0 kW over whole billing periods, which others can be added to."""
    start = compute_local_midnight(periods[0].start, time_zone)
    minutes = (compute_local_midnight(periods[-1].end, time_zone) - start).total_seconds() / 60.0
    return MeteredLoad(start, interval_minutes, np.zeros(ceil(minutes / interval_minutes)))


def add_loads(load: MeteredLoad, *others: MeteredLoad) -> MeteredLoad:
    """Returns ``load`` plus the draw of ``others`` within its time, as one meter reads it."""
    kw = load.kw
    for other in others:
        kw = kw + resample_load(other, load.start, load.interval_minutes, load.kw.size)
    return load._replace(kw=kw)


def build_baseline_load(
    known: MeteredLoad | float, periods: Sequence[BillingPeriod], time_zone: str, interval_minutes: int
) -> MeteredLoad:
    """Builds the baseline over whole billing periods: a constant kW, or a series that covers them.

    Refuses a series that does not cover them (BASELINE_TOO_SHORT).
    """
    whole = build_blank_load(periods, time_zone, interval_minutes)
    if isinstance(known, float):
        return whole._replace(kw=np.full(whole.kw.size, known))
    end = known.start + timedelta(minutes=known.interval_minutes * known.kw.size)
    if known.start > whole.start or end < compute_local_midnight(periods[-1].end, time_zone):
        span = f"{periods[0].start} to {periods[-1].end}"
        detail = f"the series must cover the billing periods of the run, {span}"
        raise PlanningError("BASELINE_TOO_SHORT", "/site/baseline_load", detail)
    return add_loads(whole, known)


def list_covered_periods(
    periods: Sequence[BillingPeriod], known: MeteredLoad | float, time_zone: str
) -> tuple[BillingPeriod, ...]:
    """Returns the consecutive ``periods`` that the baseline covers from first to last day."""
    if isinstance(known, float):
        return tuple(periods)
    end = known.start + timedelta(minutes=known.interval_minutes * known.kw.size)
    return tuple(
        period
        for period in periods
        if known.start <= compute_local_midnight(period.start, time_zone)
        and compute_local_midnight(period.end, time_zone) <= end
    )
