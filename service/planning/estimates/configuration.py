"""Layout, micro-batch and recomputation of a training run that leaves them open.

The fastest configuration that fits is taken, with headroom, among those that the framework can run: the
search of plans, on one cluster (Narayanan et al. 2021; Korthikanti et al. 2022; Rajbhandari et al. 2020).
"""

from typing import Final, NamedTuple

import numpy as np

from service.planning.estimates.layouts import OpenTrainingCase, TrainingLayouts
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding, list_divisors
from service.planning.search import (
    FoundLayout,
    LayoutArray,
    LayoutChoice,
    LayoutOptions,
    RecomputationChoice,
    SearchCluster,
    SearchLimits,
    SearchShape,
    search_layouts,
)
from service.planning.training.rollout import training_cluster
from service.planning.workload import TrainingWorkload

HEADROOM_SHARE: Final = 0.05
"""Share of the usable memory that a chosen configuration leaves free: fragmentation and spikes take it."""
MOST_MICRO_BATCH: Final = 4
"""Sequences of the largest micro-batch that is tried, unless they are short."""
_MICRO_BATCH_TOKENS: Final = 16_384
"""Tokens of a micro-batch up to which more short sequences are tried: beyond, devices are busy."""
VIRTUAL_STAGES: Final = (2, 4)
LONG_SEQUENCE: Final = 32_768
"""Tokens from which on sequences are divided over devices."""
_LEAST_PART: Final = 4096
"""Least tokens of a divided sequence on one device."""


class OpenLayout(NamedTuple):
    """Layouts among which the one of a run is chosen."""

    shardings: tuple[tuple[Sharding, int | None], ...]
    """Ways to shard the training state, each with the size of a group."""
    schedules: tuple[PipelineSchedule, ...]
    virtual_stages: tuple[int, ...]
    sequence_parallel: tuple[bool, ...]
    overlap_expert_communication: bool
    """True if experts that are spread over devices receive their tokens behind other work."""
    tensor: bool
    """True if layers may be divided over devices."""
    pipeline: bool
    """True if a model may be divided into stages."""
    degrees: Parallelism | None = None
    """Layout whose degrees are given. None where they are chosen too."""


class TrainingConfiguration(NamedTuple):
    """A layout with its micro-batch and recomputation, and the seconds that a search found for the run."""

    layout: Parallelism
    micro_batch_size: int
    recomputing: RecomputationChoice
    seconds: float


