"""Time that a run on spot devices loses to interruptions by the provider."""

from operator import add
from typing import NamedTuple

from service.planning.cases import Checkpointing
from service.planning.cost import estimate_interrupted_time, interruption_mtbf_seconds, replaced_share
from service.planning.cost.terms import SpotTerms
from service.planning.errors import PlanningError
from service.planning.estimates.reliability import CheckpointTimes, build_checkpoint
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.quantity import EvidenceBasis, Quantity, assumed, combine, inverted, weakest
from service.planning.reliability.interruptions import RecoveryCosts
from service.planning.units import HOUR_SECONDS

_MOST = 1e3
"""Ratio to the time without interruptions; a run that takes longer makes no progress worth planning."""
_CHECKPOINTING = "/workload/checkpointing"


class SpotInterruptionTime(NamedTuple):
    """Additional and total duration of an interrupted run, in seconds of every device."""

    extra: Quantity
    lasting: Quantity
    interruptions: float
    mtbf_seconds: float | None
    """Mean time between interruptions of all instances together; None where none is expected."""


def estimate_spot_time(
    terms: SpotTerms, run: Run, duration: Quantity, instances: int
) -> SpotInterruptionTime:
    """Returns the expected time of a run on ``instances`` that the provider may take back.

    Raises:
        PlanningError: The interruptions never let the run end, or the stall of a checkpoint is not known.
    """
    rate = terms.interruptions_per_hour
    if not rate:
        return SpotInterruptionTime(assumed(0.0), duration, 0.0, None)
    mtbf = interruption_mtbf_seconds(instances, rate)
    restart = _choose_restart(terms, run)
    if not isinstance(run, TrainingRun):
        extra = combine(lambda seconds, again: seconds * replaced_share(rate, again), duration, restart)
        return SpotInterruptionTime(extra, combine(add, duration, extra), duration.value / mtbf, mtbf)
    return _interrupt_training(run, duration, mtbf, restart)


def _choose_restart(terms: SpotTerms, run: Run) -> Quantity:
    if terms.restart_seconds is not None:
        return terms.restart_seconds
    if isinstance(run, TrainingRun) and run.case.reliability is not None:
        return run.case.reliability.restart_seconds
    return run.case.curves.restart_seconds.to_quantity(EvidenceBasis.REFERENCE)


def _interrupt_training(
    run: TrainingRun, duration: Quantity, mtbf: float, restart: Quantity
) -> SpotInterruptionTime:
    """Adds interruptions to the failures in the duration; either loses the work since a checkpoint."""
    found, fixed, given = run.interruptions, False, run.case.checkpointing
    productive = found.productive or duration
    recovery = RecoveryCosts(productive.value, 0.0)
    checkpoint = _assume_checkpoint(run) if given is None else found.checkpoint
    if checkpoint is None:
        detail = "without checkpoints every interruption restarts the run from its beginning"
        run.notes.warn("RESTARTED_FROM_BEGINNING", "/workload/checkpointing/mode", detail)
    elif checkpoint.stall_seconds is None:
        detail = "the stall of a checkpoint is not known: give stall_seconds or bandwidths"
        raise PlanningError("CHECKPOINT_UNKNOWN", "/workload/checkpointing/stall_seconds", detail)
    else:
        fixed = checkpoint.interval is not None and given is not None and given.has_interval
        interval = checkpoint.interval.value if fixed and checkpoint.interval else productive.value
        recovery = RecoveryCosts(interval, checkpoint.stall_seconds, unsaved=checkpoint.unsaved_seconds)
        loading = checkpoint.load_seconds or 0.0
        restart = combine(lambda seconds: seconds + loading, restart)

    failures = found.failures if found.saved is not None else None
    none = (None,) * 3
    # At the low ends, progress is short, restarts are quick and failures rare.
    between = none if failures is None else inverted(failures.mtbf)[:3]
    again = (0.0,) * 3 if failures is None else failures.restart[:3]
    ends = zip(productive[:3], between, again, restart[:3], strict=True)
    fixed = fixed or checkpoint is None
    try:
        value, low, high = (
            estimate_interrupted_time(
                progress,
                recovery._replace(
                    interval=progress if checkpoint is None else recovery.interval,
                    mtbf=failing,
                    restart=restarting,
                ),
                mtbf=mtbf,
                restart=replaced,
                fixed_interval=fixed,
            )
            for progress, failing, restarting, replaced in ends
        )
    except OverflowError:
        raise _describe_no_progress(productive, mtbf) from None
    if high.elapsed.total > _MOST * productive.high:
        raise _describe_no_progress(productive, mtbf)
    if given is None:
        detail = "the interval that loses the least time to checkpoints and interruptions (Daly 2006)"
        run.notes.fill(f"{_CHECKPOINTING}/interval_seconds", f"{value.interval:.4g}", "service", detail)
    basis = weakest(duration, restart)
    # An interval that suits interruptions may suit failures better too; that gain is not counted.
    longer = [
        max(0.0, found.elapsed.total - before)
        for found, before in zip((value, low, high), duration[:3], strict=True)
    ]
    extra = Quantity(longer[0], min(longer), max(longer), basis)
    return SpotInterruptionTime(extra, combine(add, duration, extra), value.interruptions, mtbf)


def _assume_checkpoint(run: TrainingRun) -> CheckpointTimes:
    """Returns the checkpoint of a run that leaves it open: written to storage like that of published runs."""
    rate = run.case.cluster.accelerator_count * run.case.curves.checkpoint_bytes_per_device_second.value
    detail = "the share of a device in the sustained writes of the storage of Llama 3, for all devices"
    pointer = f"{_CHECKPOINTING}/storage_bandwidth_bytes_per_second"
    run.notes.fill(pointer, f"{rate:.4g}", "service", detail)
    return build_checkpoint(run.case, Checkpointing(storage_rate=rate), run.notes)


def _describe_no_progress(productive: Quantity, mtbf: float) -> PlanningError:
    hours, between = productive.value / HOUR_SECONDS, mtbf / HOUR_SECONDS
    detail = (
        f"interruptions come every {between:.3g} hours on average: with restarts and the work that is done "
        f"again, a run of {hours:.4g} hours takes more than {_MOST:g} times as long"
    )
    return PlanningError("NO_PROGRESS", "/rental/spot/interruptions_per_hour", detail)
