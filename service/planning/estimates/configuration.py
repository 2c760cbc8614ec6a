"""Layout, micro-batch and recomputation of a training run that leaves them open.

The fastest configuration that fits is taken, with headroom, among those that the framework can run: the
search of plans, on one cluster (Narayanan et al. 2021; Korthikanti et al. 2022; Rajbhandari et al. 2020).
"""

from typing import Final, NamedTuple

from service.planning.estimates.layouts import OpenTrainingCase, TrainingLayouts
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding, list_divisors
from service.planning.search import (
    FoundLayout,
    LayoutOptions,
    RecomputationChoice,
    SearchCluster,
    SearchLimits,
    SearchShape,
    search_layouts,
)
from service.planning.software.frameworks import FrameworkLayouts
from service.planning.training.rollout import training_cluster

HEADROOM_SHARE: Final = 0.05
"""Share of the usable memory that a chosen configuration leaves free: fragmentation and spikes take it."""
MICRO_BATCH_SIZES: Final = (1, 2, 4)
VIRTUAL_STAGES: Final = (2, 4)
LONG_SEQUENCE: Final = 32_768
"""Tokens from which on sequences are divided over devices."""
_LEAST_PART: Final = 4096
"""Least tokens of a divided sequence on one device."""


class TrainingConfiguration(NamedTuple):
    """A layout with its micro-batch and recomputation."""

    layout: Parallelism
    micro_batch_size: int
    recomputing: RecomputationChoice


def list_context_degrees(devices: int, sequence_tokens: int) -> list[int]:
    """Returns the degrees over which a sequence is divided by default: powers of 2 for long sequences."""
    if sequence_tokens < LONG_SEQUENCE:
        return [1]
    most = min(devices, sequence_tokens // _LEAST_PART)
    return [2**power for power in range(max(1, most.bit_length()))]


def choose_configuration(
    run: OpenTrainingCase,
    *,
    micro_batch_sizes: tuple[int, ...],
    recomputings: tuple[RecomputationChoice, ...],
    allowed: FrameworkLayouts,
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
            for options, cluster in _list_searches(run, micro_batch_sizes, recomputings, allowed)
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
    allowed: FrameworkLayouts,
) -> list[tuple[LayoutOptions, SearchCluster]]:
    """Returns the searches: all state is sharded without pipelines only, whose every pass would gather it."""
    devices = training_cluster(run.cluster, run.workload.rollout)
    count, profile, tokens = devices.accelerator_count, run.profile, run.workload.sequence_length
    cluster = SearchCluster(
        0,
        count,
        tensor=tuple(list_divisors(devices.accelerators_per_node)) if allowed.tensor else (1,),
        pipeline=tuple(each for each in list_divisors(count) if each <= max(1, profile.block_count))
        if allowed.pipeline
        else (1,),
        context=tuple(list_context_degrees(count, tokens)) if allowed.pipeline else (1,),
        expert=tuple(each for each in list_divisors(profile.expert_count) if each <= count) or (1,),
    )
    interleaved = (PipelineSchedule.INTERLEAVED,) if allowed.interleaved else ()
    options = LayoutOptions(
        shardings=(),
        schedules=(PipelineSchedule.ONE_F_ONE_B, *interleaved),
        virtual_stages=VIRTUAL_STAGES,
        sequence_parallel=(True,),
        micro_batch_sizes=micro_batch_sizes,
        recomputings=recomputings,
    )
    part = tuple((each, None) for each in allowed.shardings if each is not Sharding.ZERO_3)
    searches = []
    if part:
        searches.append((options._replace(shardings=part), cluster))
    if Sharding.ZERO_3 in allowed.shardings:
        whole = options._replace(shardings=((Sharding.ZERO_3, None),), schedules=())
        searches.append((whole, cluster._replace(pipeline=(1,))))
    return searches


def _to_configuration(found: FoundLayout) -> TrainingConfiguration:
    one = found.layout
    layout = Parallelism(
        **{
            name: int(getattr(one, name)[0])
            for name in ("tensor", "pipeline", "data", "context", "expert", "virtual_stages")
        },
        sequence_parallel=found.choice.sequence_parallel,
        sharding=found.choice.sharding,
        pipeline_schedule=found.choice.schedule,
    )
    return TrainingConfiguration(layout, int(one.micro_batch_size[0]), found.choice.recomputing)
