"""Configurations of a served model that no other betters, for its users and for the devices.

A setting is a cluster with a precision of weights and cache; its layouts are open. Each layout with the
requests at a time that it can hold is a variant of :func:`service.planning.inference.find_frontier`, whose
speeds are those of :func:`service.planning.estimates.serving.estimate_serving`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from service.planning.cases import InferenceCase, ServiceLevels
from service.planning.errors import PlanningError
from service.planning.estimates.calibrations import note_case, note_memory
from service.planning.estimates.devices import compute_peak, get_usable_bytes
from service.planning.estimates.serving import ServingEstimate, do_nothing, estimate_serving
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
    list_layouts,
)
from service.planning.memory.capacity import compute_usable_bytes, find_largest_concurrency
from service.planning.memory.serving import estimate_inference_memory
from service.planning.models.profile import ModelProfile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity, combine, inverted, scaled

_LARGEST_CONCURRENCY: Final = 1_000_000
"""Most requests at a time of a throughput question."""


class FrontierSetting(NamedTuple):
    """A cluster and a precision of weights and cache.

    ``build_case`` returns the case of a layout with one request at a time on each replica.
    """

    cluster: Cluster
    build_case: Callable[[Parallelism], InferenceCase]


class SearchLimits(NamedTuple):
    """Most configurations of a search, and most of them that differ in more than requests at a time.

    A search that is larger is refused at ``pointer``.
    """

    configurations: int
    variants: int
    pointer: str


class FrontierRanges(NamedTuple):
    """Requests at a time on a replica in ascending order, and degrees of parallelism, to search."""

    profile: ModelProfile
    sizes: Sequence[int]
    degrees: SearchDegrees
    limits: SearchLimits


class FrontierRates(NamedTuple):
    """Rates and latencies of a configuration."""

    output_tokens_per_second_per_device: Quantity
    output_tokens_per_second_per_user: Quantity
    output_tokens_per_second: Quantity
    requests_per_second: Quantity
    time_to_first_token_seconds: Quantity
    time_per_output_token_seconds: Quantity
    request_seconds: Quantity
    service_level_share: Quantity | None
    """Share of requests that keep to the service levels; None where there are none."""


class FrontierPoint(NamedTuple):
    """A configuration of the Pareto set."""

    setting: int
    """Position of its setting."""
    case: InferenceCase
    """Case with one request at a time on each replica."""
    requests_per_replica: int
    rates: FrontierRates
    headroom_bytes: float | None
    """Bytes left of the engine's share of the fullest device; None where the capacity is not known."""

    @property
    def concurrency(self) -> int:
        """Requests at a time over the whole cluster."""
        return self.requests_per_replica * self.case.layout.data


class FrontierEstimate(NamedTuple):
    """Points of the Pareto set by falling tokens per device, and the numbers of configurations."""

    points: tuple[FrontierPoint, ...]
    considered: int
    feasible: int
    pareto: int
    ruled_out: Mapping[FrontierConstraint, int]


def is_searchable(
    profile: ModelProfile, longest_output: float, unsearched: Sequence[str], notes: AnswerNotes
) -> bool:
    """Returns true if the model's work is known and generates a second token; adds a gap otherwise.

    ``unsearched`` are members of the workload that ask for something else than equal replicas.
    """
    if not profile.shapes_known:
        detail = "prefill and decode need the shapes of the model"
        notes.add_gap("/points", "ARCHITECTURE_REQUIRED", detail)
    elif kinds := list_unserved_kinds(profile):
        detail = f"the work of layers of kind {', '.join(sorted(kinds))} is not modelled"
        notes.add_gap("/points", "LAYER_KIND_NOT_MODELLED", detail)
    elif unsearched:
        detail = (
            f"one kind of replica that generates tokens is searched: leave out {' and '.join(unsearched)}"
        )
        notes.add_gap("/points", "NOT_MODELLED", detail)
    elif not profile.generates or longest_output <= 1.0:
        notes.add_gap("/points", "NOT_APPLICABLE", "no request has a second token")
    else:
        return True
    return False


