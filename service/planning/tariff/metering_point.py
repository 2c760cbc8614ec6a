"""The meter that a workload is billed at, and what it reads without it."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np

from service.planning.tariff.bill import BillingPeriod, MeteredLoad
from service.planning.tariff.calendar import split_month_key, to_month_key
from service.planning.tariff.charges import Tariff
from service.planning.tariff.loads import build_baseline_load, list_covered_periods
from service.planning.tariff.reach import (
    TariffReach,
    add_months,
    compute_reach,
    list_months,
    list_reached_periods,
    list_touched_periods,
)

_HISTORY_MONTHS = 24
"""Months that a constant baseline is taken to precede the load."""


class MeteringPoint(NamedTuple):
    """Meter that a workload is billed at.

    ``baseline`` is the reading of the meter without it, a constant kW or a series; without one the workload
    has a separate meter. ``history`` are monthly peaks of earlier months, ``starts`` first days of billing
    periods.
    """

    tariff: Tariff
    interval_minutes: int = 15
    power_factor: float = 1.0
    secondary: bool = False
    baseline: MeteredLoad | float | None = None
    history: Mapping[tuple[int, int], float] | None = None
    starts: tuple[date, ...] | None = None


def list_load_periods(point: MeteringPoint, load: MeteredLoad) -> tuple[BillingPeriod, ...]:
    """Returns the billing periods in which a load draws power."""
    drawing = np.flatnonzero(load.kw)
    first, last = (int(drawing[0]), int(drawing[-1])) if drawing.size else (0, 0)
    minutes = timedelta(minutes=load.interval_minutes)
    begins, ends = load.start + first * minutes, load.start + (last + 1) * minutes
    return list_touched_periods(begins, ends, point.tariff.time_zone, point.starts)


def list_tied_periods(
    point: MeteringPoint, run: Sequence[BillingPeriod]
) -> tuple[tuple[BillingPeriod, ...], tuple[BillingPeriod, ...]]:
    """Returns the billing periods of both bills, and tied periods without a known baseline.

    For a series, these include the months before the run, as far as ratchets look back.
    """
    if point.starts is not None or point.baseline is None:
        return tuple(run), ()
    reach = compute_reach(point.tariff)
    reached = list_reached_periods(run, reach)
    within = {*list_covered_periods(reached, point.baseline, point.tariff.time_zone), *run}
    history = point.history or {}
    unknown = tuple(
        period
        for period in reached
        if period not in within and (period.start.year, period.start.month) not in history
    )
    return (
        *_list_ratchet_periods(point, reached, reach),
        *(one for one in reached if one in within),
    ), unknown


def _list_ratchet_periods(
    point: MeteringPoint, reached: Sequence[BillingPeriod], reach: TariffReach
) -> tuple[BillingPeriod, ...]:
    """Returns the months before a run that ratchets look back on and the baseline series covers."""
    if not isinstance(point.baseline, MeteredLoad) or not (reach.months_after or reach.to_year_end):
        return ()
    first = reached[0].start
    begins = min(add_months(first, -reach.months_after), date(first.year, 1, 1))
    if begins == first:
        return ()
    earlier = list_covered_periods(list_months(begins, first), point.baseline, point.tariff.time_zone)
    return earlier if earlier and earlier[-1].end == first else ()


def build_metered_load(point: MeteringPoint, periods: Sequence[BillingPeriod]) -> MeteredLoad:
    """Builds the reading of the meter without the workload over whole billing periods."""
    known = 0.0 if point.baseline is None else point.baseline
    load = build_baseline_load(known, periods, point.tariff.time_zone, point.interval_minutes)
    return load._replace(power_factor=point.power_factor, secondary=point.secondary)


def build_peak_history(
    point: MeteringPoint, periods: Sequence[BillingPeriod]
) -> Mapping[tuple[int, int], float] | None:
    """Returns the peaks of earlier months: as given, else those of a constant baseline for two years back."""
    if point.history is not None or not isinstance(point.baseline, float):
        return point.history
    first = to_month_key(periods[0].start.year, periods[0].start.month)
    return {split_month_key(key): point.baseline for key in range(first - _HISTORY_MONTHS, first)}
