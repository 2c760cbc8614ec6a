"""Effort of a bill, estimated before it is computed, in steps of about a microsecond on one core.

A step stands for memory too: a bill holds at most some fifty bytes per step. The products are those of
docs/methods/tariff.md, "Bounds".
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.calendar import list_boundary_minutes
from service.planning.tariff.charges import (
    DAY_MINUTES,
    CoincidentPeakCharge,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    LocalTimeWindow,
    MinimumCharge,
    OverrunCharge,
    PercentageCharge,
    PricePeriod,
    RealTimeCharge,
    Tariff,
    TariffCharge,
    TierAccumulation,
)
from service.planning.tariff.compiled import IdentityValue

MOST_STEPS: Final = 4_000_000
"""Maximum steps of one question, over all of its bills."""
MOST_ORDINARY_STEPS: Final = 1_000_000
"""Maximum steps of an ordinary question under a stored tariff, which the asker did not write."""
MOST_CELLS: Final = 1_000_000
"""Maximum intervals of a load, split at the boundaries of its tariff: 28 years of quarter hours."""

MOST_READINGS: Final = 12_000_000
"""Maximum product of such pieces and kinds of charges that read them.

Each holds an array as long as the load.
"""
MOST_LINES: Final = 60_000
"""Maximum lines of one question, each of which takes some kilobytes until it is serialized."""

_KEPT = 8
"""Number of cached tariffs and extents, for bills that follow each other."""
_QUARTER, _QUARTERS_OF_DAY, _QUARTERS_OF_YEAR, _BILLS = 15, 96, 366 * 96, 4
_CELL, _ENERGY_CELL, _DEMAND_CELL, _SORTED_CELL, _WINDOW_CELL = 0.1, 0.015, 0.025, 0.1, 0.05
_ORDERED_TIER, _PRICE = 0.007, 0.25
_WINDOW, _WINDOW_DAY = 10.0, 0.05
_CHARGE, _LINE, _TOLD_LINE, _DEMAND, _OF = 5.0, 10.0, 20.0, 12.0, 0.1
_RATCHET, _RATCHET_MONTH, _LOOK = 60.0, 0.6, 0.01
_PEAK_INTERVAL = 1.2


class EffortShare(NamedTuple):
    """Steps and their cause, in terms of the members of a question."""

    steps: float
    what: str


class BillingEffort(NamedTuple):
    """Steps by cause."""

    shares: tuple[EffortShare, ...] = ()

    @property
    def total(self) -> float:
        """Sum of all steps."""
        return sum(share.steps for share in self.shares)

    def add(self, other: "BillingEffort") -> "BillingEffort":
        """Returns the sum of both efforts."""
        return BillingEffort((*self.shares, *other.shares))

    def scale(self, count: int, of_what: str) -> "BillingEffort":
        """Returns the effort of ``count`` repetitions."""
        return BillingEffort(
            tuple(
                EffortShare(share.steps * count, f"{share.what} x {count:,} {of_what}")
                for share in self.shares
            )
        )

    def check(self, most: float, pointer: str, code: str = "BILL_TOO_COSTLY") -> None:
        """Refuses at ``pointer`` an effort of more than ``most`` steps.

        The detail names the largest cause.
        """
        if self.total <= most:
            return
        share = max(self.shares, key=lambda one: one.steps)
        detail = f"the bill would take {self.total:,.0f} steps and at most {most:,.0f} are allowed: "
        raise PlanningError(code, pointer, f"{detail}{share.steps:,.0f} are {share.what}")


class LoadExtent(NamedTuple):
    """Length of a load, the number of its billing periods, and its first day."""

    intervals: int
    interval_minutes: int
    periods: int
    first: date | None = None
    """First day; None where any revision may be in force."""

    @property
    def days(self) -> int:
        """Local days that the load touches, and one more at either end."""
        return self.intervals * self.interval_minutes // DAY_MINUTES + 2

    def overlaps(self, start: date, end: date) -> bool:
        """Returns true if a day of the load may lie from ``start`` to before ``end``."""
        if self.first is None:
            return True
        before = self.first.toordinal() - 1
        return start.toordinal() <= before + self.days + 1 and end.toordinal() > before


def build_extent(periods: Sequence[BillingPeriod], interval_minutes: int) -> LoadExtent:
    """Returns the extent of whole billing periods."""
    days = (periods[-1].end - periods[0].start).days
    return LoadExtent(
        days * DAY_MINUTES // interval_minutes, interval_minutes, len(periods), periods[0].start
    )


def _list_charges(tariff: Tariff, extent: LoadExtent | None = None) -> Iterator[TariffCharge]:
    """Yields all charges, or those of revisions that are in force within an extent."""
    ends = [*(revision.effective_from for revision in tariff.revisions[1:]), date.max]
    for revision, end in zip(tariff.revisions, ends, strict=True):
        if extent is None or extent.overlaps(revision.effective_from, end):
            yield from revision.charges


def _list_windows(periods: Iterable[PricePeriod]) -> tuple[tuple[LocalTimeWindow, ...], ...]:
    return tuple(period.windows for period in periods)


def count_cells(tariff: Tariff, extent: LoadExtent) -> int:
    """Returns the most pieces that the boundaries of ``tariff`` split a load's intervals into."""
    charges, step = list(_list_charges(tariff)), extent.interval_minutes
    lengths = {
        charge.window_minutes
        for charge in charges
        if isinstance(charge, DemandCharge | OverrunCharge) and charge.window_minutes
    }
    starts = {minute for length in lengths if step % length for minute in range(0, DAY_MINUTES, length)}
    timed = (
        period
        for charge in charges
        if isinstance(charge, EnergyCharge | DemandCharge)
        for period in charge.periods
    )
    cutting = [minute for minute in {*list_boundary_minutes(timed), *starts} if minute % step]
    return extent.intervals + extent.days * len(cutting)


