"""Attention over keys and values: of heads, of a shared latent, or of entries for several tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from service.planning.errors import PlanningError
from service.planning.models.layers.tensors import LayerTensor, TensorSplit, build_matrix, build_vectors


def _check_pool(layer: "Attention | LatentAttention") -> None:
    if layer.index_pool and not (layer.index_heads and layer.index_head_size and layer.index_tokens):
        detail = "a scorer of pools needs index_heads, index_head_size and index_tokens"
        raise PlanningError("SCORER_INCOMPLETE", "/index_heads", detail)


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
    query_rank: int | None = None
    """Width of the compressed query, which passes a norm before the heads are rebuilt from it; absent without
    compression."""
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
    """Width of the heads of the scorer, and of the one key that it keeps for each token or pool."""
    index_tokens: int | None = None
    """Number of tokens that the scorer picks for each query, by blocks or one by one."""
    index_pool: int | None = None
    """Number of tokens whose keys the scorer averages into one; absent where each token has a key of its
    own."""
    count: int = 1

    @property
    def index_share(self) -> float:
        """Number of keys of the scorer for each token."""
        return 1.0 / (self.index_pool or 1)

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Projections, their biases and norms, sinks, gate and scorer."""
        _check_pool(self)
        query = self.query_heads * self.head_size
        value_size = self.value_head_size or self.head_size
        gathered = self.query_heads * value_size
        key = self.key_value_heads * self.head_size
        value = self.key_value_heads * value_size
        source = self.cross_size or self.hidden_size
        projects_key = self.key_value != "shared"
        projects_value = self.key_value == "own"
        yield from self._list_query(query)
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

    def _list_query(self, query: int) -> Iterator[LayerTensor]:
        if self.query_rank is None:
            yield build_matrix("query", self.hidden_size, query, TensorSplit.COLUMN)
            return
        yield build_matrix("query_down", self.hidden_size, self.query_rank)
        yield LayerTensor("query_down_norm", (self.query_rank,), TensorSplit.NONE)
        yield build_matrix("query_up", self.query_rank, query, TensorSplit.COLUMN)

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
    """Width of the part of a head that carries the position; 0 where none does."""
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
    """Width of the heads of the scorer, and of the one key that it keeps for each token or pool."""
    index_tokens: int | None = None
    """Number of tokens that the scorer picks for each query."""
    index_pool: int | None = None
    """Number of tokens that the scorer weighs into one key and picks together; absent where each token has a
    key of its own."""
    gate: Literal["none", "head", "element"] = "none"
    """Projection that scales the output, by head or by element."""
    sinks: bool = False
    """True if each head has a learned score that belongs to no token."""
    bias: bool = False
    count: int = 1

    @property
    def index_share(self) -> float:
        """Number of keys of the scorer for each token."""
        return 1.0 / (self.index_pool or 1)

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
        _check_pool(self)
        if self.index_heads is None or self.index_head_size is None:
            return
        source = self.query_rank or self.hidden_size
        yield build_matrix("index_query", source, self.index_heads * self.index_head_size)
        yield build_matrix("index_key", self.hidden_size, self.index_head_size)
        yield LayerTensor("index_key_norm", (self.index_head_size,), TensorSplit.NONE)
        yield LayerTensor("index_key_norm_shift", (self.index_head_size,), TensorSplit.NONE)
        yield build_matrix("index_weight", self.hidden_size, self.index_heads)
        if self.index_pool is not None:
            yield build_matrix("index_pool_gate", self.hidden_size, self.index_head_size)
            yield LayerTensor(
                "index_pool_positions", (self.index_pool, self.index_head_size), TensorSplit.NONE
            )


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
