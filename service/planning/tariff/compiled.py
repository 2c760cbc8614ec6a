"""Positions of a load's intervals in the calendar of a tariff, compiled once for any kW."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.calendar import (
    BooleanArray,
    IndexArray,
    Integers,
    build_days,
    build_price_period_table,
    list_boundary_minutes,
    list_calendar_months,
    resolve_zone,
    to_date,
    to_day_number,
)
from service.planning.tariff.cells import CalendarCells, build_cells
from service.planning.tariff.charges import (
    DAY_MINUTES,
    DemandCharge,
    EnergyCharge,
    LocalTimeWindow,
    OverrunCharge,
    PeakSpan,
    PricePeriod,
    RealTimeCharge,
    Tariff,
)
from service.planning.tariff.demands import CellGroups, compact_integers, group_cells
from service.planning.tariff.spans import check_billing_periods, find_billed_month, split_parts

WindowHours = tuple[tuple[LocalTimeWindow, ...], ...]
"""Windows by price period."""

_KEPT: Final = 8
"""Number of cached calendars: some 3 MB for a year of quarter hours under one tariff."""


class CompiledTariff:
    """Positions of a load's intervals in a tariff's calendar, independent of its kW."""

    def __init__(
        self,
        tariff: Tariff,
        first: int,
        interval_minutes: int,
        count: int,
        periods: tuple[BillingPeriod, ...] | None,
    ) -> None:
        self.tariff, self.zone = tariff, resolve_zone(tariff.time_zone)
        charges = [charge for revision in tariff.revisions for charge in revision.charges]
        timed = [
            period
            for charge in charges
            if isinstance(charge, EnergyCharge | DemandCharge)
            for period in charge.periods
        ]
        self.slots = list_boundary_minutes(timed)
        self.cells: CalendarCells = build_cells(
            first,
            interval_minutes,
            count,
            self.zone,
            {*self.slots, *_list_window_starts(charges, interval_minutes)},
        )
        cell_days = self.cells.days
        first_day, last_day = int(cell_days[0]), int(cell_days[-1])
        self.days = build_days(first_day, last_day, tariff.holidays)
        self.day = cell_days - first_day
        slot_of = np.searchsorted(self.slots, np.arange(DAY_MINUTES), side="right") - 1
        self.place = self.day * len(self.slots) + slot_of[self.cells.local_starts - cell_days * DAY_MINUTES]
        self.periods = check_billing_periods(
            list_calendar_months(to_date(first_day), to_date(last_day)) if periods is None else periods
        )
        self.parts = split_parts(self.periods, tariff.revisions)
        self.months = [find_billed_month(period) for period in self.periods]
        self._group_days()
        windows = [
            one.window_minutes
            for one in charges
            if isinstance(one, DemandCharge | OverrunCharge) and one.window_minutes
        ]
        self.finest_window_minutes = min(windows, default=interval_minutes)
        self.charges_energy = any(isinstance(one, EnergyCharge | RealTimeCharge) for one in charges)
        annual = [
            one for one in charges if isinstance(one, DemandCharge) and one.span is PeakSpan.CALENDAR_YEAR
        ]
        self.annual_window_minutes = annual[0].window_minutes if annual else None
        self._hours: dict[int, int] = {}
        self._known_hours: dict[WindowHours, int] = {}
        self._tables: dict[tuple[int, frozenset[int]], IndexArray] = {}
        self._energy: dict[tuple[int, frozenset[int]], Integers] = {}
        self._demand: dict[tuple[object, ...], CellGroups] = {}

    def _group_days(self) -> None:
        """Groups days by billing period, and days in none of them by calendar month."""
        numbers = np.arange(self.days.first, self.days.first + self.days.number)
        period = _find_period_index(numbers, [(one.start, one.end) for one in self.periods])
        self.part_of_day = _find_period_index(numbers, [(one.start, one.end) for one in self.parts])
        own = self.days.month_keys[1:]
        others, place = np.unique(own, return_inverse=True)
        self.group_of_day = np.where(period >= 0, period, len(self.periods) + place)
        self.group_months = [*self.months, *others.tolist()]
        self.year_of_group = np.array(self.group_months) // 12
        self.first_year = int(self.year_of_group.min())
        self.first_month = int(others[0])
        self.years = sorted(set((others // 12).tolist()))

    def get_hours_id(self, periods: Sequence[PricePeriod]) -> int:
        """Returns a number that price periods of the same hours share, whatever their names and prices."""
        if id(periods) not in self._hours:
            hours = tuple(period.windows for period in periods)
            self._hours[id(periods)] = self._known_hours.setdefault(hours, len(self._known_hours))
        return self._hours[id(periods)]

    def get_energy_kind(self, charge: EnergyCharge) -> tuple[int, frozenset[int]]:
        """Returns a key that charges share whose energy falls into the same hours of the same months."""
        return self.get_hours_id(charge.periods), charge.months

    def _get_energy_table(self, charge: EnergyCharge) -> IndexArray:
        """Returns the index of the price period by day and slot, -1 where the charge does not apply."""
        kind = self.get_energy_kind(charge)
        if kind not in self._tables:
            table = build_price_period_table(charge.periods, self.days, self.slots)
            table[~np.isin(self.days.months[1:], list(charge.months))] = -1
            self._tables[kind] = table
        return self._tables[kind]

    @cached_property
    def unpriced(self) -> dict[str, Integers]:
        """Billed cells without a price, by time-of-use charge, or under "" if no charge prices them."""
        missing = np.zeros((self.days.number, len(self.slots)), np.bool_)
        by_charge: dict[str, BooleanArray] = {}
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
                    free = self._get_energy_table(charge) < 0
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

    def get_energy_keys(self, charge: EnergyCharge) -> Integers:
        """Returns 1 + part x price periods + price period by cell, 0 where the charge does not apply."""
        kind = self.get_energy_kind(charge)
        if kind not in self._energy:
            table = self._get_energy_table(charge)
            keys = 1 + self.part_of_day[:, None] * len(charge.periods) + table
            unbilled = (table < 0) | (self.part_of_day < 0)[:, None]
            self._energy[kind] = compact_integers(np.where(unbilled, 0, keys).ravel()[self.place])
        return self._energy[kind]

    def get_demand_groups(self, periods: Sequence[PricePeriod] | None, span: PeakSpan) -> CellGroups:
        """Groups cells by billing period (or month, or calendar year) and price period; None: all hours."""
        known = (None if periods is None else self.get_hours_id(periods), span)
        if known not in self._demand:
            group, count = self.group_of_day, len(self.group_months)
            if span is PeakSpan.CALENDAR_YEAR:
                group = self.year_of_group[group] - self.first_year
                count = int(self.year_of_group.max()) - self.first_year + 1
            if periods is None:
                self._demand[known] = group_cells(group[self.day], count)
            else:
                table = build_price_period_table(periods, self.days, self.slots)
                keys = np.where(table < 0, -1, group[:, None] * len(periods) + table)
                self._demand[known] = group_cells(keys.ravel()[self.place], count * len(periods))
        return self._demand[known]


def _find_period_index(numbers: Integers, spans: Sequence[tuple[object, object]]) -> Integers:
    place = np.full(len(numbers), -1)
    for index, (start, end) in enumerate(spans):
        place[(numbers >= to_day_number(start)) & (numbers < to_day_number(end))] = index  # type: ignore[arg-type]
    return place


def _list_window_starts(charges: Sequence[object], interval_minutes: int) -> set[int]:
    """Returns the minutes of the day at which demand windows begin that are no whole number of intervals."""
    lengths = {
        charge.window_minutes
        for charge in charges
        if isinstance(charge, DemandCharge | OverrunCharge) and charge.window_minutes
    }
    return {
        minute for length in lengths if interval_minutes % length for minute in range(0, DAY_MINUTES, length)
    }


class IdentityValue:
    """A value that is equal to itself only, as tariffs may hold arrays, which have no hash."""

    def __init__(self, value: Tariff) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityValue) and other.value is self.value


@lru_cache(maxsize=_KEPT)
def _get_compiled(
    tariff: IdentityValue,
    first: int,
    interval_minutes: int,
    count: int,
    periods: tuple[BillingPeriod, ...] | None,
) -> CompiledTariff:
    return CompiledTariff(tariff.value, first, interval_minutes, count, periods)


def compile_calendar(
    tariff: Tariff,
    first: int,
    interval_minutes: int,
    count: int,
    periods: tuple[BillingPeriod, ...] | None,
    *,
    keep: bool,
) -> CompiledTariff:
    """Compiles the calendar of ``count`` intervals from UTC minute ``first``; ``keep`` caches it."""
    if not keep:
        return CompiledTariff(tariff, first, interval_minutes, count, periods)
    return _get_compiled(IdentityValue(tariff), first, interval_minutes, count, periods)