class BillSize(NamedTuple):
    """Data of a bill that are held at a time."""

    cells: int
    readings: int
    lines: int


def estimate_size(tariff: Tariff, extent: LoadExtent) -> BillSize:
    """Returns the maximum size of a bill of a load of that extent."""
    return _estimate_size(IdentityValue(tariff), extent)


@lru_cache(maxsize=_KEPT)
def _estimate_size(same: IdentityValue, extent: LoadExtent) -> BillSize:
    tariff = same.value
    cells, charges = count_cells(tariff, extent), list(_list_charges(tariff, extent))
    kinds = len(_list_energy_kinds(charges)) + len(_list_demand_kinds(charges))
    return BillSize(cells, cells * kinds, _count_lines(charges, extent.periods))


def check_size(size: BillSize, bills: int = 1) -> None:
    """Refuses a bill that holds too much at a time: LOAD_TOO_LONG, or BILL_TOO_COSTLY."""
    if size.cells > MOST_CELLS:
        detail = f"its intervals are {size.cells:,} pieces at the boundaries of the tariff, and at most "
        detail += f"{MOST_CELLS:,} are billed: take longer intervals or a shorter time"
        raise PlanningError("LOAD_TOO_LONG", "/interval_minutes", detail)
    if size.readings > MOST_READINGS:
        detail = f"intervals x charges by their hours are {size.readings:,}, and at most "
        raise PlanningError("BILL_TOO_COSTLY", "", f"{detail}{MOST_READINGS:,} are read")
    if size.lines * bills > MOST_LINES:
        detail = f"tiers and charges x billing periods x bills are {size.lines * bills:,} lines, and at most "
        raise PlanningError("BILL_TOO_COSTLY", "", f"{detail}{MOST_LINES:,} are written")


