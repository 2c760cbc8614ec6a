"""Serving capacity of a device: bytes available to the engine, requests, tokens and context."""

import math
from typing import NamedTuple

from service.planning.memory.caches import cache_bytes_per_token, compute_max_cached_tokens
from service.planning.memory.serving import ServingMemory, estimate_inference_memory, pass_bytes
from service.planning.memory.stages import round_down_units, stage_share
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.software.engines import MemoryReservation, WindowSlack
from service.planning.workload import InferenceWorkload


def compute_usable_bytes(memory: ServingMemory, workload: InferenceWorkload, limit_bytes: float) -> float:
    """Returns the bytes that the engine may use in total, if its share of the device is ``limit_bytes``.

    The sum of the memory charged to its share, the memory left to caches, and the memory outside the share,
    at most the device. Below the fixed part nothing is left to a cache.
    """
    rules, fraction = workload.rules, workload.memory_fraction
    capacity = limit_bytes / fraction
    fixed = memory.fixed_bytes
    match rules.reservation:
        case MemoryReservation.DEVICE:
            return min(limit_bytes + memory.outside_bytes, capacity)
        case MemoryReservation.FREE:
            return min(fixed + fraction * (capacity - fixed), capacity)
        case MemoryReservation.STATIC:
            loaded = memory.weights + memory.draft_weights + memory.adapters
            share = fraction * (capacity - memory.context - memory.communication)
            return min(fixed - loaded + share, capacity)
        case MemoryReservation.NOTHING:
            return capacity


def compute_fitting_requests(memory: ServingMemory, workload: InferenceWorkload, limit_bytes: float) -> float:
    """Returns the requests of one replica that fit, fractions included, for a share of ``limit_bytes``.

    Every bound is linear in the requests: r x (cache + state) + shared cache + w x (fixed + r x growth) <=
    room, where w is 1 against the device and the share of it that the fixed part costs the cache. 0 for a
    model that stores nothing per request.
    """
    rules, each, beside = workload.rules, memory.request_bytes, memory.beside_bytes
    if not each:
        return 0.0
    fraction = workload.memory_fraction
    capacity = limit_bytes / fraction
    rooms = [(capacity, 1.0)]
    match rules.reservation:
        case MemoryReservation.DEVICE:
            rooms = [(min(limit_bytes + memory.outside_bytes, capacity), 1.0)]
        case MemoryReservation.FREE:
            rooms.append((fraction * capacity, fraction))
        case MemoryReservation.STATIC:
            loaded = memory.weights + memory.draft_weights + memory.adapters
            rooms.append((fraction * (capacity - memory.context - memory.communication) - loaded, 0.0))
    if memory.sampler_requests:
        work = [(memory.workspace + memory.sampler, 0.0)]
    else:
        iteration = memory.iteration
        work = [(iteration.least, 0.0), (iteration.beside, iteration.request)]
        work += [(0.0, memory.request_logits_bytes), (memory.loading_bytes, -each)]
    return min(
        _compute_max_count(
            room - memory.iteration_cache_bytes - weight * (beside + fixed), each + weight * growth
        )
        for room, weight in rooms
        for fixed, growth in work
    )


def find_largest_concurrency(memory: ServingMemory, workload: InferenceWorkload, limit_bytes: float) -> int:
    """Returns the most whole requests of one replica that fit and that the engine takes at a time."""
    limit = round_down_units(compute_fitting_requests(memory, workload, limit_bytes))
    return limit if workload.most_requests is None else min(limit, workload.most_requests)


def _compute_max_count(room: float, each: float) -> float:
    """Returns the number of ``each`` that fit into ``room``; infinite if ``each`` takes none of it."""
    if room < 0.0:
        return 0.0
    return room / each if each > 0.0 else math.inf


def count_fitting_requests(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism, limit_bytes: float
) -> int:
    """Returns the most whole requests of one replica that fit, for an engine's share of ``limit_bytes``."""
    return find_largest_concurrency(
        estimate_inference_memory(profile, workload, layout), workload, limit_bytes
    )


def count_pass_requests(memory: ServingMemory, workload: InferenceWorkload, usable_bytes: float) -> int:
    """Returns the most requests of one forward pass, for a model without a cache."""
    return max(0, round_down_units((usable_bytes - memory.beside_bytes) / pass_bytes(workload)))


class _CacheRoom(NamedTuple):
    """Bytes for caches and states, and the bytes that a token of context takes of them beside its cache."""

    size: float
    token_bytes: float


