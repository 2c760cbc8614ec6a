"""Changes that shorten a training step, with their gain, and its operators under the roofline."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from service.planning.cases import TrainingCase
from service.planning.estimates.advice import Advice
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.estimates.runs import TrainingRun
from service.planning.memory.training import estimate_training_memory
from service.planning.models.profile import BlockProfile
from service.planning.operators import (
    OperatorWork,
    PassFormats,
    RooflinePoint,
    SampleStage,
    block_operators,
    build_operators,
    build_sample_operators,
    build_shard,
    resolve_choice,
    roofline_point,
)
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from service.planning.training import (
    IRON_LAW_TERMS,
    IronLawTechnique,
    ModelledTime,
    TrainingTime,
    build_training_machine,
    compute_max_gain,
    estimate_step,
    list_changes,
    select_step_widths,
)
from service.planning.training.rollout import training_cluster
from service.planning.workload import WHOLE_BLOCKS, AttentionKernel, TrainingWorkload

LEAST_GAIN = 0.02
"""Share of a step below which a change is not listed."""
MOST_ADVICE = 5
_GENERATING = frozenset({"generation", "weight_synchronization"})
"""Phases of a step that changes of its training do not affect."""


_REVERSED = {"up": "down", "down": "up"}


def describe_terms(technique: IronLawTechnique, *, reverts: bool = False) -> str:
    """Returns the terms of the Iron Law that a technique changes, or giving it up, in words."""
    terms = (
        f"{name.replace('_', ' ')} {_REVERSED[way] if reverts else way}"
        for name, way in IRON_LAW_TERMS[technique]
    )
    return f"moves the Iron Law by: {', '.join(terms)}"


def list_step_advice(run: TrainingRun, time: ModelledTime) -> list[Advice]:
    """Returns single changes that shorten a step and still fit, each re-estimated; the largest gain first."""
    case = run.case
    profile, workload, layout, cluster, curves = (
        case.profile,
        case.workload,
        case.layout,
        case.cluster,
        case.curves,
    )
    usable, overhead = get_usable_bytes(cluster, workload), curves.training_memory.overhead
    tokens = case.step_tokens
    before = time.step.total / tokens
    generated = sum(phase.seconds for phase in time.step.further if phase.name in _GENERATING) / tokens
    found: list[Advice] = []
    for change in list_changes(workload, layout, cluster.accelerator):
        if compute_max_gain(change, time.step) < LEAST_GAIN:
            continue
        # Memory is faster to estimate than time, and rules most changes out.
        needed = estimate_training_memory(profile, change.workload, change.layout, overhead)[0].total_bytes
        if usable is not None and needed > usable:
            continue
        step = estimate_step(
            profile,
            change.workload,
            change.layout,
            cluster=training_cluster(cluster, workload.rollout),
            calibration=curves.calibration,
            compute_format=compute_peak(cluster, change.workload)[0],
            known=run.known,
        )
        if step is None:
            continue
        changed = replace(case, workload=change.workload, layout=change.layout)
        gain = 1.0 - (step.total / changed.step_tokens + generated) / before
        if gain < LEAST_GAIN:
            continue
        terms = describe_terms(change.technique, reverts=change.reverts)
        detail = f"{change.what}: a token takes {gain:.0%} less time; {terms}"
        found.append(Advice(change.code, detail, gain))
    return sorted(found, key=lambda advice: -(advice.gain_share or 0.0))[:MOST_ADVICE]


_LARGE_BUBBLE = 0.1


def list_technique_advice(time: TrainingTime, workload: TrainingWorkload) -> list[Advice]:
    """Returns techniques that the workload does not use yet, or uses at a cost; their gains are not known."""
    advice: list[Advice] = []
    if workload.recipe.compute in (NumberFormat.FP32, NumberFormat.TF32):
        advice.append(Advice("MIXED_PRECISION", describe_terms(IronLawTechnique.MIXED_PRECISION)))
    if workload.recomputation in WHOLE_BLOCKS:
        detail = f"without it: {describe_terms(IronLawTechnique.RECOMPUTATION, reverts=True)}"
        advice.append(Advice("LESS_RECOMPUTATION", detail))
    if workload.kernel is AttentionKernel.STANDARD:
        advice.append(Advice("FLASH_ATTENTION", describe_terms(IronLawTechnique.FLASH_ATTENTION)))
    if time.bubble_share > _LARGE_BUBBLE:
        detail = f"pipeline stages wait {time.bubble_share:.0%} of the step; more micro-batches fill it"
        advice.append(Advice("MORE_MICRO_BATCHES", detail))
    return advice


class TimedOperator(NamedTuple):
    """An operator under the roofline, in one direction of a step."""

    point: RooflinePoint
    is_backward: bool


def _list_deepest_operators(
    case: TrainingCase, deepest: BlockProfile, *, backward: bool
) -> Iterable[OperatorWork]:
    profile, layout, workload = case.profile, case.layout, case.workload
    choice = resolve_choice(profile, workload)
    widths = select_step_widths(workload, layout, compute_peak(case.cluster, workload)[0])
    if profile.sampled is not None and profile.sample is not None:
        work = build_sample_operators(profile.sampled, profile.sample, choice)
        most = max(work.blocks, key=lambda stations: _count_flops(stations, layout, widths))
        return block_operators(most, 1.0 * workload.sequences, layout, widths, backward=backward)
    shard = build_shard(workload.sequences, workload.sequence_length, layout)
    templates = profile.operators.get_block_templates(choice)[profile.blocks.index(deepest)]
    return build_operators(templates, shard, widths, backward=backward)


def _count_flops(stations: tuple[SampleStage, ...], layout: Parallelism, widths: PassFormats) -> float:
    return sum(operator.flops for operator in block_operators(stations, 1.0, layout, widths))


def list_roofline_points(case: TrainingCase) -> list[TimedOperator]:
    """Returns the operators of the largest block, forward and backward, on one device.

    The largest block is the one with most activations, or with most work.
    """
    machine = build_training_machine(case.cluster.accelerator, case.workload, case.curves.calibration)
    deepest = case.profile.deepest
    if machine is None or deepest is None:
        return []
    return [
        TimedOperator(roofline_point(operator, machine), backward)
        for backward in (False, True)
        for operator in _list_deepest_operators(case, deepest, backward=backward)
        if operator.moved_bytes
    ]
