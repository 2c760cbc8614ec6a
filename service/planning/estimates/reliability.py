"""Checkpoints and failures of a training run, and its duration with them."""

from collections.abc import Callable
from typing import NamedTuple

from service.planning.cases import Checkpointing, TrainingCase
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity, assumed, combine, inverted
from service.planning.reliability.interruptions import (
    ElapsedTime,
    RecoveryCosts,
    checkpoint_bytes,
    compute_goodput,
    daly_interval_seconds,
    estimate_elapsed_time,
    system_mtbf,
)
from service.planning.units import HOUR_SECONDS

_LEAST_GOODPUT = 1e-3
"""Lowest goodput of a run that makes progress worth planning."""


class CheckpointTimes(NamedTuple):
    """Size of a checkpoint in bytes, and the seconds that follow from it; None where not known."""

    bytes: float
    bytes_per_device: float
    write_seconds: float | None
    load_seconds: float | None
    stall_seconds: float | None
    asynchronous: bool
    interval: Quantity | None = None

    @property
    def unsaved_seconds(self) -> float:
        """Seconds of work that a checkpoint does not protect while it is written in the background."""
        return (self.write_seconds or 0.0) if self.asynchronous else 0.0


class FailureTimes(NamedTuple):
    """Mean time between failures of the whole cluster, and seconds of a restart."""

    mtbf: Quantity
    restart: Quantity
    corruptions_per_device_hour: Quantity
    devices: float


class RunInterruptions(NamedTuple):
    """Checkpoints and failures of a run, and its duration with them.

    ``saved`` is the cost of checkpoints without failures, None where that is not known.
    """

    checkpoint: CheckpointTimes | None = None
    failures: FailureTimes | None = None
    step: Quantity | None = None
    productive: Quantity | None = None
    saved: RecoveryCosts | None = None
    goodput: Quantity | None = None

    @property
    def duration(self) -> Quantity | None:
        """Expected duration; the duration without interruptions where their cost is not known."""
        return self.estimate_part(lambda elapsed: elapsed.total) or self.productive

    def estimate_part(self, pick: Callable[[ElapsedTime], float]) -> Quantity | None:
        """Returns the part of the elapsed time that ``pick`` selects; None where it is not known."""
        saved, productive = self.saved, self.productive
        if saved is None or productive is None:
            return None
        if self.failures is None:
            return combine(lambda p: pick(estimate_elapsed_time(p, saved)), productive)
        return combine(
            lambda p, mtbf, restart: pick(
                estimate_elapsed_time(p, saved._replace(mtbf=mtbf, restart=restart))
            ),
            productive,
            inverted(self.failures.mtbf),
            self.failures.restart,
        )


def build_checkpoint(case: TrainingCase, given: Checkpointing, notes: AnswerNotes) -> CheckpointTimes:
    """Returns size and times of a checkpoint, with a gap for each that is not known."""
    size = checkpoint_bytes(case.profile, case.workload)
    share = size / case.cluster.accelerator_count if given.is_sharded else size
    write = None if given.storage_rate is None else size / given.storage_rate
    copy = None if given.host_rate is None else share / given.host_rate
    stall = copy if given.is_asynchronous else write
    if given.stall_seconds is not None:
        stall = given.stall_seconds
    elif stall is None:
        name = "device_to_host" if given.is_asynchronous else "storage"
        detail = f"needs {name}_bandwidth_bytes_per_second, or stall_seconds"
        notes.add_gap("/checkpoint/stall_seconds", "BANDWIDTH_REQUIRED", detail)
    elif not given.is_asynchronous:
        # The copy to the host and the write follow one another.
        stall += copy or 0.0
    if write is None:
        detail = "writing in the background takes no time: storage_bandwidth_bytes_per_second is not given"
        notes.add_gap("/checkpoint/write_seconds", "BANDWIDTH_REQUIRED", detail)
    load = write if given.read_rate is None else size / given.read_rate
    return CheckpointTimes(size, share, write, load, stall, given.is_asynchronous)


