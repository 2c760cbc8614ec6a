"""Failures of a training run: their number, and the time that checkpoints, lost work and restarts take."""

from typing import NamedTuple

from service.planning.estimates.reliability import RunInterruptions
from service.planning.quantity import Quantity, combine, scaled
from service.planning.reliability.interruptions import failure_probability
from service.planning.units import HOUR_SECONDS


class FailureLosses(NamedTuple):
    """Expected failures of a run and the parts of its time; None for what is not known."""

    mean_time_between_failures_seconds: Quantity
    restart_seconds: Quantity
    failure_probability: float | None = None
    """Probability that the run is interrupted at all."""
    productive_seconds: Quantity | None = None
    checkpoint_seconds: Quantity | None = None
    lost_work_seconds: Quantity | None = None
    restarting_seconds: Quantity | None = None
    expected_failures: float | None = None
    expected_silent_corruptions: Quantity | None = None


def estimate_failure_losses(found: RunInterruptions) -> FailureLosses | None:
    """Returns what failures take of a run; None for a run whose failures are not asked for."""
    failures, productive, duration = found.failures, found.productive, found.duration
    if failures is None:
        return None
    losses = FailureLosses(failures.mtbf, failures.restart)
    if productive is None:
        return losses
    losses = losses._replace(failure_probability=failure_probability(productive.value, failures.mtbf.value))
    if found.goodput is None:
        return losses
    expected, corrupted = found.estimate_part(lambda elapsed: elapsed.failures), None
    if duration is not None:
        hours = scaled(duration, failures.devices / HOUR_SECONDS)
        corrupted = combine(lambda h, each: h * each, hours, failures.corruptions_per_device_hour)
    return losses._replace(
        productive_seconds=found.estimate_part(lambda elapsed: elapsed.productive),
        checkpoint_seconds=found.estimate_part(lambda elapsed: elapsed.checkpoints),
        lost_work_seconds=found.estimate_part(lambda elapsed: elapsed.lost_work),
        restarting_seconds=found.estimate_part(lambda elapsed: elapsed.restarts),
        expected_failures=expected and expected.value,
        expected_silent_corruptions=corrupted,
    )


def count_interval_steps(found: RunInterruptions) -> float | None:
    """Returns the steps between two checkpoints, at least 1; None where interval or step is not known."""
    interval = found.checkpoint and found.checkpoint.interval
    if interval is None or found.step is None:
        return None
    return max(1.0, interval.value / found.step.value)