def _list_energy_kinds(charges: Iterable[TariffCharge]) -> set[tuple[object, ...]]:
    """Returns the distinct hours of energy charges."""
    return {(_list_windows(one.periods), one.months) for one in charges if isinstance(one, EnergyCharge)}


def _list_demand_kinds(charges: Iterable[TariffCharge]) -> set[tuple[object, ...]]:
    """Returns the distinct hours of demand charges."""
    return {(_list_windows(one.periods), one.span) for one in charges if isinstance(one, DemandCharge)}


def _count_lines(charges: Sequence[TariffCharge], periods: int) -> int:
    """Returns the maximum number of lines of ``periods`` billing periods; a set of peaks has one a year."""
    timed = [one for one in charges if isinstance(one, EnergyCharge | DemandCharge)]
    tiers = sum(len(period.tiers) for charge in timed for period in charge.periods)
    sets = [len(one.sets) for one in charges if isinstance(one, CoincidentPeakCharge)]
    return (len(charges) - len(timed) - len(sets) + tiers) * periods + sum(sets) * _count_years(periods)


def _count_years(periods: int) -> int:
    """Returns the maximum number of calendar years that billing periods touch, where they are months."""
    return periods // 12 + 2


def estimate_bill_effort(tariff: Tariff, extent: LoadExtent) -> BillingEffort:
    """Estimates the effort of one bill of a load."""
    return _estimate_bill_effort(IdentityValue(tariff), extent)


@lru_cache(maxsize=_KEPT)
def _estimate_bill_effort(same: IdentityValue, extent: LoadExtent) -> BillingEffort:
    tariff = same.value
    lines = _count_lines(list(_list_charges(tariff, extent)), extent.periods)
    told = BillingEffort((EffortShare(_TOLD_LINE * lines, f"{lines:,} lines to tell"),))
    return estimate_reading_effort(tariff, extent).add(estimate_statement_effort(tariff, extent)).add(told)


def estimate_reading_effort(tariff: Tariff, extent: LoadExtent) -> BillingEffort:
    """Estimates the effort of reading the load: each pass over it once, for all charges that share it."""
    cells, charges = count_cells(tariff, extent), list(_list_charges(tariff, extent))
    energies = [charge for charge in charges if isinstance(charge, EnergyCharge)]
    demands = [charge for charge in charges if isinstance(charge, DemandCharge)]
    kinds_of_energy, groups = len(_list_energy_kinds(charges)), len(_list_demand_kinds(charges))
    sorted_kinds = len({_get_peak_kind(charge) for charge in demands if charge.peaks > 1})
    lengths = len({(charge.window_minutes, charge.rolling) for charge in demands})
    tiers = sum(
        len(period.tiers)
        for charge in energies
        if charge.accumulation is TierAccumulation.ALL_PERIODS_IN_TIME_ORDER
        for period in charge.periods
    )
    markets = [len(charge.prices.values) for charge in charges if isinstance(charge, RealTimeCharge)]
    readings = _ENERGY_CELL * kinds_of_energy + _DEMAND_CELL * groups + _SORTED_CELL * sorted_kinds
    kinds = kinds_of_energy + groups + sorted_kinds
    return BillingEffort(
        (
            EffortShare(_CELL * cells, f"{cells:,} intervals"),
            EffortShare(readings * cells, f"{cells:,} intervals x {kinds} kinds of charge by their hours"),
            EffortShare(
                _WINDOW_CELL * lengths * cells, f"{cells:,} intervals x {lengths} lengths of demand windows"
            ),
            EffortShare(
                _ORDERED_TIER * tiers * cells, f"{cells:,} intervals x {tiers:,} tiers in order of time"
            ),
            EffortShare(
                _PRICE * (len(markets) * cells + sum(markets)), f"{sum(markets):,} prices of the market"
            ),
            _estimate_windows(charges, extent.days),
        )
    )


def _get_peak_kind(charge: DemandCharge) -> tuple[object, ...]:
    taken = (charge.window_minutes, charge.rolling, charge.peaks, charge.on_distinct_days)
    return (_list_windows(charge.periods), charge.span, *taken)


