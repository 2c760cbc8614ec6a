"""Why a training step takes as long as it does: changes with their gain, and operators under the roofline."""

from collections.abc import Iterable

from service.estimates.run import Run, step_tokens
from service.planning.memory.training import training_memory
from service.planning.operators import (
    Bound,
    Operator,
    Station,
    Widths,
    block_operators,
    choice_of,
    operators,
    roofline_point,
    sample_operators_of,
    shard_of,
)
from service.planning.parallelism import Parallelism
from service.planning.training import (
    IRON_LAW_TERMS,
    ModelledTime,
    Technique,
    changes,
    machine_under,
    modelled_step,
    most_gain,
    step_widths,
)
from service.planning.workload import TrainingWorkload
from service.resolve.catalog import Catalog
from service.resolve.hardware import compute_peak, usable_bytes
from service.schemas.answers import OperatorAnswer
from service.schemas.base import Advice
from service.schemas.rollouts import training_cluster

LEAST_GAIN = 0.02
"""Share of a step below which a change is not worth naming."""
MOST_ADVICE = 5
_GENERATING = frozenset({"generation", "weight_synchronization"})
"""Phases of a step that no change of its training moves."""


def technique_terms(technique: Technique) -> str:
    """The terms of the Iron Law that a technique moves, in words."""
    terms = (f"{name.replace('_', ' ')} {way}" for name, way in IRON_LAW_TERMS[technique])
    return f"moves the Iron Law by: {', '.join(terms)}"


def step_advice(run: Run, time: ModelledTime, workload: TrainingWorkload, catalog: Catalog) -> list[Advice]:
    """Single changes that shorten a step and still fit, each asked again; the largest gain first."""
    resolved, cluster = run.resolved, run.cluster
    profile, layout, curves = resolved.model.profile, resolved.layout, catalog.curves
    usable, overhead = usable_bytes(cluster, workload), curves.training_memory.overhead
    tokens = step_tokens(resolved, workload)
    before = time.step.total / tokens
    generated = sum(phase.seconds for phase in time.step.further if phase.name in _GENERATING) / tokens
    gains: list[tuple[float, Advice]] = []
    for change in changes(workload, layout, cluster.accelerator):
        if most_gain(change, time.step) < LEAST_GAIN:
            continue
        # What a device holds is known sooner than what a step takes, and rules most changes out.
        needed = training_memory(profile, change.workload, change.layout, overhead)[0].total_bytes
        if usable is not None and needed > usable:
            continue
        step = modelled_step(
            profile,
            change.workload,
            change.layout,
            cluster=training_cluster(cluster, workload.rollout),
            calibration=curves.calibration,
            compute_format=compute_peak(cluster, change.workload)[0],
            known=run.known,
        )
        assert step is not None  # noqa: S101
        moved = resolved._replace(layout=change.layout)
        gain = 1.0 - (step.total / step_tokens(moved, change.workload) + generated) / before
        if gain < LEAST_GAIN:
            continue
        detail = f"{change.what}: a token takes {gain:.0%} less time; {technique_terms(change.technique)}"
        gains.append((gain, {"code": change.code, "detail": detail, "gain_share": gain}))
    return [advice for _, advice in sorted(gains, key=lambda found: -found[0])[:MOST_ADVICE]]


def _deepest_operators(run: Run, workload: TrainingWorkload, *, backward: bool) -> Iterable[Operator]:
    profile, layout = run.resolved.model.profile, run.resolved.layout
    choice = choice_of(profile, workload)
    widths = step_widths(workload, layout, compute_peak(run.cluster, workload)[0])
    if profile.sampled is not None and profile.sample is not None:
        work = sample_operators_of(profile.sampled, profile.sample, choice)
        deepest = max(work.blocks, key=lambda stations: _work_of(stations, layout, widths))
        return block_operators(deepest, 1.0 * workload.sequences, layout, widths, backward=backward)
    assert profile.deepest is not None  # noqa: S101
    shard = shard_of(workload.sequences, workload.sequence_length, layout)
    templates = profile.operators.of(choice)[profile.blocks.index(profile.deepest)]
    return operators(templates, shard, widths, backward=backward)


def _work_of(stations: tuple[Station, ...], layout: Parallelism, widths: Widths) -> float:
    return sum(operator.flops for operator in block_operators(stations, 1.0, layout, widths))


def roofline_points(run: Run, workload: TrainingWorkload, catalog: Catalog) -> list[OperatorAnswer]:
    """The operators of the block with most activations, or work, forward and backward, on one device."""
    profile = run.resolved.model.profile
    machine = machine_under(run.cluster.accelerator, workload, catalog.curves.calibration)
    if machine is None or profile.deepest is None:
        return []
    found: list[OperatorAnswer] = []
    for backward in (False, True):
        for operator in _deepest_operators(run, workload, backward=backward):
            if not operator.moved_bytes:
                continue
            point = roofline_point(operator, machine)
            found.append(
                {
                    "operator": point.name,
                    "direction": "backward" if backward else "forward",
                    "flops": point.flops,
                    "moved_bytes": round(point.moved_bytes),
                    "flops_per_byte": point.intensity,
                    "attainable_flops_per_second": point.attainable_flops_per_second,
                    "achieved_flops_per_second": point.achieved_flops_per_second,
                    "seconds": point.seconds,
                    "bound": "compute" if point.bound is Bound.COMPUTE else "memory",
                }
            )
    return found
