"""Checkpoints and failures of a training run, and how long it lasts with them."""

from collections.abc import Callable
from typing import NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import ReferenceCurves
from service.planning.models.profile import Profile
from service.planning.quantity import Basis, Quantity, assumed, combine, inverted, scaled
from service.planning.reliability.interruptions import (
    ElapsedTime,
    Recovery,
    checkpoint_bytes,
    daly_interval_seconds,
    elapsed_time,
    failure_probability,
    goodput,
    system_mtbf,
)
from service.planning.units import HOUR_SECONDS
from service.planning.workload import TrainingWorkload
from service.resolve.operation import check_checkpointing
from service.schemas.answer import quantity, whole
from service.schemas.notes import Notes
from service.schemas.run_answers import CheckpointAnswer, ReliabilityAnswer, TrainingParts
from service.schemas.workloads import CheckpointingInput, TrainingWorkloadInput

_LEAST_GOODPUT = 1e-3
"""Below it a run makes no progress worth planning."""


class Checkpoint(NamedTuple):
    """What is saved, in bytes, and the seconds that follow; None for what is not known."""

    bytes: float
    bytes_per_device: float
    write_seconds: float | None
    load_seconds: float | None
    stall_seconds: float | None
    asynchronous: bool
    interval: Quantity | None = None

    @property
    def unsaved_seconds(self) -> float:
        """Work since its start that a checkpoint does not protect while it is written in the background."""
        return (self.write_seconds or 0.0) if self.asynchronous else 0.0


class Failures(NamedTuple):
    """Mean time between failures of the whole cluster and of a restart, in seconds."""

    mtbf: Quantity
    restart: Quantity
    corruptions_per_device_hour: Quantity
    devices: float


class Interruptions(NamedTuple):
    """Checkpoints and failures of a run, and the time that it takes with them.

    ``saved`` is what checkpoints cost where nothing fails, None where that is not known.
    """

    checkpoint: Checkpoint | None = None
    failures: Failures | None = None
    step: Quantity | None = None
    productive: Quantity | None = None
    saved: Recovery | None = None
    goodput: Quantity | None = None

    @property
    def duration(self) -> Quantity | None:
        """Expected duration; that without interruptions where what they cost is not known."""
        return self.part(lambda elapsed: elapsed.total) or self.productive

    def part(self, pick: Callable[[ElapsedTime], float]) -> Quantity | None:
        """What ``pick`` takes of the elapsed time; None where that is not known."""
        saved, productive = self.saved, self.productive
        if saved is None or productive is None:
            return None
        if self.failures is None:
            return combine(lambda p: pick(elapsed_time(p, saved)), productive)
        return combine(
            lambda p, mtbf, restart: pick(elapsed_time(p, saved._replace(mtbf=mtbf, restart=restart))),
            productive,
            inverted(self.failures.mtbf),
            self.failures.restart,
        )


def _checkpoint(
    given: CheckpointingInput, profile: Profile, workload: TrainingWorkload, devices: int, notes: Notes
) -> Checkpoint:
    check_checkpointing(given)
    size = checkpoint_bytes(profile, workload)
    share = size / devices if given.sharded else size
    asynchronous = given.mode == "asynchronous"
    storage, link = given.storage_bandwidth_bytes_per_second, given.device_to_host_bandwidth_bytes_per_second
    write = None if storage is MISSING else size / storage
    copy = None if link is MISSING else share / link
    stall = copy if asynchronous else write
    if given.stall_seconds is not MISSING:
        stall = given.stall_seconds
    elif stall is None:
        name = "device_to_host" if asynchronous else "storage"
        detail = f"needs {name}_bandwidth_bytes_per_second, or stall_seconds"
        notes.gap("/checkpoint/stall_seconds", "BANDWIDTH_REQUIRED", detail)
    elif not asynchronous:
        # The copy to the host and the write follow one another.
        stall += copy or 0.0
    if write is None:
        detail = "without storage_bandwidth_bytes_per_second writing in the background takes no time here"
        notes.gap("/checkpoint/write_seconds", "BANDWIDTH_REQUIRED", detail)
    read = given.read_bandwidth_bytes_per_second
    load = write if read is MISSING else size / read
    return Checkpoint(size, share, write, load, stall, asynchronous)


