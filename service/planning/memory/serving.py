"""Memory of one device that serves a model, itemised, and the limits that follow from it, in bytes.

KV cache: two vectors per key-value head, layer and token, or one compressed vector of latent attention; what
keeps no token has a state per request. Weights lie as they are stored. What an engine takes beside them, and
what share of the device it gives to the cache, follow from its rules (``engines``). The fullest pipeline
stage is reported.
"""

import math
from bisect import bisect_left
from typing import Any, NamedTuple

from service.planning.engines import EngineBuffers, EngineRules, Reservation
from service.planning.memory.stages import stage_share, whole_units
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.profile import AttentionWork, Profile
from service.planning.profile.iteration import STREAM_COPIES
from service.planning.storage import CACHE_FORMATS, BlockFormat, WeightFormat
from service.planning.workload import Adapters, InferenceWorkload

UNQUANTISED_FORMAT = NumberFormat.BF16
"""Format in which quantised checkpoints keep embeddings, norms, routers and heads."""

_WIDE_BYTES = ELEMENT_BYTES[UNQUANTISED_FORMAT]
_BARE = EngineRules()


def _layer_cache_bytes(work: AttentionWork, cache_format: NumberFormat | BlockFormat, tensor: int) -> float:
    """Cache of one token in one layer on a device of a tensor-parallel group."""
    # A device holds at least one head: tensor parallelism beyond the heads replicates them.
    heads = math.ceil(work.key_value_heads / tensor)
    width, scales = CACHE_FORMATS[cache_format]
    elements = heads * work.key_value_head_elements + work.whole_cache_elements
    return elements * width + max(heads, 1) * work.vectors * scales if elements else 0.0


def _cache_bytes_per_token(
    work: AttentionWork, cache_format: NumberFormat | BlockFormat, tensor: int
) -> float:
    return work.layers * _layer_cache_bytes(work, cache_format, tensor) if work.caches else 0.0


def _most_tokens(work: AttentionWork, rules: EngineRules, batched_tokens: int) -> float:
    """Tokens beyond which the cache of a layer no longer grows."""
    if not rules.windows_kept:
        return math.inf
    return work.window_tokens + (batched_tokens if rules.window_slack else 0)


def key_value_bytes(
    profile: Profile,
    context_tokens: float,
    cache_format: NumberFormat | BlockFormat,
    *,
    tensor: int = 1,
    source_tokens: float = 0.0,
    rules: EngineRules = _BARE,
    batched_tokens: int = 0,
) -> float:
    """KV cache of one sequence over all layers on a device of a tensor-parallel group.

    2 x layers x key-value heads x head size x width per token; a window caps the tokens kept, where the
    engine keeps to it. Cross-attention holds the ``source_tokens``.
    """
    return sum(
        _cache_bytes_per_token(work, cache_format, tensor)
        * (source_tokens if work.cross else min(context_tokens, _most_tokens(work, rules, batched_tokens)))
        for work in profile.attention
    )


def state_bytes(profile: Profile, state_format: NumberFormat, *, tensor: int = 1) -> float:
    """Recurrent states and the convolutions' last inputs of one sequence, split over the heads.

    States in ``state_format``, inputs of convolutions at 16 bit.
    """
    width = ELEMENT_BYTES[state_format]
    return sum(
        work.layers * (work.state_elements * width + work.convolution_elements * _WIDE_BYTES) / tensor
        for work in profile.attention
        if work.caches
    )


