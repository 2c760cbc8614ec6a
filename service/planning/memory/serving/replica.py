"""Memory of a replica: weights, caches and iterations under a layout, and the buffers of its engine.

The engine's further memory, and the share of the device that it gives to the cache, follow from its rules
(``engines``).
"""

from typing import NamedTuple

from service.planning.memory.caches import (
    iteration_window_bytes,
    key_value_bytes,
    layer_cache_bytes,
    state_bytes,
)
from service.planning.memory.serving.components import ServingMemory, ServingRange
from service.planning.memory.serving.iteration import compute_iteration_bytes
from service.planning.memory.serving.weights import WIDE_BYTES, build_companion_parts, inference_weight_bytes
from service.planning.memory.stages import stage_share
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.software.engines import EngineBuffers
from service.planning.workload import InferenceWorkload

_NARROW = 5.0
"""Largest bits of an element, groups included, that count as 4-bit weights."""


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


def _compute_measures(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> _LayoutMeasures:
    rules, tensor = workload.rules, layout.tensor
    share = stage_share(profile, layout)
    context, source = _compute_lengths(profile, workload)
    weights, copy = _compute_loaded_weights(profile, workload, layout)
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
        iteration=compute_iteration_bytes(profile, workload, layout),
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
        memory = _add_engine_charges(memory, profile, workload, tensor, share)
    if workload.draft is not None or workload.adapters is not None or workload.companions:
        memory = memory._replace(**build_companion_parts(profile, workload, layout))
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


def _add_engine_charges(
    memory: ServingMemory, profile: ModelProfile, workload: InferenceWorkload, tensor: int, share: float
) -> ServingMemory:
    """Adds what a known engine charges for a token and reserves to sample tokens."""
    reserved = workload.most_requests or memory.requests
    return memory._replace(
        token_cache_bytes=share * _token_cache_bytes(profile, workload, tensor),
        sampler_requests=reserved if workload.rules.samples_at_start else 0,
        held_bytes=profile.widest_elements * workload.batched_tokens * WIDE_BYTES,
    )


def _compute_loaded_weights(
    profile: ModelProfile, workload: InferenceWorkload, layout: Parallelism
) -> tuple[float, float]:
    """Returns the weights on one device, and the copy of a tied head that loading holds beside them."""
    rules = workload.rules
    sizes = inference_weight_bytes(profile, workload.storage, layout)
    weights = sizes.total - (sizes.table if rules.table_on_host else 0.0)
    # Some quantised checkpoints repeat a head that is tied to the table.
    copy = (
        profile.weights.get_stored_weights(workload.storage).copied / layout.tensor
        if rules.loads_tied_copy
        else 0.0
    )
    if rules.keeps_tied_copy and workload.storage.compute is NumberFormat.FP8:
        weights, copy = weights + copy, 0.0
    return weights, copy


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


def _rotary_bytes(profile: ModelProfile, workload: InferenceWorkload, share: float) -> float:
    """Returns sines and cosines of every position, one head wide, in each attention layer."""
    if not workload.position_tokens:
        return 0.0
    heads = sum(work.layers * work.key_value_head_elements for work in profile.attention if not work.cross)
    return share * heads * workload.position_tokens * WIDE_BYTES


def _unpacked_bytes(profile: ModelProfile, workload: InferenceWorkload, tensor: int) -> float:
    """Returns the widest matrix at 16 bit, where kernels unpack 4-bit GPTQ into a separate buffer."""
    stored = workload.storage
    if not (workload.rules.unpacks_gptq and stored.name.startswith("gptq")) or stored.mean_bits > _NARROW:
        return 0.0
    widest = max((matrix.inputs * matrix.outputs for matrix in profile.weights.matrices), default=0)
    return widest / tensor * WIDE_BYTES


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
