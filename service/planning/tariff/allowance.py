"""Steps that one request may spend on bills, counted before the bills are computed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from service.planning.tariff.effort import MOST_STEPS, BillingEffort

SpendEffort: TypeAlias = Callable[[BillingEffort, str], None]
"""Counts the steps of a bill; raises :class:`PlanningError` at the pointer where too few are left."""


@dataclass(slots=True)
class Allowance:
    """Steps that a request has left."""

    left: float = MOST_STEPS

    def spend(self, effort: BillingEffort, pointer: str) -> None:
        """Counts steps; refuses at ``pointer`` an effort that exceeds what is left."""
        effort.check(self.left, pointer)
        self.left -= effort.total