class ServingMemory(NamedTuple):
    """Bytes on the fullest device of one replica of a served model."""

    weights: float
    requests: int
    """Requests at a time."""
    sequence_cache_bytes: float
    """KV cache of one whole request."""
    iteration_bytes: float
    """Intermediates of one iteration with as many tokens as it may process."""
    request_logits_bytes: float
    """To draw one token of one request."""
    sequence_state_bytes: float = 0.0
    """Recurrent state of one request."""
    token_cache_bytes: float = 0.0
    """What the engine charges for a token when it reports how many fit."""
    sampler_requests: int = 0
    """Requests that room to draw a token is reserved for; 0 where it is that of the requests served."""
    held_bytes: float = 0.0
    """Of an iteration, what is still held when tokens are drawn."""
    draft_weights: float = 0.0
    draft_sequence_cache_bytes: float = 0.0
    adapters: float = 0.0
    communication: float = 0.0
    runtime: float = 0.0
    cuda_graphs: float = 0.0
    context: float = 0.0
    outside_bytes: float = 0.0
    """The part of these that the engine does not charge to its share of the device."""

    @property
    def request_bytes(self) -> float:
        """What one more whole request takes in caches and states."""
        return self.sequence_cache_bytes + self.sequence_state_bytes + self.draft_sequence_cache_bytes

    @property
    def kv_cache(self) -> float:
        """KV cache of all requests."""
        return self.requests * self.sequence_cache_bytes

    @property
    def state(self) -> float:
        """Recurrent state of all requests."""
        return self.requests * self.sequence_state_bytes

    @property
    def draft_kv_cache(self) -> float:
        """KV cache of the draft model for all requests."""
        return self.requests * self.draft_sequence_cache_bytes

    @property
    def drawing_bytes(self) -> float:
        """What drawing tokens takes at its peak."""
        return (self.sampler_requests or self.requests) * self.request_logits_bytes

    @property
    def sampler(self) -> float:
        """Room to draw tokens, where the engine reserves it and it outgrows an iteration."""
        outgrows = self.sampler_requests and self.held_bytes + self.drawing_bytes > self.iteration_bytes
        return self.drawing_bytes if outgrows else 0.0

    @property
    def workspace(self) -> float:
        """The larger of the intermediates inside the layers and of the logits behind them."""
        if self.sampler_requests:
            return self.held_bytes if self.sampler else self.iteration_bytes
        return max(self.iteration_bytes, self.drawing_bytes)

    @property
    def beside_bytes(self) -> float:
        """What stays whatever the requests and the batch are."""
        loaded = self.weights + self.draft_weights + self.adapters
        return loaded + self.communication + self.runtime + self.cuda_graphs + self.context

    @property
    def fixed_bytes(self) -> float:
        """All but caches and states."""
        return self.beside_bytes + self.workspace + self.sampler

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return self.fixed_bytes + self.requests * self.request_bytes


class WeightBytes(NamedTuple):
    """Bytes of weights on one device: of the token table, of routed experts and of all else."""

    table: float
    experts: float
    rest: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.table + self.experts + self.rest


def inference_weight_bytes(profile: Profile, stored: WeightFormat, layout: Parallelism) -> WeightBytes:
    """Weights on one device of the fullest pipeline stage, as they are stored.

    Keys and values are held more than once by a group wider than their heads. A head that is tied to the
    table counts with the rest: it is read for every token, a table is not.
    """
    sizes, tensor = profile.weights.stored(stored), layout.tensor
    if not profile.shapes_known:
        return WeightBytes(0.0, 0.0, sizes.split / (tensor * layout.pipeline))
    share = stage_share(profile, layout)
    tied = sizes.tied / tensor
    table = sizes.table_split / tensor + sizes.table_whole
    head = sizes.head_split / tensor + sizes.head_whole
    if layout.pipeline == 1:
        table -= tied
        head += tied
    elif table > head + tied:
        head = 0.0
    else:
        table, head = 0.0, head + tied
    heads = profile.weights.key_value_heads
    repeated = sizes.key_value * (1.0 / heads - 1.0 / tensor) if 0 < heads < tensor else 0.0
    return WeightBytes(
        table=table,
        experts=sizes.expert / (tensor * layout.expert) * share,
        rest=(sizes.split / tensor + sizes.whole + repeated) * share + head,
    )


