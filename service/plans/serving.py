"""Configurations of a service: of each the fewest replicas that carry its load within the service levels.

A configuration is a kind of devices, the layout of a replica on them and how weights and cache are stored.
Its figures are those of the functions that answer it alone. It carries the load with as many replicas as
leave none of them saturated, as hold the requests that are there, and of whose requests the percentile that
is asked for keeps to the levels.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any, Final, NamedTuple

import numpy as np
from pydantic import MISSING

from service.estimates.memory import estimate_memory
from service.estimates.rates import plan_run
from service.planning.cases import InferenceCase
from service.planning.errors import PlanningError
from service.planning.estimates import ServingRun
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.estimates.power import estimate_draw
from service.planning.estimates.serving import ServingEstimate, build_load, estimate_serving
from service.planning.estimates.serving_run import list_unserved_kinds
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import MESHES
from service.planning.inference import (
    BatchScheduler,
    IterationBatch,
    ReplicaDegrees,
    estimate_similar_loads,
    find_fewest_replicas,
    find_layout_constraint,
    list_replica_layouts,
)
from service.planning.memory.capacity import find_largest_concurrency
from service.planning.memory.serving import estimate_inference_memory, inference_weight_bytes
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism, list_divisors
from service.planning.workload import InferenceWorkload
from service.plans.space import KeptConfiguration, SearchOutcome, SearchPiece, SearchSpace
from service.resolve import resolve_served
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.load import resolve_levels
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.plans import ServingSearch
from service.schemas.references import ClusterInput, ParallelismInput
from service.schemas.workloads import InferenceWorkloadInput, WeightFormatName

MOST_CONFIGURATIONS: Final = 100_000
"""Of one search: each takes some hundredths of a second."""
_OF_A_PIECE = 80
_APART = ("disaggregated", "passes", "diffusion")
"""Members that ask for something else than replicas of one layout that generate tokens."""
_WHOLE_NODES = (2, 4, 8, 16)
"""Pipeline stages of a replica that needs more than a node."""
_SURE = 0.95
"""Share of the least time of a token that interpolation on the curve of a server may take off."""
_MOST_SHARE = 0.55
"""Requests that may take less than the mean over theirs: half of them, and some for the lattice."""


class _StorageLayouts(NamedTuple):
    """How weights and cache are stored, and the layouts of a replica that are searched with it."""

    settings: Mapping[str, Any]
    given: InferenceWorkloadInput
    has_rate: bool
    layouts: tuple[Parallelism, ...]


class _SearchedDevices:
    """A kind of devices with what is searched on it."""

    def __init__(
        self, space: SearchSpace, place: int, rules: Sequence[PruningRule] = tuple(PruningRule)
    ) -> None:
        self.space = space
        self.place = place
        self.rules = rules
        self.given = space.clusters[place]
        self.most = self.given.accelerator_count
        self.cluster, self.catalog = self.resolve_cluster(self.most)
        self._alike: dict[int, bool] = {}

    def resolve_cluster(self, devices: int) -> tuple[Cluster, CatalogView]:
        """So many of the devices, and the catalog as they see it."""
        given = self.build_cluster(devices)
        catalog = apply_calibrations(self.space.catalog, given)
        return resolve_cluster(given, catalog, AnswerNotes()), catalog

    def build_cluster(self, devices: int) -> ClusterInput:
        """So many of the devices as a question gives them."""
        return self.given.model_copy(update={"accelerator_count": devices})

    def count_max_replicas(self, layout: Parallelism) -> int:
        """Replicas that the devices make: of groups that do not divide a domain those of one domain.

        The next one would lie across two of them, and its figures would be those of one that does not.
        """
        domain = self.cluster.domain
        return (self.most if domain % layout.tensor == 0 else domain) // layout.devices

    def is_alike(self, devices: int) -> bool:
        """Whether a replica on so many devices is joined as on the most.

        Nothing else of their number enters its figures: a group of devices never spans more than there are.
        """
        link = self.cluster.intra_node_link
        reached = max(self.cluster.accelerators_per_node, link.joined)
        if devices >= reached:
            return True
        if devices not in self._alike:
            cluster, catalog = self.resolve_cluster(devices)
            same = cluster._replace(
                accelerator_count=self.cluster.accelerator_count,
                accelerators_per_node=self.cluster.accelerators_per_node,
            )
            self._alike[devices] = (
                same == self.cluster and catalog is self.catalog and link.kind not in MESHES
            )
        return self._alike[devices]

    @property
    def stored(self) -> Iterator[_StorageLayouts]:
        """Every way to store weights and cache, with what is searched of it."""
        return (
            _build_stored(self, settings) for settings in _list_storages(self.space.question.search.serving)
        )

    @property
    def variants(self) -> Iterator[tuple[_StorageLayouts, Parallelism]]:
        """What is searched, in its order."""
        return ((stored, layout) for stored in self.stored for layout in stored.layouts)

    def build_question(
        self, stored: _StorageLayouts, layout: Parallelism, replicas: int = 1
    ) -> ThroughputEstimateRequest:
        """What an estimate of so many replicas is asked."""
        return ThroughputEstimateRequest.model_construct(
            model=self.space.question.model,
            workload=stored.given,
            cluster=self.build_cluster(layout.devices * replicas),
            parallelism=_to_parallelism_input(layout._replace(data=layout.data * replicas)),
            explain=False,
        )


def _list_storages(search: ServingSearch) -> Iterator[Mapping[str, Any]]:
    """Members of the workload that are searched."""
    weights: list[dict[str, Any]] = []
    if search.weight_formats is not MISSING:
        weights += [{"weight_format": name.value} for name in dict.fromkeys(search.weight_formats)]
    if search.weight_precisions is not MISSING:
        weights += [{"weight_precision": name} for name in dict.fromkeys(search.weight_precisions)]
    caches = search.kv_cache_precisions
    kept = [{}] if caches is MISSING else [{"kv_cache_precision": name} for name in dict.fromkeys(caches)]
    for stored, cache in product(weights or [{}], kept):
        yield {**stored, **cache}


def build_workload(given: InferenceWorkloadInput, kept: KeptConfiguration) -> InferenceWorkloadInput:
    """The workload of a configuration that was kept."""
    return _apply_settings(given, kept.workload)


def _apply_settings(given: InferenceWorkloadInput, settings: Mapping[str, Any]) -> InferenceWorkloadInput:
    changes: dict[str, Any] = dict(settings)
    if "weight_format" in changes:
        changes |= {"weight_format": WeightFormatName(changes["weight_format"]), "weight_precision": MISSING}
    elif "weight_precision" in changes:
        changes["weight_format"] = MISSING
    return given.model_copy(update=changes)


def _to_parallelism_input(layout: Parallelism) -> ParallelismInput:
    return ParallelismInput(**_get_degrees(layout))


def _get_degrees(layout: Parallelism) -> dict[str, Any]:
    """Members of the layout of a question."""
    names = ["tensor", "pipeline", "data", "expert"]
    names += ["expert_tensor"] * (layout.expert_tensor is not None)
    return {name: getattr(layout, name) for name in names}


def _get_workload(space: SearchSpace) -> InferenceWorkloadInput:
    """The workload of a plan of a service."""
    workload = space.question.workload
    if not isinstance(workload, InferenceWorkloadInput):
        raise TypeError("the plan is of a training run")
    return workload


def _build_stored(machine: _SearchedDevices, settings: Mapping[str, Any]) -> _StorageLayouts:
    """What is searched of one way to store weights and cache."""
    space, cluster = machine.space, machine.cluster
    given = _get_workload(space)
    stored = _StorageLayouts(settings, _apply_settings(given, settings), has_rate=True, layouts=())
    one, catalog = machine.resolve_cluster(1)
    question = machine.build_question(stored, Parallelism())
    case = resolve_served(question, stored.given, one, space.model, catalog=catalog, notes=AnswerNotes())
    if case.unknown is not None:
        raise case.unknown
    try:
        compute_peak(one, case.workload)
        has_rate = cluster.accelerator.bandwidth_bytes_per_second is not None
    except PlanningError:
        has_rate = False
    stored = stored._replace(has_rate=has_rate)
    profile = space.model.profile
    degrees = _resolve_degrees(machine, stored, profile, space.question.search.serving)
    layouts = islice(list_replica_layouts(profile, degrees), _get_max_configurations(space) + 1)
    return stored._replace(layouts=tuple(layouts))


def _resolve_degrees(
    machine: _SearchedDevices, stored: _StorageLayouts, profile: ModelProfile, search: ServingSearch
) -> ReplicaDegrees:
    """Degrees as the question lists them, else those of practice."""
    tensor = (
        list_divisors(machine.cluster.accelerators_per_node) if search.tensor is MISSING else search.tensor
    )
    pipeline: Sequence[int] = (1,) if search.pipeline is MISSING else search.pipeline
    if search.pipeline is MISSING and stored.has_rate and not _is_fitting_node(machine, stored, tensor):
        pipeline = (1, *(stages for stages in _WHOLE_NODES if stages * max(tensor) <= machine.most))
    expert = search.expert
    if expert is MISSING:
        expert = [each for each in list_divisors(max(1, profile.expert_count)) if each <= machine.most]
    cuts = None if search.expert_tensor is MISSING else tuple(search.expert_tensor)
    listed = [tuple(dict.fromkeys(each)) for each in (tensor, pipeline, expert)]
    return ReplicaDegrees(listed[0], listed[1], listed[2], cuts)


def _is_fitting_node(machine: _SearchedDevices, stored: _StorageLayouts, tensor: Sequence[int]) -> bool:
    """Whether the widest of the replicas in a node holds a request."""
    for width in sorted(tensor, reverse=True):
        layout = Parallelism(tensor=width)
        if find_layout_constraint(layout, machine.space.model.profile, machine.cluster) is None:
            return _PlacedVariant(machine, stored, layout).holds != 0
    return True


class _PlacedVariant:
    """A variant on its devices: what a replica holds, and what any number of replicas does."""

    def __init__(self, machine: _SearchedDevices, stored: _StorageLayouts, layout: Parallelism) -> None:
        self.machine = machine
        self.stored = stored
        self.layout = layout
        self.case = self._resolve_case(1, machine.cluster, machine.catalog)
        self.holds = self._count_fitting_requests()
        self._one: ServingEstimate | None = None

    def _resolve_case(self, replicas: int, cluster: Cluster, catalog: CatalogView) -> InferenceCase:
        cluster = cluster._replace(accelerator_count=self.layout.devices * replicas)
        question, model = (
            self.machine.build_question(self.stored, self.layout, replicas),
            self.machine.space.model,
        )
        return resolve_served(
            question, self.stored.given, cluster, model, catalog=catalog, notes=AnswerNotes()
        )

    def _get_usable_bytes(self) -> float | None:
        return get_usable_bytes(self.machine.cluster, self.workload)

    @property
    def workload(self) -> InferenceWorkload:
        """As memory sees it, with one request on each rank."""
        return self.case.resident.workload._replace(concurrency=self.layout.data)

    def _count_fitting_requests(self) -> int | None:
        """Most whole requests of a rank that fit and that its engine takes; None where nothing is known."""
        limit = self._get_usable_bytes()
        if limit is None:
            return self.workload.most_requests
        memory = estimate_inference_memory(self.case.resident.profile, self.workload, self.layout)
        return find_largest_concurrency(memory, self.workload, limit)

    @property
    def state_exceeds(self) -> bool:
        """Whether weights alone are larger than a device.

        Proof that nothing fits then: what a device holds contains its weights
        (``ServingMemory.beside_bytes``), and no engine uses more than the device (``usable_bytes_of``). Where
        blocks stay on the host it is no bound.
        """
        limit, workload = self._get_usable_bytes(), self.workload
        if limit is None or workload.device_layers is not None:
            return False
        weights = inference_weight_bytes(self.case.resident.profile, workload.storage, self.layout)
        return weights.total > limit / workload.memory_fraction

    def estimate_serving(self, replicas: int) -> ServingEstimate:
        """What so many replicas do, by the function of a single estimate."""
        cluster, catalog = self.machine.resolve_cluster(self.layout.devices * replicas)
        found = estimate_serving(self._resolve_case(replicas, cluster, catalog))
        if found is None:
            detail = "no rate of the accelerator is known"
            raise PlanningError("PEAK_RATE_UNKNOWN", "/cluster/accelerator", detail)
        return found

    def estimate_servings(self, numbers: Sequence[int]) -> Iterator[ServingEstimate]:
        """The same for several numbers, together from where they differ in their load alone."""
        alike = [number for number in numbers if self.is_alike(number)]
        yield from (self.estimate_serving(number) for number in numbers[: len(numbers) - len(alike)])
        if not alike:
            return
        one = self._one = self._one or self.estimate_serving(alike[0])
        cases = [self._replace_replicas(one.case, number) for number in alike]
        counts = [self._count_busy(case) for case in cases]
        loads = [build_load(case, count) for case, count in zip(cases, counts, strict=True)]
        answered = estimate_similar_loads(one.model, one.server, loads)
        for case, count, load, found in zip(cases, counts, loads, answered, strict=True):
            yield replace(one, served=found, load=load, replicas=float(count), case=case)

    def is_alike(self, replicas: int) -> bool:
        """Whether so many differ from others in their load alone."""
        trace = len(self.case.load.at_seconds) > 1
        return not trace and self.machine.is_alike(replicas * self.layout.devices)

    def _replace_replicas(self, case: InferenceCase, replicas: int) -> InferenceCase:
        return replace(case, layout=self.layout._replace(data=self.layout.data * replicas))

    @staticmethod
    def _count_busy(case: InferenceCase) -> int:
        """Replicas that have a request."""
        requests = case.load.concurrency
        return case.replicas if requests is None else min(case.replicas, requests)


def _find_least_replicas(placed: _PlacedVariant, most: int) -> int | PlanConstraint:
    """Replicas that hold the requests at a time that are asked for, or what keeps them from it."""
    ranks, concurrency, holds = placed.layout.data, placed.case.load.concurrency, placed.holds
    if holds == 0:
        return PlanConstraint.MEMORY
    if concurrency is None or holds is None:
        return 1
    least = math.ceil(math.ceil(concurrency / holds) / ranks)
    if least <= most:
        return least
    return PlanConstraint.ENGINE if holds == placed.workload.most_requests else PlanConstraint.MEMORY


class _LevelCheck:
    """Whether numbers of replicas carry the load within the service levels."""

    def __init__(self, placed: _PlacedVariant) -> None:
        self._placed = placed
        given = placed.stored.given.service_levels
        self._levels = None if given is MISSING else resolve_levels(given)

    def check_replica_counts(self, numbers: Sequence[int]) -> list[bool]:
        """Of each number."""
        return [self.is_carried(serving) for serving in self._placed.estimate_servings(numbers)]

    def is_carried(self, serving: ServingEstimate) -> bool:
        """Of what so many replicas do."""
        rate = serving.case.load.rate_per_second
        if rate is not None:
            holds = self._placed.holds
            if serving.served.saturated or serving.requests_per_second.value < rate * (1.0 - 1e-9):
                return False
            if holds is not None and math.ceil(serving.requests_inside) > holds:
                return False
        levels = self._levels
        return levels is None or serving.estimate_goodput(levels.limits).value >= levels.share

    def count_least_replicas(self, serving: ServingEstimate) -> int:
        """Replicas with fewer of which each is saturated: what one cannot pass is the same at any load."""
        rate = serving.case.load.rate_per_second
        if rate is None:
            return 1
        return max(1, math.floor(rate / serving.served.most_requests_per_second * (1.0 - 1e-9)))

    def is_missed_alone(self, serving: ServingEstimate) -> bool:
        """Whether even requests that are alone take longer for a token than is allowed.

        Proof that no number of replicas joined like these keeps the level then: half of the requests on the
        lattice (``sampling``) have a deviate of their prefills above 0. Each of those takes at least the mean
        time of a token without the part that grows with the batch (``_pace_samples``), and that is at least
        an iteration of the batch that takes least; interpolation on the curve moves it by less than a
        twentieth. So at most half of the requests are within the level. Requests of one token have no such
        time, bursts, static batches and speculation have forms of their own, and what a tenant's own runs
        correct moves with the load: of these nothing is proven.
        """
        levels, load = self._levels, serving.load
        plain = load.burst_requests is None and serving.server.scheduler is BatchScheduler.CONTINUOUS
        if levels is None or levels.share <= _MOST_SHARE or load.outputs.values[0] <= 1.0 or not plain:
            return False
        if serving.server.speculation is not None or serving.case.curves.local is not None:
            return False
        least = _SURE * _find_least_iteration(serving) * serving.spreads.output_token.middle
        each, whole = levels.limits.time_per_output_token_seconds, levels.limits.request_seconds
        if each is not None and least > each:
            return True
        alike = len(load.outputs.values) == 1
        return whole is not None and alike and least * load.decodes > whole


def _find_least_iteration(serving: ServingEstimate) -> float:
    """Seconds of the quickest iteration in which requests decode, of any number of them."""
    batches = np.power(2.0, np.arange(15.0))
    context = batches * serving.load.decoding_context
    zeros = np.zeros_like(batches)
    times = serving.model.compute_time(IterationBatch(batches, context, zeros, zeros, zeros))
    return float(np.min(times.seconds))


def _decide_layout(
    machine: _SearchedDevices, stored: _StorageLayouts, layout: Parallelism
) -> PlanConstraint | PruningRule | KeptConfiguration:
    """The configuration with its fewest replicas, or what rules it out."""
    most = machine.count_max_replicas(layout)
    constraint = _find_shape_constraint(machine, stored, layout)
    if constraint is not None:
        return constraint
    placed = _PlacedVariant(machine, stored, layout)
    if PruningRule.STATE in machine.rules and placed.state_exceeds:
        return PruningRule.STATE
    least = _find_least_replicas(placed, most)
    if isinstance(least, PlanConstraint):
        return least
    if placed.case.load.concurrency is not None:
        most = min(most, placed.case.load.concurrency)
    levels = _LevelCheck(placed)
    if placed.is_alike(1):
        light = next(placed.estimate_servings([most]))
        if PruningRule.LEVELS in machine.rules and levels.is_missed_alone(light):
            return PruningRule.LEVELS
        least = max(least, levels.count_least_replicas(light))
    return _find_fewest(placed, levels, least, most) or PlanConstraint.SERVICE_LEVEL


def _find_shape_constraint(
    machine: _SearchedDevices, stored: _StorageLayouts, layout: Parallelism
) -> PlanConstraint | None:
    """What rules a layout out whatever its memory."""
    if not stored.has_rate:
        return PlanConstraint.PRECISION
    if layout.devices > machine.most:
        return PlanConstraint.DEVICES
    if machine.place in machine.space.apart and layout.devices > machine.cluster.domain:
        return PlanConstraint.LINK
    reason = find_layout_constraint(layout, machine.space.model.profile, machine.cluster)
    if reason is not None:
        return PlanConstraint(reason.value)
    return None if machine.count_max_replicas(layout) else PlanConstraint.LINK


def _find_fewest(
    placed: _PlacedVariant, levels: _LevelCheck, least: int, most: int
) -> KeptConfiguration | None:
    """The fewest replicas that carry the load, where any do."""
    while (found := find_fewest_replicas(least, most, levels.check_replica_counts)) is not None:
        kept = _build_kept(placed, found, levels)
        if kept is not None:
            return kept
        least = found + 1
    return None


def _build_kept(placed: _PlacedVariant, replicas: int, levels: _LevelCheck) -> KeptConfiguration | None:
    """So many replicas as single estimates have them; None where by these they do not hold the load."""
    machine = placed.machine
    question = machine.build_question(placed.stored, placed.layout, replicas)
    catalog = apply_calibrations(machine.space.catalog, question.cluster)
    run = plan_run(question, catalog)
    if not isinstance(run, ServingRun) or not isinstance(run.serving, ServingEstimate):
        return None
    memory = MemoryEstimateRequest.model_construct(
        model=question.model,
        workload=question.workload,
        cluster=question.cluster,
        parallelism=question.parallelism,
    )
    if not levels.is_carried(run.serving) or not estimate_memory(memory, machine.space.catalog).get(
        "fits", 1
    ):
        return None
    draw = estimate_draw(run)
    return KeptConfiguration(
        cluster=machine.place,
        parallelism=_get_degrees(run.case.layout),
        workload=placed.stored.settings,
        seconds=run.serving.request_seconds.value,
        watts=None if draw is None else draw.watts.value,
        accelerator_count=run.case.layout.devices,
        lasting_seconds=None if run.duration_seconds is None else run.duration_seconds.value,
    )


def split_services(space: SearchSpace) -> tuple[SearchPiece, ...]:
    """The configurations of a service in parts of about a second.

    Raises :class:`PlanningError` for a workload that is no service under a load, and for too large a search.
    """
    _check_question(space)
    counts = _count_configurations(space)
    found: list[SearchPiece] = []
    ranges: list[list[int]] = []
    room = _OF_A_PIECE
    for place, count in enumerate(counts):
        first = 0
        while first < count:
            taken = min(room, count - first)
            ranges.append([place, first, first + taken])
            first, room = first + taken, room - taken
            if not room:
                found.append(SearchPiece(_OF_A_PIECE, {"ranges": ranges}))
                ranges, room = [], _OF_A_PIECE
    if ranges:
        found.append(SearchPiece(_OF_A_PIECE - room, {"ranges": ranges}))
    return tuple(found)


def _check_question(space: SearchSpace) -> None:
    """Refuse what is no service under a load, or whose work is not modelled."""
    given, profile = _get_workload(space), space.model.profile
    for name in _APART:
        if getattr(given, name) is not MISSING:
            detail = "one kind of replica that generates tokens is searched"
            raise PlanningError("NOT_MODELLED", f"/workload/{name}", detail)
    if not profile.shapes_known:
        detail = "prefill and decode need the shapes of the model"
        raise PlanningError("ARCHITECTURE_REQUIRED", "/model", detail)
    if kinds := list_unserved_kinds(profile):
        detail = f"the work of layers of kind {', '.join(sorted(kinds))} is not modelled"
        raise PlanningError("LAYER_KIND_NOT_MODELLED", "/model", detail)
    if not profile.generates:
        raise PlanningError("NOT_MODELLED", "/model", "a service of requests that are passes is not searched")
    trace = given.arrivals is not MISSING and given.arrivals.process == "trace"
    if given.concurrency is MISSING and given.request_rate_per_second is MISSING and not trace:
        detail = "a service is planned for a load: give request_rate_per_second or concurrency"
        raise PlanningError("LOAD_REQUIRED", "/workload/request_rate_per_second", detail)


def _count_configurations(space: SearchSpace) -> list[int]:
    """Configurations on each of the clusters; too many in all are refused, naming the longest list."""
    counts: list[int] = []
    for place in range(len(space.clusters)):
        counts.append(0)
        for stored in _SearchedDevices(space, place).stored:
            counts[place] += len(stored.layouts)
            if sum(counts) > _get_max_configurations(space):
                raise _build_too_large_error(space)
    return counts


def _get_max_configurations(space: SearchSpace) -> int:
    return min(space.question.most_candidates, MOST_CONFIGURATIONS)


def _build_too_large_error(space: SearchSpace) -> PlanningError:
    lists = {name: len(given) for name, given in space.question.search.serving if isinstance(given, list)}
    longest = max(lists, key=lambda name: lists[name], default=None)
    pointer = f"/search/serving/{longest}" if longest else "/most_candidates"
    detail = f"more than {_get_max_configurations(space):,} configurations of a service are not searched"
    return PlanningError("SEARCH_TOO_LARGE", pointer, detail)


def search_services(
    space: SearchSpace, piece: SearchPiece, rules: Sequence[PruningRule] = tuple(PruningRule)
) -> SearchOutcome:
    """The configurations of ``piece``, each with its fewest replicas; ``rules`` are those that may prune."""
    ruled_out, pruned = Counter[PlanConstraint](), Counter[PruningRule]()
    kept: list[KeptConfiguration] = []
    scored = 0
    for place, first, last in piece.part["ranges"]:
        machine = _SearchedDevices(space, place, rules)
        for stored, layout in islice(machine.variants, first, last):
            found = _decide_layout(machine, stored, layout)
            scored += isinstance(found, KeptConfiguration) or found is PlanConstraint.SERVICE_LEVEL
            if isinstance(found, KeptConfiguration):
                kept.append(found)
            elif isinstance(found, PruningRule):
                pruned[found] += 1
            else:
                ruled_out[found] += 1
    return SearchOutcome(piece.candidates, scored, len(kept), ruled_out, pruned, tuple(kept))
