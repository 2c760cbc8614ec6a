"""What is live at once while an engine passes a batch through a layer, in elements per token."""

from service.planning.architecture import Layer
from service.planning.layers import (
    Attention,
    FeedForward,
    LatentAttention,
    LinearAttention,
    MixtureOfExperts,
    StateSpace,
)

STREAM_COPIES = 4
"""Residual stream, its norm, the layer's input and its output."""


def live_elements(layer: Layer) -> float:  # noqa: PLR0911
    """Largest live intermediates of a layer under inference, divided by tensor parallelism.

    A gated feed-forward holds gate and up and their product (3 f); experts hold the products of all tokens'
    choices (x (2 f + f), or the outputs x h where those are wider); attention its projections and output.
    """
    match layer:
        case Attention():
            sizes = layer.head_size + (layer.value_head_size or layer.head_size)
            return (layer.query_heads + layer.key_value_heads) * sizes
        case LatentAttention():
            keys = layer.rotary_head_size + layer.plain_head_size
            return layer.query_heads * (2 * keys + 2 * layer.value_head_size)
        case LinearAttention():
            key = layer.key_heads * layer.key_head_size
            return 4 * key + 4 * layer.value_heads * layer.value_head_size
        case StateSpace():
            return 4 * layer.inner_size + 2 * layer.groups * layer.state_size
        case FeedForward():
            return layer.inner_size * (3 if layer.gated else 2)
        case MixtureOfExperts():
            inner, chosen = layer.expert_inner_size, layer.experts_per_token
            wide = inner * (2 if layer.gated else 1)
            routed = chosen * (max(wide, layer.latent_size or layer.hidden_size) + inner)
            return max(routed, (layer.shared_inner_size or 0) * (3 if layer.gated else 2))
        case _:
            return 0.0