def adapter_bytes(profile: Profile, adapters: Adapters, tensor: int) -> float:
    """Low-rank pairs on every matrix inside blocks but experts', at 16 bit.

    rank x (inputs + outputs) for each; of a matrix that is cut the pair's half on the cut side is cut too.
    """
    elements = 0.0
    for matrix in profile.weights.matrices:
        copies = len(matrix.layers) * matrix.copies
        match matrix.split.value:
            case "expert":
                continue
            case "column":
                elements += copies * (matrix.inputs + matrix.outputs / tensor)
            case "row":
                elements += copies * (matrix.inputs / tensor + matrix.outputs)
            case _:
                elements += copies * (matrix.inputs + matrix.outputs)
    return adapters.loaded * adapters.rank * elements * _WIDE_BYTES


def _lengths(profile: Profile, workload: InferenceWorkload) -> tuple[float, float]:
    """Tokens of context of a decoder, and those that its cross-attention reads."""
    source = workload.input_tokens if workload.source_tokens is None else workload.source_tokens
    if not profile.encodes:
        return workload.context_tokens, source
    block = workload.block_tokens
    return float(-(-int(workload.output_tokens) // block) * block), source


def _token_cache_bytes(profile: Profile, workload: InferenceWorkload, tensor: int) -> float:
    """Bytes that the engine divides its cache by when it reports tokens.

    vLLM lays all layers that keep tokens out in pages of one size, that of the largest.
    """
    if not workload.rules.reports_full_length:
        return 0.0
    kept = [work for work in profile.attention if work.caches and not work.state_elements]
    largest = max((_layer_cache_bytes(work, workload.cache_format, tensor) for work in kept), default=0.0)
    return largest * sum(work.layers for work in kept)


def inference_memory(
    profile: Profile,
    workload: InferenceWorkload,
    layout: Parallelism,
    buffers: EngineBuffers | None = None,
) -> ServingMemory:
    """Memory of the fullest device of one replica with all requests at their full length.

    The workspace is the largest live intermediate of one iteration: for every batched token the residual
    stream and the widest product of a layer. Beside it, for every request, what drawing a token takes; an
    engine that measures itself at start-up reserves it for the most requests that it takes. ``buffers`` are
    those of the workload unless given.
    """
    rules, tensor = workload.rules, layout.tensor
    taken = workload.buffers if buffers is None else buffers
    share = stage_share(profile, layout)
    context, source = _lengths(profile, workload)
    sizes = inference_weight_bytes(profile, workload.storage, layout)
    weights = sizes.total - (sizes.table if rules.table_on_host else 0.0)
    if workload.device_layers is not None:
        held = min(1.0, workload.device_layers / max(profile.block_count, 1))
        weights, share = weights * held, share * held
    requests = workload.requests_per_replica(layout.data)
    tokens = workload.batched_tokens
    sequence = share * key_value_bytes(
        profile,
        context,
        workload.cache_format,
        tensor=tensor,
        source_tokens=source,
        rules=rules,
        batched_tokens=tokens,
    )
    memory = ServingMemory(
        weights=weights * taken.weights_factor,
        requests=requests,
        sequence_cache_bytes=sequence,
        iteration_bytes=_iteration_bytes(profile, workload, layout) * taken.iteration_factor,
        request_logits_bytes=profile.vocabulary_size * taken.sampler_bytes_per_logit,
        sequence_state_bytes=share * state_bytes(profile, workload.state_format, tensor=tensor),
    )
    if rules.name is None:
        memory = memory._replace(request_logits_bytes=memory.request_logits_bytes / tensor)
    else:
        memory = memory._replace(**_engine_parts(profile, workload, layout, taken))
    if workload.draft is None and workload.adapters is None:
        return memory
    return memory._replace(**_beside(profile, workload, layout))


def _iteration_bytes(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> float:
    """Live intermediates of one iteration, or of the passes of a tower in front of it where they are more."""
    return max(_decoded_bytes(profile, workload, layout), pass_bytes(profile, workload, layout))


def pass_bytes(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> float:
    """What forward passes hold: over all requests of a replica, or over one in front of a decoder.

    At 16 bit, or in FP32 where the weights are; not divided by tensor parallelism.
    """
    requests = 1 if profile.generates else workload.requests_per_replica(layout.data)
    width = max(_WIDE_BYTES, ELEMENT_BYTES[workload.weight_format])
    return workload.pass_elements * width * requests


def _decoded_bytes(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> float:
    rules, tensor, tokens = workload.rules, layout.tensor, workload.batched_tokens
    if rules.name is None:
        return (2.0 * profile.widest_elements + profile.inner_elements / tensor) * tokens * _WIDE_BYTES
    if not tokens:
        # Whole prompts of all requests pass at once.
        tokens = int(workload.input_tokens) * workload.requests_per_replica(layout.data)
    live = STREAM_COPIES * profile.widest_elements + profile.iteration_elements / tensor
    size = live * rules.element_bytes
    if rules.logit_bytes:
        logits = profile.vocabulary_size / tensor * rules.logit_bytes
        size = max(size, profile.widest_elements * rules.element_bytes + logits)
    return size * tokens


def _engine_parts(
    profile: Profile, workload: InferenceWorkload, layout: Parallelism, taken: EngineBuffers
) -> dict[str, Any]:
    """What a known engine takes beside weights, caches and the iteration."""
    rules, share = workload.rules, stage_share(profile, layout)
    graphs = taken.graph_bytes_per_layer * share * profile.block_count if workload.cuda_graphs else 0.0
    spread = layout.tensor * layout.pipeline * layout.expert > 1
    outside = (0.0 if rules.graphs_charged else graphs) + (
        0.0 if rules.context_charged else taken.context_bytes
    )
    reserved = workload.most_requests or workload.requests_per_replica(layout.data)
    return {
        "token_cache_bytes": share * _token_cache_bytes(profile, workload, layout.tensor),
        "sampler_requests": reserved if rules.samples_at_start else 0,
        "held_bytes": profile.widest_elements * workload.batched_tokens * _WIDE_BYTES,
        "communication": taken.communication_bytes if spread else 0.0,
        "runtime": taken.runtime_bytes,
        "cuda_graphs": graphs,
        "context": taken.context_bytes,
        "outside_bytes": outside,
    }


def _beside(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> dict[str, Any]:
    """Draft model and adapters of a workload that has them."""
    parts: dict[str, Any] = {}
    draft = workload.draft
    if draft is not None:
        # The draft lies on the same devices, cut alike; it has fewer layers and is not spread over stages.
        alone = Parallelism(tensor=layout.tensor)
        parts["draft_weights"] = inference_weight_bytes(draft.profile, draft.stored, alone).total
        parts["draft_sequence_cache_bytes"] = key_value_bytes(
            draft.profile, workload.context_tokens, workload.cache_format, tensor=layout.tensor
        )
    if workload.adapters is not None:
        size = adapter_bytes(profile, workload.adapters, layout.tensor)
        parts["adapters"] = size * stage_share(profile, layout)
    return parts


def usable_bytes_of(memory: ServingMemory, workload: InferenceWorkload, limit_bytes: float) -> float:
    """Bytes of a device that the engine lets all of this take, if its share of the device is ``limit_bytes``.

    What it charges to its share, what it leaves to caches, and what it takes outside the share, at most the
    device. Below the fixed part nothing is left to a cache.
    """
    rules, fraction = workload.rules, workload.memory_fraction
    capacity = limit_bytes / fraction
    fixed = memory.fixed_bytes
    match rules.reservation:
        case Reservation.DEVICE:
            return min(limit_bytes + memory.outside_bytes, capacity)
        case Reservation.FREE:
            return min(fixed + fraction * (capacity - fixed), capacity)
        case Reservation.STATIC:
            loaded = memory.weights + memory.draft_weights + memory.adapters
            share = fraction * (capacity - memory.context - memory.communication)
            return min(fixed - loaded + share, capacity)
        case Reservation.NOTHING:
            return capacity


def largest_concurrency(memory: ServingMemory, usable_bytes: float, most_requests: int | None = None) -> int:
    """Most whole requests of one replica whose caches and states fit beside all else; 0 if none."""
    sequence = memory.request_bytes
    if memory.sampler_requests:
        most = whole_units((usable_bytes - memory.fixed_bytes) / sequence)
    else:
        room = usable_bytes - memory.beside_bytes
        beside_iteration = (room - memory.iteration_bytes) / sequence
        most = whole_units(min(beside_iteration, room / (sequence + memory.request_logits_bytes)))
    return most if most_requests is None else min(most, most_requests)


def requests_that_fit(
    profile: Profile, workload: InferenceWorkload, layout: Parallelism, limit_bytes: float
) -> int:
    """Most whole requests of one replica that fit, if the engine's share of a device is ``limit_bytes``.

    0 for a model that keeps nothing of a request.
    """
    memory = inference_memory(profile, workload, layout)
    most = workload.most_requests
    if not memory.request_bytes:
        return 0
    if workload.rules.name is None or memory.sampler_requests:
        return largest_concurrency(memory, usable_bytes_of(memory, workload, limit_bytes), most)

    def fits(requests: int) -> bool:
        asked = workload._replace(concurrency=requests * layout.data)
        held = inference_memory(profile, asked, layout)
        return held.total_bytes <= usable_bytes_of(held, asked, limit_bytes)

    # What drawing tokens takes, or passing prompts, grows with the requests: no closed form.
    beyond = whole_units(limit_bytes / workload.memory_fraction / memory.request_bytes) + 1
    beyond = beyond if most is None else min(beyond, most + 1)
    return bisect_left(range(1, beyond), x=True, key=lambda requests: not fits(requests))


def cache_tokens(memory: ServingMemory, usable_bytes: float, workload: InferenceWorkload) -> int:
    """Tokens of one replica's cache beside weights and buffers, in whole blocks, as engines count them."""
    # States and the cache of a draft model are taken from the same room.
    others = memory.sequence_state_bytes + memory.draft_sequence_cache_bytes
    room = usable_bytes - memory.fixed_bytes - memory.requests * others
    per_token = memory.token_cache_bytes or memory.sequence_cache_bytes / workload.context_tokens
    return whole_units(room / per_token / workload.block_tokens) * workload.block_tokens


def longest_context(
    profile: Profile,
    workload: InferenceWorkload,
    layout: Parallelism,
    memory: ServingMemory,
    usable_bytes: float,
) -> int | None:
    """Most tokens that each request may hold beside weights and buffers, in whole blocks.

    None where every layer's window is reached before the memory is full: no length takes more.
    """
    share = stage_share(profile, layout)
    draft = workload.draft
    works = [(work, share) for work in profile.attention]
    works += [(work, 1.0) for work in draft.profile.attention] if draft else []
    costs = [
        (
            _most_tokens(work, workload.rules, workload.batched_tokens),
            part * _cache_bytes_per_token(work, workload.cache_format, layout.tensor),
        )
        for work, part in works
        if not work.cross
    ]
    crossed = share * sum(
        _cache_bytes_per_token(work, workload.cache_format, layout.tensor)
        for work in profile.attention
        if work.cross
    )
    room = max(0.0, usable_bytes - memory.fixed_bytes) / memory.requests
    room = max(0.0, room - memory.sequence_state_bytes - crossed * workload.input_tokens)
    reached = 0.0
    for window in sorted({window for window, cost in costs if cost}):
        per_token = sum(cost for limit, cost in costs if limit >= window)
        if per_token * (window - reached) > room:
            blocks = (reached + room / per_token) / workload.block_tokens
            return whole_units(blocks) * workload.block_tokens
        room -= per_token * (window - reached)
        reached = window
    return None


class CacheWaste(NamedTuple):
    """What a request takes of the cache, and what of that it never fills."""

    bytes_per_token: float
    bytes_per_request: float
    waste_bytes_per_request: float


def cache_waste(memory: ServingMemory, workload: InferenceWorkload) -> CacheWaste:
    """Rounding to whole blocks, or without paging the output that a request has not reached on average."""
    tokens = workload.input_tokens + workload.output_tokens
    per_token = memory.sequence_cache_bytes / workload.context_tokens
    rounding = workload.context_tokens - int(tokens)
    unreached = 0.0 if workload.rules.paged else workload.output_tokens / 2.0
    return CacheWaste(per_token, memory.sequence_cache_bytes, per_token * (rounding + unreached))
