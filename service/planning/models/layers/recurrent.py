"""Layers that keep a state of a fixed size: linear attention and state space."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from service.planning.errors import PlanningError
from service.planning.models.layers.tensors import LayerTensor, TensorSplit, build_matrix, build_vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Attention with a state of fixed size under a rule of forgetting."""

    kind: ClassVar[Literal["linear_attention"]] = "linear_attention"
    hidden_size: int
    key_heads: int
    """Number of heads of keys and queries."""
    value_heads: int
    """Number of heads of values."""
    key_head_size: int
    """Width of a key."""
    value_head_size: int
    """Width of a value."""
    convolution_width: int
    """Number of tokens that the short convolution sees."""
    rule: Literal["gated_delta", "channel_delta", "fixed"] = "gated_delta"
    """Rule by which the state forgets: a decay for each head (``gated_delta``, Yang et al. 2024), a decay for
    each channel (``channel_delta``, Kimi Linear 2025), or a constant of the head, without convolution
    (``fixed``, MiniMax-01 2025)."""
    gate_rank: int | None = None
    """Width inside the projections of forget gate and output gate; absent where they are full."""
    full_output_gate: bool = False
    """True if the output gate is full beside a forget gate of rank ``gate_rank`` (Kimi K3 2026)."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Projections of query, key, value, output gate, decay and step, and the short convolution."""
        key = self.key_heads * self.key_head_size
        value = self.value_heads * self.value_head_size
        yield build_matrix("query_key_value", self.hidden_size, 2 * key + value, TensorSplit.COLUMN)
        yield build_matrix("output", value, self.hidden_size, TensorSplit.ROW)
        if self.rule == "fixed":
            yield build_matrix("gate", self.hidden_size, value, TensorSplit.COLUMN)
            yield LayerTensor("norm", (value,), TensorSplit.COLUMN)
            return
        yield LayerTensor("convolution", (2 * key + value, self.convolution_width), TensorSplit.COLUMN)
        yield LayerTensor("decay", (self.value_heads,), TensorSplit.COLUMN)
        yield LayerTensor("norm", (self.value_head_size,), TensorSplit.NONE)
        if self.rule == "gated_delta":
            yield build_matrix("gate", self.hidden_size, value, TensorSplit.COLUMN)
            yield build_matrix("step_and_decay", self.hidden_size, 2 * self.value_heads, TensorSplit.COLUMN)
            yield LayerTensor("step_bias", (self.value_heads,), TensorSplit.COLUMN)
            return
        yield build_matrix("step", self.hidden_size, self.value_heads, TensorSplit.COLUMN)
        yield LayerTensor("step_bias", (key,), TensorSplit.COLUMN)
        output_rank = None if self.full_output_gate else self.gate_rank
        for name, width, rank in (("forget", key, self.gate_rank), ("gate", value, output_rank)):
            if rank is None:
                yield build_matrix(name, self.hidden_size, width, TensorSplit.COLUMN)
            else:
                yield build_matrix(f"{name}_down", self.hidden_size, rank)
                yield build_matrix(f"{name}_up", rank, width, TensorSplit.COLUMN)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """Selective state space: Mamba 1 (``time_step_rank``), Mamba 2 (``heads``), RG-LRU (``gate_blocks``)."""

    kind: ClassVar[Literal["state_space"]] = "state_space"
    hidden_size: int
    inner_size: int
    """Width inside the layer."""
    state_size: int
    """Width of the state of each channel; 1 in RG-LRU."""
    convolution_width: int
    """Number of tokens that the short convolution sees."""
    time_step_rank: int | None = None
    """Width of the compressed time step; only Mamba 1 has it."""
    heads: int | None = None
    """Number of heads; only Mamba 2 has them."""
    gate_blocks: int | None = None
    """Number of diagonal blocks in each of the two gates; only RG-LRU has them (De et al. 2024)."""
    groups: int = 1
    """Number of groups of heads that share the input and output of their state."""
    state_norms: bool = False
    """True if Mamba 1 normalizes step, input and output of its state."""
    gated_norm: bool = True
    """True if Mamba 2 normalizes the output of its gate."""
    convolution_bias: bool = True
    """True if a learned vector is added to the convolution."""
    projection_bias: bool = False
    """True if a learned vector is added to the projections."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Input and output projections, short convolution, transition, skip and step."""
        if sum(given is not None for given in (self.heads, self.time_step_rank, self.gate_blocks)) != 1:
            raise PlanningError(
                "STATE_SPACE_VERSION",
                "",
                "a state_space layer has one of time_step_rank (Mamba 1), heads (Mamba 2) and"
                " gate_blocks (RG-LRU)",
            )
        states = self.groups * self.state_size
        yield from self._list_projections(states)
        convolved = self.inner_size + (2 * states if self.heads else 0)
        yield LayerTensor("convolution", (convolved, self.convolution_width), TensorSplit.COLUMN)
        yield from build_vectors(self.convolution_bias, "convolution_bias", convolved, TensorSplit.COLUMN)
        yield build_matrix("output", self.inner_size, self.hidden_size, TensorSplit.ROW)
        yield from build_vectors(self.projection_bias, "output_bias", self.hidden_size)

    def _list_projections(self, states: int) -> Iterator[LayerTensor]:
        width = 2 * self.inner_size
        if self.heads:
            width += 2 * states + self.heads
            for name in ("transition", "skip", "step_bias"):
                yield LayerTensor(name, (self.heads,), TensorSplit.COLUMN)
            yield from build_vectors(self.gated_norm, "norm", self.inner_size, TensorSplit.COLUMN)
        elif self.gate_blocks:
            side = self.inner_size // self.gate_blocks
            for name in ("input_gate", "recurrence_gate"):
                shape = (self.gate_blocks, side, side)
                # Each token meets one block per channel, so all of the blocks are multiplied once.
                yield LayerTensor(name, shape, TensorSplit.COLUMN, multiplied=1.0)
                yield LayerTensor(f"{name}_bias", (self.inner_size,), TensorSplit.COLUMN)
            yield LayerTensor("recurrence", (self.inner_size,), TensorSplit.COLUMN)
        else:
            rank = self.time_step_rank or 0
            yield build_matrix("state_projection", self.inner_size, rank + 2 * states, TensorSplit.ROW)
            yield build_matrix("step", rank, self.inner_size, TensorSplit.COLUMN)
            yield LayerTensor("step_bias", (self.inner_size,), TensorSplit.COLUMN)
            yield LayerTensor("transition", (self.inner_size, self.state_size), TensorSplit.COLUMN)
            yield LayerTensor("skip", (self.inner_size,), TensorSplit.COLUMN)
            yield from build_vectors(self.state_norms, "state_norms", rank + 2 * states)
        yield build_matrix("input", self.hidden_size, width, TensorSplit.COLUMN)
        yield from build_vectors(self.projection_bias, "input_bias", width, TensorSplit.COLUMN)