def _build_failures(case: TrainingCase, checkpoint: CheckpointTimes | None) -> FailureTimes | None:
    if case.reliability is None:
        return None
    devices, (mtbf, again) = case.cluster.accelerator_count, case.reliability
    load = (checkpoint and checkpoint.load_seconds) or 0.0
    return FailureTimes(
        mtbf=combine(lambda each: system_mtbf((devices, each * HOUR_SECONDS)), mtbf),
        restart=combine(lambda seconds: seconds + load, again),
        corruptions_per_device_hour=case.curves.silent_corruptions_per_device_hour.to_quantity(
            EvidenceBasis.REFERENCE
        ),
        devices=float(devices),
    )


def _choose_interval(
    given: Checkpointing,
    checkpoint: CheckpointTimes,
    failures: FailureTimes | None,
    step: Quantity | None,
    notes: AnswerNotes,
) -> Quantity | None:
    if given.interval_seconds is not None:
        return assumed(given.interval_seconds)
    if given.interval_steps is not None:
        if step is None:
            notes.add_gap("/checkpoint/interval_seconds", "BATCH_REQUIRED", "the time of a step is not known")
            return None
        return assumed(step.value * given.interval_steps)
    if failures is None:
        detail = "needs interval_seconds, interval_steps or reliability"
        notes.add_gap("/checkpoint/interval_seconds", "INTERVAL_REQUIRED", detail)
        return None
    if checkpoint.stall_seconds is None:
        notes.add_gap("/checkpoint/interval_seconds", "BANDWIDTH_REQUIRED", "needs the stall of a checkpoint")
        return None
    best = daly_interval_seconds(checkpoint.stall_seconds, failures.mtbf.value)
    # A checkpoint is written before the next begins, and a step is not interrupted.
    chosen = max(best, checkpoint.unsaved_seconds, step.value if step else 0.0)
    return Quantity(chosen, chosen, chosen, failures.mtbf.basis)


def estimate_interruptions(
    case: TrainingCase, *, step: Quantity | None, productive: Quantity | None, notes: AnswerNotes
) -> RunInterruptions:
    """Estimates checkpoints and failures of a run of ``productive`` seconds, if the case has any."""
    given, checkpoint = case.checkpointing, None
    if given is not None and given.is_written:
        checkpoint = build_checkpoint(case, given, notes)
    failures = _build_failures(case, checkpoint)
    if failures and checkpoint and checkpoint.load_seconds is None:
        detail = "loading a checkpoint takes no time: no bandwidth of the storage is given"
        notes.add_gap("/reliability/restart_seconds", "BANDWIDTH_REQUIRED", detail)
    if checkpoint and given is not None:
        interval = _choose_interval(given, checkpoint, failures, step, notes)
        checkpoint = checkpoint._replace(interval=interval)
        if interval is not None and checkpoint.unsaved_seconds > interval.value:
            detail = "a checkpoint takes longer to write than the interval lasts"
            notes.warn("CHECKPOINT_INTERVAL", "/workload/checkpointing", detail)
    found = RunInterruptions(checkpoint, failures, step, productive)
    if checkpoint is None:
        if failures is not None:
            detail = "without a checkpoint a failure loses the whole run: give checkpointing"
            notes.add_gap("/goodput", "CHECKPOINTING_REQUIRED", detail)
        return found
    if checkpoint.interval is None or checkpoint.stall_seconds is None:
        notes.add_gap("/goodput", "CHECKPOINTING_REQUIRED", "stall or interval of a checkpoint is not known")
        return found
    saved = RecoveryCosts(
        checkpoint.interval.value, checkpoint.stall_seconds, unsaved=checkpoint.unsaved_seconds
    )
    return found._replace(saved=saved, goodput=_estimate_goodput(saved, failures))


def _estimate_goodput(saved: RecoveryCosts, failures: FailureTimes | None) -> Quantity:
    """Returns the share of its time in which the run makes progress.

    Refuses a run that makes next to none.
    """
    if failures is None:
        return assumed(compute_goodput(saved))
    try:
        share = combine(
            lambda mtbf, restart: compute_goodput(saved._replace(mtbf=mtbf, restart=restart)),
            failures.mtbf,
            inverted(failures.restart),
        )
    except OverflowError:
        share = None
    if share is None or share.low < _LEAST_GOODPUT:
        detail = "failures come faster than checkpoints and restarts: the run makes no progress"
        raise PlanningError("NO_PROGRESS", "/workload/reliability", detail)
    return share
