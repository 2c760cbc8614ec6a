"""Caches and states of served requests, in bytes: keys and values by kind of attention, states by engine."""

import math

from service.planning.hardware.storage import CACHE_FORMATS, BlockFormat
from service.planning.models.profile import AttentionWork, ModelProfile
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.software.engines import EngineRules, WindowSlack

_BARE = EngineRules()


def layer_cache_bytes(work: AttentionWork, cache_format: NumberFormat | BlockFormat, tensor: int) -> float:
    """Returns the cache of one token in one layer on a device of a tensor-parallel group."""
    # A device holds at least one head: tensor parallelism beyond the heads replicates them.
    heads = math.ceil(work.key_value_heads / tensor)
    width, scales = CACHE_FORMATS[cache_format]
    elements = heads * work.key_value_head_elements + work.whole_cache_elements
    return elements * width + max(heads, 1) * work.vectors * scales if elements else 0.0


def cache_bytes_per_token(
    work: AttentionWork, cache_format: NumberFormat | BlockFormat, tensor: int
) -> float:
    """Returns the cache of one token over all layers of this kind on a device of a tensor-parallel group."""
    return work.layers * layer_cache_bytes(work, cache_format, tensor) if work.caches else 0.0


def compute_max_cached_tokens(work: AttentionWork, rules: EngineRules, batched_tokens: int) -> float:
    """Returns the tokens beyond which the cache of a request in a layer no longer grows."""
    if work.bounded:
        return work.window_tokens
    if not rules.windows_kept:
        return math.inf
    return work.window_tokens + (batched_tokens if rules.window_slack is WindowSlack.REQUEST else 0)


def iteration_window_bytes(
    profile: ModelProfile,
    context_tokens: float,
    cache_format: NumberFormat | BlockFormat,
    *,
    tensor: int,
    rules: EngineRules,
    batched_tokens: int,
) -> float:
    """Returns the bytes of the tokens that an iteration caches beside the windows of its requests.

    vLLM frees what lies outside a window before it adds the tokens of an iteration, which are at most
    ``batched_tokens`` over all requests.
    """
    if rules.window_slack is not WindowSlack.ITERATION:
        return 0.0
    return sum(
        cache_bytes_per_token(work, cache_format, tensor)
        * min(float(batched_tokens), max(0.0, context_tokens - work.window_tokens))
        for work in profile.attention
        if not (work.cross or work.bounded)
    )


def key_value_bytes(
    profile: ModelProfile,
    context_tokens: float,
    cache_format: NumberFormat | BlockFormat,
    *,
    tensor: int = 1,
    source_tokens: float = 0.0,
    rules: EngineRules = _BARE,
    batched_tokens: int = 0,
) -> float:
    """Returns the KV cache of one sequence over all layers on a device of a tensor-parallel group.

    2 x layers x key-value heads x head size x width per token; a window caps the cached tokens, where the
    engine supports it. Cross-attention holds the ``source_tokens``.
    """
    return sum(
        cache_bytes_per_token(work, cache_format, tensor)
        * (
            source_tokens
            if work.cross
            else min(context_tokens, compute_max_cached_tokens(work, rules, batched_tokens))
        )
        for work in profile.attention
    )


def state_bytes(
    profile: ModelProfile, state_format: NumberFormat, *, tensor: int = 1, rules: EngineRules = _BARE
) -> float:
    """Returns recurrent states and the convolutions' last inputs of one sequence, split over the heads.

    States are in ``state_format``, inputs of convolutions as wide as the engine's intermediates.
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
