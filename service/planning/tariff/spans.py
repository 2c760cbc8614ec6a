"""Billing periods, and their parts under one revision of a tariff."""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.calendar import date_of, day_number, days_of_month, month_key
from service.planning.tariff.charges import Proration, Revision


class Part(NamedTuple):
    """The days of a billing period, [start, end), that are under one revision."""

    period: int
    revision: int
    start: date
    end: date
    share: float
    """Days of the part over days of the billing period."""

    @property
    def days(self) -> int:
        """Whole local days."""
        return (self.end - self.start).days


def month_billed(period: BillingPeriod) -> int:
    """Key of the calendar month in which most days of a billing period lie, the earlier of two."""
    first, last = day_number(period.start), day_number(period.end) - 1
    days: dict[int, int] = {}
    for day in map(date_of, range(first, last + 1)):
        key = month_key(day.year, day.month)
        days[key] = days.get(key, 0) + 1
    return max(days, key=lambda key: (days[key], -key))


def checked(periods: Sequence[BillingPeriod]) -> tuple[BillingPeriod, ...]:
    """Billing periods in order of time, none empty, none overlapping: else ``BILLING_PERIODS``."""
    ordered = tuple(BillingPeriod(*period) for period in periods)
    for place, period in enumerate(ordered):
        before = ordered[place - 1].end if place else period.start
        if period.start >= period.end or period.start < before:
            raise PlanningError(
                "BILLING_PERIODS", f"/periods/{place}", "billing periods are in order and do not overlap"
            )
    if not ordered:
        raise PlanningError("BILLING_PERIODS", "/periods", "there is no billing period")
    return ordered


def parts_of(periods: Sequence[BillingPeriod], revisions: Sequence[Revision]) -> tuple[Part, ...]:
    """Each billing period cut where a revision comes into force; ``TARIFF_NOT_IN_FORCE`` before the first."""
    starts = [revision.effective_from for revision in revisions]
    if not starts or periods[0].start < starts[0]:
        raise PlanningError(
            "TARIFF_NOT_IN_FORCE", "/revisions", "the first revision begins after the first billing period"
        )
    ends = [*starts[1:], date.max]
    found = []
    for place, period in enumerate(periods):
        whole = (period.end - period.start).days
        for revision, (start, end) in enumerate(zip(starts, ends, strict=True)):
            first, last = max(start, period.start), min(end, period.end)
            if first < last:
                found.append(Part(place, revision, first, last, (last - first).days / whole))
    return tuple(found)


def months_charged(part: Part, proration: Proration, months: frozenset[int]) -> float:
    """How many monthly prices are due for a part, counting days in ``months`` where it is prorated."""
    if proration is Proration.NONE:
        return part.share
    days = [date_of(day) for day in range(day_number(part.start), day_number(part.end))]
    counted = [day for day in days if day.month in months]
    if proration is Proration.THIRTY_DAYS:
        return len(counted) / 30.0
    by_month: dict[date, int] = {}
    for day in counted:
        by_month[day.replace(day=1)] = by_month.get(day.replace(day=1), 0) + 1
    return sum(count / days_of_month(first) for first, count in by_month.items())
