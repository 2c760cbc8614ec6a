"""Memory of one device that serves a model, itemised, and the limits that follow from it, in bytes.

KV cache: two vectors per key-value head, layer and token, or one compressed vector of latent attention; what
keeps no token has a state per request. Weights lie as they are stored. What an engine takes beside them, and
what share of the device it gives to the cache, follow from its rules (``engines``). The fullest pipeline
stage is reported.
"""

import math
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
_NARROW = 5.0
"""Bits of an element, groups included, up to which weights are 4-bit ones."""


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


def state_bytes(
    profile: Profile, state_format: NumberFormat, *, tensor: int = 1, rules: EngineRules = _BARE
) -> float:
    """Recurrent states and the convolutions' last inputs of one sequence, split over the heads.

    States in ``state_format``, inputs of convolutions as wide as the engine's intermediates.
    """
    width, inputs = ELEMENT_BYTES[state_format], rules.element_bytes
    more = 1 if rules.whole_convolutions else 0
    return sum(
        work.layers
        * (
            work.state_elements * width
            + (work.convolution_elements + more * work.convolution_channels) * inputs
        )
        / tensor
        for work in profile.attention
        if work.caches
    )


class IterationBytes(NamedTuple):
    """Live intermediates of one iteration: the larger of ``least`` and of what grows with the requests."""

    least: float
    beside: float = 0.0
    request: float = 0.0
    """Of each request, beside ``beside``."""

    def of(self, requests: int) -> float:
        """With ``requests`` at a time."""
        return max(self.least, self.beside + requests * self.request)

    def scaled(self, factor: float) -> "IterationBytes":
        """All of it times ``factor``."""
        return IterationBytes(self.least * factor, self.beside * factor, self.request * factor)


class ServingMemory(NamedTuple):
    """Bytes on the fullest device of one replica of a served model."""

    weights: float
    requests: int
    """Requests at a time."""
    sequence_cache_bytes: float
    """KV cache of one whole request."""
    iteration: "IterationBytes"
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
    loading_bytes: float = 0.0
    """What loading holds beside the weights before any cache is there, and gives back."""

    @property
    def iteration_bytes(self) -> float:
        """Intermediates of one iteration with the requests served."""
        return self.iteration.of(self.requests)

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
        """The larger of the intermediates inside the layers and of the logits behind them.

        Or, where that is more, what loading takes beyond the room that caches take later.
        """
        if self.sampler_requests:
            return self.held_bytes if self.sampler else self.iteration_bytes
        running = max(self.iteration_bytes, self.drawing_bytes)
        return max(running, self.loading_bytes - self.requests * self.request_bytes)

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


class _Measures(NamedTuple):
    """What a layout holds, and what the buffers of an engine are counted in."""

    memory: ServingMemory
    logits: float
    """Words of the vocabulary that a device draws a request's token from."""
    graph_layers: float
    """Layers of the fullest stage that graphs are captured of; 0 for none."""
    graph_expert_layers: float
    graph_logits_bytes: float
    spread: bool
    """Whether a replica lies on several devices."""
    beside_bytes: float
    """Rotary tables, and a matrix that packed ones are unpacked into."""
    known: bool
    """Whether the engine is a known one."""


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
    return _taking(_measures(profile, workload, layout), workload, buffers or workload.buffers)


class ServingRange(NamedTuple):
    """Memory with every buffer of the engine at its least, at its value and at its most."""

    least: ServingMemory
    value: ServingMemory
    most: ServingMemory


def inference_memory_range(
    profile: Profile, workload: InferenceWorkload, layout: Parallelism
) -> ServingRange:
    """As :func:`inference_memory`, with the ends of the interval of the engine's buffers."""
    measures = _measures(profile, workload, layout)
    return ServingRange(
        _taking(measures, workload, workload.least_buffers),
        _taking(measures, workload, workload.buffers),
        _taking(measures, workload, workload.most_buffers),
    )


