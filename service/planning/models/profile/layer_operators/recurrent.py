"""Operators of layers that keep a state: linear attention and state spaces."""

from collections.abc import Iterator

from service.planning.models.layers import LinearAttention, StateSpace
from service.planning.models.profile.activations import CHUNK_TOKENS
from service.planning.models.profile.layer_operators.kernels import KernelChoice
from service.planning.models.profile.layer_operators.matrices import build_matrices
from service.planning.models.profile.layer_operators.templates import (
    OperatorTemplate,
    ScanTemplate,
    StreamedTemplate,
)
from service.planning.models.profile.layer_operators.traffic import (
    build_activation,
    build_residual,
    compute_norm_traffic,
    split_traffic,
)

_ELEMENT_FLOPS = 6.0
_SCAN_PASSES = 4.0


def list_linear_attention_operators(
    layer: LinearAttention, choice: KernelChoice
) -> Iterator[OperatorTemplate]:
    """Yields matrices, the scan of the state in chunks, and the norm and gate of its result."""
    yield from build_matrices(layer.list_tensors(), choice)
    key = layer.key_heads * layer.key_head_size
    value = layer.value_heads * layer.value_head_size
    state = layer.value_heads * layer.key_head_size * layer.value_head_size
    convolved = 0 if layer.rule == "fixed" else 2 * key + value
    flops = _ELEMENT_FLOPS * state + 2.0 * convolved * layer.convolution_width
    moved = 2.0 * convolved + 2 * key + 2 * value + 2.0 * state / CHUNK_TOKENS
    yield ScanTemplate("linear_attention", flops, moved)
    yield StreamedTemplate("norm", *split_traffic(compute_norm_traffic(value, "rms", choice)))
    yield build_activation(value, choice, gated=True)
    yield build_residual(layer.hidden_size, choice.fusion)


def list_state_space_operators(layer: StateSpace, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields matrices, the scan of the state, and the norm and gate of its result."""
    yield from build_matrices(layer.list_tensors(), choice)
    states = layer.groups * layer.state_size
    convolved = layer.inner_size + (2 * states if layer.heads else 0)
    state = layer.inner_size * layer.state_size
    flops = _ELEMENT_FLOPS * state + 2.0 * convolved * layer.convolution_width
    chunked = 2.0 * state / CHUNK_TOKENS if layer.heads else 0.0
    moved = 2.0 * convolved + _SCAN_PASSES * layer.inner_size + 2.0 * states + chunked
    yield ScanTemplate("state_space", flops, moved)
    if layer.heads and layer.gated_norm:
        yield StreamedTemplate("norm", *split_traffic(compute_norm_traffic(layer.inner_size, "rms", choice)))
    yield build_activation(layer.inner_size, choice, gated=True)
    yield build_residual(layer.hidden_size, choice.fusion)
