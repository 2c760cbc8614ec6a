"""The time that a request may wait for the database: for its turn, a connection and locks, all together."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Final

REQUEST_SECONDS: Final = 5.0
"""Longest time that one request waits for the database."""
TRANSACTION_SECONDS: Final = 10.0
"""Longest time that a transaction outside of requests waits for the database."""
MIGRATION_SECONDS: Final = 60.0
"""Longest time that a migration of an embedded database waits for the one before it."""


class WaitBudget:
    """Seconds that one caller may still wait. The threads of a request run one after the other."""

    def __init__(self, seconds: float) -> None:
        self.seconds_left = seconds

    @contextmanager
    def spend(self) -> Iterator[float]:
        """Subtracts the time of the block, which waits for the yielded number of seconds at most."""
        began = monotonic()
        try:
            yield self.seconds_left
        finally:
            self.seconds_left = max(0.0, self.seconds_left - (monotonic() - began))


_budget: ContextVar[WaitBudget | None] = ContextVar("wait_budget", default=None)


def limit_waits(seconds: float = REQUEST_SECONDS) -> None:
    """Gives the current task, and the threads that it starts, a budget for all of its transactions."""
    _budget.set(WaitBudget(seconds))


def get_wait_budget() -> WaitBudget:
    """Returns the budget of the current request, or a new one outside of requests."""
    return _budget.get() or WaitBudget(TRANSACTION_SECONDS)