def _failures(
    given: TrainingWorkloadInput, checkpoint: Checkpoint | None, devices: int, curves: ReferenceCurves
) -> Failures | None:
    reliability = given.reliability
    if reliability is MISSING:
        return None
    hours, restart = reliability.device_mtbf_hours, reliability.restart_seconds
    mtbf = curves.device_mtbf_hours.quantity(Basis.REFERENCE) if hours is MISSING else assumed(hours)
    again = curves.restart_seconds.quantity(Basis.REFERENCE) if restart is MISSING else assumed(restart)
    load = (checkpoint and checkpoint.load_seconds) or 0.0
    return Failures(
        mtbf=combine(lambda each: system_mtbf((devices, each * HOUR_SECONDS)), mtbf),
        restart=combine(lambda seconds: seconds + load, again),
        corruptions_per_device_hour=curves.silent_corruptions_per_device_hour.quantity(Basis.REFERENCE),
        devices=float(devices),
    )


def _interval(
    given: CheckpointingInput,
    checkpoint: Checkpoint,
    failures: Failures | None,
    step: Quantity | None,
    notes: Notes,
) -> Quantity | None:
    if given.interval_seconds is not MISSING:
        return assumed(given.interval_seconds)
    if given.interval_steps is not MISSING:
        if step is None:
            notes.gap("/checkpoint/interval_seconds", "BATCH_REQUIRED", "the time of a step is not known")
            return None
        return assumed(step.value * given.interval_steps)
    if failures is None:
        detail = "needs interval_seconds, interval_steps or reliability"
        notes.gap("/checkpoint/interval_seconds", "INTERVAL_REQUIRED", detail)
        return None
    if checkpoint.stall_seconds is None:
        notes.gap("/checkpoint/interval_seconds", "BANDWIDTH_REQUIRED", "needs the stall of a checkpoint")
        return None
    best = daly_interval_seconds(checkpoint.stall_seconds, failures.mtbf.value)
    # One is written before the next begins, and a step is not interrupted.
    chosen = max(best, checkpoint.unsaved_seconds, step.value if step else 0.0)
    return Quantity(chosen, chosen, chosen, failures.mtbf.basis)


def interruptions(
    given: TrainingWorkloadInput,
    profile: Profile,
    workload: TrainingWorkload,
    cluster: Cluster,
    *,
    step: Quantity | None,
    productive: Quantity | None,
    curves: ReferenceCurves,
    notes: Notes,
) -> Interruptions:
    """Checkpoints and failures of a run of ``productive`` seconds, if the question asks for them."""
    devices, checkpointing = cluster.accelerator_count, given.checkpointing
    checkpoint = None
    if checkpointing is not MISSING:
        checkpoint = _checkpoint(checkpointing, profile, workload, devices, notes)
    failures = _failures(given, checkpoint, devices, curves)
    if failures and checkpoint and checkpoint.load_seconds is None:
        detail = "without a bandwidth of the storage loading a checkpoint takes no time here"
        notes.gap("/reliability/restart_seconds", "BANDWIDTH_REQUIRED", detail)
    if checkpoint and checkpointing is not MISSING:
        interval = _interval(checkpointing, checkpoint, failures, step, notes)
        checkpoint = checkpoint._replace(interval=interval)
        if interval is not None and checkpoint.unsaved_seconds > interval.value:
            detail = "a checkpoint takes longer to write than the interval lasts"
            notes.warn("CHECKPOINT_INTERVAL", "/workload/checkpointing", detail)
    found = Interruptions(checkpoint, failures, step, productive)
    if checkpoint is None:
        if failures is not None:
            detail = "without a checkpoint a failure loses the whole run: give checkpointing"
            notes.gap("/goodput", "CHECKPOINTING_REQUIRED", detail)
        return found
    if checkpoint.interval is None or checkpoint.stall_seconds is None:
        notes.gap("/goodput", "CHECKPOINTING_REQUIRED", "stall or interval of a checkpoint is not known")
        return found
    saved = Recovery(checkpoint.interval.value, checkpoint.stall_seconds, unsaved=checkpoint.unsaved_seconds)
    return found._replace(saved=saved, goodput=_goodput(saved, failures))


