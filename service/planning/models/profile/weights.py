"""Matrices of a model by position and shape, and their memory in a given format."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from service.planning.hardware.storage import MatrixPath, MatrixScheme, ModelFacts, WeightFormat
from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.layers import (
    Attention,
    EmbeddingTable,
    LayerTensor,
    MixtureOfExperts,
    TensorSplit,
)


class WeightMatrix(NamedTuple):
    """Equal matrices of several layers, with ``copies`` in each (one for every expert)."""

    module: str
    inputs: int
    outputs: int
    copies: int
    split: TensorSplit
    runs: tuple[range, ...]
    """Layers, in runs of neighbours."""
    key_value_heads: int = 0
    """Heads of keys and values, which a tensor-parallel group wider than them repeats."""

    @property
    def total_copies(self) -> int:
        """Number of copies in all layers together."""
        return self.copies * sum(map(len, self.runs))


class StoredWeights(NamedTuple):
    """Bytes of all weights of a model in one format, by how a layout divides them."""

    table_split: float
    table_whole: float
    head_split: float
    head_whole: float
    tied: float
    split: float
    whole: float
    expert: float
    key_value: float
    """Part of ``split`` in keys and values."""
    copied: float = 0.0
    """Bytes of a tied head that the files repeat beside the table."""

    @property
    def total(self) -> float:
        """Bytes of all weights in files."""
        tables = self.table_split + self.table_whole + self.head_split + self.head_whole
        return tables + (self.split + self.whole + self.expert) + self.copied


_NOTHING = StoredWeights(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


_NO_FACTS = ModelFacts(1.0, 0, 0, tied=False)


@dataclass(frozen=True, slots=True, eq=False)
class WeightInventory:
    """Elements of a model: matrices inside blocks, and all tensors that no format packs."""

    matrices: tuple[WeightMatrix, ...] = ()
    vectors_split: float = 0.0
    vectors_whole: float = 0.0
    vectors_expert: float = 0.0
    table_rows: int = 0
    table_size: int = 0
    lookups: tuple[tuple[int, int], ...] = ()
    """Widths and rows of other tables that a model of tokens looks up, such as inputs of single layers."""
    table_whole: float = 0.0
    """Elements of position and type tables and of norms over them."""
    heads: tuple[tuple[int, int], ...] = ()
    """Inputs and outputs of language-model heads with a separate matrix."""
    head_split: float = 0.0
    head_whole: float = 0.0
    """Other elements of heads and of layers outside blocks."""
    tied: tuple[int, int] | None = None
    facts: ModelFacts = _NO_FACTS
    key_value_heads: int = 0
    """Fewest key-value heads of any attention."""
    parameter_count: int = 0
    """Number of parameters of a model without shapes; else 0."""
    _known: dict[WeightFormat, StoredWeights] = field(default_factory=dict, repr=False)

    def get_stored_weights(self, weight_format: WeightFormat) -> StoredWeights:
        """Returns the bytes of the weights in ``weight_format``, computed once for each format."""
        known = self._known.get(weight_format)
        if known is None:
            known = self._known[weight_format] = self._compute_stored_weights(weight_format)
        return known

    def _compute_stored_weights(self, weight_format: WeightFormat) -> StoredWeights:
        if self.parameter_count:
            return _NOTHING._replace(split=self.parameter_count * weight_format.mean_bits / 8.0)
        wide = weight_format.wide_bits / 8.0
        sums = {"split": self.vectors_split * wide, "whole": self.vectors_whole * wide}
        sums["expert"] = self.vectors_expert * wide
        key_value = 0.0
        alike = _EquallyStoredLayers(weight_format, self.facts)
        for matrix in self.matrices:
            size = self._compute_matrix_bytes(matrix, weight_format, alike)
            sums[_classify_split(matrix.split)] += size
            if matrix.key_value_heads:
                key_value += size
        table = weight_format.table(self.facts, self.table_size)
        head = weight_format.head(self.facts, self.table_size)
        tied = table.compute_bytes(*self.tied) if self.tied else 0.0
        tables = table.compute_bytes(self.table_size, self.table_rows) if self.table_rows else 0.0
        untied = self.facts._replace(tied=False)
        tables += sum(
            (weight_format.lookups or weight_format.table(untied, size)).compute_bytes(size, n)
            for size, n in self.lookups
        )
        return StoredWeights(
            table_split=tables,
            table_whole=self.table_whole * wide,
            head_split=sum(head.compute_bytes(*shape) for shape in self.heads) + self.head_split * wide,
            head_whole=self.head_whole * wide,
            tied=tied,
            key_value=key_value,
            copied=tied if weight_format.copies_tied_head else 0.0,
            **sums,
        )

    def _compute_matrix_bytes(
        self, matrix: WeightMatrix, weight_format: WeightFormat, alike: "_EquallyStoredLayers"
    ) -> float:
        def compute_layer_bytes(layer: int) -> float:
            place = MatrixPath(matrix.module, layer, self.facts.depth, matrix.inputs)
            scheme: MatrixScheme = weight_format.scheme_of(place, self.facts)
            return scheme.compute_bytes(matrix.inputs, matrix.outputs)

        groups = chain.from_iterable(map(alike.list_groups, matrix.runs))
        return matrix.copies * sum(count * compute_layer_bytes(layer) for layer, count in groups)


class _EquallyStoredLayers:
    """Groups of layers that a format stores alike, computed once for each run of layers."""

    def __init__(self, weight_format: WeightFormat, facts: ModelFacts) -> None:
        self._key, self._facts = weight_format.layer_key, facts
        self._known: dict[range, tuple[tuple[int, int], ...]] = {}

    def list_groups(self, run: range) -> tuple[tuple[int, int], ...]:
        """Returns a layer of each group, and the number of its layers."""
        known = self._known.get(run)
        if known is None:
            known = self._known[run] = tuple(self._group_layers(run))
        return known

    def _group_layers(self, run: range) -> Iterator[tuple[int, int]]:
        if self._key is None:
            yield 0, len(run)
            return
        first: dict[Hashable, int] = {}
        counts: Counter[int] = Counter()
        for layer in run:
            counts[first.setdefault(self._key(layer, self._facts), layer)] += 1
        yield from counts.items()


def _classify_split(split: TensorSplit) -> str:
    if split is TensorSplit.EXPERT:
        return "expert"
    return "whole" if split is TensorSplit.NONE else "split"


def _get_matrix_shape(tensor: LayerTensor) -> tuple[int, int, int] | None:
    """Returns copies, inputs and outputs of a matrix; None for a tensor that no format packs."""
    if not tensor.multiplied:
        return None
    if tensor.split is TensorSplit.EXPERT and len(tensor.shape) == 3:  # noqa: PLR2004
        copies, outer, inner = tensor.shape
        return (copies, inner, outer) if tensor.name.endswith("down") else (copies, outer, inner)
    if len(tensor.shape) == 2:  # noqa: PLR2004
        return (1, *tensor.shape)
    return None


class _BlockTensor(NamedTuple):
    """A tensor of a block: its module, its repetitions in the block, and its key-value heads."""

    module: str
    tensor: LayerTensor
    repeats: int
    key_value_heads: int


def _list_stored_tensors(block: LayerBlock) -> tuple[_BlockTensor, ...]:
    """Returns the tensors of one repetition of ``block`` that are stored."""
    if block.reused:
        return ()
    return tuple(
        _BlockTensor(
            f"{layer.kind}.{tensor.name}",
            tensor,
            layer.count,
            layer.key_value_heads if isinstance(layer, Attention) and tensor.name in ("key", "value") else 0,
        )
        for layer in block.layers
        for tensor in layer.list_tensors()
        if tensor.stored
    )


def _locate_tensors(blocks: Iterable[LayerBlock]) -> Iterator[tuple[_BlockTensor, list[range]]]:
    """Yields every tensor inside blocks with its layers; blocks of the same layers are merged."""
    known: dict[tuple[int, ...], tuple[LayerBlock, list[range]]] = {}
    start = 0
    for block in blocks:
        # Identity is quick to look up; equal layers elsewhere are merged by shape.
        content = (block.reused, *map(id, block.layers))
        known.setdefault(content, (block, []))[1].append(range(start, start + block.count))
        start += block.count
    for block, layers in known.values():
        for item in _list_stored_tensors(block):
            yield item, layers


def _sort_runs(runs: Iterable[range]) -> tuple[range, ...]:
    return tuple(sorted(runs, key=lambda run: run.start))


class _MatrixKind(NamedTuple):
    """Properties that matrices stored as one share."""

    module: str
    inputs: int
    outputs: int
    copies: int
    split: TensorSplit
    key_value_heads: int


class _SplitSizes:
    """Elements of tensors, by how tensor parallelism divides them."""

    def __init__(self) -> None:
        self.split = self.whole = self.expert = 0.0

    def add(self, split: TensorSplit, elements: float) -> None:
        """Adds the elements of a tensor."""
        part = _classify_split(split)
        setattr(self, part, getattr(self, part) + elements)


def _list_matrices(deep: Iterable[LayerBlock]) -> tuple[tuple[WeightMatrix, ...], _SplitSizes]:
    """Returns the matrices of blocks, equal ones together, and the elements of all other tensors."""
    matrices: dict[_MatrixKind, list[range]] = {}
    vectors = _SplitSizes()
    for placed, layers in _locate_tensors(deep):
        tensor, shape = placed.tensor, _get_matrix_shape(placed.tensor)
        if shape is None:
            vectors.add(tensor.split, float(tensor.size * placed.repeats * sum(map(len, layers))))
            continue
        copies, inputs, outputs = shape
        copies *= placed.repeats
        kind = _MatrixKind(placed.module, inputs, outputs, copies, tensor.split, placed.key_value_heads)
        matrices.setdefault(kind, []).extend(layers)
    return tuple(_build_weight_matrix(kind, runs) for kind, runs in matrices.items()), vectors


def _build_weight_matrix(kind: _MatrixKind, runs: Iterable[range]) -> WeightMatrix:
    return WeightMatrix(
        module=kind.module,
        inputs=kind.inputs,
        outputs=kind.outputs,
        copies=kind.copies,
        split=kind.split,
        runs=_sort_runs(runs),
        key_value_heads=kind.key_value_heads,
    )


def _find_tied_head(architecture: Architecture) -> tuple[int, int] | None:
    """Returns inputs and outputs of the head that shares its matrix with the table."""
    tied = [
        (head.input_size, head.output_size)
        for head in architecture.heads
        for tensor in head.list_tensors()
        if tensor.name == "weight" and head.kind in architecture.tied
    ]
    return tied[-1] if tied else None


def _list_own_heads(architecture: Architecture) -> tuple[tuple[int, int], ...]:
    """Returns inputs and outputs of the language-model heads with a separate matrix."""
    return tuple(
        (head.input_size, head.output_size)
        for head in architecture.heads
        for tensor in head.list_tensors()
        if tensor.name == "weight" and head.kind == "language_model" and head.kind not in architecture.tied
    )


def _count_outside(architecture: Architecture, loose: tuple[LayerBlock, ...]) -> _SplitSizes:
    """Returns the elements of other tensors of heads and of the layers outside blocks."""
    outer = _SplitSizes()
    for head in architecture.heads:
        for tensor in head.list_tensors():
            is_tied = head.kind in architecture.tied
            if tensor.name != "weight" or not (is_tied or head.kind == "language_model"):
                outer.add(tensor.split, tensor.size)
    tables = list(map(id, list_lookup_tables(architecture, loose)))
    for block in loose:
        if id(block) in tables:
            continue
        for tensor, count in block.list_tensors():
            outer.add(tensor.split, float(tensor.size * count * block.count))
    return outer


def list_lookup_tables(architecture: Architecture, loose: Iterable[LayerBlock]) -> Iterator[LayerBlock]:
    """Yields the tables outside blocks that a language model looks up, such as inputs of single layers.

    They are no more multiplied than the table of tokens.
    """
    if any(head.kind == "language_model" for head in architecture.heads):
        for block in loose:
            if all(isinstance(layer, EmbeddingTable) for layer in block.layers):
                yield block


def _build_facts(deep: tuple[LayerBlock, ...], *, tied: bool) -> ModelFacts:
    """Returns the properties of a model that recipes of quantisation depend on."""
    layers = [layer for block in deep for layer in block.layers]
    ratios = (layer.query_heads / layer.key_value_heads for layer in layers if isinstance(layer, Attention))
    experts = (layer.expert_count for layer in layers if isinstance(layer, MixtureOfExperts))
    return ModelFacts(
        query_heads_per_key_value_head=max(ratios, default=1.0),
        expert_count=max(experts, default=0),
        depth=sum(block.count for block in deep),
        tied=tied,
    )


def weight_inventory(
    architecture: Architecture, deep: tuple[LayerBlock, ...], loose: tuple[LayerBlock, ...]
) -> WeightInventory:
    """Builds the inventory of ``architecture``: its ``deep`` blocks, and the ``loose`` layers outside."""
    matrices, vectors = _list_matrices(deep)
    outer = _count_outside(architecture, loose)
    table, tied = architecture.embeddings, _find_tied_head(architecture)
    attention = [layer for block in deep for layer in block.layers if isinstance(layer, Attention)]
    return WeightInventory(
        matrices=matrices,
        vectors_split=vectors.split,
        vectors_whole=vectors.whole,
        vectors_expert=vectors.expert,
        table_rows=table.vocabulary_size if table else 0,
        table_size=table.size if table else 0,
        lookups=tuple(
            (layer.size, layer.rows * layer.count * block.count)
            for block in list_lookup_tables(architecture, loose)
            for layer in block.layers
            if isinstance(layer, EmbeddingTable)
        ),
        table_whole=float(sum(t.size for t in table.list_tensors() if t.name != "tokens")) if table else 0.0,
        heads=_list_own_heads(architecture),
        head_split=outer.split,
        head_whole=outer.whole + outer.expert,
        tied=tied,
        facts=_build_facts(deep, tied=tied is not None),
        key_value_heads=min((layer.key_value_heads for layer in attention), default=0),
    )
