"""The allowance of the request that is being answered, shared by all bills of a batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from service.planning.tariff.allowance import Allowance
from service.planning.tariff.effort import BillingEffort

_allowance: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def use_allowance(allowed: Allowance) -> Iterator[None]:
    """Takes the steps of every bill within the block from ``allowed``."""
    token = _allowance.set(allowed)
    try:
        yield
    finally:
        _allowance.reset(token)


def spend_effort(effort: BillingEffort, pointer: str) -> None:
    """Counts steps against the request's allowance, or a fresh one where the request has none."""
    (_allowance.get() or Allowance()).spend(effort, pointer)
