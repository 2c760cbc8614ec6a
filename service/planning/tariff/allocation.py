"""Allocation of a bill: the cost of a workload at a meter that others use too.

Incremental (marginal) allocation: bill(baseline + workload) - bill(baseline), line by line, both over the
same billing periods. Costs that the baseline has anyway, fixed charges first, are in both and cancel. A
billing period after the workload has a difference only where the tariff looks back on a peak (ratchet, annual
demand): its lines are consequences of the run.

Standalone: the bill of the workload alone at a separate meter, with every billing period that it touches in
full.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.errors import PlanningError
from service.planning.tariff.bill import (
    BillFinding,
    BillingPeriod,
    BillLine,
    LoadBill,
    MeteredLoad,
    PeriodBill,
)
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.calendar import list_calendar_months, resolve_zone, split_month_key, to_month_key
from service.planning.tariff.charges import (
    ALWAYS,
    MONTHS,
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    PeakSpan,
    PercentageCharge,
    RealTimeCharge,
    Tariff,
    TariffCharge,
)
from service.planning.tariff.effort import (
    MOST_STEPS,
    BillingEffort,
    build_extent,
    check_size,
    estimate_bill_effort,
    estimate_size,
)

_HISTORY_MONTHS = 24
"""Months that a constant baseline is taken to precede the load."""
_HOUR_MINUTES = 60
_NOISE = 1e-9
"""Difference of two sums below which it counts as rounding."""

LineKey = tuple[str, str, str | None, int | None, int]
"""Charge, kind, price period, tier, and number among lines that agree in these."""


class PeriodShare(NamedTuple):
    """A workload's share of one billing period."""

    period: BillingPeriod
    lines: tuple[BillLine, ...]
    energy_kwh: float
    peak_kw: float
    """Highest demand of the meter, the baseline included."""
    after_run: bool
    """True if the workload does not touch the period."""

    @property
    def total(self) -> Decimal:
        """Sum of the lines, not rounded."""
        return sum((line.amount for line in self.lines), Decimal(0))


class BillAllocation(NamedTuple):
    """Bill of a workload, in the currency of its tariff; periods after it without a line are left out."""

    currency_code: str
    periods: tuple[PeriodShare, ...]
    findings: tuple[BillFinding, ...] = ()

    @property
    def total(self) -> Decimal:
        """Sum of the lines, not rounded."""
        return sum((share.total for share in self.periods), Decimal(0))


class TariffReach(NamedTuple):
    """Extent to which a tariff looks beyond the billing period of a peak."""

    months_after: int = 0
    to_year_end: bool = False
    whole_year: bool = False
    """True if a charge depends on the load of the whole calendar year."""
    following_year: bool = False


def compute_local_midnight(day: date, time_zone: str) -> datetime:
    """Returns the instant (UTC) at which a local day begins.

    Where the clock skips midnight, the end of the gap.
    """
    return datetime.combine(day, time(), resolve_zone(time_zone)).astimezone(UTC)


def _list_months(first: date, end: date) -> tuple[BillingPeriod, ...]:
    """Returns the calendar months from that of ``first`` to that before ``end``, the first day of a month."""
    return list_calendar_months(first, end - timedelta(days=1))


def _add_months(day: date, months: int) -> date:
    """Returns the first day of the month that is ``months`` after that of ``day``."""
    return date(*split_month_key(to_month_key(day.year, day.month) + months), 1)


def list_touched_periods(
    start: datetime, end: datetime, time_zone: str, starts: Sequence[date] | None = None
) -> tuple[BillingPeriod, ...]:
    """Returns the billing periods that ``start`` to ``end`` (aware) overlaps.

    ``starts`` are first days of consecutive billing periods and of the one after the last; without them the
    periods are local calendar months. Refuses a run that these do not cover (BILLING_PERIODS).
    """
    zone = resolve_zone(time_zone)
    first, last = start.astimezone(zone).date(), (end - timedelta(microseconds=1)).astimezone(zone).date()
    if starts is None:
        return list_calendar_months(first, last)
    periods = [BillingPeriod(*days) for days in pairwise(starts)]
    if any(period.start >= period.end for period in periods):
        detail = "the first days of billing periods must be in order"
        raise PlanningError("BILLING_PERIODS", "/site/electricity/billing_period_starts", detail)
    if not periods[0].start <= first <= last < periods[-1].end:
        detail = f"billing periods must cover the run, {first} to {last}"
        raise PlanningError("BILLING_PERIODS", "/site/electricity/billing_period_starts", detail)
    return tuple(period for period in periods if period.end > first and period.start <= last)


def compute_reach(tariff: Tariff) -> TariffReach:
    """Returns the extent to which the charges of ``tariff`` look beyond the billing period of a peak."""
    months, to_year_end, whole, following = 0, False, False, False
    for charge in (charge for revision in tariff.revisions for charge in revision.charges):
        whole |= _needs_full_year(charge)
        if isinstance(charge, CoincidentPeakCharge):
            following |= charge.in_following_year
        if isinstance(charge, DemandCharge):
            for ratchet in charge.billing_demand.ratchets:
                months = max(months, ratchet.preceding_months or 0)
                to_year_end |= ratchet.preceding_months is None
    return TariffReach(months, to_year_end, whole, following)


