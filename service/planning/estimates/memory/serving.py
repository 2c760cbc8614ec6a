"""Memory of a served model: its components, limits and interval."""

import math
from collections.abc import Iterator
from dataclasses import replace

from service.planning.cases import InferenceCase
from service.planning.estimates.advice import Advice
from service.planning.estimates.calibrations import note_case, note_memory
from service.planning.estimates.devices import get_usable_bytes
from service.planning.estimates.memory.advice import list_serving_advice
from service.planning.estimates.memory.footprint import DimensionLimits, MemoryFootprint, RequestCache
from service.planning.estimates.memory.totals import correct_total, find_unknown, judge_fit, sum_components
from service.planning.estimates.serving import estimate_serving
from service.planning.hardware.curves import ReferenceCurves
from service.planning.memory.capacity import (
    compute_cache_waste,
    compute_model_token_bytes,
    compute_usable_bytes,
    count_cache_tokens,
    count_pass_requests,
    find_largest_concurrency,
    find_longest_context,
)
from service.planning.memory.serving import ServingMemory, ServingRange, estimate_inference_memory_range
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity, combine
from service.planning.workload import InferenceWorkload

_SERVING_UNKNOWN = frozenset({"kv_cache", "state", "workspace"})


def estimate_inference(case: InferenceCase, notes: AnswerNotes) -> MemoryFootprint:
    """Estimates the memory of a served model with its concurrent requests."""
    profile, workload = case.resident
    unknown = find_unknown(case, profile, _SERVING_UNKNOWN, notes)
    between = estimate_inference_memory_range(profile, workload, case.layout)
    memory = between.value
    limit = usable = get_usable_bytes(case.cluster, workload)
    if limit is not None:
        usable = compute_usable_bytes(memory, workload, limit)
    limits = DimensionLimits()
    if usable is not None and limit is not None and not unknown and memory.request_bytes:
        limits = _compute_serving_limits(case, memory, (usable, limit), notes)
    elif not unknown and not memory.request_bytes:
        limits = _compute_pass_limits(case, memory, usable, notes)
    estimate = sum_components(_list_serving_components(memory), unknown)
    note_memory(case.device, notes, has_context=workload.buffers.context_bytes > 0.0)
    if not unknown:
        total = _add_serving_interval(estimate, between, workload, case.curves)
        estimate = estimate._replace(total=correct_total(case, total, notes))
    estimate = judge_fit(estimate._replace(limits=limits), case.cluster, usable, notes)
    cache = None
    if memory.sequence_cache_bytes and not unknown:
        cache = RequestCache(
            workload.rules.paged,
            workload.block_tokens,
            compute_cache_waste(memory, workload),
            compute_model_token_bytes(profile, workload),
        )
    advice: tuple[Advice, ...] = ()
    if limit is not None and estimate.fits is False and not unknown:
        advice = tuple(list_serving_advice(case, limit / workload.memory_fraction))
    stored = profile.weights.get_stored_weights(workload.storage)
    return estimate._replace(stored_weight_bytes=stored.total, cache=cache, advice=advice)


def estimate_concurrency(case: InferenceCase, notes: AnswerNotes) -> InferenceCase:
    """Returns the case with its mean number of concurrent requests where they arrive at a rate."""
    if case.load.concurrency is not None:
        return case
    serving, profile = None, case.profile
    if case.accelerator_id is not None and profile.shapes_known and not profile.unmodelled_kinds:
        serving = estimate_serving(case)
        note_case(case, notes)
    if serving is None:
        detail = "the number of concurrent requests is not known: one per replica is counted"
        notes.warn("CONCURRENCY_UNKNOWN", "/workload/request_rate_per_second", detail)
        requests = case.layout.data
    else:
        requests = math.ceil(serving.requests_inside) * case.layout.data
        detail = f"{requests} concurrent requests are counted: the mean number of the load"
        notes.warn("CONCURRENCY_ESTIMATED", "/workload/request_rate_per_second", detail)
    resident = case.resident
    return replace(
        case,
        workload=case.workload._replace(concurrency=requests),
        resident=resident._replace(workload=resident.workload._replace(concurrency=requests)),
    )


def _list_serving_components(memory: ServingMemory) -> Iterator[tuple[str, float]]:
    yield "weights", memory.weights
    yield "kv_cache", memory.kv_cache
    yield "workspace", memory.workspace
    rest = {
        "state": memory.state,
        "auxiliary_models": memory.auxiliary_models,
        "draft_weights": memory.draft_weights,
        "draft_kv_cache": memory.draft_kv_cache,
        "adapters": memory.adapters,
        "sampler": memory.sampler,
        "cuda_graphs": memory.cuda_graphs,
        "communication_buffers": memory.communication,
        "runtime": memory.runtime,
        "device_context": memory.context,
    }
    yield from ((name, size) for name, size in rest.items() if size)


def _add_serving_interval(
    estimate: MemoryFootprint, between: ServingRange, workload: InferenceWorkload, curves: ReferenceCurves
) -> Quantity:
    """Returns the total with the interval of the engine's memory."""
    known = estimate.known_bytes
    if workload.rules.name is not None:
        low = min(between.least.total_bytes, known)
        high = max(between.most.total_bytes, known)
        return Quantity(float(known), low, high, EvidenceBasis.REFERENCE)
    # Engines take the cache in blocks of exact size; the memory that they take beside it is uncertain.
    cache = sum(part.size_bytes for part in estimate.components if part.name in ("kv_cache", "state"))
    rest = curves.inference_memory.around(float(known - cache), EvidenceBasis.DATASHEET)
    return combine(lambda size: size + cache, rest)


def _compute_pass_limits(
    case: InferenceCase, memory: ServingMemory, usable: float | None, notes: AnswerNotes
) -> DimensionLimits:
    """Returns the limits of a model without a cache: the requests of one forward pass."""
    workload = case.resident.workload
    pointer = "/limits/kv_cache_tokens" if workload.pass_elements else "/limits"
    notes.add_gap(pointer, "NO_KV_CACHE", "the model keeps no cache of a request")
    if usable is None or not workload.pass_elements:
        return DimensionLimits()
    return DimensionLimits(max_concurrency=count_pass_requests(memory, workload, usable) * case.layout.data)


def _compute_serving_limits(
    case: InferenceCase, memory: ServingMemory, room: tuple[float, float], notes: AnswerNotes
) -> DimensionLimits:
    """Returns the limits in the bytes that this load may use, and in the engine's share of the device."""
    layout, (profile, workload) = case.layout, case.resident
    usable, limit = room
    most = find_largest_concurrency(memory, workload, limit) * layout.data
    if not memory.sequence_cache_bytes:
        detail = "the model keeps a state of each request and no cache of its tokens"
        notes.add_gap("/limits/kv_cache_tokens", "NO_KV_CACHE", detail)
        return DimensionLimits(max_concurrency=most)
    tokens = count_cache_tokens(memory, usable, workload) * layout.data
    longest = find_longest_context(profile, workload, layout, memory, usable)
    if longest is None:
        detail = "every layer's window is full before the memory is: no length takes more"
        notes.add_gap("/limits/max_sequence_length", "UNBOUNDED", detail)
    return DimensionLimits(max_concurrency=most, kv_cache_tokens=tokens, max_sequence_length=longest)
