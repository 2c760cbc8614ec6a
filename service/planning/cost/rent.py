"""Device-hours that are paid for: instances rented whole, time counted in increments, terms, blocks, spot.

Device-hours of an instance are its devices times its hours, whether the run uses them or not. Devices are
counts, times seconds above zero.
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
"""Of an increment; what is left over of a float does not begin another one."""


def count_parts(total: float, part: float) -> float:
    """How many parts cover ``total``, the last of them begun: ceil(total / part)."""
    return rounded_up(total / part - _WHOLE)


def billed_seconds(seconds: float, *, increment: float | None = None, minimum: float = 0.0) -> float:
    """Time that is charged for: at least ``minimum``, then rounded up to whole increments."""
    least = larger(seconds, minimum)
    return least if increment is None else larger(least, count_parts(least, increment) * increment)


def count_paid_devices(devices: int, devices_per_instance: int, least_instances: int = 1) -> int:
    """Devices of the whole instances that hold ``devices``."""
    return max(-(-devices // devices_per_instance), least_instances) * devices_per_instance


class RentCommitment(NamedTuple):
    """Hours and terms of a commitment that a run of ``hours`` bears, of one device.

    ``idle`` are hours that are paid and that nothing uses, ``terms`` how many upfront payments.
    """

    idle: float
    terms: float


def compute_commitment(hours: float, term_hours: float, idle_share: float | None = None) -> RentCommitment:
    """What a run of ``hours`` bears of a commitment that is paid whether it is used or not.

    With an ``idle_share`` i below 1 of the term every used hour bears i / (1 - i) idle ones, and the run
    hours / ((1 - i) H) of a term. Without it the run is the only use and bears ceil(hours / H) whole terms.
    """
    if idle_share is None:
        terms = larger(1.0, count_parts(hours, term_hours))
        return RentCommitment(larger(0.0, terms * term_hours - hours), terms)
    used = 1.0 - idle_share
    return RentCommitment(hours * idle_share / used, hours / (used * term_hours))


def count_blocks(hours: float, block_hours: float) -> float:
    """Whole blocks of time that cover ``hours``."""
    return larger(1.0, count_parts(hours, block_hours))


def interruption_mtbf_seconds(instances: float, interruptions_per_hour: float) -> float:
    """Mean time between interruptions of any of ``instances``: they come as a Poisson process."""
    return HOUR_SECONDS / (instances * interruptions_per_hour)


class InterruptedRun(NamedTuple):
    """A training run on devices that are taken back now and then."""

    elapsed: ElapsedTime
    interruptions: float
    """Expected number of them, without failures."""
    interval: float
    """Progress from one checkpoint to the next."""


def estimate_interrupted_time(
    productive_seconds: float,
    recovery: RecoveryCosts,
    *,
    mtbf: float,
    restart: float,
    fixed_interval: bool,
) -> InterruptedRun:
    """Expected time of a run that interruptions strike beside the failures of ``recovery``.

    Rates of both add up: 1 / M = 1 / M_f + 1 / M_s, and a restart takes the mean of both by rate. Either
    loses the work since the last checkpoint
    (:func:`~service.planning.reliability.interruptions.estimate_elapsed_time`). Unless ``fixed_interval``,
    checkpoints are as often as is best for both (Daly 2006).

    Raises:
        OverflowError: interruptions come so fast that the run never ends.
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
    """Hours that serving instances lose to restarts, for each hour in which they serve: rate x restart."""
    return interruptions_per_hour * restart_seconds / HOUR_SECONDS
