"""Billing periods that a run touches, and how far a tariff looks beyond them."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.calendar import list_calendar_months, resolve_zone, split_month_key, to_month_key
from service.planning.tariff.charges import CoincidentPeakCharge, DemandCharge, PeakSpan, Tariff, TariffCharge


class TariffReach(NamedTuple):
    """Extent to which a tariff looks beyond the billing period of a peak."""

    months_after: int = 0
    to_year_end: bool = False
    whole_year: bool = False
    """True if a charge depends on the load of the whole calendar year."""
    following_year: bool = False


def list_months(first: date, end: date) -> tuple[BillingPeriod, ...]:
    """Returns the calendar months from that of ``first`` to that before ``end``, the first day of a month."""
    return list_calendar_months(first, end - timedelta(days=1))


def add_months(day: date, months: int) -> date:
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
        whole |= needs_full_year(charge)
        if isinstance(charge, CoincidentPeakCharge):
            following |= charge.in_following_year
        if isinstance(charge, DemandCharge):
            for ratchet in charge.billing_demand.ratchets:
                months = max(months, ratchet.preceding_months or 0)
                to_year_end |= ratchet.preceding_months is None
    return TariffReach(months, to_year_end, whole, following)


def needs_full_year(charge: TariffCharge) -> bool:
    """Returns true if a charge depends on the load of the whole calendar year."""
    by_hours_of_use = charge.hours_of_use_from > 0.0 or charge.hours_of_use_below is not None
    annual_peak = isinstance(charge, DemandCharge) and charge.span is PeakSpan.CALENDAR_YEAR
    return by_hours_of_use or annual_peak or isinstance(charge, CoincidentPeakCharge)


def list_reached_periods(run: Sequence[BillingPeriod], reach: TariffReach) -> tuple[BillingPeriod, ...]:
    """Returns the calendar months that a bill of both loads must cover to show all consequences of a run."""
    first, last = run[0].start, run[-1].end - timedelta(days=1)
    end = add_months(last, 1 + reach.months_after)
    if reach.to_year_end or reach.whole_year:
        end = max(end, date(last.year + 1, 1, 1))
    if reach.following_year:
        end = max(end, date(last.year + 1, 2, 1))
    return list_months(date(first.year, 1, 1) if reach.whole_year else first, end)
