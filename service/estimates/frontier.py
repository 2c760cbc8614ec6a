"""Which configurations of a served model are best, for its users and for the devices?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeVar

from pydantic import MISSING

from service.kit.http.cancellation import check_cancelled
from service.planning.cases import InferenceCase
from service.planning.errors import PlanningError
from service.planning.estimates.calibrations import note_case, note_memory
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.estimates.serving import ServingEstimate, estimate_serving
from service.planning.estimates.serving_run import cite_iterations, list_unserved_kinds
from service.planning.hardware.cluster import Cluster
from service.planning.inference import (
    FrontierChoice,
    FrontierConstraint,
    FrontierSpeed,
    FrontierVariant,
    SearchDegrees,
    estimate_closed_loops,
    find_frontier,
    find_layout_constraint,
    list_batch_sizes,
    list_layouts,
)
from service.planning.memory.capacity import compute_usable_bytes, find_largest_concurrency
from service.planning.memory.serving import estimate_inference_memory
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.quantity import combine, inverted, scaled
from service.planning.workload import InferenceWorkload
from service.resolve import resolve_served
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.hardware import replace_accelerator, resolve_cluster
from service.resolve.load import resolve_lengths, resolve_levels
from service.resolve.model import resolve_model
from service.schemas.answer import to_evidence, to_integer, to_parallelism, to_quantity
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.frontier import (
    MOST_CONFIGURATIONS,
    MOST_VARIANTS,
    FrontierPoint,
    ThroughputFrontier,
    ThroughputFrontierRequest,
)
from service.schemas.references import ParallelismInput
from service.schemas.workloads import InferenceWorkloadInput

_LARGEST_CONCURRENCY = 1_000_000
"""Of a throughput question."""
_SEARCHED = ("concurrency", "request_rate_per_second", "arrivals")
"""Members of a workload that a search sets."""
_APART = ("disaggregated", "passes")
"""Members that ask for something else than replicas of one layout that generate tokens."""


class _SearchedLayout(NamedTuple):
    """A layout and precision on a cluster, and the requests at a time on each replica that it can hold."""

    question: ThroughputEstimateRequest
    given: InferenceWorkloadInput
    case: InferenceCase
    """With one request at a time on each replica."""
    sizes: Sequence[int]

    @property
    def layout(self) -> Parallelism:
        """Of the variant."""
        return self.case.layout

    @property
    def workload(self) -> InferenceWorkload:
        """As memory sees it."""
        return self.case.resident.workload

    def build_question(self, size: int) -> ThroughputEstimateRequest:
        """The throughput question of ``size`` requests at a time on each replica."""
        workload = self.given.model_copy(update={"concurrency": size * self.layout.data})
        return self.question.model_copy(update={"workload": workload})

    def compute_headroom_bytes(self, size: int) -> float | None:
        """What is left of the engine's share of the fullest device; None where the capacity is unknown."""
        workload = self.workload._replace(concurrency=size * self.layout.data)
        limit = get_usable_bytes(self.case.cluster, workload)
        if limit is None:
            return None
        memory = estimate_inference_memory(self.case.resident.profile, workload, self.layout)
        return compute_usable_bytes(memory, workload, limit) - memory.total_bytes


