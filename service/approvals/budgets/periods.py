"""When the money of a quote falls due, and how much of it in a budget's period."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple


class Period(NamedTuple):
    """From a moment to another; one that is as long as nothing is a moment."""

    start: datetime
    end: datetime


def build_period(starts_on: str, ends_on: str) -> Period:
    """The days of a budget, the last one included."""
    first, last = date.fromisoformat(starts_on), date.fromisoformat(ends_on)
    midnight = datetime.min.time()
    return Period(
        datetime.combine(first, midnight, UTC),
        datetime.combine(last, midnight, UTC) + timedelta(days=1),
    )


def resolve_run_period(quote: Mapping[str, Any], begun_at: datetime) -> Period:
    """When the run of a quote takes place: from the start that it says, else from ``begun_at``.

    In whole seconds, as its charges are exported; a moment where nobody knows how long it lasts.
    """
    start = datetime.fromisoformat(quote["starts_at"]) if "starts_at" in quote else begun_at
    duration = quote["headlines"].get("duration_seconds")
    seconds = max(1, math.ceil(duration["value"])) if duration else 0
    try:
        return Period(start, start + timedelta(seconds=seconds))
    except OverflowError:
        return Period(start, datetime.max.replace(tzinfo=UTC))


def is_purchase(quote: Mapping[str, Any]) -> bool:
    """Whether the total is that of devices which are bought: it falls due at once, and not by the time."""
    cost = quote.get("answers", {}).get("cost", {})
    return "purchase" in cost and "rent" not in cost and "ownership" not in cost


def resolve_due_period(quote: Mapping[str, Any], begun_at: datetime) -> Period:
    """When the money of a quote falls due: evenly over its run, or in the moment in which it is bought."""
    run = resolve_run_period(quote, begun_at)
    return Period(run.start, run.start) if is_purchase(quote) else run


def prorate_amount(micros: int, whole: Period, within: Period) -> int | None:
    """What of an amount that is spread evenly falls into a period; None where they do not meet.

    Rounded at each end of the period, so that periods which follow each other share all of it.
    """
    if whole.start == whole.end:
        return micros if within.start <= whole.start < within.end else None
    start, end = max(whole.start, within.start), min(whole.end, within.end)
    if start >= end:
        return None
    return _prorate_until(micros, whole, end) - _prorate_until(micros, whole, start)


def _prorate_until(micros: int, whole: Period, moment: datetime) -> int:
    tick = timedelta(microseconds=1)
    passed, length = (moment - whole.start) // tick, (whole.end - whole.start) // tick
    return (2 * micros * passed + length) // (2 * length)