def _measures(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> _Measures:
    rules, tensor = workload.rules, layout.tensor
    share = stage_share(profile, layout)
    context, source = _lengths(profile, workload)
    sizes = inference_weight_bytes(profile, workload.storage, layout)
    weights = sizes.total - (sizes.table if rules.table_on_host else 0.0)
    # A head that is tied to the table lies in the files of some quantised checkpoints all the same.
    copy = profile.weights.stored(workload.storage).copied / tensor if rules.loads_tied_copy else 0.0
    if rules.keeps_tied_copy and workload.storage.compute is NumberFormat.FP8:
        weights, copy = weights + copy, 0.0
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
        weights=weights,
        requests=requests,
        sequence_cache_bytes=sequence,
        iteration=_iteration_bytes(profile, workload, layout),
        request_logits_bytes=0.0,
        sequence_state_bytes=share * state_bytes(profile, workload.state_format, tensor=tensor, rules=rules),
        loading_bytes=copy,
    )
    known = rules.name is not None
    if known:
        reserved = workload.most_requests or requests
        memory = memory._replace(
            token_cache_bytes=share * _token_cache_bytes(profile, workload, tensor),
            sampler_requests=reserved if rules.samples_at_start else 0,
            held_bytes=profile.widest_elements * tokens * _WIDE_BYTES,
        )
    if workload.draft is not None or workload.adapters is not None:
        memory = memory._replace(**_beside(profile, workload, layout))
    captured = share if known and workload.cuda_graphs else 0.0
    return _Measures(
        memory,
        logits=float(profile.vocabulary_size) if known else profile.vocabulary_size / tensor,
        graph_layers=captured * profile.block_count,
        graph_expert_layers=captured * profile.expert_blocks,
        graph_logits_bytes=captured
        and float(workload.graph_requests * profile.vocabulary_size * ELEMENT_BYTES[NumberFormat.FP32]),
        spread=tensor * layout.pipeline * layout.expert > 1,
        beside_bytes=_rotary_bytes(profile, workload, share) + _unpacked_bytes(profile, workload, tensor),
        known=known,
    )


def _rotary_bytes(profile: Profile, workload: InferenceWorkload, share: float) -> float:
    """Sines and cosines of every position, a head wide, in each attention layer."""
    if not workload.position_tokens:
        return 0.0
    heads = sum(work.layers * work.key_value_head_elements for work in profile.attention if not work.cross)
    return share * heads * workload.position_tokens * _WIDE_BYTES


def _unpacked_bytes(profile: Profile, workload: InferenceWorkload, tensor: int) -> float:
    """The widest matrix at 16 bit, where kernels unpack 4-bit GPTQ into a buffer of their own."""
    stored = workload.storage
    if not (workload.rules.unpacks_gptq and stored.name.startswith("gptq")) or stored.mean_bits > _NARROW:
        return 0.0
    widest = max((matrix.inputs * matrix.outputs for matrix in profile.weights.matrices), default=0)
    return widest / tensor * _WIDE_BYTES


def _taking(measures: _Measures, workload: InferenceWorkload, taken: EngineBuffers) -> ServingMemory:
    """The memory with what the engine takes beside weights, caches and iterations."""
    memory, rules = measures.memory, workload.rules
    weights, iteration = memory.weights, memory.iteration
    if taken.weights_factor != 1.0:
        weights *= taken.weights_factor
    if taken.iteration_factor != 1.0:
        iteration = iteration.scaled(taken.iteration_factor)
    logits = measures.logits * taken.sampler_bytes_per_logit
    if not measures.known:
        return memory._replace(weights=weights, iteration=iteration, request_logits_bytes=logits)
    graphs = (
        taken.graph_bytes_per_layer * measures.graph_layers
        + taken.graph_bytes_per_expert_layer * measures.graph_expert_layers
        + measures.graph_logits_bytes
    )
    communication = taken.communication_bytes if measures.spread else 0.0
    outside = 0.0 if rules.graphs_charged else graphs
    if not rules.context_charged:
        outside += taken.context_bytes
    if not rules.libraries_charged:
        outside += taken.runtime_bytes + communication
    return memory._replace(
        weights=weights,
        iteration=iteration,
        request_logits_bytes=logits,
        communication=communication,
        runtime=taken.runtime_bytes + measures.beside_bytes,
        cuda_graphs=graphs,
        context=taken.context_bytes,
        outside_bytes=outside,
    )


def pass_bytes(workload: InferenceWorkload) -> float:
    """What a forward pass over one request holds: at 16 bit, or in FP32 where the weights are.

    Not divided by tensor parallelism.
    """
    return workload.pass_elements * max(_WIDE_BYTES, ELEMENT_BYTES[workload.weight_format])


