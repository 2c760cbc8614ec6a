"""Search of the configurations of a service, each with the fewest replicas that keep the service levels.

A configuration is a kind of devices, the layout of a replica, and the formats of weights and cache. Its
figures equal those of a single estimate. It carries the load if no replica is saturated, all concurrent
requests fit, and the requested percentile of requests keeps the levels.
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
from service.plans.space import (
    KeptConfiguration,
    SearchOutcome,
    SearchPiece,
    SearchSpace,
    get_service_levels,
)
from service.resolve import resolve_served
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.load import resolve_levels
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest
from service.schemas.plan_answers import PlanConstraint, PruningRule
from service.schemas.plans import PlanRequest, ServingSearch
from service.schemas.references import ClusterInput, ParallelismInput
from service.schemas.workloads import InferenceWorkloadInput, WeightFormatName

MOST_CONFIGURATIONS: Final = 100_000
"""Most configurations of one search; each takes some hundredths of a second."""
_OF_A_PIECE = 80
_APART = ("disaggregated", "passes", "diffusion")
"""Members for services other than replicas of one layout that generate tokens."""
_WHOLE_NODES = (2, 4, 8, 16)
"""Pipeline stages of a replica that is larger than a node."""
_SURE = 0.95
"""Share of the least time of a token that remains after errors of interpolation on the curve of a server."""
_MOST_SHARE = 0.55
"""Share of requests that may take less than their mean: half of them, with a margin for the lattice."""


class _StorageLayouts(NamedTuple):
    """Formats of weights and cache, and the layouts of a replica to search with them."""

    settings: Mapping[str, Any]
    given: InferenceWorkloadInput
    has_rate: bool
    layouts: tuple[Parallelism, ...]


class _SearchedDevices:
    """A kind of devices with the configurations to search on it."""

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
        """Returns a cluster of this many devices, and the catalog with their constants."""
        given = self.build_cluster(devices)
        catalog = apply_calibrations(self.space.catalog, given)
        return resolve_cluster(given, catalog, AnswerNotes()), catalog

    def build_cluster(self, devices: int) -> ClusterInput:
        """Returns a cluster of this many devices as a member of a question."""
        return self.given.model_copy(update={"accelerator_count": devices})

    def count_max_replicas(self, layout: Parallelism) -> int:
        """Returns the number of replicas that fit. Groups that do not divide a domain use one domain only.

        The next replica would span two domains, but its figures would be those of a replica within one.
        """
        domain = self.cluster.domain
        return (self.most if domain % layout.tensor == 0 else domain) // layout.devices

    def is_alike(self, devices: int) -> bool:
        """Returns true if a replica on this many devices has the same links as on all devices.

        Their number affects no other figure: a group of devices never spans more than there are.
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
        """Every combination of formats for weights and cache, with its layouts."""
        return (
            _build_stored(self, settings) for settings in _list_storages(self.space.question.search.serving)
        )

    @property
    def variants(self) -> Iterator[tuple[_StorageLayouts, Parallelism]]:
        """Configurations in the order of the search."""
        return ((stored, layout) for stored in self.stored for layout in stored.layouts)

    def build_question(
        self, stored: _StorageLayouts, layout: Parallelism, replicas: int = 1
    ) -> ThroughputEstimateRequest:
        """Returns the throughput request for this many replicas."""
        return ThroughputEstimateRequest.model_construct(
            model=self.space.question.model,
            workload=stored.given,
            cluster=self.build_cluster(layout.devices * replicas),
            parallelism=_to_parallelism_input(layout._replace(data=layout.data * replicas)),
            explain=False,
        )


def _list_storages(search: ServingSearch) -> Iterator[Mapping[str, Any]]:
    """Yields members of the workload for each combination of formats."""
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
    """Returns the workload of a kept configuration."""
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
    """Returns the members of a layout in a question."""
    names = ["tensor", "pipeline", "data", "expert"]
    names += ["expert_tensor"] * (layout.expert_tensor is not None)
    return {name: getattr(layout, name) for name in names}


def _get_workload(space: SearchSpace) -> InferenceWorkloadInput:
    """Returns the workload of a plan for a service."""
    workload = space.question.workload
    if not isinstance(workload, InferenceWorkloadInput):
        raise TypeError("the plan is of a training run")
    return workload


def _build_stored(machine: _SearchedDevices, settings: Mapping[str, Any]) -> _StorageLayouts:
    """Returns the layouts to search for one combination of formats."""
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
    """Returns the degrees of the question, with usual ones as defaults."""
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
    """Returns true if the widest replica within a node fits a request."""
    for width in sorted(tensor, reverse=True):
        layout = Parallelism(tensor=width)
        if find_layout_constraint(layout, machine.space.model.profile, machine.cluster) is None:
            return _PlacedVariant(machine, stored, layout).holds != 0
    return True


