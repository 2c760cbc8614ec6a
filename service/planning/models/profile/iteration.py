"""Live intermediates while an engine passes a batch through a layer, in elements per token."""

from collections.abc import Iterable
from typing import NamedTuple

from service.planning.models.architecture import ModelLayer
from service.planning.models.layers import (
    Attention,
    CompressedAttention,
    FeedForward,
    LatentAttention,
    LinearAttention,
    MixtureOfExperts,
    StateSpace,
)

STREAM_COPIES = 4
"""Copies of the residual stream: itself, its norm, the layer's input and its output."""


class LiveElements(NamedTuple):
    """Largest live intermediates of a layer: a part that tensor parallelism divides, and one with a floor."""

    split: float
    wide: float = 0.0
    """Elements that are divided too, but not below ``least``."""
    least: float = 0.0

    def count_device_elements(self, tensor: int) -> float:
        """Returns the elements on a device of a tensor-parallel group."""
        return self.split / tensor + max(self.wide / tensor, self.least)


class IterationElements(NamedTuple):
    """Live intermediates of the layers of a model."""

    layers: tuple[LiveElements, ...] = ()

    def count_device_elements(self, tensor: int) -> float:
        """Returns the elements of the widest layer on a device of a tensor-parallel group."""
        return max((layer.count_device_elements(tensor) for layer in self.layers), default=0.0)


def iteration_elements(layers: Iterable[ModelLayer]) -> IterationElements:
    """Returns the live intermediates of ``layers``, equal ones once."""
    return IterationElements(tuple(dict.fromkeys(live_elements(layer) for layer in layers)))


def live_elements(layer: ModelLayer) -> LiveElements:
    """Returns the largest live intermediates of a layer under inference.

    A gated feed-forward holds gate and up and their product (3 f); experts hold the products of all tokens'
    choices, x f, in addition to gate and up, x 2 f, or the outputs, x h, in the same memory: outputs are as
    wide as the model on every device. Attention holds its projections and output.
    """
    if isinstance(layer, MixtureOfExperts):
        inner, chosen = layer.widest_inner_size, layer.experts_per_token
        wide = chosen * inner * (2 if layer.gated else 1)
        shared = (layer.shared_inner_size or 0) * (3 if layer.gated else 2)
        outputs = chosen * (layer.latent_size or layer.hidden_size)
        if shared > max(wide, outputs) + chosen * inner:
            return LiveElements(shared)
        return LiveElements(chosen * inner, wide, outputs)
    return LiveElements(_count_split_elements(layer))


def _count_split_elements(layer: ModelLayer) -> float:  # noqa: PLR0911 - one kind a case
    match layer:
        case Attention():
            sizes = layer.head_size + (layer.value_head_size or layer.head_size)
            return (layer.query_heads + layer.key_value_heads) * sizes
        case LatentAttention():
            keys = layer.rotary_head_size + layer.plain_head_size
            return layer.query_heads * (2 * keys + 2 * layer.value_head_size)
        case CompressedAttention():
            return 2 * layer.query_heads * layer.head_size + layer.output_groups * layer.output_rank
        case LinearAttention():
            key = layer.key_heads * layer.key_head_size
            return 4 * key + 4 * layer.value_heads * layer.value_head_size
        case StateSpace():
            return 4 * layer.inner_size + 2 * layer.groups * layer.state_size
        case FeedForward():
            return layer.inner_size * (3 if layer.gated else 2)
        case _:
            return 0.0