def _iteration_bytes(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> IterationBytes:
    """Live intermediates of one iteration; of a tower in front of it where they are more."""
    if not workload.pass_elements:
        return _decoded_bytes(profile, workload, layout)
    if not profile.generates:
        return IterationBytes(0.0, request=pass_bytes(workload))
    decoded = _decoded_bytes(profile, workload, layout)
    return decoded._replace(least=max(decoded.least, pass_bytes(workload)))


def _decoded_bytes(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> IterationBytes:
    rules, tensor, tokens = workload.rules, layout.tensor, workload.batched_tokens
    if rules.name is None:
        wide = 2.0 * profile.widest_elements + profile.inner_elements / tensor
        return IterationBytes(wide * tokens * _WIDE_BYTES)
    stream = STREAM_COPIES * profile.widest_elements * rules.element_bytes
    size = stream + profile.iteration_elements.of(tensor) * rules.element_bytes
    if rules.logit_bytes:
        logits = profile.vocabulary_size / tensor * rules.logit_bytes
        size = max(size, profile.widest_elements * rules.element_bytes + logits)
    if not tokens:
        # Whole prompts of all requests pass at once.
        return IterationBytes(0.0, request=size * int(workload.input_tokens))
    if rules.keeps_reduced and layout.tensor > 1:
        # What attention and feed-forward of each layer hand on, until the pass ends.
        size += 2.0 * stage_share(profile, layout) * profile.block_count * stream / STREAM_COPIES
    if rules.scores_kept:
        # Each head's scores against the whole context in FP32, and their mask.
        heads = max((work.query_heads for work in profile.attention), default=0)
        scores = (heads / tensor + 1.0) * workload.context_tokens * rules.element_bytes
        return IterationBytes(size * tokens, stream * tokens, scores * tokens)
    return IterationBytes(size * tokens)


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


def largest_concurrency(memory: ServingMemory, workload: InferenceWorkload, limit_bytes: float) -> int:
    """Most whole requests of one replica that fit, if the engine's share of a device is ``limit_bytes``.

    Every bound is linear in the requests: r x (cache + state) + w x (fixed + r x growth) <= room, where w is
    1 against the device and the share of it that the fixed part costs the cache. 0 for a model that keeps
    nothing of a request.
    """
    rules, each, beside = workload.rules, memory.request_bytes, memory.beside_bytes
    if not each:
        return 0
    fraction = workload.memory_fraction
    capacity = limit_bytes / fraction
    rooms = [(capacity, 1.0)]
    match rules.reservation:
        case Reservation.DEVICE:
            rooms = [(min(limit_bytes + memory.outside_bytes, capacity), 1.0)]
        case Reservation.FREE:
            rooms.append((fraction * capacity, fraction))
        case Reservation.STATIC:
            loaded = memory.weights + memory.draft_weights + memory.adapters
            rooms.append((fraction * (capacity - memory.context - memory.communication) - loaded, 0.0))
    if memory.sampler_requests:
        work = [(memory.workspace + memory.sampler, 0.0)]
    else:
        iteration = memory.iteration
        work = [(iteration.least, 0.0), (iteration.beside, iteration.request)]
        work += [(0.0, memory.request_logits_bytes), (memory.loading_bytes, -each)]
    most = min(
        _most(room - weight * (beside + fixed), each + weight * growth)
        for room, weight in rooms
        for fixed, growth in work
    )
    limit = whole_units(most)
    return limit if workload.most_requests is None else min(limit, workload.most_requests)


def _most(room: float, each: float) -> float:
    """How often ``each`` goes into ``room``: without end if it takes nothing of what is there."""
    if room < 0.0:
        return 0.0
    return room / each if each > 0.0 else math.inf


def requests_that_fit(
    profile: Profile, workload: InferenceWorkload, layout: Parallelism, limit_bytes: float
) -> int:
    """Most whole requests of one replica that fit, if the engine's share of a device is ``limit_bytes``."""
    return largest_concurrency(inference_memory(profile, workload, layout), workload, limit_bytes)


class _Room(NamedTuple):
    """Bytes for caches and states, and what a token of context takes of them beside its cache."""

    size: float
    token_bytes: float


def _rooms(memory: ServingMemory, workload: InferenceWorkload, usable_bytes: float) -> list[_Room]:
    """What is left to caches and states, all to be kept: more than one where scores grow with them."""
    if not workload.rules.scores_kept:
        return [_Room(usable_bytes - memory.fixed_bytes, 0.0)]
    iteration, left = memory.iteration, usable_bytes - memory.beside_bytes
    growth = iteration.request / workload.context_tokens
    return [_Room(left - iteration.least, 0.0), _Room(left - iteration.beside, growth)]


def cache_tokens(memory: ServingMemory, usable_bytes: float, workload: InferenceWorkload) -> int:
    """Tokens of one replica's cache beside weights and buffers, in whole blocks, as engines count them."""
    # States and the cache of a draft model are taken from the same room.
    others = memory.requests * (memory.sequence_state_bytes + memory.draft_sequence_cache_bytes)
    per_token = memory.token_cache_bytes or memory.sequence_cache_bytes / workload.context_tokens
    blocks = min(
        (room.size - others) / (per_token + room.token_bytes) / workload.block_tokens
        for room in _rooms(memory, workload, usable_bytes)
    )
    return whole_units(blocks) * workload.block_tokens


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
    held = memory.sequence_state_bytes + crossed * workload.input_tokens
    reached = [
        _longest(costs, max(0.0, max(0.0, room.size) / memory.requests - held), room.token_bytes)
        for room in _rooms(memory, workload, usable_bytes)
    ]
    longest = min((tokens for tokens in reached if tokens is not None), default=None)
    if longest is None:
        return None
    return whole_units(longest / workload.block_tokens) * workload.block_tokens


def _longest(costs: list[tuple[float, float]], room: float, beside: float) -> float | None:
    """Tokens whose cache fills ``room``, by what a token costs up to each window; None for no end."""
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
