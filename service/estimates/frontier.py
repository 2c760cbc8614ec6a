"""Which configurations of a served model are best, for its users and for the devices?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple, TypeVar

from pydantic import MISSING

from service.kit.http.wanted import check_wanted
from service.planning.cases import InferenceCase
from service.planning.errors import PlanningError
from service.planning.estimates.calibrations import note_case, note_memory
from service.planning.estimates.devices import compute_peak, usable_bytes
from service.planning.estimates.serving import Serving, serve
from service.planning.estimates.serving_run import cite_iterations, unserved_kinds
from service.planning.hardware.cluster import Cluster
from service.planning.inference import (
    Chosen,
    Constraint,
    Degrees,
    Speed,
    Variant,
    batch_sizes,
    frontier,
    layouts,
    ruled_out,
    served_closed,
)
from service.planning.memory.capacity import largest_concurrency, usable_bytes_of
from service.planning.memory.serving import inference_memory
from service.planning.notes import Notes
from service.planning.parallelism import Parallelism
from service.planning.quantity import combine, inverted, scaled
from service.planning.workload import InferenceWorkload
from service.resolve import resolve_served
from service.resolve.calibrated import calibrated
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster, with_accelerator
from service.resolve.load import resolve_lengths, resolve_levels
from service.resolve.model import resolve_model
from service.schemas.answer import evidence, parallelism, quantity, whole
from service.schemas.estimates import ThroughputQuestion
from service.schemas.frontier import (
    MOST_CONFIGURATIONS,
    MOST_VARIANTS,
    FrontierAnswer,
    FrontierPoint,
    FrontierQuestion,
)
from service.schemas.references import ParallelismInput
from service.schemas.workloads import InferenceWorkloadInput

_LARGEST_CONCURRENCY = 1_000_000
"""Of a throughput question."""
_SEARCHED = ("concurrency", "request_rate_per_second", "arrivals")
"""Members of a workload that a search sets."""
_APART = ("disaggregated", "passes")
"""Members that ask for something else than replicas of one layout that generate tokens."""


class _Searched(NamedTuple):
    """A layout and precision on a cluster, and the requests at a time on each replica that it can hold."""

    question: ThroughputQuestion
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

    def asking(self, size: int) -> ThroughputQuestion:
        """The throughput question of ``size`` requests at a time on each replica."""
        workload = self.given.model_copy(update={"concurrency": size * self.layout.data})
        return self.question.model_copy(update={"workload": workload})

    def headroom_bytes(self, size: int) -> float | None:
        """What is left of the engine's share of the fullest device; None where the capacity is unknown."""
        workload = self.workload._replace(concurrency=size * self.layout.data)
        limit = usable_bytes(self.case.cluster, workload)
        if limit is None:
            return None
        memory = inference_memory(self.case.resident.profile, workload, self.layout)
        return usable_bytes_of(memory, workload, limit) - memory.total_bytes