class ServedVariant(NamedTuple):
    """A layout of a setting, and the requests at a time on each replica that it can hold."""

    setting: int
    case: InferenceCase
    sizes: Sequence[int]

    def compute_headroom_bytes(self, size: int) -> float | None:
        """Returns the bytes left with ``size`` requests on each replica; None without a known capacity."""
        profile, resident = self.case.resident
        workload = resident._replace(concurrency=size * self.case.layout.data)
        limit = get_usable_bytes(self.case.cluster, workload)
        if limit is None:
            return None
        memory = estimate_inference_memory(profile, workload, self.case.layout)
        return compute_usable_bytes(memory, workload, limit) - memory.total_bytes


class FrontierSpace:
    """Variants of a search, and the configurations that each constraint rules out."""

    def __init__(self, ranges: FrontierRanges, settings: Iterable[FrontierSetting]) -> None:
        """Lays every setting out; raises :class:`PlanningError` for a search that is too large."""
        self._ranges = ranges
        self.considered = 0
        self.ruled_out: Counter[FrontierConstraint] = Counter()
        self._laid_out = 0
        self.variants = tuple(self._list_variants(settings))
        """Every layout of every setting that can hold a request."""

    def _list_variants(self, settings: Iterable[FrontierSetting]) -> Iterator[ServedVariant]:
        profile, degrees = self._ranges.profile, self._ranges.degrees
        for place, setting in enumerate(settings):
            cluster = setting.cluster
            for layout in list_layouts(profile, cluster.accelerator_count, degrees):
                most = _LARGEST_CONCURRENCY // layout.data
                sizes = [size for size in self._ranges.sizes if size <= most]
                reason = find_layout_constraint(layout, profile, cluster)
                self._count(len(sizes), reason)
                if reason is None:
                    case = setting.build_case(layout)
                    allowed = self._select_sizes(case, sizes)
                    if allowed:
                        yield ServedVariant(place, case, allowed)

    def _count(self, configurations: int, reason: FrontierConstraint | None) -> None:
        """Counts the configurations of a layout; refuses a search that takes too long."""
        limits = self._ranges.limits
        self.considered += configurations
        self._laid_out += reason is None
        if self._laid_out > limits.variants or self.considered > limits.configurations:
            detail = (
                f"a search has at most {limits.configurations:,} configurations, {limits.variants:,} of "
                "which differ in more than requests at a time"
            )
            raise PlanningError("SEARCH_TOO_LARGE", limits.pointer, detail)
        if reason is not None:
            self.ruled_out[reason] += configurations

    def _select_sizes(self, case: InferenceCase, sizes: Sequence[int]) -> Sequence[int]:
        """Returns the requests at a time that precision, engine and memory allow."""
        profile, workload = case.resident
        try:
            compute_peak(case.cluster, workload)
        except PlanningError:
            self.ruled_out[FrontierConstraint.PRECISION] += len(sizes)
            return ()
        allowed = sizes
        if workload.most_requests is not None:
            allowed = [size for size in sizes if size <= workload.most_requests]
            self.ruled_out[FrontierConstraint.ENGINE] += len(sizes) - len(allowed)
        limit = get_usable_bytes(case.cluster, workload)
        if limit is not None:
            memory = estimate_inference_memory(profile, workload, case.layout)
            most = find_largest_concurrency(memory, workload, limit)
            fitting = [size for size in allowed if size <= most]
            self.ruled_out[FrontierConstraint.MEMORY] += len(allowed) - len(fitting)
            allowed = fitting
        return allowed


_Figure = TypeVar("_Figure")


def _require_second_token(figure: _Figure | None) -> _Figure:
    """Returns a figure of the tokens behind the first, which every request of a search has."""
    if figure is None:
        raise PlanningError("NOT_APPLICABLE", "/workload/output_tokens", "no request has a second token")
    return figure


