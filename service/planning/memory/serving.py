"""Memory of one device that serves a model, itemised, and the limits that follow from it, in bytes.

KV cache: two vectors per key-value head, layer and token. The fullest pipeline stage is reported.
"""

import math
from typing import NamedTuple

from service.planning.memory.stages import stage_share, whole_units
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.profile import AttentionWork, Profile
from service.planning.workload import InferenceWorkload

UNQUANTISED_FORMAT = NumberFormat.BF16
"""Format in which quantised checkpoints keep embeddings, norms, routers and heads."""


def _cache_bytes_per_token(work: AttentionWork, cache_format: NumberFormat, tensor: int) -> float:
    # A device holds at least one head: tensor parallelism beyond the heads replicates them.
    heads = math.ceil(work.key_value_heads / tensor)
    width = work.key_value_head_elements * ELEMENT_BYTES[cache_format]
    return work.layers * heads * width if work.caches else 0.0


def key_value_bytes(
    profile: Profile, context_tokens: float, cache_format: NumberFormat, *, tensor: int = 1
) -> float:
    """KV cache of one sequence over all layers on a device of a tensor-parallel group.

    2 x layers x key-value heads x head size x width per token; a window caps the tokens kept.
    """
    return sum(
        _cache_bytes_per_token(work, cache_format, tensor) * min(context_tokens, work.window_tokens)
        for work in profile.attention
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
    """Logits of one token of one request."""

    @property
    def kv_cache(self) -> float:
        """KV cache of all requests."""
        return self.requests * self.sequence_cache_bytes

    @property
    def workspace(self) -> float:
        """The larger of the intermediates inside the layers and of the logits behind them."""
        return max(self.iteration_bytes, self.requests * self.request_logits_bytes)

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return self.weights + self.kv_cache + self.workspace


class WeightBytes(NamedTuple):
    """Bytes of weights on one device: of the token table, of routed experts and of all else."""

    table: float
    experts: float
    rest: float

    @property
    def total(self) -> float:
        """Their sum."""
        return self.table + self.experts + self.rest


def inference_weight_bytes(profile: Profile, weight_format: NumberFormat, layout: Parallelism) -> WeightBytes:
    """Weights on one device of the fullest pipeline stage.

    Below 16 bit only the matrices inside blocks are narrow; the rest stays at 16 bit, as published
    quantised checkpoints have it. A head that is tied to the table counts with the rest: it is read
    for every token, a table is not.
    """
    width = ELEMENT_BYTES[weight_format]
    if not profile.shapes_known:
        return WeightBytes(0.0, 0.0, profile.parameter_count * width / (layout.tensor * layout.pipeline))
    outer_width = max(width, ELEMENT_BYTES[UNQUANTISED_FORMAT])
    split, whole, expert = profile.prefixes[-1]
    dense = split + whole
    narrow_share = (profile.quantisable_parameters - expert) / dense if dense else 0.0
    narrow_share = min(1.0, max(0.0, narrow_share))
    mean_width = narrow_share * width + (1.0 - narrow_share) * outer_width
    share = stage_share(profile, layout)
    tied = profile.tied_parameters / layout.tensor
    table = profile.embedding.split / layout.tensor + profile.embedding.whole
    head = profile.head.split / layout.tensor + profile.head.whole
    if layout.pipeline == 1:
        table -= tied
        head += tied
    elif table > head + tied:
        head = 0.0
    else:
        table, head = 0.0, head + tied
    return WeightBytes(
        table=table * outer_width,
        experts=expert / (layout.tensor * layout.expert) * share * width,
        rest=(split / layout.tensor + whole) * share * mean_width + head * outer_width,
    )


def inference_memory(profile: Profile, workload: InferenceWorkload, layout: Parallelism) -> ServingMemory:
    """Memory of the fullest device of one replica with all requests at their full length.

    The workspace is the largest live intermediate of one iteration: for every batched token the
    residual stream, its norm and the widest product of a layer, or for every request the 16-bit and
    FP32 logits of one token, whichever is larger.
    """
    width = ELEMENT_BYTES[UNQUANTISED_FORMAT]
    live = 2.0 * profile.widest_elements + profile.inner_elements / layout.tensor
    logit_width = width + ELEMENT_BYTES[NumberFormat.FP32]
    sequence = stage_share(profile, layout) * key_value_bytes(
        profile, workload.context_tokens, workload.cache_format, tensor=layout.tensor
    )
    return ServingMemory(
        weights=inference_weight_bytes(profile, workload.weight_format, layout).total,
        requests=workload.requests_per_replica(layout.data),
        sequence_cache_bytes=sequence,
        iteration_bytes=live * workload.batched_tokens * width,
        request_logits_bytes=profile.vocabulary_size / layout.tensor * logit_width,
    )


def largest_concurrency(memory: ServingMemory, usable_bytes: float) -> int:
    """Most whole requests of one replica whose cache fits beside weights and workspace; 0 if none."""
    room, sequence = usable_bytes - memory.weights, memory.sequence_cache_bytes
    beside_iteration = (room - memory.iteration_bytes) / sequence
    return whole_units(min(beside_iteration, room / (sequence + memory.request_logits_bytes)))


def cache_tokens(memory: ServingMemory, usable_bytes: float, workload: InferenceWorkload) -> int:
    """Tokens of one replica's cache beside weights and workspace, in whole blocks."""
    room = usable_bytes - memory.weights - memory.workspace
    per_token = memory.sequence_cache_bytes / workload.context_tokens
    return whole_units(room / per_token / workload.block_tokens) * workload.block_tokens


def longest_context(
    profile: Profile,
    workload: InferenceWorkload,
    layout: Parallelism,
    memory: ServingMemory,
    usable_bytes: float,
) -> int | None:
    """Most tokens that each request may hold beside weights and workspace, in whole blocks.

    None where every layer's window is reached before the memory is full: no length takes more.
    """
    share = stage_share(profile, layout)
    costs = [
        (work.window_tokens, share * _cache_bytes_per_token(work, workload.cache_format, layout.tensor))
        for work in profile.attention
    ]
    room = max(0.0, usable_bytes - memory.weights - memory.workspace) / memory.requests
    reached = 0.0
    for window in sorted({window for window, cost in costs if cost}):
        per_token = sum(cost for limit, cost in costs if limit >= window)
        if per_token * (window - reached) > room:
            blocks = (reached + room / per_token) / workload.block_tokens
            return whole_units(blocks) * workload.block_tokens
        room -= per_token * (window - reached)
        reached = window
    return None
