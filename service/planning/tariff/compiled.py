"""Where the intervals of a load lie in the calendar of a tariff: compiled once, whatever its kW are."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.calendar import (
    Flags,
    Integers,
    Places,
    boundary_minutes,
    calendar_months,
    date_of,
    day_number,
    days_between,
    price_period_table,
    zone_of,
)
from service.planning.tariff.cells import Cells, cells_of
from service.planning.tariff.charges import (
    DAY_MINUTES,
    DemandCharge,
    EnergyCharge,
    OverrunCharge,
    PricePeriod,
    RealTimeCharge,
    Span,
    Tariff,
    Window,
)
from service.planning.tariff.demands import Groups, grouped, narrowed
from service.planning.tariff.spans import checked, month_billed, parts_of

Hours = tuple[tuple[Window, ...], ...]
"""Windows by price period."""

_KEPT: Final = 8
"""Calendars that are kept: some 3 MB for a year of quarter hours under one tariff."""


class Compiled:
    """Where the intervals of a load lie in a tariff's calendar; says nothing of its kW."""

    def __init__(
        self,
        tariff: Tariff,
        first: int,
        interval_minutes: int,
        count: int,
        periods: tuple[BillingPeriod, ...] | None,
    ) -> None:
        self.tariff, self.zone = tariff, zone_of(tariff.time_zone)
        charges = [charge for revision in tariff.revisions for charge in revision.charges]
        timed = [
            period
            for charge in charges
            if isinstance(charge, EnergyCharge | DemandCharge)
            for period in charge.periods
        ]
        self.slots = boundary_minutes(timed)
        self.cells: Cells = cells_of(
            first,
            interval_minutes,
            count,
            self.zone,
            {*self.slots, *_window_starts(charges, interval_minutes)},
        )
        cell_days = self.cells.days
        first_day, last_day = int(cell_days[0]), int(cell_days[-1])
        self.days = days_between(first_day, last_day, tariff.holidays)
        self.day = cell_days - first_day
        slot_of = np.searchsorted(self.slots, np.arange(DAY_MINUTES), side="right") - 1
        self.place = self.day * len(self.slots) + slot_of[self.cells.local_starts - cell_days * DAY_MINUTES]
        self.periods = checked(
            calendar_months(date_of(first_day), date_of(last_day)) if periods is None else periods
        )
        self.parts = parts_of(self.periods, tariff.revisions)
        self.months = [month_billed(period) for period in self.periods]
        self._group_days()
        windows = [
            one.window_minutes
            for one in charges
            if isinstance(one, DemandCharge | OverrunCharge) and one.window_minutes
        ]
        self.finest_window_minutes = min(windows, default=interval_minutes)
        self.charges_energy = any(isinstance(one, EnergyCharge | RealTimeCharge) for one in charges)
        annual = [one for one in charges if isinstance(one, DemandCharge) and one.span is Span.CALENDAR_YEAR]
        self.annual_window_minutes = annual[0].window_minutes if annual else None
        self._hours: dict[int, int] = {}
        self._known_hours: dict[Hours, int] = {}
        self._tables: dict[tuple[int, frozenset[int]], Places] = {}
        self._energy: dict[tuple[int, frozenset[int]], Integers] = {}
        self._demand: dict[tuple[object, ...], Groups] = {}

    def _group_days(self) -> None:
        """Groups of days: billing periods, then the calendar months of days in none of them."""
        numbers = np.arange(self.days.first, self.days.first + self.days.number)
        period = _place_of(numbers, [(one.start, one.end) for one in self.periods])
        self.part_of_day = _place_of(numbers, [(one.start, one.end) for one in self.parts])
        own = self.days.month_keys[1:]
        others, place = np.unique(own, return_inverse=True)
        self.group_of_day = np.where(period >= 0, period, len(self.periods) + place)
        self.group_months = [*self.months, *others.tolist()]
        self.year_of_group = np.array(self.group_months) // 12
        self.first_year = int(self.year_of_group.min())
        self.first_month = int(others[0])
        self.years = sorted(set((others // 12).tolist()))

    def hours_of(self, periods: Sequence[PricePeriod]) -> int:
        """A number that price periods of the same hours share, whatever their names and prices are."""
        if id(periods) not in self._hours:
            hours = tuple(period.windows for period in periods)
            self._hours[id(periods)] = self._known_hours.setdefault(hours, len(self._known_hours))
        return self._hours[id(periods)]

    def energy_kind(self, charge: EnergyCharge) -> tuple[int, frozenset[int]]:
        """What charges share whose energy falls into the same hours of the same months."""
        return self.hours_of(charge.periods), charge.months

    def _energy_table(self, charge: EnergyCharge) -> Places:
        """Place of the price period by day and slot, -1 where the charge does not apply."""
        kind = self.energy_kind(charge)
        if kind not in self._tables:
            table = price_period_table(charge.periods, self.days, self.slots)
            table[~np.isin(self.days.months[1:], list(charge.months))] = -1
            self._tables[kind] = table
        return self._tables[kind]

    @cached_property
    def unpriced(self) -> dict[str, Integers]:
        """Cells that are billed and have no price: of a charge by time of use by its name, else of none."""
        missing = np.zeros((self.days.number, len(self.slots)), np.bool_)
        by_charge: dict[str, Flags] = {}
        revision_of = np.array([*(part.revision for part in self.parts), -1])[self.part_of_day]
        for place, revision in enumerate(self.tariff.revisions):
            mine = (revision_of == place)[:, None]
            if not mine.any():
                continue
            missing |= mine
            for charge in revision.charges:
                if isinstance(charge, RealTimeCharge):
                    missing &= ~mine
                elif isinstance(charge, EnergyCharge):
                    free = self._energy_table(charge) < 0
                    missing &= free | ~mine
                    applies = np.isin(self.days.months[1:], list(charge.months))[:, None]
                    if len(charge.periods) > 1 and (free & mine & applies).any():
                        by_charge[charge.name] = by_charge.get(charge.name, False) | (free & mine & applies)
        for known in by_charge.values():
            missing &= ~known
        found = by_charge | ({"": missing} if missing.any() and self.charges_energy else {})
        return {
            name: np.flatnonzero(table.ravel()[self.place]).astype(np.int32) for name, table in found.items()
        }

    def energy_keys(self, charge: EnergyCharge) -> Integers:
        """For each cell 1 + part x price periods + price period, 0 where the charge does not apply."""
        kind = self.energy_kind(charge)
        if kind not in self._energy:
            table = self._energy_table(charge)
            keys = 1 + self.part_of_day[:, None] * len(charge.periods) + table
            unbilled = (table < 0) | (self.part_of_day < 0)[:, None]
            self._energy[kind] = narrowed(np.where(unbilled, 0, keys).ravel()[self.place])
        return self._energy[kind]

    def demand_groups(self, periods: Sequence[PricePeriod] | None, span: Span) -> Groups:
        """Cells by billing period (or month, or calendar year) and price period; None: all hours."""
        known = (None if periods is None else self.hours_of(periods), span)
        if known not in self._demand:
            group, count = self.group_of_day, len(self.group_months)
            if span is Span.CALENDAR_YEAR:
                group = self.year_of_group[group] - self.first_year
                count = int(self.year_of_group.max()) - self.first_year + 1
            if periods is None:
                self._demand[known] = grouped(group[self.day], count)
            else:
                table = price_period_table(periods, self.days, self.slots)
                keys = np.where(table < 0, -1, group[:, None] * len(periods) + table)
                self._demand[known] = grouped(keys.ravel()[self.place], count * len(periods))
        return self._demand[known]


def _place_of(numbers: Integers, spans: Sequence[tuple[object, object]]) -> Integers:
    place = np.full(len(numbers), -1)
    for index, (start, end) in enumerate(spans):
        place[(numbers >= day_number(start)) & (numbers < day_number(end))] = index  # type: ignore[arg-type]
    return place


def _window_starts(charges: Sequence[object], interval_minutes: int) -> set[int]:
    """Minutes of the day at which demand windows begin that intervals are not already pieces of."""
    lengths = {
        charge.window_minutes
        for charge in charges
        if isinstance(charge, DemandCharge | OverrunCharge) and charge.window_minutes
    }
    return {
        minute for length in lengths if interval_minutes % length for minute in range(0, DAY_MINUTES, length)
    }


class Same:
    """A value that is equal to itself only: tariffs may hold arrays, which have no hash."""

    def __init__(self, value: Tariff) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value


@lru_cache(maxsize=_KEPT)
def _compiled(
    tariff: Same, first: int, interval_minutes: int, count: int, periods: tuple[BillingPeriod, ...] | None
) -> Compiled:
    return Compiled(tariff.value, first, interval_minutes, count, periods)


def compiled_for(
    tariff: Tariff,
    first: int,
    interval_minutes: int,
    count: int,
    periods: tuple[BillingPeriod, ...] | None,
    *,
    keep: bool,
) -> Compiled:
    """The compiled calendar of ``count`` intervals from UTC minute ``first``; ``keep``: for the next load."""
    if not keep:
        return Compiled(tariff, first, interval_minutes, count, periods)
    return _compiled(Same(tariff), first, interval_minutes, count, periods)
