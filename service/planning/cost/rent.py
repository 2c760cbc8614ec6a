"""Billed device-hours: whole instances, time in increments, terms, blocks, spot interruptions.

Device-hours of an instance are its devices times its hours, whether the run uses them or not. Devices are
counts, times are seconds above zero.
"""

from typing import NamedTuple

from service.planning.figures import larger, rounded_up
from service.planning.reliability.interruptions import (
    ElapsedTime,
    RecoveryCosts,
    daly_interval_seconds,
    estimate_elapsed_time,
)
from service.planning.units import HOUR_SECONDS

_WHOLE = 1e-9
"""Share of an increment; a float's excess below it does not begin another increment."""


def count_parts(total: float, part: float) -> float:
    """Returns the number of parts that cover ``total``, the last of them begun: ceil(total / part)."""
    return rounded_up(total / part - _WHOLE)


def billed_seconds(seconds: float, *, increment: float | None = None, minimum: float = 0.0) -> float:
    """Returns the billed time: at least ``minimum``, then rounded up to whole increments."""
    least = larger(seconds, minimum)
    return least if increment is None else larger(least, count_parts(least, increment) * increment)


def count_paid_devices(devices: int, devices_per_instance: int, least_instances: int = 1) -> int:
    """Returns the devices of the whole instances that hold ``devices``."""
    return max(-(-devices // devices_per_instance), least_instances) * devices_per_instance


class RentCommitment(NamedTuple):
    """Hours and terms of a commitment that a run of ``hours`` bears, for one device.

    ``idle`` are hours that are paid but not used, ``terms`` the number of upfront payments.
    """

    idle: float
    terms: float


def compute_commitment(hours: float, term_hours: float, idle_share: float | None = None) -> RentCommitment:
    """Returns the part of a commitment, paid whether used or not, that a run of ``hours`` bears.

    With an ``idle_share`` i below 1 of the term every used hour bears i / (1 - i) idle ones, and the run
    hours / ((1 - i) H) of a term. Without it the run is the only use and bears ceil(hours / H) whole terms.
    """
    if idle_share is None:
        terms = larger(1.0, count_parts(hours, term_hours))
        return RentCommitment(larger(0.0, terms * term_hours - hours), terms)
    used = 1.0 - idle_share
    return RentCommitment(hours * idle_share / used, hours / (used * term_hours))


def count_blocks(hours: float, block_hours: float) -> float:
    """Returns the whole blocks of time that cover ``hours``."""
    return larger(1.0, count_parts(hours, block_hours))


def interruption_mtbf_seconds(instances: float, interruptions_per_hour: float) -> float:
    """Returns the mean time between interruptions of any of ``instances``, which form a Poisson process."""
    return HOUR_SECONDS / (instances * interruptions_per_hour)


class InterruptedRun(NamedTuple):
    """A training run on devices that the provider interrupts."""

    elapsed: ElapsedTime
    interruptions: float
    """Expected number of interruptions, without failures."""
    interval: float
    """Progress from one checkpoint to the next, in seconds."""


def estimate_interrupted_time(
    productive_seconds: float,
    recovery: RecoveryCosts,
    *,
    mtbf: float,
    restart: float,
    fixed_interval: bool,
) -> InterruptedRun:
    """Returns the expected time of a run with interruptions in addition to the failures of ``recovery``.

    Rates of both add up: 1 / M = 1 / M_f + 1 / M_s, and a restart takes the mean of both by rate. Either
    loses the work since the last checkpoint
    (:func:`~service.planning.reliability.interruptions.estimate_elapsed_time`). Unless ``fixed_interval``,
    checkpoints are as frequent as is best for both (Daly 2006).

    Raises:
        OverflowError: The interruptions are so frequent that the run never ends.
    """
    failing = 0.0 if recovery.mtbf is None else 1.0 / recovery.mtbf
    rate = failing + 1.0 / mtbf
    if rate == 0.0:
        interval = recovery.interval if fixed_interval else productive_seconds
        found = estimate_elapsed_time(productive_seconds, recovery._replace(interval=interval, mtbf=None))
        return InterruptedRun(found, 0.0, interval)
    both = 1.0 / rate
    again = (recovery.restart * failing + restart / mtbf) * both
    interval = recovery.interval
    if not fixed_interval:
        best = daly_interval_seconds(recovery.stall, both)
        interval = min(productive_seconds, max(best, recovery.unsaved))
    found = estimate_elapsed_time(
        productive_seconds, recovery._replace(interval=interval, mtbf=both, restart=again)
    )
    return InterruptedRun(found, found.failures * both / mtbf, interval)


def replaced_share(interruptions_per_hour: float, restart_seconds: float) -> float:
    """Returns the hours that serving instances lose to restarts, per hour of serving: rate x restart."""
    return interruptions_per_hour * restart_seconds / HOUR_SECONDS