def _goodput(saved: Recovery, failures: Failures | None) -> Quantity:
    """The share of its time in which the run makes progress; refuses a run that makes next to none."""
    if failures is None:
        return assumed(goodput(saved))
    try:
        share = combine(
            lambda mtbf, restart: goodput(saved._replace(mtbf=mtbf, restart=restart)),
            failures.mtbf,
            inverted(failures.restart),
        )
    except OverflowError:
        share = None
    if share is None or share.low < _LEAST_GOODPUT:
        detail = "failures come faster than checkpoints and restarts: the run makes no progress"
        raise PlanningError("NO_PROGRESS", "/workload/reliability", detail)
    return share


def interruption_parts(found: Interruptions) -> TrainingParts:
    """Checkpoint, reliability and goodput of an answer."""
    parts: TrainingParts = {}
    if found.checkpoint:
        parts["checkpoint"] = _checkpoint_answer(found.checkpoint, found.step)
    if found.failures:
        parts["reliability"] = _reliability_answer(found, found.failures)
    if found.goodput:
        parts["goodput"] = quantity(found.goodput)
    return parts


def _checkpoint_answer(checkpoint: Checkpoint, step: Quantity | None) -> CheckpointAnswer:
    answer: CheckpointAnswer = {
        "bytes": whole(checkpoint.bytes),
        "bytes_per_device": whole(checkpoint.bytes_per_device),
    }
    if checkpoint.write_seconds is not None:
        answer["write_seconds"] = quantity(assumed(checkpoint.write_seconds))
    if checkpoint.stall_seconds is not None:
        answer["stall_seconds"] = quantity(assumed(checkpoint.stall_seconds))
    if checkpoint.interval is not None:
        answer["interval_seconds"] = quantity(checkpoint.interval)
        if step is not None:
            answer["interval_steps"] = max(1, whole(checkpoint.interval.value / step.value))
    return answer


def _reliability_answer(found: Interruptions, failures: Failures) -> ReliabilityAnswer:
    answer: ReliabilityAnswer = {
        "mean_time_between_failures_seconds": quantity(failures.mtbf),
        "restart_seconds": quantity(failures.restart),
    }
    productive = found.productive
    if productive is None:
        return answer
    answer["failure_probability"] = failure_probability(productive.value, failures.mtbf.value)
    times = {
        "productive_seconds": lambda elapsed: elapsed.productive,
        "checkpoint_seconds": lambda elapsed: elapsed.checkpoints,
        "lost_work_seconds": lambda elapsed: elapsed.lost_work,
        "restarting_seconds": lambda elapsed: elapsed.restarts,
    }
    if found.goodput is None:
        return answer
    for name, pick in times.items():
        part = found.part(pick)
        if part is not None:
            answer[name] = quantity(part)  # type: ignore[literal-required]
    expected = found.part(lambda elapsed: elapsed.failures)
    if expected is not None:
        answer["expected_failures"] = expected.value
    duration = found.duration
    if duration is not None:
        hours = scaled(duration, failures.devices / HOUR_SECONDS)
        corrupted = combine(lambda h, each: h * each, hours, failures.corruptions_per_device_hour)
        answer["expected_silent_corruptions"] = quantity(corrupted)
    return answer