class _Search:
    """The configurations of a question, and how many of them what rules out."""

    def __init__(self, question: FrontierQuestion, catalog: CatalogView) -> None:
        self.question = question
        self.catalog = catalog
        self.notes = Notes()
        self.model = resolve_model(question.model, catalog, self.notes)
        self.ruled_out: Counter[Constraint] = Counter()
        self.considered = 0
        asked = question.search.requests_per_replica
        self.sizes = batch_sizes() if asked is MISSING else tuple(sorted(set(asked)))

    def is_answered(self) -> bool:
        """Whether the model's work is known; what is not is a gap."""
        longest = resolve_lengths(self.question.workload.output_tokens, "/workload/output_tokens").values[-1]
        profile = self.model.profile
        if not profile.shapes_known:
            detail = "prefill and decode need the shapes of the model"
            self.notes.gap("/points", "ARCHITECTURE_REQUIRED", detail)
        elif kinds := unserved_kinds(profile):
            detail = f"the work of layers of kind {', '.join(sorted(kinds))} is not modelled"
            self.notes.gap("/points", "LAYER_KIND_NOT_MODELLED", detail)
        elif any(getattr(self.question.workload, name) is not MISSING for name in _APART):
            detail = (
                f"one kind of replica that generates tokens is searched: leave out {' and '.join(_APART)}"
            )
            self.notes.gap("/points", "NOT_MODELLED", detail)
        elif not profile.generates or longest <= 1.0:
            self.notes.gap("/points", "NOT_APPLICABLE", "no request has a second token")
        else:
            return True
        return False

    def variants(self) -> Iterator[_Searched]:
        """Every layout and precision that can hold a request."""
        seen = 0
        for question, cluster, catalog in self._clusters():
            for workload in self._workloads():
                for layout in layouts(self.model.profile, cluster.accelerator_count, self._degrees()):
                    most = _LARGEST_CONCURRENCY // layout.data
                    sizes = [size for size in self.sizes if size <= most]
                    self.considered += len(sizes)
                    reason = ruled_out(layout, self.model.profile, cluster)
                    seen += reason is None
                    self._check_size(seen)
                    if reason is not None:
                        self.ruled_out[reason] += len(sizes)
                        continue
                    found = self._held(question, workload, layout, cluster, sizes, catalog=catalog)
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

    def _degrees(self) -> Degrees:
        search = self.question.search
        given = (search.tensor, search.pipeline, search.expert, search.expert_tensor)
        return Degrees(*(None if degrees is MISSING else degrees for degrees in given))

    def _clusters(self) -> Iterator[tuple[ThroughputQuestion, Cluster, CatalogView]]:
        given, accelerators = self.question.cluster, self.question.search.accelerators
        references = [given.accelerator] if accelerators is MISSING else accelerators
        for place, reference in enumerate(references):
            asked = with_accelerator(given, reference)
            pointer = "/cluster/accelerator" if accelerators is MISSING else f"/search/accelerators/{place}"
            try:
                catalog = calibrated(self.catalog, asked)
                cluster = resolve_cluster(asked, catalog, self.notes)
            except PlanningError as error:
                at = error.pointer.replace("/cluster/accelerator", pointer, 1)
                raise PlanningError(error.code, at, error.detail) from error
            if cluster.accelerator.bandwidth_bytes_per_second is None:
                detail = f"the memory bandwidth of the accelerator at {pointer} is not known"
                self.notes.gap("/points", "BANDWIDTH_UNKNOWN", detail)
                continue
            question = ThroughputQuestion.model_construct(
                model=self.question.model, workload=self.question.workload, cluster=asked
            )
            yield question, cluster, catalog

    def _workloads(self) -> Iterator[InferenceWorkloadInput]:
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

    def _held(
        self,
        question: ThroughputQuestion,
        given: InferenceWorkloadInput,
        layout: Parallelism,
        cluster: Cluster,
        sizes: Sequence[int],
        *,
        catalog: CatalogView,
    ) -> _Searched | None:
        """The variant with what memory and engine allow; None where it has no rate for its precision."""
        alone = {**dict.fromkeys(_SEARCHED, MISSING), "concurrency": layout.data}
        given = given.model_copy(update=alone)
        question = question.model_copy(update={"workload": given, "parallelism": _given(layout)})
        notes = Notes()
        case = resolve_served(question, given, cluster, self.model, catalog=catalog, notes=notes)
        self.notes.take(notes)
        profile, workload = case.resident
        try:
            compute_peak(cluster, workload)
        except PlanningError:
            self.ruled_out[Constraint.PRECISION] += len(sizes)
            return None
        allowed = sizes
        if workload.most_requests is not None:
            allowed = [size for size in sizes if size <= workload.most_requests]
            self.ruled_out[Constraint.ENGINE] += len(sizes) - len(allowed)
        limit = usable_bytes(cluster, workload)
        if limit is not None:
            memory = inference_memory(profile, workload, case.layout)
            most = largest_concurrency(memory, workload, limit)
            fitting = [size for size in allowed if size <= most]
            self.ruled_out[Constraint.MEMORY] += len(allowed) - len(fitting)
            allowed = fitting
        return _Searched(question, given, case, allowed)


def _given(layout: Parallelism) -> ParallelismInput:
    return ParallelismInput(
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        data=layout.data,
        expert=layout.expert,
        expert_tensor=MISSING if layout.expert_tensor is None else layout.expert_tensor,
    )


_Figure = TypeVar("_Figure")


def _of_second_token(figure: _Figure | None) -> _Figure:
    """A figure of the tokens behind the first, which every request that is searched has."""
    if figure is None:
        raise PlanningError("NOT_APPLICABLE", "/workload/output_tokens", "no request has a second token")
    return figure


