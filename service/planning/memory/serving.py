"""Memory of one device that serves a model, itemised, in bytes.

KV cache: two vectors per key-value head, layer and token, or one compressed vector of latent attention;
layers without a cache of tokens have a state per request. Weights are counted as stored. The engine's further
memory, and the share of the device that it gives to the cache, follow from its rules (``engines``). The
fullest pipeline stage is reported.
"""

from typing import Any, NamedTuple

from service.planning.hardware.storage import WeightFormat
from service.planning.memory.caches import (
    iteration_window_bytes,
    key_value_bytes,
    layer_cache_bytes,
    state_bytes,
)
from service.planning.memory.stages import stage_share
from service.planning.models.profile import ModelProfile
from service.planning.models.profile.iteration import STREAM_COPIES
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.software.engines import EngineBuffers, EngineRules
from service.planning.workload import Adapters, InferenceWorkload

UNQUANTISED_FORMAT = NumberFormat.BF16
"""Format of embeddings, norms, routers and heads in quantised checkpoints."""

_WIDE_BYTES = ELEMENT_BYTES[UNQUANTISED_FORMAT]
_BARE = EngineRules()
_NARROW = 5.0
"""Largest bits of an element, groups included, that count as 4-bit weights."""


class IterationBytes(NamedTuple):
    """Live intermediates of one iteration.

    The larger of ``least`` and a part that grows with the requests.
    """

    least: float
    beside: float = 0.0
    request: float = 0.0
    """Bytes of each request, in addition to ``beside``."""

    def compute_bytes(self, requests: int) -> float:
        """Returns the bytes with ``requests`` at a time."""
        return max(self.least, self.beside + requests * self.request)

    def scale(self, factor: float) -> "IterationBytes":
        """Returns all members times ``factor``."""
        return IterationBytes(self.least * factor, self.beside * factor, self.request * factor)


class ServingMemory(NamedTuple):
    """Bytes on the fullest device of one replica of a served model."""

    weights: float
    requests: int
    """Concurrent requests."""
    sequence_cache_bytes: float
    """KV cache of one whole request."""
    iteration: "IterationBytes"
    """Intermediates of one iteration with as many tokens as it may process."""
    request_logits_bytes: float
    """Bytes to sample one token of one request."""
    sequence_state_bytes: float = 0.0
    """Recurrent state of one request."""
    iteration_cache_bytes: float = 0.0
    """KV cache of the tokens of one iteration beside the windows, shared by all requests."""
    token_cache_bytes: float = 0.0
    """Bytes that the engine charges for a token when it reports its capacity."""
    sampler_requests: int = 0
    """Requests that memory to sample a token is reserved for; 0 for the served requests."""
    held_bytes: float = 0.0
    """Part of an iteration that is still held when tokens are sampled."""
    auxiliary_models: float = 0.0
    """Weights of further models that a request passes."""
    draft_weights: float = 0.0
    draft_sequence_cache_bytes: float = 0.0
    adapters: float = 0.0
    communication: float = 0.0
    runtime: float = 0.0
    cuda_graphs: float = 0.0
    context: float = 0.0
    outside_bytes: float = 0.0
    """Part of these that the engine does not charge to its share of the device."""
    loading_bytes: float = 0.0
    """Bytes that loading holds beside the weights before there is a cache, and frees again."""

    @property
    def iteration_bytes(self) -> float:
        """Intermediates of one iteration with the served requests."""
        return self.iteration.compute_bytes(self.requests)

    @property
    def request_bytes(self) -> float:
        """Caches and states of one more whole request."""
        return self.sequence_cache_bytes + self.sequence_state_bytes + self.draft_sequence_cache_bytes

    @property
    def kv_cache(self) -> float:
        """KV cache of all requests."""
        return self.requests * self.sequence_cache_bytes + self.iteration_cache_bytes

    @property
    def state(self) -> float:
        """Recurrent state of all requests."""
        return self.requests * self.sequence_state_bytes

    @property
    def draft_kv_cache(self) -> float:
        """KV cache of the draft model for all requests."""
        return self.requests * self.draft_sequence_cache_bytes

    @property
    def sampling_bytes(self) -> float:
        """Peak memory of sampling tokens."""
        return (self.sampler_requests or self.requests) * self.request_logits_bytes

    @property
    def sampler(self) -> float:
        """Memory to sample tokens, where the engine reserves it and it exceeds an iteration."""
        outgrows = self.sampler_requests and self.held_bytes + self.sampling_bytes > self.iteration_bytes
        return self.sampling_bytes if outgrows else 0.0

    @property
    def workspace(self) -> float:
        """Larger of the intermediates inside the layers and of the logits after them.

        Or, where that is more, the memory of loading beyond the room that caches take later.
        """
        if self.sampler_requests:
            return self.held_bytes if self.sampler else self.iteration_bytes
        running = max(self.iteration_bytes, self.sampling_bytes)
        return max(running, self.loading_bytes - self.requests * self.request_bytes)

    @property
    def beside_bytes(self) -> float:
        """Memory that does not depend on the requests and the batch."""
        loaded = self.weights + self.auxiliary_models + self.draft_weights + self.adapters
        return loaded + self.communication + self.runtime + self.cuda_graphs + self.context

    @property
    def fixed_bytes(self) -> float:
        """All memory but caches and states."""
        return self.beside_bytes + self.workspace + self.sampler

    @property
    def total_bytes(self) -> float:
        """All memory."""
        return self.fixed_bytes + self.iteration_cache_bytes + self.requests * self.request_bytes


