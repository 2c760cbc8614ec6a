"""A training run on other numbers of accelerators, and the number that it should have.

Strong scaling keeps the batch of a step, weak scaling the batch of a device. Curves are relative to their
first point; laws and fits are those of :mod:`service.planning.training.scaling`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile
from typing import Final, NamedTuple

from service.planning.cases import TrainingCase
from service.planning.estimates.devices import get_usable_bytes
from service.planning.estimates.runs import TrainingRun
from service.planning.memory.training import compute_unsharded_state, estimate_training_memory
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity, combine, inverted, scaled
from service.planning.training.scaling import (
    LEAST_POINTS,
    EmpiricalCurve,
    RunScale,
    ScaleHint,
    amdahl_speedup,
    crossover_devices,
    fit_empirical_curve,
    fit_serial_share,
    gustafson_speedup,
    least_devices,
    overhead_share,
    strong_efficiency,
    suggest_scale,
    weak_efficiency,
    work_cost_factor,
)

MOST_POINTS: Final = 8
"""Most points of a curve whose counts are not given."""
BEYOND: Final = 4
"""Such a curve ends at this many times the accelerators of the run."""


class RunVariant(NamedTuple):
    """Another number of accelerators for a run, with the batch of a step."""

    accelerator_count: int
    global_batch_size: int
    layout: Parallelism | None = None
    """None to choose one."""
    micro_batch_size: int | None = None
    """None for that of the run."""
    has_interruptions: bool = True
    """False to leave checkpoints and failures out: they lengthen a run, not its steps."""


VaryRun = Callable[[RunVariant], TrainingRun | None]
"""Returns the run on another number of accelerators; None where it cannot be laid out."""


class _ScaledStep(NamedTuple):
    accelerator_count: int
    global_batch_size: int
    step_seconds: Quantity
    tokens_per_second: Quantity
    fits: bool | None
    communication_seconds: float
    """Seconds of communication that compute does not hide."""


class ScalingPoint(NamedTuple):
    """A step on a number of accelerators, beside the first step of its curve."""

    accelerator_count: int
    global_batch_size: int
    step_seconds: Quantity
    tokens_per_second: Quantity
    fits: bool | None
    """None where the capacity of a device or the shapes of the model are not known."""
    speedup: float
    efficiency: float
    work_cost_factor: float
    communication_share: float
    law_speedup: float | None = None
    """Speed-up by Amdahl's law of a strong curve, by Gustafson's of a weak one."""
    empirical_speedup: float | None = None


class ScalingCurve(NamedTuple):
    """Points of a curve, and what is fitted to them; None where there are too few."""

    points: tuple[ScalingPoint, ...] = ()
    serial_share: float | None = None
    crossover: float | None = None
    """Accelerators from which communication takes longer than compute; of a strong curve."""
    empirical: EmpiricalCurve | None = None


class ScaleOption(NamedTuple):
    """A scale that a run may have; None where it cannot be laid out or is not known."""

    scale: RunScale
    accelerator_count: int
    fits: bool | None = None
    duration_seconds: Quantity | None = None
    in_time: bool | None = None


class ScalingDecision(NamedTuple):
    """The least scale at which a run fits and ends in time, among its options."""

    options: tuple[ScaleOption, ...]
    time_limit_seconds: float
    scale: RunScale | None = None
    least_accelerator_count: float | None = None
    """Devices that the training state alone fills."""
    hint: ScaleHint | None = None


class RunScaling(NamedTuple):
    """Both curves of a run, and the decision to scale."""

    strong: ScalingCurve
    weak: ScalingCurve
    decision: ScalingDecision


def estimate_scaling(
    run: TrainingRun,
    vary: VaryRun,
    *,
    counts: Sequence[int] | None,
    per_node: int,
    time_limit_seconds: float,
) -> RunScaling | None:
    """Returns the curves of a run over ``counts`` of accelerators, or over doublings where these are None.

    ``per_node`` are the accelerators of a whole node. None, with a gap in the notes of the run, where a step
    is not known.
    """
    rollout = run.case.workload.rollout
    if rollout and rollout.devices:
        detail = "how many devices generate for another number that train is not known"
        run.notes.add_gap("/scaling", "NOT_MODELLED", detail)
        return None
    if run.time is None or not run.case.batch_known:
        run.notes.add_gap("/scaling", "BATCH_REQUIRED", "the time of a step is not known")
        return None
    listed = _list_counts(run.case.layout) if counts is None else sorted(set(counts))
    return RunScaling(
        _build_curve(run, vary, listed, is_weak=False, is_open=counts is None),
        _build_curve(run, vary, listed, is_weak=True, is_open=counts is None),
        _decide(run, vary, per_node, time_limit_seconds),
    )


def _list_counts(layout: Parallelism) -> Sequence[int]:
    """Lists doublings of the smallest count that the layout leaves, with that of the run."""
    least = layout.devices // layout.data * math.lcm(layout.expert, layout.sharding_group_size or 1)
    most = BEYOND * layout.devices
    counts = {least << k for k in range(max(1, (most // least).bit_length()))}
    return sorted({*counts, layout.devices})[-MOST_POINTS:]


def _list_steps(
    run: TrainingRun, vary: VaryRun, counts: Sequence[int], *, is_weak: bool
) -> Iterator[_ScaledStep]:
    case = run.case
    held = case.layout.devices // case.layout.data
    for count in counts:
        data, rest = divmod(count, held)
        if rest or not data:
            continue
        micro, batch = case.workload.micro_batch_size, case.step_sequences
        if is_weak:
            batch = micro * case.workload.micro_batches * data
        elif batch % data:
            continue
        else:
            micro = math.gcd(micro, batch // data)
        layout = case.layout._replace(data=data)
        varied = vary(RunVariant(count, batch, layout, micro, has_interruptions=False))
        if varied and varied.time and varied.computing:
            per_token, tokens = varied.time.seconds_per_token, varied.case.step_tokens
            phases = varied.computing.list_phases(tokens)
            yield _ScaledStep(
                count,
                batch,
                scaled(per_token, tokens),
                combine(lambda seconds: 1.0 / seconds, inverted(per_token)),
                is_fitting(varied.case),
                sum(phase.seconds.value for phase in phases if phase.bound.value == "communication"),
            )


def is_fitting(case: TrainingCase) -> bool | None:
    """Returns true if a device holds its share; None where its capacity or the shapes are not known."""
    usable = get_usable_bytes(case.cluster, case.workload)
    if usable is None or not case.profile.shapes_known:
        return None
    overhead = case.curves.training_memory.overhead
    fullest = estimate_training_memory(case.profile, case.workload, case.layout, overhead)[0]
    return bool(fullest.total_bytes <= usable)


def _build_curve(
    run: TrainingRun, vary: VaryRun, counts: Sequence[int], *, is_weak: bool, is_open: bool
) -> ScalingCurve:
    steps = list(_list_steps(run, vary, counts, is_weak=is_weak))
    if len(steps) < len(counts):
        known = {step.accelerator_count for step in steps}
        missing = ", ".join(str(count) for count in counts if count not in known)
        detail = f"the step or its layout does not divide among {missing} accelerators"
        name = "weak" if is_weak else "strong"
        run.notes.add_gap(f"/scaling/{name}/points", "NOT_DIVISIBLE", detail)
    if is_open:
        # A curve begins where the step fits; memory, not speed, decides below.
        steps = list(dropwhile(lambda step: step.fits is False, steps)) or steps
    return _fit_curve(steps, is_weak=is_weak)


def _build_point(step: _ScaledStep, first: _ScaledStep, *, is_weak: bool) -> ScalingPoint:
    ratio, before = step.accelerator_count / first.accelerator_count, first.step_seconds.value
    seconds, exposed = step.step_seconds.value, step.communication_seconds
    efficiency = weak_efficiency(before, seconds) if is_weak else strong_efficiency(before, ratio, seconds)
    return ScalingPoint(
        step.accelerator_count,
        step.global_batch_size,
        step.step_seconds,
        step.tokens_per_second,
        step.fits,
        efficiency * ratio,
        efficiency,
        work_cost_factor(efficiency),
        overhead_share(seconds - exposed, exposed),
    )


def _fit_curve(steps: Sequence[_ScaledStep], *, is_weak: bool) -> ScalingCurve:
    serial_share = crossover = empirical = None
    points = [_build_point(step, steps[0], is_weak=is_weak) for step in steps]
    counted = [step.accelerator_count / steps[0].accelerator_count for step in steps]
    speedups = [point.speedup for point in points]
    if len(points) > 1:
        serial_share = fit_serial_share(counted, speedups, weak=is_weak)
        law = gustafson_speedup if is_weak else amdahl_speedup
        points = [
            point._replace(law_speedup=law(count, serial_share))
            for point, count in zip(points, counted, strict=True)
        ]
    if steps and not is_weak and steps[-1].communication_seconds:
        computing = steps[0].step_seconds.value - steps[0].communication_seconds
        crossover = crossover_devices(computing * steps[0].accelerator_count, steps[-1].communication_seconds)
    if len(points) >= LEAST_POINTS:
        empirical = fit_empirical_curve(counted, speedups)
        points = [
            point._replace(empirical_speedup=empirical.compute_speedup(count))
            for point, count in zip(points, counted, strict=True)
        ]
    return ScalingCurve(tuple(points), serial_share, crossover, empirical)


def _decide(run: TrainingRun, vary: VaryRun, per_node: int, limit: float) -> ScalingDecision:
    case = run.case
    counts = {RunScale.SINGLE_DEVICE: 1, RunScale.SINGLE_NODE: per_node}
    if case.cluster.accelerator_count > per_node:
        counts[RunScale.CLUSTER] = case.cluster.accelerator_count
    options = tuple(_build_option(run, vary, scale, count, limit) for scale, count in counts.items())
    chosen = next((option.scale for option in options if _is_enough(option)), None)
    pipeline, hint = case.data_pipeline, None
    if pipeline is not None and pipeline.dataset_bytes is not None:
        hint = suggest_scale(float(case.profile.parameter_count), pipeline.dataset_bytes)
    return ScalingDecision(options, limit, chosen, _count_least_devices(case), hint)


def _is_enough(option: ScaleOption) -> bool:
    """Returns true if nothing that is known speaks against a scale, and something for it."""
    verdicts = {option.fits, option.in_time}
    return False not in verdicts and True in verdicts


def _build_option(run: TrainingRun, vary: VaryRun, scale: RunScale, count: int, limit: float) -> ScaleOption:
    is_own = count == run.case.cluster.accelerator_count
    varied = run if is_own else vary(RunVariant(count, run.case.step_sequences))
    if varied is None:
        return ScaleOption(scale, count)
    lasting = varied.duration_seconds
    in_time = None if lasting is None else lasting.value <= limit
    return ScaleOption(scale, count, is_fitting(varied.case), lasting, in_time)


def _count_least_devices(case: TrainingCase) -> float | None:
    """Counts the devices that the training state alone fills; None without a known capacity."""
    usable = get_usable_bytes(case.cluster, case.workload)
    if usable is None:
        return None
    state = compute_unsharded_state(case.profile, case.workload, Parallelism(), 0)
    return least_devices(state.total, usable)
