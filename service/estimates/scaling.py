"""The run on other numbers of accelerators, and on how many it should be."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import dropwhile
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.rates import plan_run
from service.planning.cases import TrainingCase
from service.planning.errors import PlanningError
from service.planning.estimates import TrainingRun
from service.planning.estimates.devices import get_usable_bytes
from service.planning.memory.training import compute_unsharded_state, estimate_training_memory
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity, combine, inverted, scaled
from service.planning.training.scaling import (
    LEAST_POINTS,
    RunScale,
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
from service.planning.workload import TrainingWorkload
from service.resolve.catalog import CatalogView
from service.resolve.hardware import ACCELERATORS_PER_NODE
from service.schemas.answer import to_integer, to_quantity
from service.schemas.answers import ThroughputEstimate
from service.schemas.estimates import ScalingInput, ThroughputEstimateRequest
from service.schemas.references import ParallelismInput
from service.schemas.run_answers import (
    ScaleOption,
    ScalingCurve,
    ScalingDecision,
    ScalingPoint,
)
from service.schemas.workloads import TrainingWorkloadInput

MOST_POINTS = 8
"""Of a curve that the question leaves open."""

BEYOND = 4
"""Such a curve ends at this many times the accelerators of the question."""


class _ScalingPoint(NamedTuple):
    devices: int
    batch: int
    step: Quantity
    tokens_per_second: Quantity
    fits: bool | None
    communication_seconds: float

    def to_response(self, first: "_ScalingPoint", *, weak: bool) -> ScalingPoint:
        ratio, before = self.devices / first.devices, first.step.value
        if weak:
            efficiency = weak_efficiency(before, self.step.value)
        else:
            efficiency = strong_efficiency(before, ratio, self.step.value)
        answer: ScalingPoint = {
            "accelerator_count": self.devices,
            "global_batch_size": self.batch,
            "step_seconds": to_quantity(self.step),
            "tokens_per_second": to_quantity(self.tokens_per_second),
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


class _ScaledRun(NamedTuple):
    """The question, what it came to, and the counts that it asks for."""

    question: ThroughputEstimateRequest
    given: TrainingWorkloadInput
    catalog: CatalogView
    run: TrainingRun

    @property
    def layout(self) -> Parallelism:
        return self.run.case.layout

    @property
    def workload(self) -> TrainingWorkload:
        return self.run.case.workload

    @property
    def batch(self) -> int:
        return self.run.case.step_sequences

    def run_on(self, count: int, layout: Parallelism | None, **workload: object) -> TrainingRun | None:
        """The run on another number of accelerators; None where it cannot be laid out."""
        cluster = self.question.cluster.model_copy(update={"accelerator_count": count})
        changed = self.given.model_copy(update={"gradient_accumulation_steps": MISSING, **workload})
        parallelism = MISSING if layout is None else _to_input(layout)
        update = {"cluster": cluster, "workload": changed, "parallelism": parallelism, "scaling": MISSING}
        try:
            run = plan_run(self.question.model_copy(update=update), self.catalog)
        except PlanningError:
            return None
        return run if isinstance(run, TrainingRun) else None

    @property
    def least_count(self) -> int | None:
        """Devices that the training state alone fills."""
        case = self.run.case
        usable = get_usable_bytes(case.cluster, case.workload)
        if usable is None:
            return None
        state = compute_unsharded_state(case.profile, case.workload, Parallelism(), 0)
        return to_integer(least_devices(state.total, usable))


def _is_fitting(case: TrainingCase) -> bool | None:
    """Whether a device holds its share; None where its capacity or the shapes are not known."""
    usable = get_usable_bytes(case.cluster, case.workload)
    if usable is None or not case.profile.shapes_known:
        return None
    overhead = case.curves.training_memory.overhead
    fullest = estimate_training_memory(case.profile, case.workload, case.layout, overhead)[0]
    return bool(fullest.total_bytes <= usable)


def _to_input(layout: Parallelism) -> ParallelismInput:
    known = {name: value for name, value in layout._asdict().items() if value is not None}
    return ParallelismInput(**{name: known[name] for name in ParallelismInput.model_fields if name in known})


def _list_counts(asked: ScalingInput, layout: Parallelism) -> Sequence[int]:
    """The counts of the question, or doublings of the smallest that the layout leaves, with its own."""
    if asked.accelerator_counts is not MISSING:
        return sorted(set(asked.accelerator_counts))
    least = layout.devices // layout.data * math.lcm(layout.expert, layout.sharding_group_size or 1)
    most = BEYOND * layout.devices
    counts = {least << k for k in range(max(1, (most // least).bit_length()))}
    return sorted({*counts, layout.devices})[-MOST_POINTS:]


def _list_points(scaled_run: _ScaledRun, counts: Sequence[int], *, weak: bool) -> Iterator[_ScalingPoint]:
    held = scaled_run.layout.devices // scaled_run.layout.data
    for count in counts:
        data, rest = divmod(count, held)
        if rest or not data:
            continue
        layout = scaled_run.layout._replace(data=data)
        micro, batch = scaled_run.workload.micro_batch_size, scaled_run.batch
        if weak:
            batch = micro * scaled_run.workload.micro_batches * data
        elif batch % data:
            continue
        else:
            micro = math.gcd(micro, batch // data)
        # Failures lengthen the run, not its steps.
        run = scaled_run.run_on(
            count,
            layout,
            micro_batch_size=micro,
            global_batch_size=batch,
            checkpointing=MISSING,
            reliability=MISSING,
        )
        if run and run.time and run.computing:
            per_token, tokens = run.time.seconds_per_token, run.case.step_tokens
            step = scaled(per_token, tokens)
            phases = run.computing.list_phases(tokens)
            exposed = sum(phase.seconds.value for phase in phases if phase.bound.value == "communication")
            rate = combine(lambda seconds: 1.0 / seconds, inverted(per_token))
            yield _ScalingPoint(count, batch, step, rate, _is_fitting(run.case), exposed)


def _build_curve(
    scaled_run: _ScaledRun,
    counts: Sequence[int],
    name: str,
    law: Callable[[float, float], float],
    *,
    open_counts: bool,
) -> ScalingCurve:
    weak = name == "weak"
    found = list(_list_points(scaled_run, counts, weak=weak))
    if len(found) < len(counts):
        missing = ", ".join(str(count) for count in counts if count not in {point.devices for point in found})
        detail = f"the step or its layout does not divide among {missing} accelerators"
        scaled_run.run.notes.add_gap(f"/scaling/{name}/points", "NOT_DIVISIBLE", detail)
    if open_counts:
        # A curve begins where the step fits; memory, not speed, decides below.
        found = list(dropwhile(lambda point: point.fits is False, found)) or found
    points = [point.to_response(found[0], weak=weak) for point in found]
    curve: ScalingCurve = {"points": points}
    counted = [point["accelerator_count"] / points[0]["accelerator_count"] for point in points]
    speedups = [point["speedup"] for point in points]
    if len(points) > 1:
        share = fit_serial_share(counted, speedups, weak=weak)
        curve["serial_share"] = share
        for point, count in zip(points, counted, strict=True):
            point["law_speedup"] = law(count, share)
    if found and not weak and found[-1].communication_seconds:
        computing = found[0].step.value - found[0].communication_seconds
        crossing = crossover_devices(computing * found[0].devices, found[-1].communication_seconds)
        curve["crossover_accelerator_count"] = crossing
    if len(points) >= LEAST_POINTS:
        fitted = fit_empirical_curve(counted, speedups)
        curve["empirical"] = {
            "a": fitted.constant,
            "b": fitted.linear,
            "c": fitted.logarithmic,
            "largest_relative_error": fitted.largest_error,
        }
        for point, count in zip(points, counted, strict=True):
            point["empirical_speedup"] = fitted.compute_speedup(count)
    return curve


def note_scaling(question: ThroughputEstimateRequest, notes: AnswerNotes) -> None:
    """Say of a served model that scaling is not answered, if the question asks for it."""
    if question.scaling is not MISSING:
        notes.add_gap("/scaling", "NOT_APPLICABLE", "scaling is answered for training")


def add_scaling(
    answer: ThroughputEstimate, question: ThroughputEstimateRequest, run: TrainingRun, catalog: CatalogView
) -> None:
    """Both curves and the decision, if the question asks for them; a gap where a step is not known."""
    scaling, given, rollout = question.scaling, question.workload, run.case.workload.rollout
    if scaling is MISSING or not isinstance(given, TrainingWorkloadInput):
        return
    if rollout and rollout.devices:
        detail = "how many devices generate for another number that train is not known"
        run.notes.add_gap("/scaling", "NOT_MODELLED", detail)
        return
    if run.time is None or not run.case.batch_known:
        run.notes.add_gap("/scaling", "BATCH_REQUIRED", "the time of a step is not known")
        return
    scaled_run = _ScaledRun(question, given, catalog, run)
    counts, is_open = _list_counts(scaling, scaled_run.layout), scaling.accelerator_counts is MISSING
    answer["scaling"] = {
        "strong": _build_curve(scaled_run, counts, "strong", amdahl_speedup, open_counts=is_open),
        "weak": _build_curve(scaled_run, counts, "weak", gustafson_speedup, open_counts=is_open),
    }
    answer["scaling_decision"] = _build_decision(scaled_run, scaling.time_limit_seconds)


def _build_decision(scaled_run: _ScaledRun, limit: float) -> ScalingDecision:
    cluster = scaled_run.run.case.cluster
    given, server = scaled_run.question.cluster.accelerators_per_node, cluster.accelerator.server
    per_node = (server.accelerator_count if server else ACCELERATORS_PER_NODE) if given is MISSING else given
    counts = {RunScale.SINGLE_DEVICE: 1, RunScale.SINGLE_NODE: per_node}
    if cluster.accelerator_count > per_node:
        counts[RunScale.CLUSTER] = cluster.accelerator_count
    options = [_build_option(scaled_run, scale, count, limit) for scale, count in counts.items()]
    decision: ScalingDecision = {"options": options, "time_limit_seconds": limit}
    least = scaled_run.least_count
    if least is not None:
        decision["least_accelerator_count"] = least
    for option in options:
        verdicts = {option.get("fits"), option.get("in_time")}
        if False not in verdicts and True in verdicts:
            decision["scale"] = option["scale"]
            break
    pipeline = scaled_run.run.case.data_pipeline
    if pipeline is not None and pipeline.dataset_bytes is not None:
        hint = suggest_scale(float(scaled_run.run.case.profile.parameter_count), pipeline.dataset_bytes)
        decision["rule_of_thumb"] = hint.scale
        decision["streaming"] = hint.streaming
    return decision


def _build_option(scaled_run: _ScaledRun, scale: RunScale, count: int, limit: float) -> ScaleOption:
    option: ScaleOption = {"scale": scale, "accelerator_count": count}
    same = count == scaled_run.run.case.cluster.accelerator_count
    run = scaled_run.run if same else scaled_run.run_on(count, None, global_batch_size=scaled_run.batch)
    if run is None:
        return option
    fits = _is_fitting(run.case)
    if fits is not None:
        option["fits"] = fits
    if run.duration_seconds is not None:
        option["duration_seconds"] = to_quantity(run.duration_seconds)
        option["in_time"] = run.duration_seconds.value <= limit
    return option
