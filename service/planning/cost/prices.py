"""Hourly price of a rented device, and the age of prices.

A price list states an instance; a question asks about devices. A term spreads its upfront payment over its
hours, so that offers on different terms are comparable. Amounts are decimals of one currency.
"""

from calendar import monthrange
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from service.planning.errors import PlanningError

DAY_HOURS: Final = 24
STALE_DAYS: Final = 90
"""Age in days above which a price counts as stale. A choice: list prices change seldom, but by much (AWS

p5.48xlarge on demand from 98.32 to 55.04 USD in 2025), and spot prices change daily.
"""
OLD_DAYS: Final = 365
"""Age in days above which an offer is used by its id only, counted from the newest price of a catalog. A
choice: in a year the list price of p5.48xlarge fell by 44%, and that of its capacity blocks rose by 32%.
"""
_PRICE_DIGITS: Final = Decimal("0.000000001")


class CommitmentTerm(NamedTuple):
    """Commitment that is agreed before the first hour, for one instance.

    ``upfront`` is paid at the start for the whole term, ``hourly`` for each of its hours whether used or not;
    both are None where only their sum over the term is published. ``minimum_instances`` and
    ``minimum_spend_per_hour`` are the least that the term is sold for.
    """

    days: int
    upfront: Decimal | None = None
    hourly: Decimal | None = None
    minimum_instances: int | None = None
    minimum_spend_per_hour: Decimal | None = None

    @property
    def hours(self) -> int:
        """Hours of the term."""
        return self.days * DAY_HOURS


def compute_effective_price(stated: Decimal | None, term: CommitmentTerm | None) -> Decimal:
    """Returns the hourly price of an instance: as stated, or upfront / hours + hourly part of its term.

    A price gives one or the other. An amount of 0 is an unknown price and is refused.
    """
    parts = [] if term is None else [part for part in (term.upfront, term.hourly) if part is not None]
    if (stated is None) == (not parts):
        raise PlanningError(
            "PRICE_PARTS",
            "/price_per_instance_hour",
            "give the price of an hour, or the upfront and hourly parts of a commitment",
        )
    price = stated
    if price is None and term is not None:
        price = (term.upfront or Decimal(0)) / term.hours + (term.hourly or Decimal(0))
    if price is None or price <= 0:
        raise PlanningError("PRICE_ZERO", "/price_per_instance_hour", "a price of 0 is an unknown price")
    return price


def device_price(instance_price: Decimal, accelerator_count: int) -> Decimal:
    """Returns the hourly price of one device: that of its instance over the devices of the instance."""
    return instance_price / accelerator_count


def format_price(price: Decimal) -> str:
    """Returns ``price`` as plain text of at most nine decimals, without trailing zeros."""
    return f"{price.quantize(_PRICE_DIGITS).normalize():f}"


def parse_first_day(text: str) -> date:
    """Returns the first day of a year, a month or a day as text; ValueError for an invalid date."""
    year, month, day = _parse_date_parts(text)
    return date(year, 1 if month is None else month, 1 if day is None else day)


def parse_last_day(text: str) -> date:
    """Returns the last day of a year, a month or a day as text; ValueError for an invalid date."""
    year, month, day = _parse_date_parts(text)
    month = 12 if month is None else month
    return date(year, month, monthrange(year, month)[1] if day is None else day)


def _parse_date_parts(text: str) -> tuple[int, int | None, int | None]:
    year, *rest = (int(part) for part in text.split("-"))
    month, day = (*rest, None, None)[:2]
    return year, month, day


def age_days(as_of: str, on: date) -> int:
    """Returns the least days since a price held: a month or a year counts from its last day.

    Never negative.
    """
    return max(0, (on - parse_last_day(as_of)).days)


def is_stale(as_of: str, on: date) -> bool:
    """Returns true if a price is older than ``STALE_DAYS``."""
    return age_days(as_of, on) > STALE_DAYS


def is_old(as_of: str, newest: date) -> bool:
    """Returns true if a price may be older than ``OLD_DAYS`` on the day of the newest price.

    A month or a year counts from its first day. The age of a date that is no day is unknown, and not old.
    """
    try:
        return (newest - parse_first_day(as_of)).days > OLD_DAYS
    except ValueError:
        return False


def is_expired(valid_until: str | None, on: date) -> bool:
    """Returns true if the last day of a price is over."""
    return valid_until is not None and on > parse_last_day(valid_until)


def is_early(valid_from: str | None, on: date) -> bool:
    """Returns true if the first day of a price is still to come."""
    return valid_from is not None and on < parse_first_day(valid_from)
