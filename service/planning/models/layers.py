"""The closed list of layer kinds, each with its shapes and the tensors that follow from them.

Every kind lists its tensors (``list_tensors``), which gives the parameter count, the active parameters
and the matrix-multiplication FLOPs at once. The work of a kind besides multiplying its tensors (scores of
attention, saved activations, cache) is added in ``operators`` and ``memory`` for the kinds in
``MODELLED_KINDS``; for the others those figures are unknown, never zero.

``hidden_size`` is the width of the residual stream, ``bias`` adds a learned vector to the products of a
layer, and ``count`` is the number of times that a layer stands in a row. The schemas of the API are derived
from these classes: the docstring of a member is its description there.

Sources of the shapes: Vaswani et al. 2017 (attention, feed-forward), Shazeer 2019 and Ainslie et al.
2023 (multi-query, grouped-query), Shazeer 2020 (gated feed-forward), Jiang et al. 2024 (mixture of
experts), DeepSeek-V2 2024 (latent attention), DeepSeek-V4 2026 (compressed attention), Gu and Dao 2023,
Dao and Gu 2024 (state space), Yang et al. 2024 (gated delta rule), Naumov et al. 2019 (DLRM), Peebles and
Xie 2022 (adaptive norm).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from service.planning.errors import PlanningError
from service.planning.hardware.traffic import ExpertChoice


class TensorSplit(StrEnum):
    """Side along which tensor parallelism cuts a tensor; experts are also cut by expert parallelism."""

    NONE = "none"
    COLUMN = "column"
    ROW = "row"
    VOCABULARY = "vocabulary"
    EXPERT = "expert"


class LayerTensor(NamedTuple):
    """One learned tensor of a layer.

    ``multiplied`` is the share of tokens that multiply with it: 1 for a weight matrix, experts per
    token over experts for an expert, 0 for biases, norms and look-up tables. A tensor that is not
    ``stored`` belongs to an earlier layer: it is multiplied again but takes no room.
    """

    name: str
    shape: tuple[int, ...]
    split: TensorSplit
    multiplied: float = 0.0
    active: float = 1.0
    stored: bool = True

    @property
    def elements(self) -> int:
        """Number of elements that are multiplied."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Number of elements that are stored."""
        return self.elements if self.stored else 0


def build_matrix(name: str, rows: int, columns: int, split: TensorSplit = TensorSplit.NONE) -> LayerTensor:
    """Builds a matrix that every token multiplies."""
    return LayerTensor(name, (rows, columns), split, multiplied=1.0)