class _VariantSpeeds:
    """Speeds of a variant by requests at a time, by the functions of a single estimate."""

    def __init__(
        self, variant: ServedVariant, levels: ServiceLevels | None, between: Callable[[], None]
    ) -> None:
        self._variant, self._levels, self._between = variant, levels, between
        self._layout = variant.case.layout
        least = variant.sizes[0]
        one = estimate_serving(self._replace_requests(least * self._layout.data))
        if one is None:
            detail = "no rate of the accelerator is known"
            raise PlanningError("PEAK_RATE_UNKNOWN", "/cluster/accelerator", detail)
        self._one = one
        self.notes = AnswerNotes()
        cite_iterations(one, self.notes)
        note_case(variant.case, self.notes)
        note_memory(variant.case.device, self.notes, has_context=True)
        self._known: dict[int, ServingEstimate] = {least: one}

    def _replace_requests(self, requests: int) -> InferenceCase:
        """Returns the case with so many requests at a time over the whole cluster."""
        case = self._variant.case
        return replace(
            case,
            workload=case.workload._replace(concurrency=requests),
            load=case.load._replace(concurrency=requests),
        )

    def estimate_speeds(self, sizes: Sequence[int]) -> list[FrontierSpeed]:
        """Returns the speeds with each of ``sizes`` requests at a time on each replica."""
        self._between()
        one = self._one
        new = [size for size in sizes if size not in self._known]
        requests = [size * self._layout.data for size in new]
        each = [count / one.replicas for count in requests]
        answered = estimate_closed_loops(one.model, one.server, one.load, each)
        for size, count, found in zip(new, requests, answered, strict=True):
            load = one.load._replace(concurrency=count / one.replicas)
            self._known[size] = replace(one, served=found, load=load, case=self._replace_requests(count))
        return [self._to_speed(self._known[size]) for size in sizes]

    def _to_speed(self, serving: ServingEstimate) -> FrontierSpeed:
        found, devices, levels = serving.served, self._layout.devices, self._levels
        each = _require_second_token(found.time_per_output_token_seconds)
        outputs = self._variant.case.resident.workload.output_tokens
        rate = found.requests_per_second * serving.replicas * outputs
        if serving.case.curves.local is None:
            within = levels is None or found.compute_goodput(levels.limits) >= levels.share
            return FrontierSpeed(rate / devices, 1.0 / each.mean, within)
        spreads = serving.spreads
        within = levels is None or serving.estimate_goodput(levels.limits).value >= levels.share
        return FrontierSpeed(
            rate * spreads.rate.middle / devices, 1.0 / (each.mean * spreads.output_token.middle), within
        )

    def build_point(self, size: int) -> FrontierPoint:
        """Returns the estimate for ``size`` requests at a time on each replica, whose speed is known."""
        variant, serving, levels = self._variant, self._known[size], self._levels
        self.notes.record_calibrations(serving.spreads.of_time)
        outputs, devices = variant.case.resident.workload.output_tokens, float(self._layout.devices)
        requests = serving.requests_per_second
        each = _require_second_token(serving.time_per_output_token_seconds)
        rates = FrontierRates(
            output_tokens_per_second_per_device=scaled(requests, outputs / devices),
            output_tokens_per_second_per_user=combine(lambda s: 1.0 / s, inverted(each)),
            output_tokens_per_second=scaled(requests, outputs),
            requests_per_second=requests,
            time_to_first_token_seconds=serving.time_to_first_token_seconds,
            time_per_output_token_seconds=each,
            request_seconds=serving.request_seconds,
            service_level_share=None if levels is None else serving.estimate_goodput(levels.limits),
        )
        headroom = variant.compute_headroom_bytes(size)
        return FrontierPoint(variant.setting, variant.case, size, rates, headroom)


def search_frontier(
    space: FrontierSpace,
    levels: ServiceLevels | None,
    most_points: int,
    notes: AnswerNotes,
    between: Callable[[], None] = do_nothing,
) -> FrontierEstimate:
    """Returns the Pareto set of tokens per second by device and by user, within the service levels.

    ``between`` is called now and then in long work, which it ends by raising.
    """
    answering = [_VariantSpeeds(variant, levels, between) for variant in space.variants]
    found = find_frontier(
        [
            FrontierVariant(variant.sizes, speeds.estimate_speeds)
            for variant, speeds in zip(space.variants, answering, strict=True)
        ]
    )
    feasible = sum(found.within)
    ruled_out = space.ruled_out.copy()
    held = sum(len(variant.sizes) for variant in space.variants)
    ruled_out[FrontierConstraint.SERVICE_LEVEL] += held - feasible
    points = tuple(
        answering[chosen.variant].build_point(space.variants[chosen.variant].sizes[chosen.size])
        for chosen in _select_evenly(found.chosen, most_points)
    )
    for speeds in answering:
        notes.merge(speeds.notes)
    return FrontierEstimate(points, space.considered, feasible, len(found.chosen), ruled_out)


def _select_evenly(chosen: Sequence[FrontierChoice], most: int) -> Sequence[FrontierChoice]:
    """Returns both ends and an even choice between them."""
    if len(chosen) <= most:
        return chosen
    return [chosen[round(place * (len(chosen) - 1) / (most - 1))] for place in range(most)]
