"""A tariff at the meter of a run, and refusals of it at their place in the question."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Final, NamedTuple

from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.planning.tariff.allocation import BillAllocation
from service.planning.tariff.calendar import compute_local_midnight, resolve_zone
from service.planning.tariff.metering_point import MeteringPoint
from service.planning.tariff.time_dependence import TimeDependence, find_time_dependence

ELECTRICITY: Final = "/site/electricity"
_OF_QUESTION: Final = ("/site", "/starts_at", "/workload", "/load_profile", "/window")
"""Pointers that point into the question already."""


class TariffContract(NamedTuple):
    """A tariff at a meter, its source and its place in the question."""

    point: MeteringPoint
    source: str
    basis: EvidenceBasis
    pointer: str
    price_factor: Decimal = Decimal(1)
    """Factor of every charge."""

    @property
    def time_dependence(self) -> TimeDependence:
        """The part of the bill that depends on the start of the run."""
        return find_time_dependence(self.point.tariff, alone=self.point.baseline is None)

    def apply_price_factor(self, allocation: BillAllocation) -> BillAllocation:
        """Returns the allocation with every price and amount multiplied by the price factor."""
        factor = self.price_factor
        if factor == 1:
            return allocation
        periods = tuple(
            share._replace(
                lines=tuple(
                    line._replace(price=line.price * factor, amount=line.amount * factor)
                    for line in share.lines
                )
            )
            for share in allocation.periods
        )
        return allocation._replace(periods=periods)


class LocalStart(NamedTuple):
    """Start of a run on the clock of its site; assumed where the question gives none."""

    at: datetime
    is_assumed: bool


def find_local_start(contract: TariffContract, starts_at: datetime | None, notes: AnswerNotes) -> LocalStart:
    """Returns the start of a run on the clock of its tariff.

    Without ``starts_at`` it is midnight of 1 January, a year after the tariff took effect. Refuses that
    (STARTS_AT_REQUIRED) where the prices or the given billing periods depend on the date.
    """
    tariff = contract.point.tariff
    zone = resolve_zone(tariff.time_zone)
    if starts_at is not None:
        return LocalStart(starts_at.astimezone(zone), is_assumed=False)
    dependence = contract.time_dependence
    if dependence is TimeDependence.PRICES or contract.point.starts is not None:
        detail = "what the tariff charges depends on when the run takes place: give its start"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    if dependence is TimeDependence.PERIODS:
        detail = "charges by billing period are those of a run that begins with one, of 31 days"
        notes.warn("STARTS_AT_ASSUMED", "/starts_at", detail)
    effective = max(tariff.revisions[0].effective_from, date(2000, 1, 1))
    midnight = compute_local_midnight(date(effective.year + 1, 1, 1), tariff.time_zone)
    return LocalStart(midnight.astimezone(zone), is_assumed=True)


@contextmanager
def relocate_errors(pointer: str) -> Iterator[None]:
    """Raises refusals of a tariff at its ``pointer`` in the question."""
    try:
        yield
    except PlanningError as error:
        if error.pointer.startswith(_OF_QUESTION):
            raise
        if error.code == "LOAD_TOO_LONG":
            raise PlanningError(error.code, "/load_profile/interval_minutes", error.detail) from error
        inline = error.pointer if pointer.endswith("/tariff") else ""
        raise PlanningError(error.code, pointer + inline, error.detail) from error