def build_vectors(
    present: bool,  # noqa: FBT001
    name: str,
    size: int,
    split: TensorSplit = TensorSplit.NONE,
) -> Iterator[LayerTensor]:
    """Yields a vector if it is present."""
    if present:
        yield LayerTensor(name, (size,), split)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """Multi-head, multi-query or grouped-query attention, by the number of key-value heads."""

    kind: ClassVar[Literal["attention"]] = "attention"
    hidden_size: int
    query_heads: int
    """Number of query heads."""
    key_value_heads: int
    """Number of key-value heads: that of the query heads (MHA), fewer (GQA) or 1 (MQA)."""
    head_size: int
    """Width of a head."""
    value_head_size: int | None = None
    """Width of the value of a head. Defaults to ``head_size``."""
    output_size: int | None = None
    """Width of the output. Defaults to ``hidden_size``."""
    causal: bool = True
    """True if a token sees only the tokens before it."""
    window_tokens: int | None = None
    """Length of the sliding window in tokens; absent without one."""
    cross_size: int | None = None
    """Width of the other sequence that keys and values are read from; absent for self-attention."""
    key_value: Literal["own", "key_as_value", "shared"] = "own"
    """Source of keys and values: projections of their own (``own``), the keys as values too
    (``key_as_value``), or those of an earlier layer, which are read again without projections or a cache
    (``shared``)."""
    query_key_value_bias: bool = False
    """True if a learned vector is added to queries, keys and values."""
    key_bias: bool = True
    """True if ``query_key_value_bias`` covers the keys."""
    output_bias: bool = False
    """True if a learned vector is added to the output."""
    query_key_norm: Literal["none", "head", "projection"] = "none"
    """Norm of queries and keys, over each head or over the whole projection."""
    query_key_norm_shift: bool = False
    """True if the norm of queries and keys has a shift beside its scale."""
    gate: Literal["none", "head", "element"] = "none"
    """Projection that scales the output, by head or by element."""
    gate_bias: bool = False
    """True if a learned vector is added to the gate."""
    output_norm: bool = False
    """True if a norm stands in front of the output projection."""
    sinks: bool = False
    """True if each head has a learned score that belongs to no token."""
    dropout: bool = False
    """True if attention weights and output pass a dropout in training."""
    score_bias: bool = False
    """True if a learned term is added to the scores (relative positions). Fused kernels do not differentiate
    it, so training stores the scores."""
    index_heads: int | None = None
    """Number of heads of the scorer that picks tokens (sparse attention); absent where every token is
    read."""
    index_head_size: int | None = None
    """Width of the heads of the scorer, and of the one key that it keeps for each token."""
    index_tokens: int | None = None
    """Number of tokens that the scorer picks for each query, by blocks or one by one."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Projections, their biases and norms, sinks and gate."""
        query = self.query_heads * self.head_size
        value_size = self.value_head_size or self.head_size
        gathered = self.query_heads * value_size
        key = self.key_value_heads * self.head_size
        value = self.key_value_heads * value_size
        source = self.cross_size or self.hidden_size
        projects_key = self.key_value != "shared"
        projects_value = self.key_value == "own"
        yield build_matrix("query", self.hidden_size, query, TensorSplit.COLUMN)
        if projects_key:
            yield build_matrix("key", source, key, TensorSplit.COLUMN)
        if projects_value:
            yield build_matrix("value", source, value, TensorSplit.COLUMN)
        width = self.output_size or self.hidden_size
        yield build_matrix("output", gathered, width, TensorSplit.ROW)
        biased = self.query_key_value_bias
        yield from build_vectors(biased, "query_bias", query, TensorSplit.COLUMN)
        yield from build_vectors(
            biased and self.key_bias and projects_key, "key_bias", key, TensorSplit.COLUMN
        )
        yield from build_vectors(biased and projects_value, "value_bias", value, TensorSplit.COLUMN)
        yield from build_vectors(self.output_bias, "output_bias", width)
        yield from self._list_norms(query, key if projects_key else 0)
        yield from build_vectors(self.output_norm, "output_norm", gathered)
        yield from build_vectors(self.sinks, "sinks", self.query_heads, TensorSplit.COLUMN)
        if self.gate != "none":
            gates = gathered if self.gate == "element" else self.query_heads
            yield build_matrix("gate", self.hidden_size, gates, TensorSplit.COLUMN)
            yield from build_vectors(self.gate_bias, "gate_bias", gates, TensorSplit.COLUMN)
        if self.index_heads is not None and self.index_head_size is not None:
            yield build_matrix("index_query", self.hidden_size, self.index_heads * self.index_head_size)
            yield build_matrix("index_key", self.hidden_size, self.index_head_size)
            yield LayerTensor("index_query_norm", (self.index_head_size,), TensorSplit.NONE)
            yield LayerTensor("index_key_norm", (self.index_head_size,), TensorSplit.NONE)

    def _list_norms(self, query: int, key: int) -> Iterator[LayerTensor]:
        if self.query_key_norm == "none":
            return
        whole = self.query_key_norm == "projection"
        for name, size in (("query_norm", query), ("key_norm", key)):
            width = size if whole else min(size, self.head_size)
            yield from build_vectors(width > 0, name, width)
            yield from build_vectors(width > 0 and self.query_key_norm_shift, f"{name}_shift", width)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA): keys and values are rebuilt from one compressed vector."""

    kind: ClassVar[Literal["latent_attention"]] = "latent_attention"
    hidden_size: int
    query_heads: int
    """Number of query heads."""
    query_rank: int | None = None
    """Width of the compressed query; absent without compression."""
    key_value_rank: int
    """Width of the compressed key and value."""
    rotary_head_size: int
    """Width of the part of a head that carries the position."""
    plain_head_size: int
    """Width of the part of a head that carries no position."""
    value_head_size: int
    """Width of the value of a head."""
    window_tokens: int | None = None
    """Length of the sliding window in tokens; absent without one."""
    index_heads: int | None = None
    """Number of heads of the scorer that picks tokens (sparse attention); absent where every token is
    read."""
    index_head_size: int | None = None
    """Width of the heads of the scorer, and of the one key that it keeps for each token."""
    index_tokens: int | None = None
    """Number of tokens that the scorer picks for each query."""
    gate: Literal["none", "head", "element"] = "none"
    """Projection that scales the output, by head or by element."""
    sinks: bool = False
    """True if each head has a learned score that belongs to no token."""
    bias: bool = False
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Down- and up-projections of query and key-value, the norms between them, and the scorer."""
        query = self.query_heads * (self.rotary_head_size + self.plain_head_size)
        rebuilt = self.query_heads * (self.plain_head_size + self.value_head_size)
        gathered = self.query_heads * self.value_head_size
        compressed = self.key_value_rank + self.rotary_head_size
        if self.query_rank is None:
            yield build_matrix("query", self.hidden_size, query, TensorSplit.COLUMN)
        else:
            yield build_matrix("query_down", self.hidden_size, self.query_rank)
            yield from build_vectors(self.bias, "query_down_bias", self.query_rank)
            yield LayerTensor("query_norm", (self.query_rank,), TensorSplit.NONE)
            yield build_matrix("query_up", self.query_rank, query, TensorSplit.COLUMN)
        yield build_matrix("key_value_down", self.hidden_size, compressed)
        yield from build_vectors(self.bias, "key_value_down_bias", compressed)
        yield LayerTensor("key_value_norm", (self.key_value_rank,), TensorSplit.NONE)
        yield build_matrix("key_value_up", self.key_value_rank, rebuilt, TensorSplit.COLUMN)
        yield build_matrix("output", gathered, self.hidden_size, TensorSplit.ROW)
        yield from build_vectors(self.bias, "output_bias", self.hidden_size)
        if self.gate != "none":
            gates = gathered if self.gate == "element" else self.query_heads
            yield build_matrix("gate", self.hidden_size, gates, TensorSplit.COLUMN)
        yield from build_vectors(self.sinks, "sinks", self.query_heads, TensorSplit.COLUMN)
        yield from self._list_scorer_tensors()

    def _list_scorer_tensors(self) -> Iterator[LayerTensor]:
        if self.index_heads is None or self.index_head_size is None:
            return
        source = self.query_rank or self.hidden_size
        yield build_matrix("index_query", source, self.index_heads * self.index_head_size)
        yield build_matrix("index_key", self.hidden_size, self.index_head_size)
        yield LayerTensor("index_key_norm", (self.index_head_size,), TensorSplit.NONE)
        yield LayerTensor("index_key_norm_shift", (self.index_head_size,), TensorSplit.NONE)
        yield build_matrix("index_weight", self.hidden_size, self.index_heads)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
    """Attention over a window and over entries that each stand for several tokens (DeepSeek-V4).

    One vector is key and value of all heads. Without ``compression`` the window is all that a token sees;
    with a scorer it sees the entries that the scorer picks (CSA), without one all of them (HCA).
    """

    kind: ClassVar[Literal["compressed_attention"]] = "compressed_attention"
    hidden_size: int
    query_heads: int
    """Number of query heads."""
    query_rank: int
    """Width of the compressed query."""
    head_size: int
    """Width of a head, and of the vector that is key and value of all heads."""
    window_tokens: int
    """Length of the sliding window in tokens, which are seen uncompressed."""
    output_groups: int
    """Number of groups of heads that the output projects by themselves first."""
    output_rank: int
    """Width that each of these groups is projected to."""
    compression: int | None = None
    """Number of tokens that an entry stands for; absent where only the window is seen."""
    overlapped: bool = False
    """True if an entry is made of its own tokens and of those of the entry before."""
    index_heads: int | None = None
    """Number of heads of the scorer that picks entries; absent where all are read."""
    index_head_size: int | None = None
    """Width of the heads of the scorer, and of the one key that it keeps for each entry."""
    index_entries: int | None = None
    """Number of entries that the scorer picks for each query."""
    count: int = 1

    @property
    def series(self) -> int:
        """Number of vectors that a token gives to entries: to its own, and to the next where they overlap."""
        return 2 if self.overlapped else 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Projections, their norms, the sinks, the compressor and the scorer."""
        query = self.query_heads * self.head_size
        if self.query_heads % self.output_groups:
            raise PlanningError("OUTPUT_GROUPS", "/output_groups", "output_groups must divide query_heads")
        scorer = (self.index_heads, self.index_head_size, self.index_entries)
        if any(scorer) and not (all(scorer) and self.compression):
            detail = "a scorer needs compression, index_heads, index_head_size and index_entries"
            raise PlanningError("SCORER_INCOMPLETE", "/index_heads", detail)
        yield build_matrix("query_down", self.hidden_size, self.query_rank)
        yield LayerTensor("query_norm", (self.query_rank,), TensorSplit.NONE)
        yield build_matrix("query_up", self.query_rank, query, TensorSplit.COLUMN)
        yield build_matrix("key_value", self.hidden_size, self.head_size)
        yield LayerTensor("key_value_norm", (self.head_size,), TensorSplit.NONE)
        groups = (self.output_groups, query // self.output_groups, self.output_rank)
        yield LayerTensor("output_down", groups, TensorSplit.COLUMN, multiplied=1.0)
        gathered = self.output_groups * self.output_rank
        yield build_matrix("output_up", gathered, self.hidden_size, TensorSplit.ROW)
        yield LayerTensor("sinks", (self.query_heads,), TensorSplit.COLUMN)
        yield from self._list_compressor_tensors("compressor", self.head_size)
        if self.index_heads is not None and self.index_head_size is not None:
            yield from self._list_compressor_tensors("index", self.index_head_size)
            yield build_matrix("index_query", self.query_rank, self.index_heads * self.index_head_size)
            yield build_matrix("index_weight", self.hidden_size, self.index_heads)

    def _list_compressor_tensors(self, name: str, size: int) -> Iterator[LayerTensor]:
        if self.compression is None:
            return
        width = self.series * size
        yield build_matrix(f"{name}_key_value", self.hidden_size, width)
        yield build_matrix(f"{name}_gate", self.hidden_size, width)
        yield LayerTensor(f"{name}_positions", (self.compression, width), TensorSplit.NONE)
        yield LayerTensor(f"{name}_norm", (size,), TensorSplit.NONE)


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


ActivationFunction: TypeAlias = Literal["smooth", "relu", "quick_gelu", "gelu_new"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """Two matrices with an activation between them; a gate adds a third."""

    kind: ClassVar[Literal["feed_forward"]] = "feed_forward"
    hidden_size: int
    inner_size: int
    """Width between the matrices."""
    gated: bool = False
    """True if a third matrix, beside the first, gates its result."""
    bias: bool = False
    inner_norm: bool = False
    """True if a norm stands in front of the last matrix."""
    activation_parameters: int = 0
    """Number of learned scalars of the activation function."""
    activation: ActivationFunction = "smooth"
    """Activation function: one operator whose backward pass needs its input (``smooth``) or only its result
    (``relu``), or several operators, as PyTorch's classes write it out, each of which keeps a tensor of its
    own (``quick_gelu``, ``gelu_new``)."""
    dropout: bool = False
    """True if the output passes a dropout in training."""
    inner_dropout: bool = False
    """True if the result of the activation passes a dropout in training."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Up (and gate) and down projections with their biases."""
        for name in ("gate", "up") if self.gated else ("up",):
            yield build_matrix(name, self.hidden_size, self.inner_size, TensorSplit.COLUMN)
            yield from build_vectors(self.bias, f"{name}_bias", self.inner_size, TensorSplit.COLUMN)
        yield build_matrix("down", self.inner_size, self.hidden_size, TensorSplit.ROW)
        yield from build_vectors(self.bias, "down_bias", self.hidden_size)
        yield from build_vectors(self.inner_norm, "inner_norm", self.inner_size, TensorSplit.COLUMN)
        yield from build_vectors(self.activation_parameters > 0, "activation", self.activation_parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """A router over feed-forwards, with an optional expert that every token takes."""

    kind: ClassVar[Literal["mixture_of_experts"]] = "mixture_of_experts"
    hidden_size: int
    expert_count: int
    """Number of experts to choose from."""
    experts_per_token: int
    """Number of experts that each token takes."""
    expert_inner_size: int
    """Width between the matrices of an expert."""
    expert_groups: int | None = None
    """Number of groups that the experts are divided into, of which a token takes some; absent without."""
    groups_per_token: int | None = None
    """Number of groups that the experts of a token lie in at most."""
    gated: bool = True
    """True if an expert has a third matrix as a gate."""
    bias: bool = False
    router_bias: bool = False
    """True if a learned vector is added to the router."""
    router_scales: bool = False
    """True if the input of the router and its answers have learned scales."""
    latent_size: int | None = None
    """Width that tokens are projected to for the routed experts, and back from (LatentMoE); absent where they
    keep their width."""
    shared_inner_size: int | None = None
    """Inner width of the expert that every token takes; absent without one."""
    shared_bias: bool = False
    """True if learned vectors are added in the shared expert."""
    shared_gate: bool = False
    """True if the shared expert has a gate of its own."""
    count: int = 1

    @property
    def choice(self) -> ExpertChoice:
        """Experts of a token, and the groups that they lie in."""
        groups = self.expert_groups or 1
        return ExpertChoice(float(self.experts_per_token), groups, self.groups_per_token or groups)

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Router, experts (each counted whole, active by share) and the shared expert."""
        if self.experts_per_token > self.expert_count:
            raise PlanningError(
                "EXPERTS_PER_TOKEN", "/experts_per_token", "experts_per_token exceeds expert_count"
            )
        if (self.groups_per_token or 0) > (self.expert_groups or 0):
            raise PlanningError(
                "GROUPS_PER_TOKEN", "/groups_per_token", "groups_per_token exceeds expert_groups"
            )
        share = self.experts_per_token / self.expert_count
        width = self.latent_size or self.hidden_size
        yield build_matrix("router", self.hidden_size, self.expert_count)
        yield from build_vectors(self.router_bias, "router_bias", self.expert_count)
        yield from build_vectors(self.router_scales, "router_scales", self.hidden_size + self.expert_count)
        if self.latent_size is not None:
            yield build_matrix("latent_down", self.hidden_size, self.latent_size)
            yield build_matrix("latent_up", self.latent_size, self.hidden_size)
        up = ("gate", "up") if self.gated else ("up",)
        for name in (*up, "down"):
            shape = (self.expert_count, width, self.expert_inner_size)
            yield LayerTensor(f"expert_{name}", shape, TensorSplit.EXPERT, multiplied=share, active=share)
            if self.bias:
                size = width if name == "down" else self.expert_inner_size
                yield LayerTensor(
                    f"expert_{name}_bias", (self.expert_count, size), TensorSplit.EXPERT, active=share
                )
        if self.shared_inner_size is not None:
            shared = FeedForward(
                hidden_size=self.hidden_size,
                inner_size=self.shared_inner_size,
                gated=self.gated,
                bias=self.shared_bias,
            )
            for tensor in shared.list_tensors():
                yield tensor._replace(name=f"shared_{tensor.name}")
        if self.shared_gate:
            yield build_matrix("shared_router", self.hidden_size, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalization:
    """A norm with a learned scale (``rms``) or with scale and shift (``layer``, ``group``, ``batch``)."""

    kind: ClassVar[Literal["normalization"]] = "normalization"
    size: int
    """Width of the normalized vector."""
    norm: Literal["rms", "layer", "group", "batch"] = "rms"
    """Kind of norm, by the values that are normalized together."""
    learned: bool = True
    """True if the norm has parameters."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Scale and shift."""
        yield from build_vectors(self.learned, "scale", self.size)
        yield from build_vectors(self.learned and self.norm != "rms", "shift", self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """A smooth function of each element, whose backward pass needs its input; no parameters.

    A function whose backward pass needs only its result, such as ReLU, is no layer: the layer that reads the
    result keeps it.
    """

    kind: ClassVar[Literal["activation"]] = "activation"
    size: int
    """Number of elements of a token."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """No tensors."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """One matrix on every token."""

    kind: ClassVar[Literal["linear"]] = "linear"
    input_size: int
    """Width of the input."""
    output_size: int
    """Width of the output."""
    bias: bool = False
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The matrix and its bias."""
        yield build_matrix("weight", self.input_size, self.output_size)
        yield from build_vectors(self.bias, "bias", self.output_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution over frames, height and width; a kernel side of 1 leaves that axis out."""

    kind: ClassVar[Literal["convolution"]] = "convolution"
    input_channels: int
    """Number of channels of the input."""
    output_channels: int
    """Number of channels of the output."""
    kernel_height: int
    """Number of rows that the kernel sees."""
    kernel_width: int
    """Number of columns that the kernel sees."""
    kernel_frames: int = 1
    """Number of frames that the kernel sees."""
    stride: int = 1
    """Step of the kernel over height and width."""
    frame_stride: int = 1
    """Step of the kernel over frames."""
    groups: int = 1
    """Number of groups of channels that do not mix."""
    bias: bool = False
    padded: bool = True
    """True if the border is covered: n cells become ceil(n / stride), otherwise floor((n - kernel) / stride)
    + 1, as for patches."""
    shortcut: bool = False
    """True if it runs beside the other layers of its block, on the input of the block."""
    upsamples: bool = False
    """True if the stride enlarges the grid (transposed convolution)."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Kernel and bias."""
        if self.input_channels % self.groups or self.output_channels % self.groups:
            raise PlanningError("GROUPS", "/groups", "groups must divide input and output channels")
        kernel = (self.kernel_frames, self.kernel_height, self.kernel_width)
        shape = (self.output_channels, self.input_channels // self.groups, *kernel)
        yield LayerTensor("kernel", shape, TensorSplit.NONE, multiplied=1.0)
        yield from build_vectors(self.bias, "bias", self.output_channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling:
    """Pooling or merging (factor above 1) or up-sampling (below 1) of the spatial axes; no parameters."""

    kind: ClassVar[Literal["resampling"]] = "resampling"
    factor: float
    """Length of an axis before over its length after."""
    frame_factor: float = 1.0
    """Number of frames before over their number after."""
    drops_extra_tokens: bool = False
    """True if class tokens are left behind."""
    channels: int | None = None
    """Number of channels of a maximum pooling, which keeps its input and the places of the maxima; absent for
    other resamplings."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """No tensors."""
        return iter(())


VectorPurpose: TypeAlias = Literal[
    "positions",
    "relative_positions",
    "class_tokens",
    "query_tokens",
    "mask_token",
    "layer_scale",
    "bias",
    "scale",
    "modulation",
    "tokens",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedVectors:
    """Learned vectors that no matrix multiplication reads.

    ``positions`` are added to each position, ``relative_positions`` to the scores of attention or to
    its keys, ``class_tokens`` stand in front of the sequence and lengthen it, ``query_tokens`` are a
    sequence of their own, ``layer_scale`` multiplies the output of a layer, ``bias`` is one that another
    layer has in part only (queries and values without keys), ``scale`` is a single factor, ``modulation``
    is a row for each shift, scale and gate, added to those of a condition, ``tokens`` is a further look-up
    table.
    """

    kind: ClassVar[Literal["learned_vectors"]] = "learned_vectors"
    purpose: VectorPurpose
    """Purpose of the vectors; class tokens lengthen the sequence."""
    rows: int = 1
    """Number of vectors."""
    size: int
    """Width of a vector."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The table."""
        yield LayerTensor(self.purpose, (self.rows, self.size), TensorSplit.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingTable:
    """A look-up table of a recommender's sparse feature."""

    kind: ClassVar[Literal["embedding_table"]] = "embedding_table"
    rows: int
    """Number of rows of the table."""
    size: int
    """Width of a row."""
    lookups_per_sample: float = 1.0
    """Mean number of rows that a sample reads."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The table."""
        yield LayerTensor("table", (self.rows, self.size), TensorSplit.VOCABULARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """Pairwise dot products of feature vectors; no parameters."""

    kind: ClassVar[Literal["interaction"]] = "interaction"
    features: int
    """Number of feature vectors."""
    size: int
    """Width of a vector."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """No tensors."""
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Modulation:
    """Shifts, scales and gates computed from a condition vector (adaptive norm of a DiT)."""

    kind: ClassVar[Literal["modulation"]] = "modulation"
    condition_size: int
    """Width of the condition vector."""
    hidden_size: int
    vectors: int = 6
    """Number of shifts, scales and gates together."""
    streams: int = 1
    """Number of sequences that have vectors of their own among these."""
    bias: bool = True
    shared: bool = False
    """True if the vectors come from a matrix that stands elsewhere and serves many layers."""
    count: int = 1

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The projection of the condition and its bias; none if other layers share it."""
        if self.shared:
            return
        width = self.vectors * self.hidden_size
        yield build_matrix("projection", self.condition_size, width)
        if self.bias:
            yield LayerTensor("bias", (width,), TensorSplit.NONE)


SimpleLayer: TypeAlias = (
    Attention
    | LatentAttention
    | CompressedAttention
    | LinearAttention
    | StateSpace
    | FeedForward
    | MixtureOfExperts
    | Normalization
    | Activation
    | Linear
    | Convolution
    | Resampling
    | LearnedVectors
    | EmbeddingTable
    | Interaction
    | Modulation
)
"""Every kind but the block that repeats them."""