class _PlacedVariant:
    """A configuration on its devices: the capacity of a replica, and estimates of any number of replicas."""

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

    def _get_filled_bytes(self) -> float | None:
        """Returns the bytes that a replica may fill: those of its engine without the headroom."""
        usable = self._get_usable_bytes()
        return None if usable is None else usable * (1.0 - self.machine.space.headroom_share)

    @property
    def workload(self) -> InferenceWorkload:
        """Workload of the memory estimate, with one request on each rank."""
        return self.case.resident.workload._replace(concurrency=self.layout.data)

    def _count_fitting_requests(self) -> int | None:
        """Returns the most requests of a rank that fit and that its engine accepts, or None if unknown."""
        limit = self._get_filled_bytes()
        if limit is None:
            return self.workload.most_requests
        memory = estimate_inference_memory(self.case.resident.profile, self.workload, self.layout)
        return find_largest_concurrency(memory, self.workload, limit)

    @property
    def state_exceeds(self) -> bool:
        """True if the weights alone exceed a device.

        This proves that nothing fits: the memory of a device includes its weights
        (``ServingMemory.beside_bytes``), and no engine uses more than the device (``usable_bytes_of``). It is
        no bound if blocks stay on the host.
        """
        limit, workload = self._get_usable_bytes(), self.workload
        if limit is None or workload.device_layers is not None:
            return False
        weights = inference_weight_bytes(self.case.resident.profile, workload.storage, self.layout)
        return weights.total > limit / workload.memory_fraction

    def estimate_serving(self, replicas: int) -> ServingEstimate:
        """Returns the estimate of this many replicas, by the function of a single estimate."""
        cluster, catalog = self.machine.resolve_cluster(self.layout.devices * replicas)
        found = estimate_serving(self._resolve_case(replicas, cluster, catalog))
        if found is None:
            detail = "the accelerator has no known rate"
            raise PlanningError("PEAK_RATE_UNKNOWN", "/cluster/accelerator", detail)
        return found

    def estimate_servings(self, numbers: Sequence[int]) -> Iterator[ServingEstimate]:
        """Yields estimates for several numbers of replicas, in arrays where only their load differs."""
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
        """Returns true if this many replicas differ from others in their load only."""
        trace = len(self.case.load.at_seconds) > 1
        return not trace and self.machine.is_alike(replicas * self.layout.devices)

    def _replace_replicas(self, case: InferenceCase, replicas: int) -> InferenceCase:
        return replace(case, layout=self.layout._replace(data=self.layout.data * replicas))

    @staticmethod
    def _count_busy(case: InferenceCase) -> int:
        """Returns the number of replicas that have a request."""
        requests = case.load.concurrency
        return case.replicas if requests is None else min(case.replicas, requests)