class WeightBytes(NamedTuple):
    """Bytes of weights on one device: of the token table, of routed experts and of all other tensors."""

    table: float
    experts: float
    rest: float

    @property
    def total(self) -> float:
        """Sum of the three."""
        return self.table + self.experts + self.rest


def inference_weight_bytes(profile: ModelProfile, stored: WeightFormat, layout: Parallelism) -> WeightBytes:
    """Returns the weights on one device of the fullest pipeline stage, as they are stored.

    A group wider than the heads of keys and values repeats them. A head that is tied to the table counts with
    the rest: it is read for every token, a table is not.
    """
    sizes, tensor = profile.weights.get_stored_weights(stored), layout.tensor
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


def adapter_bytes(profile: ModelProfile, adapters: Adapters, tensor: int) -> float:
    """Returns low-rank pairs on every matrix inside blocks but experts', at 16 bit.

    rank x (inputs + outputs) for each; for a split matrix, the pair's half on the split side is split too.
    """
    elements = 0.0
    for matrix in profile.weights.matrices:
        copies = matrix.total_copies
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


def _compute_lengths(profile: ModelProfile, workload: InferenceWorkload) -> tuple[float, float]:
    """Returns the tokens of context of a decoder, and those that its cross-attention reads."""
    source = workload.input_tokens if workload.source_tokens is None else workload.source_tokens
    if not profile.encodes:
        return workload.context_tokens, source
    block = workload.block_tokens
    return float(-(-int(workload.output_tokens) // block) * block), source


def _token_cache_bytes(profile: ModelProfile, workload: InferenceWorkload, tensor: int) -> float:
    """Returns the bytes that the engine divides its cache by when it reports tokens.

    vLLM lays out all layers with a cache in pages of one size, that of the largest; entries that stand for
    several tokens have pages of their own.
    """
    if not workload.rules.reports_full_length:
        return 0.0
    kept = [work for work in profile.attention if work.caches and not work.state_elements]
    if any(work.joined for work in kept):
        return 0.0
    largest = max((layer_cache_bytes(work, workload.cache_format, tensor) for work in kept), default=0.0)
    return largest * sum(work.layers for work in kept)


class _LayoutMeasures(NamedTuple):
    """Memory under a layout, and the units of an engine's buffers."""

    memory: ServingMemory
    logits: float
    """Words of the vocabulary that a device samples a request's token from."""
    graph_layers: float
    """Layers of the fullest stage that graphs capture; 0 for none."""
    graph_expert_layers: float
    graph_logits_bytes: float
    spread: bool
    """True if a replica lies on several devices."""
    beside_bytes: float
    """Bytes of rotary tables, and of a matrix that packed ones are unpacked into."""
    known: bool
    """True if the engine's rules are known."""


def estimate_inference_memory(
    profile: ModelProfile,
    workload: InferenceWorkload,
    layout: Parallelism,
    buffers: EngineBuffers | None = None,
) -> ServingMemory:
    """Estimates the memory of the fullest device of one replica with all requests at their full length.

    The workspace is the largest live intermediate of one iteration: for every batched token the residual
    stream and the widest product of a layer. In addition, sampling a token takes memory for every request; an
    engine that measures itself at start-up reserves it for its maximum of requests. ``buffers`` are those of
    the workload unless given.
    """
    return _add_engine_buffers(
        _compute_measures(profile, workload, layout), workload, buffers or workload.buffers
    )


class ServingRange(NamedTuple):
    """Memory with every buffer of the engine at its least, at its value and at its most."""

    least: ServingMemory
    value: ServingMemory
    most: ServingMemory


def estimate_inference_memory_range(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> ServingRange:
    """Estimates the memory with the ends of the interval of the engine's buffers."""
    measures = _compute_measures(profile, workload, layout)
    return ServingRange(
        _add_engine_buffers(measures, workload, workload.least_buffers),
        _add_engine_buffers(measures, workload, workload.buffers),
        _add_engine_buffers(measures, workload, workload.most_buffers),
    )


def _compute_measures(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> _LayoutMeasures:
    rules, tensor = workload.rules, layout.tensor
    share = stage_share(profile, layout)
    context, source = _compute_lengths(profile, workload)
    sizes = inference_weight_bytes(profile, workload.storage, layout)
    weights = sizes.total - (sizes.table if rules.table_on_host else 0.0)
    # Some quantised checkpoints repeat a head that is tied to the table.
    copy = (
        profile.weights.get_stored_weights(workload.storage).copied / tensor if rules.loads_tied_copy else 0.0
    )
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
        iteration_cache_bytes=share
        * iteration_window_bytes(
            profile, context, workload.cache_format, tensor=tensor, rules=rules, batched_tokens=tokens
        ),
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
    if workload.draft is not None or workload.adapters is not None or workload.companions:
        memory = memory._replace(**_build_companion_parts(profile, workload, layout))
    captured = share if known and workload.cuda_graphs else 0.0
    return _LayoutMeasures(
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


def _rotary_bytes(profile: ModelProfile, workload: InferenceWorkload, share: float) -> float:
    """Returns sines and cosines of every position, one head wide, in each attention layer."""
    if not workload.position_tokens:
        return 0.0
    heads = sum(work.layers * work.key_value_head_elements for work in profile.attention if not work.cross)
    return share * heads * workload.position_tokens * _WIDE_BYTES


def _unpacked_bytes(profile: ModelProfile, workload: InferenceWorkload, tensor: int) -> float:
    """Returns the widest matrix at 16 bit, where kernels unpack 4-bit GPTQ into a separate buffer."""
    stored = workload.storage
    if not (workload.rules.unpacks_gptq and stored.name.startswith("gptq")) or stored.mean_bits > _NARROW:
        return 0.0
    widest = max((matrix.inputs * matrix.outputs for matrix in profile.weights.matrices), default=0)
    return widest / tensor * _WIDE_BYTES


def _add_engine_buffers(
    measures: _LayoutMeasures, workload: InferenceWorkload, taken: EngineBuffers
) -> ServingMemory:
    """Adds the engine's memory beside weights, caches and iterations."""
    memory, rules = measures.memory, workload.rules
    weights, iteration = memory.weights, memory.iteration
    if taken.weights_factor != 1.0:
        weights *= taken.weights_factor
    if taken.iteration_factor != 1.0:
        iteration = iteration.scale(taken.iteration_factor)
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
    """Returns the memory of a forward pass over one request: at 16 bit, or in FP32 where the weights are.

    It is not divided by tensor parallelism.
    """
    return workload.pass_elements * max(_WIDE_BYTES, ELEMENT_BYTES[workload.weight_format])


def _iteration_bytes(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> IterationBytes:
    """Returns the live intermediates of one iteration, or of a tower before it where they are more."""
    if not workload.pass_elements:
        return _compute_decoder_bytes(profile, workload, layout)
    if not profile.generates:
        return IterationBytes(0.0, request=pass_bytes(workload))
    decoded = _compute_decoder_bytes(profile, workload, layout)
    return decoded._replace(least=max(decoded.least, pass_bytes(workload)))


def _compute_decoder_bytes(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> IterationBytes:
    rules, tensor, tokens = workload.rules, layout.tensor, workload.batched_tokens
    if rules.name is None:
        wide = 2.0 * profile.widest_elements + profile.inner_elements / tensor
        return IterationBytes(wide * tokens * _WIDE_BYTES)
    stream = STREAM_COPIES * profile.widest_elements * rules.element_bytes
    size = stream + profile.iteration_elements.count_device_elements(tensor) * rules.element_bytes
    if rules.logit_bytes:
        logits = profile.vocabulary_size / tensor * rules.logit_bytes
        size = max(size, profile.widest_elements * rules.element_bytes + logits)
    if not tokens:
        # Whole prompts of all requests pass at once.
        return IterationBytes(0.0, request=size * int(workload.input_tokens))
    if rules.keeps_reduced and layout.tensor > 1:
        # Outputs of attention and feed-forward of each layer, until the pass ends.
        size += 2.0 * stage_share(profile, layout) * profile.block_count * stream / STREAM_COPIES
    if rules.scores_kept:
        # Each head's scores against the whole context in FP32, and their mask.
        heads = max((work.query_heads for work in profile.attention), default=0)
        scores = (heads / tensor + 1.0) * workload.context_tokens * rules.element_bytes
        return IterationBytes(size * tokens, stream * tokens, scores * tokens)
    return IterationBytes(size * tokens)


def _build_companion_parts(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> dict[str, Any]:
    """Returns draft model, adapters and companions of a workload that has them."""
    parts: dict[str, Any] = {}
    draft = workload.draft
    if draft is not None:
        # The draft lies on the same devices, split alike; it has fewer layers and no pipeline stages.
        alone = Parallelism(tensor=layout.tensor)
        parts["draft_weights"] = inference_weight_bytes(draft.profile, draft.stored, alone).total
        parts["draft_sequence_cache_bytes"] = key_value_bytes(
            draft.profile, workload.context_tokens, workload.cache_format, tensor=layout.tensor
        )
    parts["auxiliary_models"] = sum(
        inference_weight_bytes(other.profile, other.stored, Parallelism(tensor=layout.tensor)).total
        for other in workload.companions
    )
    if workload.adapters is not None:
        size = adapter_bytes(profile, workload.adapters, layout.tensor)
        parts["adapters"] = size * stage_share(profile, layout)
    return parts