def list_context_degrees(devices: int, sequence_tokens: int) -> list[int]:
    """Returns the degrees over which a sequence is divided by default: powers of 2 for long sequences."""
    if sequence_tokens < LONG_SEQUENCE:
        return [1]
    most = min(devices, sequence_tokens // _LEAST_PART)
    return [2**power for power in range(max(1, most.bit_length()))]


def list_micro_batch_sizes(run: OpenTrainingCase) -> tuple[int, ...]:
    """Returns the micro-batches to try, powers of 2: to 4 sequences, to 16,384 tokens of short ones.

    Samples of models that are not asked by the token are tried to the batch of a device.
    """
    most = max(MOST_MICRO_BATCH, _MICRO_BATCH_TOKENS // run.workload.sample_tokens)
    if run.profile.sample is not None:
        most = max(
            1, run.step_sequences // training_cluster(run.cluster, run.workload.rollout).accelerator_count
        )
    return tuple(2**power for power in range(max(1, most.bit_length())))


def choose_configuration(
    run: OpenTrainingCase,
    *,
    micro_batch_sizes: tuple[int, ...],
    recomputings: tuple[RecomputationChoice, ...],
    opened: OpenLayout,
) -> TrainingConfiguration | None:
    """Returns the fastest configuration that leaves headroom, else the fastest that fits.

    ``run`` has the cluster whose devices train. None where the time or the memory of a device is unknown, and
    where nothing fits.
    """
    layouts = TrainingLayouts(run, weighs_power=False)
    usable = layouts.usable_bytes
    if usable is None or not layouts.is_timed:
        return None
    for share in (1.0 - HEADROOM_SHARE, 1.0):
        limits = SearchLimits(usable * share, None, 1, weighs_power=False)
        found = [
            one
            for options, cluster in _list_searches(run, micro_batch_sizes, recomputings, opened)
            for one in search_layouts(layouts, _build_shape(run), (cluster,), options, limits).found
        ]
        if found:
            return _to_configuration(min(found, key=lambda one: one.seconds))
    return None


def _build_shape(run: OpenTrainingCase) -> SearchShape:
    return SearchShape(
        run.profile,
        run.workload.sequence_length,
        run.step_sequences,
        run.cluster.domain,
        single_micro_batch=run.workload.steps_in_backward,
    )


def _list_searches(
    run: OpenTrainingCase,
    micro_batch_sizes: tuple[int, ...],
    recomputings: tuple[RecomputationChoice, ...],
    opened: OpenLayout,
) -> list[tuple[LayoutOptions, SearchCluster]]:
    """Returns the searches: all state is sharded without pipelines only, whose every pass would gather it.

    A given pipeline whose state may be sharded in no other way is searched so.
    """
    cluster = _build_cluster(run, opened)
    options = LayoutOptions(
        shardings=(),
        schedules=opened.schedules,
        virtual_stages=opened.virtual_stages,
        sequence_parallel=opened.sequence_parallel,
        overlap_expert_communication=opened.overlap_expert_communication and run.profile.expert_count > 0,
        micro_batch_sizes=micro_batch_sizes,
        recomputings=recomputings,
        overlap_tensor_communication=(
            None if opened.degrees is None else opened.degrees.overlap_tensor_communication
        ),
    )
    part = tuple(each for each in opened.shardings if each[0] is not Sharding.ZERO_3)
    if opened.degrees is not None and opened.degrees.pipeline > 1:
        return [(options._replace(shardings=part or opened.shardings), cluster)]
    whole = tuple(each for each in opened.shardings if each[0] is Sharding.ZERO_3)
    searches = []
    if part:
        searches.append((options._replace(shardings=part), cluster))
    if whole:
        searches.append((options._replace(shardings=whole, schedules=()), cluster._replace(pipeline=(1,))))
    return searches


def _build_cluster(run: OpenTrainingCase, opened: OpenLayout) -> SearchCluster:
    """Returns the degrees to try: those that are given, else all that the model and the devices allow."""
    devices = training_cluster(run.cluster, run.workload.rollout)
    count, profile = devices.accelerator_count, run.profile
    given = opened.degrees
    if given is not None:
        return SearchCluster(0, count, (given.tensor,), (given.pipeline,), (given.context,), (given.expert,))
    tokens = run.workload.sequence_length
    return SearchCluster(
        0,
        count,
        tensor=tuple(list_divisors(devices.accelerators_per_node)) if opened.tensor else (1,),
        pipeline=tuple(each for each in list_divisors(count) if each <= max(1, profile.block_count))
        if opened.pipeline
        else (1,),
        context=tuple(list_context_degrees(count, tokens)) if opened.pipeline else (1,),
        expert=tuple(each for each in list_divisors(profile.expert_count) if each <= count) or (1,),
    )


def compute_run_seconds(run: OpenTrainingCase, layout: Parallelism, workload: TrainingWorkload) -> float:
    """Returns the seconds by which a search compares the run on one layout.

    ``workload`` has the micro-batches and the recomputation on it.
    """
    degrees = ("tensor", "pipeline", "data", "context", "expert", "virtual_stages")
    known = {name: getattr(layout, name) for name in degrees} | {
        "place": 0,
        "devices": layout.devices,
        "micro_batch_size": workload.micro_batch_size,
        "micro_batches": workload.micro_batches,
        "degrees": 0,
    }
    alone = LayoutArray(**{name: np.array([value], dtype=np.int64) for name, value in known.items()})
    choice = LayoutChoice(
        layout.sharding,
        layout.sharding_group_size,
        layout.pipeline_schedule,
        layout.sequence_parallel,
        layout.overlap_expert_communication,
        RecomputationChoice(workload.recomputation, workload.interval),
        layout.overlap_tensor_communication,
    )
    return float(TrainingLayouts(run, weighs_power=False).estimate_runs(alone, choice).seconds[0])


def _to_configuration(found: FoundLayout) -> TrainingConfiguration:
    one = found.layout
    layout = Parallelism(
        **{
            name: int(getattr(one, name)[0])
            for name in ("tensor", "pipeline", "data", "context", "expert", "virtual_stages")
        },
        sequence_parallel=found.choice.sequence_parallel,
        sharding=found.choice.sharding,
        sharding_group_size=found.choice.group_size,
        pipeline_schedule=found.choice.schedule,
        overlap_expert_communication=found.choice.overlap_expert_communication,
        overlap_tensor_communication=found.choice.overlap_tensor_communication,
    )
    return TrainingConfiguration(
        layout, int(one.micro_batch_size[0]), found.choice.recomputing, found.seconds
    )