def _estimate_windows(charges: Iterable[TariffCharge], days: int) -> EffortShare:
    hours = {
        _list_windows(charge.periods) for charge in charges if isinstance(charge, EnergyCharge | DemandCharge)
    }
    windows = sum(len(period) for periods in hours for period in periods)
    return EffortShare(windows * (_WINDOW + _WINDOW_DAY * days), f"{windows:,} windows x {days:,} days")


def estimate_statement_effort(tariff: Tariff, extent: LoadExtent) -> BillingEffort:
    """Estimates the effort of the lines of its billing periods."""
    charges, periods = list(_list_charges(tariff, extent)), extent.periods
    lines, of_others, demands = _count_lines(charges, periods), 0, 0
    for charge in charges:
        if isinstance(charge, DemandCharge):
            demands += len(charge.periods)
        if isinstance(charge, MinimumCharge | PercentageCharge):
            of_others += len(charge.of)
    return BillingEffort(
        (
            EffortShare(
                _CHARGE * len(charges) * periods, f"{len(charges):,} charges x {periods:,} billing periods"
            ),
            EffortShare(_LINE * lines, f"{lines:,} tiers and charges x billing periods"),
            EffortShare(_DEMAND * demands * periods, f"{demands:,} demands x {periods:,} billing periods"),
            EffortShare(
                _OF * of_others * periods, f"{of_others:,} names of charges x {periods:,} billing periods"
            ),
            _estimate_ratchets(charges, periods),
            _estimate_peak_intervals(charges, periods),
        )
    )


def _list_ratchets(charges: Iterable[TariffCharge]) -> Iterator[DemandRatchet]:
    for charge in charges:
        if isinstance(charge, DemandCharge):
            yield from charge.billing_demand.ratchets


def _estimate_ratchets(charges: Iterable[TariffCharge], periods: int) -> EffortShare:
    ratchets = list(_list_ratchets(charges))
    looks = sum(map(_count_ratchet_months, ratchets))
    steps = len(ratchets) * (_RATCHET + _RATCHET_MONTH * periods) + _LOOK * looks * periods
    return EffortShare(steps, f"{len(ratchets):,} ratchets of {looks:,} months x {periods:,} billing periods")


def _count_ratchet_months(ratchet: DemandRatchet) -> int:
    return (ratchet.preceding_months or len(ratchet.peak_months or ())) + ratchet.within_billing_month


def _estimate_peak_intervals(charges: Iterable[TariffCharge], periods: int) -> EffortShare:
    years, found = _count_years(periods), 0
    for charge in charges:
        if isinstance(charge, CoincidentPeakCharge):
            found += sum(max(len(one.hours_of_year), len(one.starts), one.given) + 5 for one in charge.sets)
    return EffortShare(_PEAK_INTERVAL * found * years, f"{found:,} peak intervals x {years} years")


def estimate_ordinary_effort(tariff: Tariff) -> BillingEffort:
    """Estimates the maximum effort of an ordinary question.

    A year of quarter hours, or a month and a baseline. A run beside a baseline is billed at the value, low
    and high end of its power, and so is the baseline, over all months that ratchets tie to it.
    """
    months = max((_count_ratchet_months(one) for one in _list_ratchets(_list_charges(tariff))), default=0)
    found = []
    for revision in tariff.revisions:
        year = LoadExtent(_QUARTERS_OF_YEAR, _QUARTER, 13, revision.effective_from)
        tied = year._replace(intervals=(months + 13) * 31 * _QUARTERS_OF_DAY, periods=months + 13)
        extent = tied if months else year
        check_size(estimate_size(tariff, extent), _BILLS)
        found.append(estimate_bill_effort(tariff, extent).scale(_BILLS, "bills"))
    return max(found, key=lambda effort: effort.total)