def _needs_full_year(charge: TariffCharge) -> bool:
    by_hours_of_use = charge.hours_of_use_from > 0.0 or charge.hours_of_use_below is not None
    annual_peak = isinstance(charge, DemandCharge) and charge.span is PeakSpan.CALENDAR_YEAR
    return by_hours_of_use or annual_peak or isinstance(charge, CoincidentPeakCharge)


def list_reached_periods(run: Sequence[BillingPeriod], reach: TariffReach) -> tuple[BillingPeriod, ...]:
    """Returns the calendar months that a bill of both loads must cover to show all consequences of a run."""
    first, last = run[0].start, run[-1].end - timedelta(days=1)
    end = _add_months(last, 1 + reach.months_after)
    if reach.to_year_end or reach.whole_year:
        end = max(end, date(last.year + 1, 1, 1))
    if reach.following_year:
        end = max(end, date(last.year + 1, 2, 1))
    return _list_months(date(first.year, 1, 1) if reach.whole_year else first, end)


class TimeDependence(StrEnum):
    """Part of a bill that depends on the start of a load."""

    NOTHING = "nothing"
    PERIODS = "periods"
    """Charges by billing period, through the number of periods that a load touches."""
    PRICES = "prices"


def find_time_dependence(tariff: Tariff, *, alone: bool) -> TimeDependence:
    """Returns the part of the bill that depends on the start of the load.

    ``alone`` if it pays fixed charges.
    """
    if len(tariff.revisions) > 1:
        return TimeDependence.PRICES
    found = {_classify_charge(charge, alone=alone) for charge in tariff.revisions[0].charges}
    order = (TimeDependence.PRICES, TimeDependence.PERIODS)
    return next((dependence for dependence in order if dependence in found), TimeDependence.NOTHING)


def _classify_charge(charge: TariffCharge, *, alone: bool) -> TimeDependence:
    if charge.months != MONTHS or _needs_full_year(charge) or isinstance(charge, RealTimeCharge):
        return TimeDependence.PRICES
    if isinstance(charge, EnergyCharge | DemandCharge):
        if any(period.windows != ALWAYS for period in charge.periods):
            return TimeDependence.PRICES
        if isinstance(charge, DemandCharge):
            return TimeDependence.PRICES if charge.billing_demand.ratchets else TimeDependence.PERIODS
        is_one_price = all(len(period.tiers) == 1 for period in charge.periods)
        return TimeDependence.NOTHING if is_one_price else TimeDependence.PERIODS
    if isinstance(charge, FixedCharge | MinimumCharge):
        return TimeDependence.PERIODS if alone else TimeDependence.NOTHING
    return TimeDependence.NOTHING if isinstance(charge, PercentageCharge) else TimeDependence.PERIODS


def resample_load(
    load: MeteredLoad, start: datetime, interval_minutes: int, count: int
) -> NDArray[np.float64]:
    """Returns the mean kW of ``load`` in ``count`` intervals from ``start``, 0 outside of it.

    Keeps its energy.
    """
    own_hours = load.interval_minutes / _HOUR_MINUTES
    offset = (load.start - start).total_seconds() / 3600.0
    known = offset + own_hours * np.arange(load.kw.size + 1)
    energy = np.concatenate(([0.0], np.cumsum(load.kw))) * own_hours
    hours = interval_minutes / _HOUR_MINUTES
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


def compute_difference(whole: LoadBill, baseline: LoadBill, run: Iterable[BillingPeriod]) -> BillAllocation:
    """Returns the difference of ``whole`` and ``baseline`` by line, over the same billing periods.

    Their sum is the difference of the two bills. A line that both have has the quantity and amount less those
    of the baseline; where its price differs too, the price is that of the difference. A line that only the
    baseline has is subtracted: its quantity and amount are below 0.
    """
    touched = set(run)
    shares = []
    for one, other in zip(whole.periods, baseline.periods, strict=True):
        lines = tuple(_list_differing_lines(one, other))
        is_after = one.period not in touched
        if lines or not is_after:
            energy = one.energy_kwh - other.energy_kwh
            shares.append(PeriodShare(one.period, lines, energy, one.peak_kw, is_after))
    return BillAllocation(whole.currency_code, tuple(shares), whole.findings)


def _index_lines(bill: PeriodBill) -> Mapping[LineKey, BillLine]:
    seen: Counter[tuple[str, str, str | None, int | None]] = Counter()
    keyed = {}
    for line in bill.lines:
        key = (line.charge, line.kind, line.period, line.tier)
        keyed[(*key, seen[key])] = line
        seen[key] += 1
    return keyed


