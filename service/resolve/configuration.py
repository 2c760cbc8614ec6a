"""Layout, micro-batch and recomputation of a training question that leaves them open."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import product
from typing import Any, Literal, NamedTuple

from pydantic import MISSING

from service.planning.cases import NaiveLayout
from service.planning.errors import PlanningError
from service.planning.estimates.configuration import (
    VIRTUAL_STAGES,
    OpenLayout,
    TrainingConfiguration,
    choose_configuration,
    compute_run_seconds,
    list_micro_batch_sizes,
)
from service.planning.estimates.layouts import OpenTrainingCase
from service.planning.hardware.cluster import Cluster
from service.planning.memory.layout import select_training_layout
from service.planning.memory.training import estimate_training_memory
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism, PipelineSchedule
from service.planning.search import RecomputationChoice
from service.planning.software.frameworks import LAYOUTS
from service.planning.software.overhead import DeviceOverhead
from service.planning.workload import Recomputation, TrainingWorkload
from service.resolve.catalog import CatalogView
from service.resolve.framework_defaults import FrameworkDefaults, find_defaults
from service.resolve.layout import describe_degrees
from service.resolve.open_training import check_profile
from service.resolve.sample import SampledWorkload
from service.resolve.training import apply_layout
from service.schemas.workloads import TrainingWorkloadInput

Rule = Literal["framework", "search", "service"]

_STRATEGIES = (Recomputation.NONE, Recomputation.SELECTIVE, Recomputation.FULL)
"""Strategies that are tried if the question leaves recomputation open, fastest first."""
_PLAIN_SCHEDULE = (PipelineSchedule.ONE_F_ONE_B,)
_ALL_SCHEDULES = (*_PLAIN_SCHEDULE, PipelineSchedule.INTERLEAVED)
_PLAIN_VALUES = {"virtual_stages": 1, "overlap_expert_communication": False}
"""Values of members that an answer does not name among its defaults."""
_FASTEST = "the fastest that fits, with headroom if there is one"
_SMALLEST = "else the one of the fewest bytes"


class _Search(NamedTuple):
    """Arguments of a search."""

    run: OpenTrainingCase
    micro_batch_sizes: tuple[int, ...]
    recomputings: tuple[RecomputationChoice, ...]
    opened: OpenLayout


_searched: ContextVar[list[tuple[_Search, TrainingConfiguration | None]] | None] = ContextVar(
    "searched", default=None
)


@contextmanager
def share_searches() -> Iterator[None]:
    """Makes questions about one run search its configuration once; its answers are the same."""
    token = _searched.set([])
    try:
        yield
    finally:
        _searched.reset(token)


def _run_search(search: _Search) -> TrainingConfiguration | None:
    known = _searched.get()
    for earlier, found in known or ():
        if earlier == search:
            return found
    found = choose_configuration(
        search.run,
        micro_batch_sizes=search.micro_batch_sizes,
        recomputings=search.recomputings,
        opened=search.opened,
    )
    if known is not None:
        known.append((search, found))
    return found


class TrainingChoice(NamedTuple):
    """A layout, and the workload with the micro-batch and the recomputation that go with it."""

    layout: Parallelism
    workload: TrainingWorkload
    seconds: float | None = None
    """Time of the run by which the choice was made. None where none was."""


class TrainingSite(NamedTuple):
    """Devices that a question trains on, and what it says of its layout."""

    cluster: Cluster | None
    """Cluster of the question, generating devices included."""
    devices: int
    per_node: int
    usable_bytes: float | None
    layout: Parallelism | None
    """Layout of the question, with defaults for its open members. None if it is open."""
    opened: frozenset[str] = frozenset()
    """Open members of a stated layout that have a meaning on it."""


class _TrainingQuestion(NamedTuple):
    """A question with the rules by which it is filled."""

    given: TrainingWorkloadInput
    sampled: SampledWorkload[TrainingWorkload]
    site: TrainingSite
    catalog: CatalogView
    defaults: FrameworkDefaults

    @property
    def is_open(self) -> bool:
        """True if the layout or a member of it is left open."""
        return self.site.layout is None or bool(self.site.opened)

    @property
    def overhead(self) -> DeviceOverhead:
        return self.catalog.curves.training_memory.overhead


def choose_training(
    given: TrainingWorkloadInput,
    sampled: SampledWorkload[TrainingWorkload],
    site: TrainingSite,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> tuple[TrainingChoice, NaiveLayout | None]:
    """Returns the configuration of a run, and the naive one that a search of its layout is compared with.

    What is stated is kept; then the documented default of the framework counts, then the fastest that fits
    with headroom. Layouts are compared by the time of a run with a known batch. Without one, the first layout
    in the order of practice is taken, and the first strategy of recomputation with which it fits.
    """
    asked = _TrainingQuestion(given, sampled, site, catalog, find_defaults(sampled.workload.framework))
    run = _build_run(asked)
    found = None if run is None else _search_configuration(asked, run)
    if run is None or found is None:
        chosen = _choose_first_fitting(asked)
        _note_choice(asked, chosen, notes)
        return chosen, None
    _note_choice(asked, found, notes)
    return found, _compare_naive(asked, run, found)


def _describe_layout(layout: Parallelism) -> str:
    """Returns the degrees above 1 of a layout, with its sharding and its schedule."""
    parts = describe_degrees(layout)
    if layout.replicas > 1:
        parts.append(f"sharding {layout.sharding.value}")
    if layout.pipeline > 1:
        parts.append(layout.pipeline_schedule.value)
    if layout.overlap_expert_communication:
        parts.append("overlapped expert communication")
    return ", ".join(parts)


# --- what is filled ---------------------------------------------------------------------------------------


def _note_choice(asked: _TrainingQuestion, chosen: TrainingChoice, notes: AnswerNotes) -> None:
    """Notes every member that the question leaves open, with its rule."""
    _note_layout(asked, chosen, notes)
    given, defaults = asked.given, asked.defaults
    is_searched = chosen.seconds is not None
    rule: Rule = "search" if is_searched else "service"
    if given.micro_batch_size is MISSING:
        size = str(chosen.workload.micro_batch_size)
        if asked.site.layout is not None:
            notes.fill("/workload/micro_batch_size", size, "service", "1 on a stated layout")
        else:
            reason = (
                _FASTEST if is_searched else "1 unless layouts are compared by the time of a global batch"
            )
            notes.fill("/workload/micro_batch_size", size, rule, reason)
    if given.recomputation is MISSING:
        strategy = chosen.workload.recomputation
        reason = _FASTEST if is_searched else f"the first of none, selective and full that fits, {_SMALLEST}"
        if strategy is defaults.recomputation:
            rule, reason = "framework", defaults.source
        notes.fill("/workload/recomputation", strategy.value, rule, reason)


def _note_layout(asked: _TrainingQuestion, chosen: TrainingChoice, notes: AnswerNotes) -> None:
    """Notes the layout, or the members of a stated one that the question leaves open."""
    site, defaults = asked.site, asked.defaults
    rule: Rule = "service" if chosen.seconds is None else "search"
    reason = f"the first that fits in the order of practice, {_SMALLEST}" if rule == "service" else _FASTEST
    documented = {
        "sequence_parallel": defaults.sequence_parallel,
        "sharding": defaults.sharding,
        "pipeline_schedule": defaults.schedule,
        "overlap_expert_communication": defaults.overlap_expert_communication,
    }
    if site.layout is None and site.devices > 1:
        if any(each is not None for each in documented.values()):
            reason += f", of those of {defaults.source}"
        notes.fill("/parallelism", _describe_layout(chosen.layout), rule, reason)
    for name in sorted(site.opened):
        value = getattr(chosen.layout, name)
        if documented.get(name) == value:
            notes.fill(f"/parallelism/{name}", str(value).lower(), "framework", defaults.source)
        elif value != _PLAIN_VALUES.get(name):
            notes.fill(f"/parallelism/{name}", str(value).lower(), rule, reason)


def _list_attempts(asked: _TrainingQuestion) -> list[tuple[RecomputationChoice, ...]]:
    """Returns the strategies to try: as stated, else the documented one before all of them."""
    stated = asked.given.recomputation
    if stated is not MISSING:
        return [(RecomputationChoice(stated.strategy, 1 if stated.k is MISSING else stated.k),)]
    every = tuple(RecomputationChoice(each) for each in _STRATEGIES)
    documented = asked.defaults.recomputation
    return [every] if documented is None else [(RecomputationChoice(documented),), every]


def _open_layout(asked: _TrainingQuestion) -> OpenLayout:
    """Returns the layouts to choose from: as stated, else as documented, else all of the framework."""
    allowed, defaults = LAYOUTS[asked.sampled.workload.framework], asked.defaults
    shardings = allowed.shardings if defaults.sharding is None else (defaults.sharding,)
    schedules = _ALL_SCHEDULES if allowed.interleaved else _PLAIN_SCHEDULE
    ways = OpenLayout(
        shardings=tuple((each, None) for each in shardings),
        schedules=schedules if defaults.schedule is None else (defaults.schedule,),
        virtual_stages=VIRTUAL_STAGES,
        sequence_parallel=(True,) if defaults.sequence_parallel is None else (defaults.sequence_parallel,),
        overlap_expert_communication=(
            allowed.overlaps_experts
            if defaults.overlap_expert_communication is None
            else defaults.overlap_expert_communication
        ),
        tensor=allowed.tensor,
        pipeline=allowed.pipeline,
    )
    return ways if asked.site.layout is None else _keep_stated(asked, asked.site.layout, ways)


def _keep_stated(asked: _TrainingQuestion, layout: Parallelism, ways: OpenLayout) -> OpenLayout:
    """Returns the layouts to choose from on stated degrees, with the stated members alone."""
    opened = asked.site.opened
    kept: dict[str, Any] = {"degrees": layout}
    if "sharding" not in opened:
        kept["shardings"] = ((layout.sharding, layout.sharding_group_size),)
    if "sequence_parallel" not in opened:
        kept["sequence_parallel"] = (layout.sequence_parallel,)
    elif asked.defaults.sequence_parallel is None:
        kept["sequence_parallel"] = (False, True)
    if "overlap_expert_communication" not in opened:
        kept["overlap_expert_communication"] = layout.overlap_expert_communication
    if "pipeline_schedule" not in opened:
        kept["schedules"] = (layout.pipeline_schedule,)
    if "virtual_stages" not in opened:
        kept["virtual_stages"] = (layout.virtual_stages,)
    else:
        dividing = _list_virtual_stages(layout.pipeline, asked.sampled.profile.block_count)
        kept["virtual_stages"] = dividing or VIRTUAL_STAGES
        if not dividing and "pipeline_schedule" in opened:
            kept["schedules"] = _PLAIN_SCHEDULE
    return ways._replace(**kept)


def _list_virtual_stages(pipeline: int, blocks: int) -> tuple[int, ...]:
    """Returns the numbers of chunks that divide the blocks, or the blocks with table and head as two more."""
    return tuple(
        each for each in VIRTUAL_STAGES if 0 in (blocks % (pipeline * each), (blocks + 2) % (pipeline * each))
    )


def _apply_recomputing(workload: TrainingWorkload, choice: RecomputationChoice) -> TrainingWorkload:
    return workload._replace(recomputation=choice.strategy, interval=choice.interval)


# --- by time ----------------------------------------------------------------------------------------------


def _count_step_sequences(asked: _TrainingQuestion) -> int | None:
    """Returns the sequences of a step on every layout; None where they depend on the layout."""
    given, layout = asked.given, asked.site.layout
    if layout is None:
        is_counted = given.gradient_accumulation_steps is not MISSING
        return None if given.global_batch_size is MISSING or is_counted else given.global_batch_size
    workload = apply_layout(asked.sampled.workload, given, layout)
    return None if workload is None else workload.micro_batch_size * workload.micro_batches * layout.data


def _build_run(asked: _TrainingQuestion) -> OpenTrainingCase | None:
    """Returns the run by whose time layouts are compared; None where it does not tell them apart."""
    sampled, cluster = asked.sampled, asked.site.cluster
    sequences = _count_step_sequences(asked)
    if cluster is None or sequences is None or not asked.is_open:
        return None
    try:
        check_profile(sampled.profile, sampled.unknown, generates=sampled.workload.rollout is not None)
    except PlanningError:
        return None
    return OpenTrainingCase(
        profile=sampled.profile,
        workload=sampled.workload,
        step_sequences=sequences,
        total_tokens=float(sequences * sampled.workload.sample_tokens),
        cluster=cluster,
        device=asked.catalog.constants,
    )


def _search_configuration(asked: _TrainingQuestion, run: OpenTrainingCase) -> TrainingChoice | None:
    """Returns the outcome of the search; None where the time is not known or nothing fits."""
    site, workload, stated = asked.site, run.workload, asked.given.micro_batch_size
    sizes: tuple[int, ...] = (workload.micro_batch_size,)
    if site.layout is None and stated is MISSING:
        sizes = list_micro_batch_sizes(run)
    for recomputings in _list_attempts(asked):
        found = _run_search(_Search(run, sizes, recomputings, _open_layout(asked)))
        if found is None:
            continue
        layout = found.layout
        if site.layout is not None:
            layout = site.layout._replace(**{name: getattr(layout, name) for name in site.opened})
            if layout.pipeline_schedule is not PipelineSchedule.INTERLEAVED:
                layout = layout._replace(virtual_stages=1)
        recomputed = _apply_recomputing(workload, found.recomputing)
        return TrainingChoice(
            layout, recomputed._replace(micro_batch_size=found.micro_batch_size), found.seconds
        )
    return None


def _compare_naive(
    asked: _TrainingQuestion, run: OpenTrainingCase, found: TrainingChoice
) -> NaiveLayout | None:
    """Returns the naive layout of an open question with the ratio of the times; None if it does not fit.

    It has the micro-batch of the choice, so that layouts alone are compared.
    """
    usable = asked.site.usable_bytes
    if asked.site.layout is not None or asked.site.devices == 1 or usable is None or not found.seconds:
        return None
    workload = asked.sampled.workload._replace(micro_batch_size=found.workload.micro_batch_size)
    asked = asked._replace(sampled=asked.sampled._replace(workload=workload))
    naive = _choose_first_fitting(asked)
    laid_out = apply_layout(naive.workload, asked.given, naive.layout)
    if laid_out is None or _compute_needed_bytes(asked, naive) > usable:
        return None
    seconds = compute_run_seconds(run, naive.layout, laid_out)
    return NaiveLayout(
        naive.layout, laid_out.micro_batch_size, laid_out.recomputation, seconds / found.seconds
    )


# --- by memory --------------------------------------------------------------------------------------------


def _choose_first_fitting(asked: _TrainingQuestion) -> TrainingChoice:
    """Returns the first layout and strategy of recomputation that fit, else those of the fewest bytes."""
    usable = asked.site.usable_bytes
    needed: dict[TrainingChoice, float] = {}
    for choice in _list_choices(asked):
        needed[choice] = _compute_needed_bytes(asked, choice)
        if usable is None or needed[choice] <= usable:
            return choice
    return min(needed, key=lambda choice: needed[choice])


def _list_choices(asked: _TrainingQuestion) -> Iterator[TrainingChoice]:
    """Yields the layouts of the question, or the one in the order of practice, for each strategy."""
    site, sampled = asked.site, asked.sampled
    opened = _open_layout(asked)

    def lay_out(workload: TrainingWorkload) -> Callable[[Parallelism], TrainingWorkload | None]:
        return lambda candidate: apply_layout(workload, asked.given, candidate)

    for choice in dict.fromkeys(each for attempt in _list_attempts(asked) for each in attempt):
        workload = _apply_recomputing(sampled.workload, choice)
        if site.layout is not None:
            yield from (TrainingChoice(layout, workload) for layout in _list_stated(site.layout, opened))
            continue
        chosen = select_training_layout(
            sampled.profile,
            lay_out(workload),
            devices=site.devices,
            per_node=site.per_node,
            usable_bytes=site.usable_bytes,
            overhead=asked.overhead,
            allowed=LAYOUTS[workload.framework]._replace(shardings=tuple(way for way, _ in opened.shardings)),
        )
        yield TrainingChoice(chosen, workload)


def _list_stated(layout: Parallelism, opened: OpenLayout) -> Iterator[Parallelism]:
    """Yields a stated layout in every way that it leaves open, plain pipelines alone."""
    for (sharding, group), divides in product(opened.shardings, opened.sequence_parallel):
        yield layout._replace(
            sharding=sharding,
            sharding_group_size=group,
            sequence_parallel=divides,
            overlap_expert_communication=opened.overlap_expert_communication and layout.expert > 1,
        )


def _compute_needed_bytes(asked: _TrainingQuestion, choice: TrainingChoice) -> float:
    """Returns the bytes of the fullest device; 0 where they cannot be told."""
    profile = asked.sampled.profile
    if not profile.shapes_known or asked.sampled.unknown is not None:
        return 0.0
    laid_out = apply_layout(choice.workload, asked.given, choice.layout)
    if laid_out is None:
        return 0.0
    return estimate_training_memory(profile, laid_out, choice.layout, asked.overhead)[0].total_bytes
