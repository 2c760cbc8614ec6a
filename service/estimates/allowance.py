"""What one question may take: bills are counted before they are worked out, all of a request together."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from service.planning.tariff.effort import MOST_STEPS, BillingEffort, EffortShare
from service.planning.units import MINUTE_SECONDS

_INTERVAL = 0.25
"""Steps of an interval of a load that an intensity in time is multiplied with."""


@dataclass(slots=True)
class Allowance:
    """Steps that a request has left."""

    left: float = MOST_STEPS


_allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def use_allowance(allowed: Allowance) -> Iterator[None]:
    """All that is worked out within takes its steps from there."""
    token = _allowance.set(allowed)
    try:
        yield
    finally:
        _allowance.reset(token)


def spend_effort(effort: BillingEffort, pointer: str) -> None:
    """Count steps; refuse at ``pointer`` what goes beyond the allowance, or beyond a question without one."""
    left = _allowance.get()
    effort.check(MOST_STEPS if left is None else left.left, pointer)
    if left is not None:
        left.left -= effort.total


def estimate_interval_effort(seconds: float, interval_minutes: int) -> BillingEffort:
    """What emissions by the interval take, of runs of so many seconds together."""
    intervals = seconds / (interval_minutes * MINUTE_SECONDS)
    return BillingEffort(
        (EffortShare(_INTERVAL * intervals, f"{intervals:,.0f} intervals at an intensity in time"),)
    )