def _find_least_replicas(placed: _PlacedVariant, most: int) -> int | PlanConstraint:
    """Returns the fewest replicas that fit the concurrent requests, or the constraint that prevents it."""
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
    """Check that numbers of replicas carry the load within the service levels."""

    def __init__(self, placed: _PlacedVariant, question: PlanRequest) -> None:
        self._placed = placed
        given = get_service_levels(question)
        self._levels = None if given is MISSING else resolve_levels(given)

    def check_replica_counts(self, numbers: Sequence[int]) -> list[bool]:
        """Returns the result of the check for each number of replicas."""
        return [self.is_carried(serving) for serving in self._placed.estimate_servings(numbers)]

    def is_carried(self, serving: ServingEstimate) -> bool:
        """Returns true if the replicas of an estimate carry the load."""
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
        """Returns the number of replicas below which each is saturated."""
        rate = serving.case.load.rate_per_second
        if rate is None:
            return 1
        return max(1, math.floor(rate / serving.served.most_requests_per_second * (1.0 - 1e-9)))

    def is_missed_alone(self, serving: ServingEstimate) -> bool:
        """Returns true if even requests without others take longer for a token than the level allows.

        This proves that no number of replicas with such links keeps the level: half of the requests on the
        lattice (``sampling``) have a deviate of their prefills above 0. Each of those takes at least the mean
        time of a token without the part that grows with the batch (``_pace_samples``), which is at least an
        iteration of the quickest batch; interpolation on the curve changes it by less than a twentieth. So at
        most half of the requests keep the level. Requests of one token have no such time; bursts, static
        batches and speculation have other forms, and corrections by a tenant's own runs vary with the load:
        nothing is proven for these.
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
    """Returns the seconds of the quickest iteration in which requests decode, over any number of them."""
    batches = np.power(2.0, np.arange(15.0))
    context = batches * serving.load.decoding_context
    zeros = np.zeros_like(batches)
    times = serving.model.compute_time(IterationBatch(batches, context, zeros, zeros, zeros))
    return float(np.min(times.seconds))


def _decide_layout(
    machine: _SearchedDevices, stored: _StorageLayouts, layout: Parallelism
) -> PlanConstraint | PruningRule | KeptConfiguration:
    """Returns the configuration with its fewest replicas, or the rule that excludes it."""
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
    space = machine.space
    found = _find_within_levels(placed, _LevelCheck(placed, space.question), least, most)
    if isinstance(found, KeptConfiguration) or not _has_default_levels(space):
        return found
    beyond = _find_within_levels(placed, _LevelCheck(placed, space.asked), least, most)
    return beyond._replace(keeps_levels=False) if isinstance(beyond, KeptConfiguration) else found


def _has_default_levels(space: SearchSpace) -> bool:
    return get_service_levels(space.asked) != get_service_levels(space.question)


def _find_within_levels(
    placed: _PlacedVariant, levels: "_LevelCheck", least: int, most: int
) -> PlanConstraint | PruningRule | KeptConfiguration:
    """Returns the configuration with the fewest replicas that keep some levels, or the rule against it."""
    if placed.is_alike(1):
        light = next(placed.estimate_servings([most]))
        if PruningRule.LEVELS in placed.machine.rules and levels.is_missed_alone(light):
            return PruningRule.LEVELS
        least = max(least, levels.count_least_replicas(light))
    return _find_fewest(placed, levels, least, most) or PlanConstraint.SERVICE_LEVEL


def _find_shape_constraint(
    machine: _SearchedDevices, stored: _StorageLayouts, layout: Parallelism
) -> PlanConstraint | None:
    """Returns the constraint that rules a layout out regardless of its memory."""
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
    """Returns the fewest replicas that carry the load, or None."""
    while (found := find_fewest_replicas(least, most, levels.check_replica_counts)) is not None:
        kept = _build_kept(placed, found, levels)
        if kept is not None:
            return kept
        least = found + 1
    return None


def _build_kept(placed: _PlacedVariant, replicas: int, levels: _LevelCheck) -> KeptConfiguration | None:
    """Returns the configuration by single estimates, or None if they show that it does not carry the load."""
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
    if not levels.is_carried(run.serving) or not _has_headroom(memory, machine.space):
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


def _has_headroom(question: MemoryEstimateRequest, space: SearchSpace) -> bool:
    """Returns true if the memory of a device is unknown, or holds the configuration with its headroom."""
    found = estimate_memory(question, space.catalog)
    if "headroom_bytes" not in found:
        return True
    return found["headroom_bytes"] >= space.headroom_share * found.get("usable_bytes", 0.0)


def split_services(space: SearchSpace) -> tuple[SearchPiece, ...]:
    """Returns the configurations of a service in pieces of about a second.

    Raises :class:`PlanningError` for a workload that is not a service under a load, and for too large a
    search.
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
    """Refuses a workload that is not a service under a load, or that is not modelled."""
    given, profile = _get_workload(space), space.model.profile
    for name in _APART:
        if getattr(given, name) is not MISSING:
            detail = "only replicas of one kind that generate tokens can be searched"
            raise PlanningError("NOT_MODELLED", f"/workload/{name}", detail)
    if not profile.shapes_known:
        detail = "prefill and decode need the shapes of the model"
        raise PlanningError("ARCHITECTURE_REQUIRED", "/model", detail)
    if kinds := list_unserved_kinds(profile):
        detail = f"layers of kind {', '.join(sorted(kinds))} are not modelled"
        raise PlanningError("LAYER_KIND_NOT_MODELLED", "/model", detail)
    if not profile.generates:
        raise PlanningError("NOT_MODELLED", "/model", "a service of forward passes cannot be searched")
    trace = given.arrivals is not MISSING and given.arrivals.process == "trace"
    if given.concurrency is MISSING and given.request_rate_per_second is MISSING and not trace:
        detail = "a plan of a service needs a load: give request_rate_per_second or concurrency"
        raise PlanningError("LOAD_REQUIRED", "/workload/request_rate_per_second", detail)


def _count_configurations(space: SearchSpace) -> list[int]:
    """Returns the configurations on each cluster. Too many are refused, naming the longest list."""
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
    detail = f"a search of a service has at most {_get_max_configurations(space):,} configurations"
    return PlanningError("SEARCH_TOO_LARGE", pointer, detail)


def search_services(
    space: SearchSpace, piece: SearchPiece, rules: Sequence[PruningRule] = tuple(PruningRule)
) -> SearchOutcome:
    """Returns the configurations of ``piece``, each with its fewest replicas. ``rules`` may prune."""
    ruled_out, pruned = Counter[PlanConstraint](), Counter[PruningRule]()
    kept: list[KeptConfiguration] = []
    scored = feasible = 0
    for place, first, last in piece.part["ranges"]:
        machine = _SearchedDevices(space, place, rules)
        for stored, layout in islice(machine.variants, first, last):
            found = _decide_layout(machine, stored, layout)
            if isinstance(found, KeptConfiguration):
                kept.append(found)
                found = found if found.keeps_levels else PlanConstraint.SERVICE_LEVEL
            scored += isinstance(found, KeptConfiguration) or found is PlanConstraint.SERVICE_LEVEL
            if isinstance(found, KeptConfiguration):
                feasible += 1
            elif isinstance(found, PruningRule):
                pruned[found] += 1
            else:
                ruled_out[found] += 1
    return SearchOutcome(piece.candidates, scored, feasible, ruled_out, pruned, tuple(kept))
