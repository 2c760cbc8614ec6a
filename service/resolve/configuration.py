"""Layout, micro-batch and recomputation of a training question that leaves them open."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from pydantic import MISSING

from service.planning.errors import PlanningError
from service.planning.estimates.configuration import MICRO_BATCH_SIZES, choose_configuration
from service.planning.estimates.layouts import OpenTrainingCase
from service.planning.hardware.cluster import Cluster
from service.planning.memory.layout import select_training_layout
from service.planning.memory.training import estimate_training_memory
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.search import RecomputationChoice
from service.planning.software.frameworks import LAYOUTS
from service.planning.software.overhead import DeviceOverhead
from service.planning.workload import Recomputation, TrainingWorkload
from service.resolve.catalog import CatalogView
from service.resolve.open_training import check_profile
from service.resolve.sample import SampledWorkload
from service.resolve.training import apply_layout
from service.schemas.workloads import TrainingWorkloadInput

_STRATEGIES = tuple(
    RecomputationChoice(each) for each in (Recomputation.NONE, Recomputation.SELECTIVE, Recomputation.FULL)
)
"""Strategies that are tried if the question leaves recomputation open, fastest first."""


class TrainingChoice(NamedTuple):
    """A layout, and the workload with the micro-batch and the recomputation that go with it."""

    layout: Parallelism
    workload: TrainingWorkload


class TrainingSite(NamedTuple):
    """Devices that a question trains on."""

    cluster: Cluster | None
    """Cluster of the question, generating devices included."""
    devices: int
    per_node: int
    usable_bytes: float | None
    layout: Parallelism | None
    """Layout of the question. None if it is open."""


def choose_training(
    given: TrainingWorkloadInput,
    sampled: SampledWorkload[TrainingWorkload],
    site: TrainingSite,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> TrainingChoice:
    """Returns the configuration of a run: as stated, else the fastest that fits with headroom.

    Layouts are compared by the time of a run with a stated global batch. Without one, the first layout in the
    order of practice is taken, and the first strategy of recomputation with which it fits.
    """
    found = _search_configuration(given, sampled, site, catalog) if site.layout is None else None
    rule: Literal["search", "service"] = "search"
    layout_reason = size_reason = strategy_reason = "the fastest that fits, with headroom if there is one"
    if found is None:
        found, rule = _choose_first_fitting(given, sampled, site, catalog), "service"
        layout_reason = "the first that fits in the order of practice, else the one of the fewest bytes"
        size_reason = "1 unless layouts are compared by the time of a global batch"
        strategy_reason = "the first of none, selective and full that fits, else the one of the fewest bytes"
    if site.layout is None and site.devices > 1:
        notes.fill("/parallelism", describe_layout(found.layout), rule, layout_reason)
    if given.micro_batch_size is MISSING:
        notes.fill("/workload/micro_batch_size", str(found.workload.micro_batch_size), rule, size_reason)
    if given.recomputation is MISSING:
        notes.fill("/workload/recomputation", found.workload.recomputation.value, rule, strategy_reason)
    return found


def describe_layout(layout: Parallelism) -> str:
    """Returns the degrees above 1 of a layout, with its sharding and its schedule."""
    degrees = ("tensor", "pipeline", "data", "context", "expert", "virtual_stages")
    parts = [f"{name} {getattr(layout, name)}" for name in degrees if getattr(layout, name) > 1]
    if layout.replicas > 1:
        parts.append(f"sharding {layout.sharding.value}")
    if layout.pipeline > 1:
        parts.append(layout.pipeline_schedule.value)
    return ", ".join(parts)


def _list_recomputings(given: TrainingWorkloadInput) -> tuple[RecomputationChoice, ...]:
    stated = given.recomputation
    if stated is MISSING:
        return _STRATEGIES
    return (RecomputationChoice(stated.strategy, 1 if stated.k is MISSING else stated.k),)


def _apply_recomputing(workload: TrainingWorkload, choice: RecomputationChoice) -> TrainingWorkload:
    return workload._replace(recomputation=choice.strategy, interval=choice.interval)


def _search_configuration(
    given: TrainingWorkloadInput,
    sampled: SampledWorkload[TrainingWorkload],
    site: TrainingSite,
    catalog: CatalogView,
) -> TrainingChoice | None:
    """Returns the outcome of the search, or None for a run whose layouts it cannot compare."""
    batch = given.global_batch_size
    if site.cluster is None or batch is MISSING or given.gradient_accumulation_steps is not MISSING:
        return None
    try:
        check_profile(sampled.profile, sampled.unknown, generates=sampled.workload.rollout is not None)
    except PlanningError:
        return None
    run = OpenTrainingCase(
        profile=sampled.profile,
        workload=sampled.workload,
        step_sequences=batch,
        total_tokens=float(batch * sampled.workload.sample_tokens),
        cluster=site.cluster,
        device=catalog.constants,
    )
    stated = given.micro_batch_size
    found = choose_configuration(
        run,
        micro_batch_sizes=MICRO_BATCH_SIZES if stated is MISSING else (stated,),
        recomputings=_list_recomputings(given),
        allowed=LAYOUTS[sampled.workload.framework],
    )
    if found is None:
        return None
    workload = _apply_recomputing(sampled.workload, found.recomputing)
    return TrainingChoice(found.layout, workload._replace(micro_batch_size=found.micro_batch_size))


def _choose_first_fitting(
    given: TrainingWorkloadInput,
    sampled: SampledWorkload[TrainingWorkload],
    site: TrainingSite,
    catalog: CatalogView,
) -> TrainingChoice:
    """Returns the first strategy of recomputation that fits, else the one of the fewest bytes."""
    overhead = catalog.curves.training_memory.overhead

    def lay_out(workload: TrainingWorkload) -> Callable[[Parallelism], TrainingWorkload | None]:
        return lambda candidate: apply_layout(workload, given, candidate)

    def list_choices() -> Iterator[TrainingChoice]:
        for choice in _list_recomputings(given):
            workload = _apply_recomputing(sampled.workload, choice)
            chosen = site.layout or select_training_layout(
                sampled.profile,
                lay_out(workload),
                devices=site.devices,
                per_node=site.per_node,
                usable_bytes=site.usable_bytes,
                overhead=overhead,
                allowed=LAYOUTS[workload.framework],
            )
            yield TrainingChoice(chosen, workload)

    needed: dict[TrainingChoice, float] = {}
    for choice in list_choices():
        needed[choice] = _compute_needed_bytes(choice, given, sampled, overhead)
        if site.usable_bytes is None or needed[choice] <= site.usable_bytes:
            return choice
    return min(needed, key=lambda choice: needed[choice])


def _compute_needed_bytes(
    choice: TrainingChoice,
    given: TrainingWorkloadInput,
    sampled: SampledWorkload[TrainingWorkload],
    overhead: DeviceOverhead,
) -> float:
    """Returns the bytes of the fullest device; 0 where they cannot be told."""
    if not sampled.profile.shapes_known or sampled.unknown is not None:
        return 0.0
    laid_out = apply_layout(choice.workload, given, choice.layout)
    if laid_out is None:
        return 0.0
    return estimate_training_memory(sampled.profile, laid_out, choice.layout, overhead)[0].total_bytes
