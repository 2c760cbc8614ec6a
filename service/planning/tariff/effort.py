"""What a bill takes to work out, known before it is: steps of about a microsecond on one core.

A step stands for memory too: what is held of a bill is at most some fifty bytes a step. The products are
those of docs/methods/tariff.md, "Bounds".
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.calendar import boundary_minutes
from service.planning.tariff.charges import (
    DAY_MINUTES,
    Accumulation,
    Charge,
    CoincidentPeakCharge,
    DemandCharge,
    EnergyCharge,
    MinimumCharge,
    OverrunCharge,
    PercentageCharge,
    PricePeriod,
    Ratchet,
    RealTimeCharge,
    Tariff,
    Window,
)
from service.planning.tariff.compiled import Same

MOST_STEPS: Final = 4_000_000
"""Of one question, whatever bills it takes."""
MOST_ORDINARY_STEPS: Final = 1_000_000
"""Of an ordinary question under a tariff that is stored: who names it does not choose what it takes."""
MOST_CELLS: Final = 1_000_000
"""Intervals of a load and what the boundaries of its tariff cut them into: 28 years of quarter hours."""

MOST_READINGS: Final = 12_000_000
"""Such pieces times the kinds of charges that read them: what is held of each is as long as the load."""
MOST_LINES: Final = 60_000
"""Of one question: each is some kilobytes until it is told."""

_KEPT = 8
"""Tariffs and extents that are counted once for bills that follow each other."""
_QUARTER, _QUARTERS_OF_DAY, _QUARTERS_OF_YEAR, _BILLS = 15, 96, 366 * 96, 4
_CELL, _ENERGY_CELL, _DEMAND_CELL, _SORTED_CELL, _WINDOW_CELL = 0.1, 0.015, 0.025, 0.1, 0.05
_ORDERED_TIER, _PRICE = 0.007, 0.25
_WINDOW, _WINDOW_DAY = 10.0, 0.05
_CHARGE, _LINE, _TOLD_LINE, _DEMAND, _OF = 5.0, 10.0, 20.0, 12.0, 0.1
_RATCHET, _RATCHET_MONTH, _LOOK = 60.0, 0.6, 0.01
_PEAK_INTERVAL = 1.2


class Share(NamedTuple):
    """Steps and what takes them, in the words of the members of a question."""

    steps: float
    what: str


class Effort(NamedTuple):
    """Steps by what takes them."""

    shares: tuple[Share, ...] = ()

    @property
    def total(self) -> float:
        """All of them."""
        return sum(share.steps for share in self.shares)

    def plus(self, other: "Effort") -> "Effort":
        """Both."""
        return Effort((*self.shares, *other.shares))

    def times(self, count: int, of_what: str) -> "Effort":
        """The same for each of several things."""
        return Effort(
            tuple(Share(share.steps * count, f"{share.what} x {count:,} {of_what}") for share in self.shares)
        )

    def check(self, most: float, pointer: str, code: str = "BILL_TOO_COSTLY") -> None:
        """Refuse at ``pointer`` what takes more than ``most`` steps, and name what takes the most of them."""
        if self.total <= most:
            return
        share = max(self.shares, key=lambda one: one.steps)
        detail = f"it would take {self.total:,.0f} steps and at most {most:,.0f} are left for it: "
        raise PlanningError(code, pointer, f"{detail}{share.steps:,.0f} are {share.what}")


class Extent(NamedTuple):
    """How long a load is, over how many billing periods it is billed, and the first of its days."""

    intervals: int
    interval_minutes: int
    periods: int
    first: date | None = None
    """None where any revision may be in force."""

    @property
    def days(self) -> int:
        """Local days that it touches, one more at either end."""
        return self.intervals * self.interval_minutes // DAY_MINUTES + 2

    def overlaps(self, start: date, end: date) -> bool:
        """Whether a day of it may lie from ``start`` to before ``end``."""
        if self.first is None:
            return True
        before = self.first.toordinal() - 1
        return start.toordinal() <= before + self.days + 1 and end.toordinal() > before


def extent_of(periods: Sequence[BillingPeriod], interval_minutes: int) -> Extent:
    """The extent of whole billing periods."""
    days = (periods[-1].end - periods[0].start).days
    return Extent(days * DAY_MINUTES // interval_minutes, interval_minutes, len(periods), periods[0].start)


def _charges(tariff: Tariff, extent: Extent | None = None) -> Iterator[Charge]:
    """All charges, or those of revisions that are in force within an extent."""
    ends = [*(revision.effective_from for revision in tariff.revisions[1:]), date.max]
    for revision, end in zip(tariff.revisions, ends, strict=True):
        if extent is None or extent.overlaps(revision.effective_from, end):
            yield from revision.charges


def _hours(periods: Iterable[PricePeriod]) -> tuple[tuple[Window, ...], ...]:
    return tuple(period.windows for period in periods)


def cells_within(tariff: Tariff, extent: Extent) -> int:
    """The most pieces that the boundaries of ``tariff`` cut the intervals of a load into."""
    charges, step = list(_charges(tariff)), extent.interval_minutes
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
    cutting = [minute for minute in {*boundary_minutes(timed), *starts} if minute % step]
    return extent.intervals + extent.days * len(cutting)


class Size(NamedTuple):
    """What of a bill is held at a time."""

    cells: int
    readings: int
    lines: int


def size_of(tariff: Tariff, extent: Extent) -> Size:
    """The most that a bill of a load of that extent holds."""
    return _size_of(Same(tariff), extent)


@lru_cache(maxsize=_KEPT)
def _size_of(same: Same, extent: Extent) -> Size:
    tariff = same.value
    cells, charges = cells_within(tariff, extent), list(_charges(tariff, extent))
    kinds = len(_energies(charges)) + len(_groups(charges))
    return Size(cells, cells * kinds, _lines(charges, extent.periods))


def check_size(size: Size, bills: int = 1) -> None:
    """Refuse what holds too much at a time: LOAD_TOO_LONG, or BILL_TOO_COSTLY."""
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


def _energies(charges: Iterable[Charge]) -> set[tuple[object, ...]]:
    """Energy charges that differ in their hours."""
    return {(_hours(one.periods), one.months) for one in charges if isinstance(one, EnergyCharge)}


def _groups(charges: Iterable[Charge]) -> set[tuple[object, ...]]:
    """Demand charges that differ in their hours."""
    return {(_hours(one.periods), one.span) for one in charges if isinstance(one, DemandCharge)}


def _lines(charges: Sequence[Charge], periods: int) -> int:
    """The most lines of so many billing periods: a set of peaks has one a year."""
    timed = [one for one in charges if isinstance(one, EnergyCharge | DemandCharge)]
    tiers = sum(len(period.tiers) for charge in timed for period in charge.periods)
    sets = [len(one.sets) for one in charges if isinstance(one, CoincidentPeakCharge)]
    return (len(charges) - len(timed) - len(sets) + tiers) * periods + sum(sets) * _years(periods)


def _years(periods: int) -> int:
    """The most calendar years that billing periods touch, where they are months."""
    return periods // 12 + 2


def bill_effort(tariff: Tariff, extent: Extent) -> Effort:
    """What one bill of a load takes."""
    return _bill_effort(Same(tariff), extent)


@lru_cache(maxsize=_KEPT)
def _bill_effort(same: Same, extent: Extent) -> Effort:
    tariff = same.value
    lines = _lines(list(_charges(tariff, extent)), extent.periods)
    told = Effort((Share(_TOLD_LINE * lines, f"{lines:,} lines to tell"),))
    return reading_effort(tariff, extent).plus(statement_effort(tariff, extent)).plus(told)


def reading_effort(tariff: Tariff, extent: Extent) -> Effort:
    """What reading the load takes: each pass over it once, for all charges that share it."""
    cells, charges = cells_within(tariff, extent), list(_charges(tariff, extent))
    energies = [charge for charge in charges if isinstance(charge, EnergyCharge)]
    demands = [charge for charge in charges if isinstance(charge, DemandCharge)]
    kinds_of_energy, groups = len(_energies(charges)), len(_groups(charges))
    sorted_kinds = len({_highest_of(charge) for charge in demands if charge.peaks > 1})
    lengths = len({(charge.window_minutes, charge.rolling) for charge in demands})
    tiers = sum(
        len(period.tiers)
        for charge in energies
        if charge.accumulation is Accumulation.ALL_PERIODS_IN_TIME_ORDER
        for period in charge.periods
    )
    markets = [len(charge.prices.values) for charge in charges if isinstance(charge, RealTimeCharge)]
    readings = _ENERGY_CELL * kinds_of_energy + _DEMAND_CELL * groups + _SORTED_CELL * sorted_kinds
    kinds = kinds_of_energy + groups + sorted_kinds
    return Effort(
        (
            Share(_CELL * cells, f"{cells:,} intervals"),
            Share(readings * cells, f"{cells:,} intervals x {kinds} kinds of charge by their hours"),
            Share(
                _WINDOW_CELL * lengths * cells, f"{cells:,} intervals x {lengths} lengths of demand windows"
            ),
            Share(_ORDERED_TIER * tiers * cells, f"{cells:,} intervals x {tiers:,} tiers in order of time"),
            Share(_PRICE * (len(markets) * cells + sum(markets)), f"{sum(markets):,} prices of the market"),
            _of_windows(charges, extent.days),
        )
    )


def _highest_of(charge: DemandCharge) -> tuple[object, ...]:
    taken = (charge.window_minutes, charge.rolling, charge.peaks, charge.on_distinct_days)
    return (_hours(charge.periods), charge.span, *taken)


def _of_windows(charges: Iterable[Charge], days: int) -> Share:
    hours = {_hours(charge.periods) for charge in charges if isinstance(charge, EnergyCharge | DemandCharge)}
    windows = sum(len(period) for periods in hours for period in periods)
    return Share(windows * (_WINDOW + _WINDOW_DAY * days), f"{windows:,} windows x {days:,} days")


def statement_effort(tariff: Tariff, extent: Extent) -> Effort:
    """What the lines of its billing periods take."""
    charges, periods = list(_charges(tariff, extent)), extent.periods
    lines, of_others, demands = _lines(charges, periods), 0, 0
    for charge in charges:
        if isinstance(charge, DemandCharge):
            demands += len(charge.periods)
        if isinstance(charge, MinimumCharge | PercentageCharge):
            of_others += len(charge.of)
    return Effort(
        (
            Share(
                _CHARGE * len(charges) * periods, f"{len(charges):,} charges x {periods:,} billing periods"
            ),
            Share(_LINE * lines, f"{lines:,} tiers and charges x billing periods"),
            Share(_DEMAND * demands * periods, f"{demands:,} demands x {periods:,} billing periods"),
            Share(_OF * of_others * periods, f"{of_others:,} names of charges x {periods:,} billing periods"),
            _of_ratchets(charges, periods),
            _of_peak_intervals(charges, periods),
        )
    )


def _ratchets(charges: Iterable[Charge]) -> Iterator[Ratchet]:
    for charge in charges:
        if isinstance(charge, DemandCharge):
            yield from charge.billing_demand.ratchets


def _of_ratchets(charges: Iterable[Charge], periods: int) -> Share:
    ratchets = list(_ratchets(charges))
    looks = sum(map(_looked_back_on, ratchets))
    steps = len(ratchets) * (_RATCHET + _RATCHET_MONTH * periods) + _LOOK * looks * periods
    return Share(steps, f"{len(ratchets):,} ratchets of {looks:,} months x {periods:,} billing periods")


def _looked_back_on(ratchet: Ratchet) -> int:
    return (ratchet.preceding_months or len(ratchet.peak_months or ())) + ratchet.within_billing_month


def _of_peak_intervals(charges: Iterable[Charge], periods: int) -> Share:
    years, found = _years(periods), 0
    for charge in charges:
        if isinstance(charge, CoincidentPeakCharge):
            found += sum(max(len(one.hours_of_year), len(one.starts), one.given) + 5 for one in charge.sets)
    return Share(_PEAK_INTERVAL * found * years, f"{found:,} peak intervals x {years} years")


def ordinary_effort(tariff: Tariff) -> Effort:
    """The most that an ordinary question takes: a year by quarters of an hour, or a month beside a baseline.

    A run beside a baseline is billed at the middle, low and high end of its power, and so is the baseline,
    over all months that ratchets tie to it.
    """
    months = max((_looked_back_on(one) for one in _ratchets(_charges(tariff))), default=0)
    found = []
    for revision in tariff.revisions:
        year = Extent(_QUARTERS_OF_YEAR, _QUARTER, 13, revision.effective_from)
        tied = year._replace(intervals=(months + 13) * 31 * _QUARTERS_OF_DAY, periods=months + 13)
        extent = tied if months else year
        check_size(size_of(tariff, extent), _BILLS)
        found.append(bill_effort(tariff, extent).times(_BILLS, "bills"))
    return max(found, key=lambda effort: effort.total)