def _list_cache_rooms(
    memory: ServingMemory, workload: InferenceWorkload, usable_bytes: float
) -> list[_CacheRoom]:
    """Returns the room for caches and states; all bounds apply, more than one where scores grow with them."""
    if not workload.rules.scores_kept:
        return [_CacheRoom(usable_bytes - memory.fixed_bytes, 0.0)]
    iteration, left = memory.iteration, usable_bytes - memory.beside_bytes
    growth = iteration.request / workload.context_tokens
    return [_CacheRoom(left - iteration.least, 0.0), _CacheRoom(left - iteration.beside, growth)]


def count_cache_tokens(memory: ServingMemory, usable_bytes: float, workload: InferenceWorkload) -> int:
    """Returns the tokens of one replica's cache in whole blocks, as engines count them."""
    # States and the cache of a draft model share the same memory.
    others = memory.requests * (memory.sequence_state_bytes + memory.draft_sequence_cache_bytes)
    per_token = memory.token_cache_bytes or memory.sequence_cache_bytes / workload.context_tokens
    blocks = min(
        (room.size - others) / (per_token + room.token_bytes) / workload.block_tokens
        for room in _list_cache_rooms(memory, workload, usable_bytes)
    )
    return round_down_units(blocks) * workload.block_tokens


def find_longest_context(
    profile: ModelProfile,
    workload: InferenceWorkload,
    layout: Parallelism,
    memory: ServingMemory,
    usable_bytes: float,
) -> int | None:
    """Returns the most tokens that each request may hold beside weights and buffers, in whole blocks.

    None where every layer's window is reached before the memory is full: no length takes more.
    """
    share = stage_share(profile, layout)
    draft = workload.draft
    works = [(work, share) for work in profile.attention]
    works += [(work, 1.0) for work in draft.profile.attention] if draft else []
    costs = [
        cost
        for work, part in works
        if not work.cross
        for cost in _list_token_costs(
            compute_max_cached_tokens(work, workload.rules, workload.batched_tokens),
            part * cache_bytes_per_token(work, workload.cache_format, layout.tensor),
            workload,
            memory.requests,
        )
    ]
    crossed = share * sum(
        cache_bytes_per_token(work, workload.cache_format, layout.tensor)
        for work in profile.attention
        if work.cross
    )
    held = memory.sequence_state_bytes + crossed * workload.input_tokens
    reached = [
        _solve_context_tokens(costs, max(0.0, max(0.0, room.size) / memory.requests - held), room.token_bytes)
        for room in _list_cache_rooms(memory, workload, usable_bytes)
    ]
    longest = min((tokens for tokens in reached if tokens is not None), default=None)
    if longest is None:
        return None
    return round_down_units(longest / workload.block_tokens) * workload.block_tokens


def _list_token_costs(
    window: float, token_bytes: float, workload: InferenceWorkload, requests: int
) -> list[tuple[float, float]]:
    """Returns the lengths up to which a token of context takes a request bytes of a layer's cache.

    Beside a window, the tokens of one iteration are cached once for all requests.
    """
    if workload.rules.window_slack is not WindowSlack.ITERATION or window == math.inf:
        return [(window, token_bytes)]
    shared = token_bytes / requests
    return [(window, token_bytes - shared), (window + workload.batched_tokens, shared)]


def _solve_context_tokens(costs: list[tuple[float, float]], room: float, beside: float) -> float | None:
    """Returns the tokens whose cache fills ``room``, by the cost of a token up to each window.

    None for no end.
    """
    windows = sorted({window for window, cost in costs if cost} | ({math.inf} if beside else set()))
    reached = 0.0
    for window in windows:
        per_token = beside + sum(cost for limit, cost in costs if limit >= window)
        if per_token * (window - reached) > room:
            return reached + room / per_token
        room -= per_token * (window - reached)
        reached = window
    return None


class CacheWaste(NamedTuple):
    """Cache of a request, and the part of it that it never fills."""

    bytes_per_token: float
    bytes_per_request: float
    waste_bytes_per_request: float


def compute_cache_waste(memory: ServingMemory, workload: InferenceWorkload) -> CacheWaste:
    """Returns the waste: rounding to whole blocks, or, without paging, the mean unreached output."""
    tokens = workload.input_tokens + workload.output_tokens
    per_token = memory.sequence_cache_bytes / workload.context_tokens
    rounding = workload.context_tokens - int(tokens)
    unreached = 0.0 if workload.rules.paged else workload.output_tokens / 2.0
    return CacheWaste(per_token, memory.sequence_cache_bytes, per_token * (rounding + unreached))


def compute_model_token_bytes(profile: ModelProfile, workload: InferenceWorkload) -> float:
    """Returns the cache of a token over all layers and heads, each held once; the mean over a request."""
    alone = workload._replace(device_layers=None)
    memory = estimate_inference_memory(profile, alone, Parallelism())
    return memory.sequence_cache_bytes / workload.context_tokens
