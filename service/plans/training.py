"""Search of training runs over layouts, micro-batches, precisions and recomputation on every cluster.

Clusters that differ only in their number of devices are searched together, in arrays. A piece is a part of
their combinations in one precision.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic import MISSING

from service.evidence.service import known_rows
from service.planning.errors import PlanningError
from service.planning.estimates.configuration import VIRTUAL_STAGES, list_context_degrees
from service.planning.estimates.layouts import TrainingLayouts
from service.planning.notes import AnswerNotes
from service.planning.parallelism import PipelineSchedule, Sharding, list_divisors
from service.planning.precision import TrainingPrecision
from service.planning.search import (
    PROOFS,
    FoundLayout,
    LayoutOptions,
    PruningProof,
    RecomputationChoice,
    SearchCluster,
    SearchLimits,
    SearchShape,
    count_layouts,
    search_layouts,
)
from service.planning.software.frameworks import LAYOUTS
from service.planning.workload import GENERATING, Recomputation
from service.plans.space import REACH, KeptConfiguration, SearchOutcome, SearchPiece, SearchSpace
from service.resolve.hardware import resolve_cluster
from service.resolve.open_training import resolve_length, resolve_open_training
from service.resolve.own_runs import apply_own_runs
from service.resolve.rollout import select_training_cluster
from service.resolve.training import resolve_framework, resolve_precision
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.plans import PlanRequest, TrainingSearch
from service.schemas.references import ClusterInput
from service.schemas.workloads import RecomputationInput, TrainingWorkloadInput

PIECE: Final = 100_000
"""Number of candidates that are decided in about a second."""
_SIZES: Final = (1, 2, 4, 8)


class _EqualClusters(NamedTuple):
    """Clusters that differ only in their number of devices, each at least a domain."""

    places: tuple[int, ...]
    many: tuple[SearchCluster, ...]
    per_node: int
    domain: int
    precisions: tuple[TrainingPrecision, ...]


def build_workload(given: TrainingWorkloadInput, kept: KeptConfiguration) -> TrainingWorkloadInput:
    """Returns the workload of a question with the settings of a configuration."""
    chosen = kept.workload
    return given.model_copy(
        update={
            "micro_batch_size": chosen["micro_batch_size"],
            "gradient_accumulation_steps": chosen["gradient_accumulation_steps"],
            "precision": TrainingPrecision(chosen["precision"]),
            "recomputation": RecomputationInput.model_validate(chosen["recomputation"], strict=False),
        }
    )


def split_training(space: SearchSpace) -> tuple[SearchPiece, ...]:
    """Returns the pieces of the search.

    Raises :class:`PlanningError` for a question without batch or total, or with too many candidates.
    """
    question = space.question
    _check_question(question)
    found: list[SearchPiece] = []
    for alike in _group_clusters(space):
        options = _build_options(space, alike.per_node)
        for precision in alike.precisions:
            _build_run(space, alike, precision)
            found.extend(_cut_pieces(alike, precision, options))
    if sum(piece.candidates for piece in found) > question.most_candidates:
        raise PlanningError("TOO_MANY_CANDIDATES", *_find_largest_list(question))
    return tuple(found)


def search_training(
    space: SearchSpace, piece: SearchPiece, *, proofs: frozenset[PruningProof] = PROOFS
) -> SearchOutcome:
    """Returns the outcome of a piece. Tests omit proofs."""
    question, part = space.question, piece.part
    places = tuple(part["clusters"])
    alike = next(each for each in _group_clusters(space, places) if each.places == places)
    precision = TrainingPrecision(part["precision"])
    subject = _build_run(space, alike, precision)
    if not subject.is_timed:
        unknown = {PlanConstraint.PRECISION: piece.candidates}
        return SearchOutcome(piece.candidates, 0, 0, unknown, {}, ())
    given = _get_workload(question)
    found = search_layouts(
        subject,
        SearchShape(
            space.model.profile,
            given.sequence_length,
            subject.run.step_sequences,
            alike.domain,
            single_micro_batch=given.optimizer_in_backward,
        ),
        alike.many,
        _build_options(space, alike.per_node),
        SearchLimits(
            _compute_max_bytes(space, subject),
            _compute_latest_seconds(question, subject.run.cluster.accelerator.id),
            question.search.depth,
            is_power_relevant(space),
        ),
        rows=(part["rows"][0], part["rows"][1]),
        proofs=proofs,
    )
    return SearchOutcome(
        found.considered,
        found.scored,
        found.feasible,
        {PlanConstraint(name): count for name, count in found.ruled_out.items()},
        {PruningRule(proof.value): count for proof, count in found.pruned.items()},
        tuple(_build_kept(each, precision) for each in found.found),
    )


def is_power_relevant(space: SearchSpace) -> bool:
    """Returns true if goal, constraints or supplies depend on power.

    Otherwise time alone orders a cluster.
    """
    question = space.question
    limits = question.constraints
    return (
        question.goal in ("cleanest", "pareto")
        or limits.facility_kw is not MISSING
        or limits.location_based_kg_co2e is not MISSING
        or any(supply.kind == "owned" and supply.site is not None for supply in space.supplies)
    )


# --- the question -----------------------------------------------------------------------------------------


def _get_workload(question: PlanRequest) -> TrainingWorkloadInput:
    if not isinstance(question.workload, TrainingWorkloadInput):
        raise TypeError("the plan is for a service")
    return question.workload


def _check_question(question: PlanRequest) -> None:
    given, varied = _get_workload(question), question.search.training
    resolve_length(given)
    for place, recomputation in enumerate(_list_values(varied.recomputations, ())):
        if (recomputation.k is not MISSING) != (recomputation.strategy is Recomputation.EVERY_K):
            detail = "k must be given with the strategy every_k, and only with it"
            pointer = f"/search/training/recomputations/{place}/k"
            raise PlanningError("RECOMPUTATION_INTERVAL", pointer, detail)
    for place, parts in enumerate(_list_values(varied.virtual_stages, ())):
        if parts == 1:
            detail = "the interleaved schedule needs at least two virtual stages"
            raise PlanningError("VIRTUAL_STAGES", f"/search/training/virtual_stages/{place}", detail)


def _list_sizes(given: TrainingWorkloadInput) -> tuple[int, ...]:
    """Returns the micro-batches to try by default, with the one of the workload."""
    return _SIZES if given.micro_batch_size is MISSING else (*_SIZES, given.micro_batch_size)


def _list_values(given: Sequence[Any] | Any, default: Sequence[Any]) -> tuple[Any, ...]:  # noqa: ANN401
    """Returns the distinct values of a list of the question, else the default."""
    return tuple(dict.fromkeys(default if given is MISSING else given))


def _build_options(space: SearchSpace, per_node: int) -> LayoutOptions:
    question = space.question
    varied, given = question.search.training, _get_workload(question)
    overlaps = LAYOUTS[resolve_framework(given, AnswerNotes())].overlaps_experts
    shardings: list[tuple[Sharding, int | None]] = []
    for sharding in _list_values(varied.shardings, (Sharding.NONE, Sharding.ZERO_1, Sharding.ZERO_3)):
        if sharding is Sharding.HYBRID:
            shardings.extend(
                (sharding, size) for size in _list_values(varied.sharding_group_sizes, (per_node,))
            )
        else:
            shardings.append((sharding, None))
    schedules = (PipelineSchedule.ONE_F_ONE_B, PipelineSchedule.INTERLEAVED)
    again = [RecomputationInput(strategy=each) for each in _STRATEGIES]
    recomputations = again if varied.recomputations is MISSING else varied.recomputations
    return LayoutOptions(
        shardings=tuple(shardings),
        schedules=_list_values(varied.pipeline_schedules, schedules),
        virtual_stages=_list_values(varied.virtual_stages, VIRTUAL_STAGES),
        sequence_parallel=_list_values(varied.sequence_parallel, (True,)),
        overlap_expert_communication=overlaps and space.model.profile.expert_count > 0,
        micro_batch_sizes=_list_values(varied.micro_batch_sizes, _list_sizes(given)),
        recomputings=tuple(
            dict.fromkeys(
                RecomputationChoice(each.strategy, 1 if each.k is MISSING else each.k)
                for each in recomputations
            )
        ),
    )


_STRATEGIES: Final = (Recomputation.NONE, Recomputation.SELECTIVE, Recomputation.FULL)

_LISTS: Final = (
    "tensor",
    "pipeline",
    "context",
    "expert",
    "shardings",
    "sharding_group_sizes",
    "pipeline_schedules",
    "virtual_stages",
    "micro_batch_sizes",
    "recomputations",
    "precisions",
)


def _find_largest_list(question: PlanRequest) -> tuple[str, str]:
    """Returns the pointer of the longest list of the question, and a message that it is too long."""
    varied: TrainingSearch = question.search.training
    lists = {f"/search/training/{name}": len(_list_values(getattr(varied, name), ())) for name in _LISTS}
    lists["/search/accelerator_counts"] = len(_list_values(question.search.accelerator_counts, ()))
    lists["/search/accelerators"] = len(_list_values(question.search.accelerators, ()))
    pointer = max(lists, key=lambda name: lists[name])
    if lists[pointer] <= 1:
        pointer = "/most_candidates"
    return (
        pointer,
        f"more than {question.most_candidates} candidates: shorten this list, or raise most_candidates",
    )


def _compute_latest_seconds(question: PlanRequest, accelerator_id: str) -> float | None:
    """Returns the seconds beyond which a run is ruled out, with a margin for changed assumptions.

    Factors of the question are divided out, since a search uses unchanged times.
    """
    limits = question.constraints
    ends = [] if limits.duration_seconds is MISSING else [limits.duration_seconds]
    first: datetime | None = None
    if question.window is not MISSING:
        first = question.window.earliest_start_at
    elif question.starts_at is not MISSING:
        first = question.starts_at
    if limits.finish_by is not MISSING and first is not None:
        ends.append(max(0.0, (limits.finish_by - first).total_seconds()))
    if not ends:
        return None
    factor = 1.0
    for moved in question.assumptions:
        if moved.kind == "time" and moved.of in (MISSING, accelerator_id):
            factor *= moved.factor
    return REACH * min(ends) / factor


# --- the space --------------------------------------------------------------------------------------------


def _group_clusters(space: SearchSpace, places: Sequence[int] | None = None) -> Iterator[_EqualClusters]:
    """Yields groups of clusters that are searched together, of ``places`` only if given."""
    groups: dict[object, list[int]] = {}
    joined: dict[int, tuple[int, int]] = {}
    for place in range(len(space.clusters)) if places is None else places:
        given = space.clusters[place]
        cluster = resolve_cluster(given, space.catalog, AnswerNotes())
        joined[place] = cluster.accelerators_per_node, cluster.domain
        machine = given.model_copy(update={"accelerator_count": 1}).model_dump_json()
        generates = _get_workload(space.question).objective in GENERATING
        count = given.accelerator_count if generates else None
        groups.setdefault((machine, joined[place], count), []).append(place)
    for found in groups.values():
        per_node, domain = joined[found[0]]
        many = tuple(_build_devices(space, place, per_node) for place in found)
        yield _EqualClusters(
            tuple(found), many, per_node, domain, _list_precisions(space, space.clusters[found[0]])
        )


def _list_precisions(space: SearchSpace, cluster: ClusterInput) -> tuple[TrainingPrecision, ...]:
    given = _get_workload(space.question)
    own = resolve_precision(given, resolve_cluster(cluster, space.catalog, AnswerNotes()))
    return _list_values(space.question.search.training.precisions, (own,))


def _build_devices(space: SearchSpace, place: int, per_node: int) -> SearchCluster:
    """Returns the degrees to try on a cluster."""
    given, varied, profile = (
        _get_workload(space.question),
        space.question.search.training,
        space.model.profile,
    )
    cluster = resolve_cluster(space.clusters[place], space.catalog, AnswerNotes())
    try:
        count = select_training_cluster(given.rollout, given.objective, cluster).accelerator_count
    except PlanningError:
        # Too few devices to both generate and train: no layout fits.
        count = 0
    contexts = list_context_degrees(count, given.sequence_length)
    return SearchCluster(
        place,
        count,
        tensor=_list_values(varied.tensor, list_divisors(per_node)),
        pipeline=_list_values(
            varied.pipeline,
            [each for each in list_divisors(count) if each <= max(1, profile.block_count)] or [1],
        ),
        context=_list_values(varied.context, contexts),
        expert=_list_values(
            varied.expert, [each for each in list_divisors(profile.expert_count) if each <= count] or [1]
        ),
    )


def _cut_pieces(
    alike: _EqualClusters, precision: TrainingPrecision, options: LayoutOptions
) -> Iterator[SearchPiece]:
    """Yields pieces of several clusters each, or of a part of the combinations of one."""
    places: list[int] = []
    within = 0

    def build_part(first: int = 0, step: int = 1) -> Mapping[str, Any]:
        return {"clusters": list(places), "precision": precision.value, "rows": [first, step]}

    for place, devices in zip(alike.places, alike.many, strict=True):
        candidates = count_layouts(devices, options)
        if places and within + candidates > PIECE:
            yield SearchPiece(within, build_part())
            places, within = [], 0
        places.append(place)
        within += candidates
        if within > PIECE:
            parts = -(-within // PIECE)
            for first in range(parts):
                yield SearchPiece(within // parts + (first < within % parts), build_part(first, parts))
            places, within = [], 0
    if places:
        yield SearchPiece(within, build_part())


def _compute_max_bytes(space: SearchSpace, subject: TrainingLayouts) -> float | None:
    """Returns the bytes of a device that a run may use, or None if its memory is unknown."""
    usable = subject.usable_bytes
    return None if usable is None else usable * (1.0 - space.headroom_share)


def _build_run(space: SearchSpace, alike: _EqualClusters, precision: TrainingPrecision) -> TrainingLayouts:
    """Returns the run on the largest of some clusters, whose properties hold for all of them."""
    given = _get_workload(space.question).model_copy(
        update={"precision": precision, "gradient_accumulation_steps": MISSING}
    )
    cluster = space.clusters[alike.places[-1]]
    run = resolve_open_training(space.model, given, cluster, apply_own_runs(space.catalog, known_rows()))
    return TrainingLayouts(run, weighs_power=is_power_relevant(space))


def _build_kept(found: FoundLayout, precision: TrainingPrecision) -> KeptConfiguration:
    layout, choice = found.layout, found.choice
    parallelism: dict[str, Any] = {
        name: int(getattr(layout, name)[0])
        for name in ("tensor", "pipeline", "data", "context", "expert", "virtual_stages")
    }
    parallelism["sequence_parallel"] = choice.sequence_parallel
    parallelism["sharding"] = choice.sharding.value
    parallelism["pipeline_schedule"] = choice.schedule.value
    if choice.overlap_expert_communication:
        parallelism["overlap_expert_communication"] = True
    if choice.group_size is not None:
        parallelism["sharding_group_size"] = choice.group_size
    recomputation: dict[str, Any] = {"strategy": choice.recomputing.strategy.value}
    if choice.recomputing.strategy is Recomputation.EVERY_K:
        recomputation["k"] = choice.recomputing.interval
    workload = {
        "micro_batch_size": int(layout.micro_batch_size[0]),
        "gradient_accumulation_steps": int(layout.micro_batches[0]),
        "precision": precision.value,
        "recomputation": recomputation,
    }
    return KeptConfiguration(int(layout.place[0]), parallelism, workload, found.seconds, found.watts)