class _FrontierSearch:
    """The configurations of a question, and how many of them what rules out."""

    def __init__(self, question: ThroughputFrontierRequest, catalog: CatalogView) -> None:
        self.question = question
        self.catalog = catalog
        self.notes = AnswerNotes()
        self.model = resolve_model(question.model, catalog, self.notes)
        self.ruled_out: Counter[FrontierConstraint] = Counter()
        self.considered = 0
        asked = question.search.requests_per_replica
        self.sizes = list_batch_sizes() if asked is MISSING else tuple(sorted(set(asked)))

    def is_answered(self) -> bool:
        """Whether the model's work is known; what is not is a gap."""
        longest = resolve_lengths(self.question.workload.output_tokens, "/workload/output_tokens").values[-1]
        profile = self.model.profile
        if not profile.shapes_known:
            detail = "prefill and decode need the shapes of the model"
            self.notes.add_gap("/points", "ARCHITECTURE_REQUIRED", detail)
        elif kinds := list_unserved_kinds(profile):
            detail = f"the work of layers of kind {', '.join(sorted(kinds))} is not modelled"
            self.notes.add_gap("/points", "LAYER_KIND_NOT_MODELLED", detail)
        elif any(getattr(self.question.workload, name) is not MISSING for name in _APART):
            detail = (
                f"one kind of replica that generates tokens is searched: leave out {' and '.join(_APART)}"
            )
            self.notes.add_gap("/points", "NOT_MODELLED", detail)
        elif not profile.generates or longest <= 1.0:
            self.notes.add_gap("/points", "NOT_APPLICABLE", "no request has a second token")
        else:
            return True
        return False

    def list_variants(self) -> Iterator[_SearchedLayout]:
        """Every layout and precision that can hold a request."""
        seen = 0
        for question, cluster, catalog in self._list_clusters():
            for workload in self._list_workloads():
                for layout in list_layouts(
                    self.model.profile, cluster.accelerator_count, self._get_degrees()
                ):
                    most = _LARGEST_CONCURRENCY // layout.data
                    sizes = [size for size in self.sizes if size <= most]
                    self.considered += len(sizes)
                    reason = find_layout_constraint(layout, self.model.profile, cluster)
                    seen += reason is None
                    self._check_size(seen)
                    if reason is not None:
                        self.ruled_out[reason] += len(sizes)
                        continue
                    found = self._build_variant(question, workload, layout, cluster, sizes, catalog=catalog)
                    if found is not None and found.sizes:
                        yield found

    def _check_size(self, variants: int) -> None:
        """Refuse what takes too long, naming the longest list of the question."""
        if variants <= MOST_VARIANTS and self.considered <= MOST_CONFIGURATIONS:
            return
        lists = {name: len(given) for name, given in self.question.search if isinstance(given, list)}
        longest = max(lists, key=lambda name: lists[name], default=None)
        detail = (
            f"a search has at most {MOST_CONFIGURATIONS:,} configurations, {MOST_VARIANTS:,} of which differ "
            "in more than requests at a time"
        )
        pointer = f"/search/{longest}" if longest else "/cluster/accelerator_count"
        raise PlanningError("SEARCH_TOO_LARGE", pointer, detail)

    def _get_degrees(self) -> SearchDegrees:
        search = self.question.search
        given = (search.tensor, search.pipeline, search.expert, search.expert_tensor)
        return SearchDegrees(*(None if degrees is MISSING else degrees for degrees in given))

    def _list_clusters(self) -> Iterator[tuple[ThroughputEstimateRequest, Cluster, CatalogView]]:
        given, accelerators = self.question.cluster, self.question.search.accelerators
        references = [given.accelerator] if accelerators is MISSING else accelerators
        for place, reference in enumerate(references):
            asked = replace_accelerator(given, reference)
            pointer = "/cluster/accelerator" if accelerators is MISSING else f"/search/accelerators/{place}"
            try:
                catalog = apply_calibrations(self.catalog, asked)
                cluster = resolve_cluster(asked, catalog, self.notes)
            except PlanningError as error:
                at = error.pointer.replace("/cluster/accelerator", pointer, 1)
                raise PlanningError(error.code, at, error.detail) from error
            if cluster.accelerator.bandwidth_bytes_per_second is None:
                detail = f"the memory bandwidth of the accelerator at {pointer} is not known"
                self.notes.add_gap("/points", "BANDWIDTH_UNKNOWN", detail)
                continue
            question = ThroughputEstimateRequest.model_construct(
                model=self.question.model, workload=self.question.workload, cluster=asked
            )
            yield question, cluster, catalog

    def _list_workloads(self) -> Iterator[InferenceWorkloadInput]:
        given, search = self.question.workload, self.question.search
        stored: list[dict[str, Any]] = []
        if search.weight_formats is not MISSING:
            stored += [{"weight_format": name, "weight_precision": MISSING} for name in search.weight_formats]
        if search.weight_precisions is not MISSING:
            stored += [{"weight_format": MISSING, "weight_precision": p} for p in search.weight_precisions]
        caches = search.kv_cache_precisions
        kept = [{}] if caches is MISSING else [{"kv_cache_precision": name} for name in caches]
        for weights, cache in product(stored or [{}], kept):
            yield given.model_copy(update={**weights, **cache})

    def _build_variant(
        self,
        question: ThroughputEstimateRequest,
        given: InferenceWorkloadInput,
        layout: Parallelism,
        cluster: Cluster,
        sizes: Sequence[int],
        *,
        catalog: CatalogView,
    ) -> _SearchedLayout | None:
        """The variant with what memory and engine allow; None where it has no rate for its precision."""
        alone = {**dict.fromkeys(_SEARCHED, MISSING), "concurrency": layout.data}
        given = given.model_copy(update=alone)
        question = question.model_copy(
            update={"workload": given, "parallelism": _to_parallelism_input(layout)}
        )
        notes = AnswerNotes()
        case = resolve_served(question, given, cluster, self.model, catalog=catalog, notes=notes)
        self.notes.merge(notes)
        profile, workload = case.resident
        try:
            compute_peak(cluster, workload)
        except PlanningError:
            self.ruled_out[FrontierConstraint.PRECISION] += len(sizes)
            return None
        allowed = sizes
        if workload.most_requests is not None:
            allowed = [size for size in sizes if size <= workload.most_requests]
            self.ruled_out[FrontierConstraint.ENGINE] += len(sizes) - len(allowed)
        limit = get_usable_bytes(cluster, workload)
        if limit is not None:
            memory = estimate_inference_memory(profile, workload, case.layout)
            most = find_largest_concurrency(memory, workload, limit)
            fitting = [size for size in allowed if size <= most]
            self.ruled_out[FrontierConstraint.MEMORY] += len(allowed) - len(fitting)
            allowed = fitting
        return _SearchedLayout(question, given, case, allowed)


