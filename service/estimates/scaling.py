"""The run on other numbers of accelerators, and on how many it should be."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.rates import plan_run
from service.estimates.run import Run, step_tokens
from service.planning.errors import PlanningError
from service.planning.memory.training import training_memory, unsharded_state
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity, combine, inverted, scaled
from service.planning.training.scaling import (
    LEAST_POINTS,
    Scale,
    amdahl_speedup,
    crossover_devices,
    fit_empirical,
    gustafson_speedup,
    least_devices,
    overhead_share,
    rule_of_thumb,
    serial_share,
    strong_efficiency,
    weak_efficiency,
    work_cost_factor,
)
from service.planning.workload import TrainingWorkload
from service.resolve.catalog import Catalog
from service.resolve.hardware import ACCELERATORS_PER_NODE, usable_bytes
from service.schemas.answer import quantity, whole
from service.schemas.estimates import ScalingInput, ThroughputQuestion
from service.schemas.references import ParallelismInput
from service.schemas.run_answers import (
    ScaleOption,
    ScalingAnswer,
    ScalingCurve,
    ScalingDecision,
    ScalingPoint,
)
from service.schemas.workloads import TrainingWorkloadInput

MOST_POINTS = 8
"""Of a curve that the question leaves open."""

BEYOND = 4
"""Such a curve ends at this many times the accelerators of the question."""


class _Point(NamedTuple):
    devices: int
    batch: int
    step: Quantity
    tokens_per_second: Quantity
    fits: bool | None
    communication_seconds: float

    def answer(self, first: "_Point", *, weak: bool) -> ScalingPoint:
        ratio, before = self.devices / first.devices, first.step.value
        if weak:
            efficiency = weak_efficiency(before, self.step.value)
        else:
            efficiency = strong_efficiency(before, ratio, self.step.value)
        answer: ScalingPoint = {
            "accelerator_count": self.devices,
            "global_batch_size": self.batch,
            "step_seconds": quantity(self.step),
            "tokens_per_second": quantity(self.tokens_per_second),
            "speedup": efficiency * ratio,
            "efficiency": efficiency,
            "work_cost_factor": work_cost_factor(efficiency),
            "communication_share": overhead_share(
                self.step.value - self.communication_seconds, self.communication_seconds
            ),
        }
        if self.fits is not None:
            answer["fits"] = self.fits
        return answer


class _Asked(NamedTuple):
    """The question, what it came to, and the sequences of its step."""

    question: ThroughputQuestion
    workload: TrainingWorkloadInput
    catalog: Catalog
    run: Run
    step: TrainingWorkload

    @property
    def layout(self) -> Parallelism:
        return self.run.resolved.layout

    @property
    def batch(self) -> int:
        return self.step.micro_batch_size * self.step.micro_batches * self.layout.data

    def on(self, count: int, layout: Parallelism | None, **workload: object) -> Run | None:
        """The run on another number of accelerators; None where it cannot be laid out."""
        cluster = self.question.cluster.model_copy(update={"accelerator_count": count})
        changed = self.workload.model_copy(update={"gradient_accumulation_steps": MISSING, **workload})
        parallelism = MISSING if layout is None else _given(layout)
        update = {"cluster": cluster, "workload": changed, "parallelism": parallelism, "scaling": MISSING}
        try:
            return plan_run(self.question.model_copy(update=update), self.catalog)
        except PlanningError:
            return None

    @property
    def least_count(self) -> int | None:
        """Devices that the training state alone fills."""
        usable = usable_bytes(self.run.cluster, self.step)
        if usable is None:
            return None
        state = unsharded_state(self.run.resolved.model.profile, self.step, Parallelism(), 0)
        return whole(least_devices(state.total, usable))

    def fits(self, run: Run) -> bool | None:
        """Whether a device holds its share; None where its capacity or the shapes are not known."""
        profile, workload = run.resolved.model.profile, run.resolved.workload
        usable = usable_bytes(run.cluster, workload)
        if usable is None or not profile.shapes_known or not isinstance(workload, TrainingWorkload):
            return None
        overhead = self.catalog.curves.training_memory.overhead
        fullest = training_memory(profile, workload, run.resolved.layout, overhead)[0]
        return bool(fullest.total_bytes <= usable)


def _given(layout: Parallelism) -> ParallelismInput:
    known = {name: value for name, value in layout._asdict().items() if value is not None}
    return ParallelismInput(**{name: known[name] for name in ParallelismInput.model_fields if name in known})


def _counts(asked: ScalingInput, layout: Parallelism) -> Sequence[int]:
    """The counts of the question, or doublings of the smallest that the layout leaves, with its own."""
    if asked.accelerator_counts is not MISSING:
        return sorted(set(asked.accelerator_counts))
    least = layout.devices // layout.data * math.lcm(layout.expert, layout.sharding_group_size or 1)
    most = BEYOND * layout.devices
    counts = {least << k for k in range(max(1, (most // least).bit_length()))}
    return sorted({*counts, layout.devices})[-MOST_POINTS:]


def _points(asked: _Asked, counts: Sequence[int], *, weak: bool) -> Iterator[_Point]:
    held = asked.layout.devices // asked.layout.data
    for count in counts:
        data, rest = divmod(count, held)
        if rest or not data:
            continue
        layout = asked.layout._replace(data=data)
        micro, batch = asked.step.micro_batch_size, asked.batch
        if weak:
            batch = micro * asked.step.micro_batches * data
        elif batch % data:
            continue
        else:
            micro = math.gcd(micro, batch // data)
        # Failures lengthen the run, not its steps.
        run = asked.on(
            count,
            layout,
            micro_batch_size=micro,
            global_batch_size=batch,
            checkpointing=MISSING,
            reliability=MISSING,
        )
        if run and run.training and isinstance(run.resolved.workload, TrainingWorkload):
            per_token, tokens = (
                run.training.seconds_per_token,
                step_tokens(run.resolved, run.resolved.workload),
            )
            step = scaled(per_token, tokens)
            phases = (run.working or run.training).phases(tokens)
            exposed = sum(phase.seconds.value for phase in phases if phase.bound.value == "communication")
            rate = combine(lambda seconds: 1.0 / seconds, inverted(per_token))
            yield _Point(count, batch, step, rate, asked.fits(run), exposed)


def _curve(
    asked: _Asked, counts: Sequence[int], name: str, law: Callable[[float, float], float]
) -> ScalingCurve:
    scaling, weak = asked.question.scaling, name == "weak"
    open_counts = scaling is not MISSING and scaling.accelerator_counts is MISSING
    found = list(_points(asked, counts, weak=weak))
    if len(found) < len(counts):
        missing = ", ".join(str(count) for count in counts if count not in {point.devices for point in found})
        detail = f"the step or its layout does not divide among {missing} accelerators"
        asked.run.notes.gap(f"/scaling/{name}/points", "NOT_DIVISIBLE", detail)
    if open_counts:
        # A curve begins where the step fits; memory, not speed, decides below.
        found = list(dropwhile(lambda point: point.fits is False, found)) or found
    points = [point.answer(found[0], weak=weak) for point in found]
    curve: ScalingCurve = {"points": points}
    counted = [point["accelerator_count"] / points[0]["accelerator_count"] for point in points]
    speedups = [point["speedup"] for point in points]
    if len(points) > 1:
        share = serial_share(counted, speedups, weak=weak)
        curve["serial_share"] = share
        for point, count in zip(points, counted, strict=True):
            point["law_speedup"] = law(count, share)
    if found and not weak and found[-1].communication_seconds:
        computing = found[0].step.value - found[0].communication_seconds
        crossing = crossover_devices(computing * found[0].devices, found[-1].communication_seconds)
        curve["crossover_accelerator_count"] = crossing
    if len(points) >= LEAST_POINTS:
        fitted = fit_empirical(counted, speedups)
        curve["empirical"] = {
            "a": fitted.constant,
            "b": fitted.linear,
            "c": fitted.logarithmic,
            "largest_relative_error": fitted.largest_error,
        }
        for point, count in zip(points, counted, strict=True):
            point["empirical_speedup"] = fitted.speedup(count)
    return curve


def scaling_parts(
    question: ThroughputQuestion, run: Run, catalog: Catalog
) -> tuple[ScalingAnswer, ScalingDecision] | None:
    """Both curves and the decision; None, with a gap, where a step is not known."""
    scaling, given, workload = question.scaling, question.workload, run.resolved.workload
    assert scaling is not MISSING  # noqa: S101
    if not isinstance(given, TrainingWorkloadInput) or not isinstance(workload, TrainingWorkload):
        run.notes.gap("/scaling", "NOT_APPLICABLE", "scaling is answered for training")
        return None
    if workload.rollout and workload.rollout.devices:
        detail = "how many devices generate for another number that train is not known"
        run.notes.gap("/scaling", "NOT_MODELLED", detail)
        return None
    if run.training is None or not run.resolved.batch_known:
        run.notes.gap("/scaling", "BATCH_REQUIRED", "the time of a step is not known")
        return None
    asked = _Asked(question, given, catalog, run, workload)
    counts = _counts(scaling, asked.layout)
    curves: ScalingAnswer = {
        "strong": _curve(asked, counts, "strong", amdahl_speedup),
        "weak": _curve(asked, counts, "weak", gustafson_speedup),
    }
    return curves, _decision(asked, scaling.time_limit_seconds)


def _decision(asked: _Asked, limit: float) -> ScalingDecision:
    cluster = asked.run.cluster
    given, server = asked.question.cluster.accelerators_per_node, cluster.accelerator.server
    per_node = (server.accelerator_count if server else ACCELERATORS_PER_NODE) if given is MISSING else given
    counts = {Scale.SINGLE_DEVICE: 1, Scale.SINGLE_NODE: per_node}
    if cluster.accelerator_count > per_node:
        counts[Scale.CLUSTER] = cluster.accelerator_count
    options = [_option(asked, scale, count, limit) for scale, count in counts.items()]
    decision: ScalingDecision = {"options": options, "time_limit_seconds": limit}
    least = asked.least_count
    if least is not None:
        decision["least_accelerator_count"] = least
    for option in options:
        verdicts = {option.get("fits"), option.get("in_time")}
        if False not in verdicts and True in verdicts:
            decision["scale"] = option["scale"]
            break
    pipeline = asked.workload.data_pipeline
    if pipeline is not MISSING and pipeline.dataset_bytes is not MISSING:
        hint = rule_of_thumb(float(asked.run.resolved.model.profile.parameter_count), pipeline.dataset_bytes)
        decision["rule_of_thumb"] = hint.scale
        decision["streaming"] = hint.streaming
    return decision


def _option(asked: _Asked, scale: Scale, count: int, limit: float) -> ScaleOption:
    option: ScaleOption = {"scale": scale, "accelerator_count": count}
    same = count == asked.run.cluster.accelerator_count
    run = asked.run if same else asked.on(count, None, global_batch_size=asked.batch)
    if run is None:
        return option
    fits = asked.fits(run)
    if fits is not None:
        option["fits"] = fits
    if run.duration_seconds is not None:
        option["duration_seconds"] = quantity(run.duration_seconds)
        option["in_time"] = run.duration_seconds.value <= limit
    return option
