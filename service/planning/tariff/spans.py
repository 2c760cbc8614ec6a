"""Billing periods, and their parts under one revision of a tariff."""

from collections.abc import Sequence
from datetime import date
from typing import Final, NamedTuple

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.calendar import count_days_of_month, split_month_key, to_month_key
from service.planning.tariff.charges import MONTHS, ChargeProration, TariffRevision

FIRST_YEAR: Final = 1900
LAST_YEAR: Final = 2200
"""Years of loads and billing periods, in which zones and calendars are known."""


class RevisionSpan(NamedTuple):
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


def find_billed_month(period: BillingPeriod) -> int:
    """Returns the key of the calendar month with most days of a billing period, the earlier of two equals."""
    days = _count_days_by_month(RevisionSpan(0, 0, period.start, period.end, 1.0), MONTHS)
    first, _ = max(days, key=lambda month: month[1])
    return to_month_key(first.year, first.month)


def check_billing_periods(periods: Sequence[BillingPeriod]) -> tuple[BillingPeriod, ...]:
    """Returns the billing periods if they are in order, not empty, not overlapping.

    Else ``BILLING_PERIODS``.
    """
    ordered = tuple(BillingPeriod(*period) for period in periods)
    for place, period in enumerate(ordered):
        before = ordered[place - 1].end if place else period.start
        known = period.start.year >= FIRST_YEAR and period.end.year <= LAST_YEAR
        if period.start >= period.end or period.start < before or not known:
            raise PlanningError(
                "BILLING_PERIODS",
                f"/periods/{place}",
                f"billing periods of {FIRST_YEAR} to {LAST_YEAR} are in order and do not overlap",
            )
    if not ordered:
        raise PlanningError("BILLING_PERIODS", "/periods", "there is no billing period")
    return ordered


def split_parts(
    periods: Sequence[BillingPeriod], revisions: Sequence[TariffRevision]
) -> tuple[RevisionSpan, ...]:
    """Splits each billing period where a revision starts; ``TARIFF_NOT_IN_FORCE`` before the first."""
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
                found.append(RevisionSpan(place, revision, first, last, (last - first).days / whole))
    return tuple(found)


def count_charged_days(part: RevisionSpan, months: frozenset[int]) -> int:
    """Returns the days of a part in ``months``."""
    return sum(days for _, days in _count_days_by_month(part, months))


def count_charged_months(part: RevisionSpan, proration: ChargeProration, months: frozenset[int]) -> float:
    """Returns the monthly prices due for a part, counting days in ``months`` where it is prorated."""
    if proration is ChargeProration.NONE:
        return part.share
    counted = _count_days_by_month(part, months)
    if proration is ChargeProration.THIRTY_DAYS:
        return sum(days for _, days in counted) / 30.0
    return sum(days / count_days_of_month(first) for first, days in counted)


def _count_days_by_month(part: RevisionSpan, months: frozenset[int]) -> list[tuple[date, int]]:
    """Returns the days of a part in each calendar month of ``months``, by the first day of the month."""
    found = []
    first = part.start.replace(day=1)
    while first < part.end:
        following = date(*split_month_key(to_month_key(first.year, first.month) + 1), 1)
        days = (min(following, part.end) - max(first, part.start)).days
        found += [(first, days)] if first.month in months else []
        first = following
    return found