def _to_parallelism_input(layout: Parallelism) -> ParallelismInput:
    return ParallelismInput(
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        data=layout.data,
        expert=layout.expert,
        expert_tensor=MISSING if layout.expert_tensor is None else layout.expert_tensor,
    )


_Figure = TypeVar("_Figure")


def _require_second_token(figure: _Figure | None) -> _Figure:
    """A figure of the tokens behind the first, which every request that is searched has."""
    if figure is None:
        raise PlanningError("NOT_APPLICABLE", "/workload/output_tokens", "no request has a second token")
    return figure


class _VariantSpeeds:
    """What a variant does for numbers of requests, by the functions of a single estimate."""

    def __init__(self, searched: _SearchedLayout) -> None:
        self._searched = searched
        least = searched.sizes[0]
        one = estimate_serving(self._replace_requests(least * searched.layout.data))
        if one is None:
            detail = "no rate of the accelerator is known"
            raise PlanningError("PEAK_RATE_UNKNOWN", "/cluster/accelerator", detail)
        self._one = one
        self.notes = AnswerNotes()
        cite_iterations(one, self.notes)
        note_case(searched.case, self.notes)
        note_memory(searched.case.device, self.notes, has_context=True)
        given = searched.given.service_levels
        self._levels = None if given is MISSING else resolve_levels(given)
        self._known: dict[int, ServingEstimate] = {least: one}

    def _replace_requests(self, requests: int) -> InferenceCase:
        """The case with so many requests at a time over the whole cluster."""
        case = self._searched.case
        return replace(
            case,
            workload=case.workload._replace(concurrency=requests),
            load=case.load._replace(concurrency=requests),
        )

    def estimate_speeds(self, sizes: Sequence[int]) -> list[FrontierSpeed]:
        """With each of so many requests at a time on each replica."""
        check_cancelled()
        one = self._one
        new = [size for size in sizes if size not in self._known]
        requests = [size * self._searched.layout.data for size in new]
        each = [count / one.replicas for count in requests]
        answered = estimate_closed_loops(one.model, one.server, one.load, each)
        for size, count, found in zip(new, requests, answered, strict=True):
            load = one.load._replace(concurrency=count / one.replicas)
            self._known[size] = replace(one, served=found, load=load, case=self._replace_requests(count))
        return [self._to_speed(self._known[size]) for size in sizes]

    def _to_speed(self, serving: ServingEstimate) -> FrontierSpeed:
        found, devices, levels = serving.served, self._searched.layout.devices, self._levels
        each = _require_second_token(found.time_per_output_token_seconds)
        rate = found.requests_per_second * serving.replicas * self._searched.workload.output_tokens
        if serving.case.curves.local is None:
            within = levels is None or found.compute_goodput(levels.limits) >= levels.share
            return FrontierSpeed(rate / devices, 1.0 / each.mean, within)
        spreads = serving.spreads
        within = levels is None or serving.estimate_goodput(levels.limits).value >= levels.share
        return FrontierSpeed(
            rate * spreads.rate.middle / devices, 1.0 / (each.mean * spreads.output_token.middle), within
        )

    def to_point(self, size: int) -> FrontierPoint:
        """The answer about ``size`` requests at a time on each replica, whose speed is known."""
        searched, serving = self._searched, self._known[size]
        self.notes.record_calibrations(serving.spreads.of_time)
        outputs, devices = searched.workload.output_tokens, float(searched.layout.devices)
        requests = serving.requests_per_second
        each = _require_second_token(serving.time_per_output_token_seconds)
        point: FrontierPoint = {
            "parallelism": to_parallelism(searched.layout, chosen=False),
            "accelerator_id": searched.case.cluster.accelerator.id,
            "weight_format": searched.workload.storage.name,
            "kv_cache_precision": searched.given.kv_cache_precision,
            "concurrency": size * searched.layout.data,
            "requests_per_replica": size,
            "output_tokens_per_second_per_device": to_quantity(scaled(requests, outputs / devices)),
            "output_tokens_per_second_per_user": to_quantity(combine(lambda s: 1.0 / s, inverted(each))),
            "output_tokens_per_second": to_quantity(scaled(requests, outputs)),
            "requests_per_second": to_quantity(requests),
            "time_to_first_token_seconds": to_quantity(serving.time_to_first_token_seconds),
            "time_per_output_token_seconds": to_quantity(each),
            "request_seconds": to_quantity(serving.request_seconds),
            "throughput_question": searched.build_question(size),
        }
        if self._levels is not None:
            point["service_level_share"] = to_quantity(serving.estimate_goodput(self._levels.limits))
        headroom = searched.compute_headroom_bytes(size)
        if headroom is not None:
            point["headroom_bytes"] = to_integer(headroom)
        return point


