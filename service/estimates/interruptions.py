"""Spot devices: what it costs that the provider takes them back now and then."""

from operator import add
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.run import Run
from service.planning.cost import (
    interrupted,
    interruption_mtbf_seconds,
    replaced_share,
)
from service.planning.errors import PlanningError
from service.planning.quantity import Basis, Quantity, assumed, combine, inverted, weakest
from service.planning.reliability.interruptions import Recovery
from service.resolve.catalog import Catalog
from service.schemas.estimates import CostQuestion
from service.schemas.rental import SpotTerms
from service.schemas.workloads import TrainingWorkloadInput

_MOST = 1e3
"""Times as long as without interruptions; a run that takes longer makes no progress worth planning."""


class SpotTime(NamedTuple):
    """How much longer a run takes, in seconds of every device."""

    extra: Quantity
    lasting: Quantity
    interruptions: float
    mtbf_seconds: float | None
    """Of all instances together; None where none is expected."""


def spot_time(
    given: SpotTerms, question: CostQuestion, run: Run, catalog: Catalog, instances: int
) -> SpotTime:
    """The expected time of a run on ``instances`` that may be taken back.

    Raises:
        PlanningError: interruptions never let the run end, or what a checkpoint stops is not known.
    """
    duration = run.duration_seconds
    assert duration is not None  # noqa: S101
    rate = given.interruptions_per_hour
    if not rate:
        return SpotTime(assumed(0.0), duration, 0.0, None)
    mtbf = interruption_mtbf_seconds(instances, rate)
    restart = _restart(given, question, catalog)
    if not isinstance(question.workload, TrainingWorkloadInput):
        extra = combine(lambda seconds, again: seconds * replaced_share(rate, again), duration, restart)
        return SpotTime(extra, combine(add, duration, extra), duration.value / mtbf, mtbf)
    return _training(question.workload, run, duration, mtbf, restart)


def _restart(given: SpotTerms, question: CostQuestion, catalog: Catalog) -> Quantity:
    if given.restart_seconds is not MISSING:
        return assumed(given.restart_seconds)
    workload = question.workload
    if isinstance(workload, TrainingWorkloadInput) and workload.reliability is not MISSING:
        seconds = workload.reliability.restart_seconds
        if seconds is not MISSING:
            return assumed(seconds)
    return catalog.curves.restart_seconds.quantity(Basis.REFERENCE)


def _training(
    given: TrainingWorkloadInput, run: Run, duration: Quantity, mtbf: float, restart: Quantity
) -> SpotTime:
    """Interruptions beside the failures that the duration counts; either loses work since a checkpoint."""
    found, fixed = run.interruptions, False
    productive = found.productive or duration
    checkpoint, recovery = found.checkpoint, Recovery(productive.value, 0.0)
    if checkpoint is None:
        detail = "without checkpointing every interruption starts the run anew"
        run.notes.warn("CHECKPOINTING_NOT_GIVEN", "/workload/checkpointing", detail)
    elif checkpoint.stall_seconds is None:
        detail = "an interrupted run needs to know what a checkpoint stops: give stall_seconds or bandwidths"
        raise PlanningError("CHECKPOINT_UNKNOWN", "/workload/checkpointing/stall_seconds", detail)
    else:
        assert given.checkpointing is not MISSING  # noqa: S101
        chosen = (given.checkpointing.interval_seconds, given.checkpointing.interval_steps)
        fixed = checkpoint.interval is not None and chosen != (MISSING, MISSING)
        interval = checkpoint.interval.value if fixed and checkpoint.interval else productive.value
        recovery = Recovery(interval, checkpoint.stall_seconds, unsaved=checkpoint.unsaved_seconds)
        loading = checkpoint.load_seconds or 0.0
        restart = combine(lambda seconds: seconds + loading, restart)

    failures = found.failures if found.saved is not None else None
    none = (None,) * 3
    # At the low ends progress is short, restarts are quick and failures rare.
    between = none if failures is None else inverted(failures.mtbf)[:3]
    again = (0.0,) * 3 if failures is None else failures.restart[:3]
    ends = zip(productive[:3], between, again, restart[:3], strict=True)
    fixed = fixed or checkpoint is None
    try:
        value, low, high = (
            interrupted(
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
        raise _no_progress() from None
    if high.elapsed.total > _MOST * productive.high:
        raise _no_progress()
    basis = weakest(duration, restart)
    # Checkpoints that suit interruptions may suit failures better too; what is gained so is not theirs.
    longer = [
        max(0.0, found.elapsed.total - before)
        for found, before in zip((value, low, high), duration[:3], strict=True)
    ]
    extra = Quantity(longer[0], min(longer), max(longer), basis)
    return SpotTime(extra, combine(add, duration, extra), value.interruptions, mtbf)


def _no_progress() -> PlanningError:
    detail = "interruptions come faster than checkpoints and restarts: the run makes no progress"
    return PlanningError("NO_PROGRESS", "/rental/spot/interruptions_per_hour", detail)
