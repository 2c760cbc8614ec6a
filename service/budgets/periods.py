"""Due periods of quotes, and their overlap with the period of a budget."""

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple


class Period(NamedTuple):
    """Time from a start to an end. A period of zero length is a moment."""

    start: datetime
    end: datetime


def build_period(starts_on: str, ends_on: str) -> Period:
    """Returns the period of a budget, including its last day."""
    first, last = date.fromisoformat(starts_on), date.fromisoformat(ends_on)
    midnight = datetime.min.time()
    return Period(
        datetime.combine(first, midnight, UTC),
        datetime.combine(last, midnight, UTC) + timedelta(days=1),
    )


def resolve_run_period(quote: Mapping[str, Any], begun_at: datetime) -> Period:
    """Returns the period of a quote's run, from its start or else from ``begun_at``.

    In whole seconds, like exported charges. A run of unknown duration is a moment.
    """
    start = datetime.fromisoformat(quote["starts_at"]) if "starts_at" in quote else begun_at
    duration = quote["headlines"].get("duration_seconds")
    seconds = max(1, math.ceil(duration["value"])) if duration else 0
    try:
        return Period(start, start + timedelta(seconds=seconds))
    except OverflowError:
        return Period(start, datetime.max.replace(tzinfo=UTC))


def is_purchase(quote: Mapping[str, Any]) -> bool:
    """Returns true if the total is a purchase, which falls due at once."""
    cost = quote.get("answers", {}).get("cost", {})
    return "purchase" in cost and "rent" not in cost and "ownership" not in cost


def resolve_due_period(quote: Mapping[str, Any], begun_at: datetime) -> Period:
    """Returns the period in which a quote falls due: its run, or the moment of a purchase."""
    run = resolve_run_period(quote, begun_at)
    return Period(run.start, run.start) if is_purchase(quote) else run


def prorate_amount(micros: int, whole: Period, within: Period) -> int | None:
    """Returns the part of an evenly spread amount in a period, or None if they do not overlap.

    Rounding is applied at each end of the period, so that consecutive periods add up to the whole.
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