def estimate_frontier(question: ThroughputFrontierRequest, catalog: CatalogView) -> ThroughputFrontier:
    """The Pareto set of tokens per device and tokens per user, with the question that gives each of it."""
    search = _FrontierSearch(question, catalog)
    notes = search.notes
    _warn_of_given(question, notes)
    is_answered = search.is_answered()
    searched = list(search.list_variants()) if is_answered else []
    answering = [_VariantSpeeds(one) for one in searched]
    found = find_frontier(
        [FrontierVariant(one.sizes, by.estimate_speeds) for one, by in zip(searched, answering, strict=True)]
    )
    within = sum(found.within)
    search.ruled_out[FrontierConstraint.SERVICE_LEVEL] += sum(len(one.sizes) for one in searched) - within
    points = [
        answering[chosen.variant].to_point(searched[chosen.variant].sizes[chosen.size])
        for chosen in _select_evenly(found.chosen, question.search.most_points)
    ]
    for by in answering:
        notes.merge(by.notes)
    answer: ThroughputFrontier = {
        "points": points,
        "configurations": {
            "considered": search.considered,
            "feasible": within,
            "pareto": len(found.chosen),
            "ruled_out": [
                {"constraint": constraint, "configurations": search.ruled_out[constraint]}
                for constraint in FrontierConstraint
                if search.ruled_out[constraint]
            ],
        },
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if question.workload.service_levels is not MISSING:
        if points:
            answer["best"] = points[0]
        elif is_answered:
            notes.add_gap("/best", "NONE_WITHIN_LEVELS", "no configuration keeps to the service levels")
    return answer


def _select_evenly(chosen: Sequence[FrontierChoice], most: int) -> Sequence[FrontierChoice]:
    """Both ends and an even choice between them."""
    if len(chosen) <= most:
        return chosen
    return [chosen[round(place * (len(chosen) - 1) / (most - 1))] for place in range(most)]


def _warn_of_given(question: ThroughputFrontierRequest, notes: AnswerNotes) -> None:
    given = question.workload.model_fields_set
    for name in _SEARCHED:
        if name in given:
            notes.warn("NOT_USED", f"/workload/{name}", "requests at a time are what the search varies")