def _list_differing_lines(whole: PeriodBill, baseline: PeriodBill) -> Iterator[BillLine]:
    ours, theirs = _index_lines(whole), _index_lines(baseline)
    lines = [line if key not in theirs else _subtract_line(line, theirs[key]) for key, line in ours.items()]
    lines += [
        line._replace(quantity=-line.quantity, amount=-line.amount)
        for key, line in theirs.items()
        if key not in ours
    ]
    for line in lines:
        if abs(line.amount) > _NOISE or abs(line.quantity) > _NOISE:
            yield line


def _subtract_line(ours: BillLine, theirs: BillLine) -> BillLine:
    """Returns one line less another."""
    quantity, amount = ours.quantity - theirs.quantity, ours.amount - theirs.amount
    if ours.price == theirs.price:
        return ours._replace(quantity=quantity, amount=amount)
    if abs(quantity) > _NOISE:
        return ours._replace(quantity=quantity, amount=amount, price=amount / Decimal(quantity))
    return ours._replace(amount=amount, price=ours.price - theirs.price)


def build_allocation(alone: LoadBill) -> BillAllocation:
    """Returns the bill of one load alone as an allocation."""
    shares = (
        PeriodShare(period.period, period.lines, period.energy_kwh, period.peak_kw, after_run=False)
        for period in alone.periods
    )
    return BillAllocation(alone.currency_code, tuple(shares), alone.findings)


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


class AllocatedVersions(NamedTuple):
    """Bills of several versions of a workload."""

    allocations: tuple[BillAllocation, ...]
    unknown: tuple[BillingPeriod, ...] = ()
    """Billing periods that the tariff ties to those of the run and that the baseline does not cover."""


def allocate_bill(point: MeteringPoint, workloads: Sequence[MeteredLoad]) -> AllocatedVersions:
    """Computes the bill of each version of a workload.

    Its addition to the baseline, or all of it without one. The baseline is billed once. Refuses a baseline
    that does not cover the billing periods of the run, a run that the given billing periods do not cover, and
    all that :func:`compute_bill` refuses.
    """
    estimate_allocation_effort(point, workloads).check(MOST_STEPS, "")
    runs = [list_load_periods(point, load) for load in workloads]
    if point.baseline is None:
        bills = (_allocate_alone(point, load, run) for load, run in zip(workloads, runs, strict=True))
        return AllocatedVersions(tuple(bills))
    longest = max(runs, key=lambda run: run[-1].end)
    periods, unknown = list_tied_periods(point, longest)
    baseline, history = build_metered_load(point, periods), build_peak_history(point, periods)
    without = compute_bill(point.tariff, baseline, periods=periods, history=history)
    allocations = [
        compute_difference(
            compute_bill(point.tariff, add_loads(baseline, load), periods=periods, history=history),
            without,
            run,
        )
        for load, run in zip(workloads, runs, strict=True)
    ]
    return AllocatedVersions(tuple(allocations), unknown)


def estimate_allocation_effort(point: MeteringPoint, workloads: Sequence[MeteredLoad]) -> BillingEffort:
    """Estimates the effort of :func:`allocate_bill`.

    A bill of each version, and of the baseline if there is one.
    """
    runs = [list_load_periods(point, load) for load in workloads]
    if point.baseline is None:
        whole = compute_reach(point.tariff).whole_year
        spans = [list_reached_periods(run, TariffReach(whole_year=True)) if whole else run for run in runs]
    else:
        periods, _ = list_tied_periods(point, max(runs, key=lambda run: run[-1].end))
        spans = [periods] * (len(workloads) + 1)
    found = BillingEffort()
    for span in spans:
        extent = build_extent(span, point.interval_minutes)
        check_size(estimate_size(point.tariff, extent), len(spans))
        found = found.add(estimate_bill_effort(point.tariff, extent))
    return found


def list_load_periods(point: MeteringPoint, load: MeteredLoad) -> tuple[BillingPeriod, ...]:
    """Returns the billing periods in which a load draws power."""
    drawing = np.flatnonzero(load.kw)
    first, last = (int(drawing[0]), int(drawing[-1])) if drawing.size else (0, 0)
    minutes = timedelta(minutes=load.interval_minutes)
    begins, ends = load.start + first * minutes, load.start + (last + 1) * minutes
    return list_touched_periods(begins, ends, point.tariff.time_zone, point.starts)


def _allocate_alone(point: MeteringPoint, load: MeteredLoad, run: Sequence[BillingPeriod]) -> BillAllocation:
    periods = (
        list_reached_periods(run, TariffReach(whole_year=True))
        if compute_reach(point.tariff).whole_year
        else run
    )
    whole = add_loads(build_metered_load(point, periods), load)
    return build_allocation(compute_bill(point.tariff, whole, periods=run, history=point.history))


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
    begins = min(_add_months(first, -reach.months_after), date(first.year, 1, 1))
    if begins == first:
        return ()
    earlier = list_covered_periods(_list_months(begins, first), point.baseline, point.tariff.time_zone)
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