class _Served:
    """What a variant does for numbers of requests, by the functions of a single estimate."""

    def __init__(self, searched: _Searched) -> None:
        self._searched = searched
        least = searched.sizes[0]
        one = serve(self._with_requests(least * searched.layout.data))
        if one is None:
            detail = "no rate of the accelerator is known"
            raise PlanningError("PEAK_RATE_UNKNOWN", "/cluster/accelerator", detail)
        self._one = one
        self.notes = Notes()
        cite_iterations(one, self.notes)
        note_case(searched.case, self.notes)
        note_memory(searched.case.device, self.notes, has_context=True)
        given = searched.given.service_levels
        self._levels = None if given is MISSING else resolve_levels(given)
        self._known: dict[int, Serving] = {least: one}

    def _with_requests(self, requests: int) -> InferenceCase:
        """The case with so many requests at a time over the whole cluster."""
        case = self._searched.case
        return replace(
            case,
            workload=case.workload._replace(concurrency=requests),
            load=case.load._replace(concurrency=requests),
        )

    def speeds(self, sizes: Sequence[int]) -> list[Speed]:
        """With each of so many requests at a time on each replica."""
        check_wanted()
        one = self._one
        new = [size for size in sizes if size not in self._known]
        requests = [size * self._searched.layout.data for size in new]
        each = [count / one.replicas for count in requests]
        answered = served_closed(one.model, one.server, one.load, each)
        for size, count, found in zip(new, requests, answered, strict=True):
            load = one.load._replace(concurrency=count / one.replicas)
            self._known[size] = replace(one, served=found, load=load, case=self._with_requests(count))
        return [self._speed(self._known[size]) for size in sizes]

    def _speed(self, serving: Serving) -> Speed:
        found, devices, levels = serving.served, self._searched.layout.devices, self._levels
        each = _of_second_token(found.time_per_output_token_seconds)
        rate = found.requests_per_second * serving.replicas * self._searched.workload.output_tokens
        if serving.case.curves.local is None:
            within = levels is None or found.goodput(levels.limits) >= levels.share
            return Speed(rate / devices, 1.0 / each.mean, within)
        spreads = serving.spreads
        within = levels is None or serving.goodput(levels.limits).value >= levels.share
        return Speed(
            rate * spreads.rate.middle / devices, 1.0 / (each.mean * spreads.output_token.middle), within
        )

    def point(self, size: int) -> FrontierPoint:
        """The answer about ``size`` requests at a time on each replica, whose speed is known."""
        searched, serving = self._searched, self._known[size]
        self.notes.calibrated(serving.spreads.of_time)
        outputs, devices = searched.workload.output_tokens, float(searched.layout.devices)
        requests = serving.requests_per_second
        each = _of_second_token(serving.time_per_output_token_seconds)
        point: FrontierPoint = {
            "parallelism": parallelism(searched.layout, chosen=False),
            "accelerator_id": searched.case.cluster.accelerator.id,
            "weight_format": searched.workload.storage.name,
            "kv_cache_precision": searched.given.kv_cache_precision,
            "concurrency": size * searched.layout.data,
            "requests_per_replica": size,
            "output_tokens_per_second_per_device": quantity(scaled(requests, outputs / devices)),
            "output_tokens_per_second_per_user": quantity(combine(lambda s: 1.0 / s, inverted(each))),
            "output_tokens_per_second": quantity(scaled(requests, outputs)),
            "requests_per_second": quantity(requests),
            "time_to_first_token_seconds": quantity(serving.time_to_first_token_seconds),
            "time_per_output_token_seconds": quantity(each),
            "request_seconds": quantity(serving.request_seconds),
            "throughput_question": searched.asking(size),
        }
        if self._levels is not None:
            point["service_level_share"] = quantity(serving.goodput(self._levels.limits))
        headroom = searched.headroom_bytes(size)
        if headroom is not None:
            point["headroom_bytes"] = whole(headroom)
        return point


def estimate_frontier(question: FrontierQuestion, catalog: CatalogView) -> FrontierAnswer:
    """The Pareto set of tokens per device and tokens per user, with the question that gives each of it."""
    search = _Search(question, catalog)
    notes = search.notes
    _warn_of_given(question, notes)
    is_answered = search.is_answered()
    searched = list(search.variants()) if is_answered else []
    answering = [_Served(one) for one in searched]
    found = frontier([Variant(one.sizes, by.speeds) for one, by in zip(searched, answering, strict=True)])
    within = sum(found.within)
    search.ruled_out[Constraint.SERVICE_LEVEL] += sum(len(one.sizes) for one in searched) - within
    points = [
        answering[chosen.variant].point(searched[chosen.variant].sizes[chosen.size])
        for chosen in _evenly(found.chosen, question.search.most_points)
    ]
    for by in answering:
        notes.take(by.notes)
    answer: FrontierAnswer = {
        "points": points,
        "configurations": {
            "considered": search.considered,
            "feasible": within,
            "pareto": len(found.chosen),
            "ruled_out": [
                {"constraint": constraint, "configurations": search.ruled_out[constraint]}
                for constraint in Constraint
                if search.ruled_out[constraint]
            ],
        },
        "evidence": evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if question.workload.service_levels is not MISSING:
        if points:
            answer["best"] = points[0]
        elif is_answered:
            notes.gap("/best", "NONE_WITHIN_LEVELS", "no configuration keeps to the service levels")
    return answer


def _evenly(chosen: Sequence[Chosen], most: int) -> Sequence[Chosen]:
    """Both ends and an even choice between them."""
    if len(chosen) <= most:
        return chosen
    return [chosen[round(place * (len(chosen) - 1) / (most - 1))] for place in range(most)]


def _warn_of_given(question: FrontierQuestion, notes: Notes) -> None:
    given = question.workload.model_fields_set
    for name in _SEARCHED:
        if name in given:
            notes.warn("NOT_USED", f"/workload/{name}", "requests at a time are what the search varies")
