"""Operators of a block by its layers' shapes, independent of the layout: products and moved elements.

They are derived once for each block and choice of kernels; ``operators.shapes`` divides them over devices.
Bytes of memory-bound operators are counted in elements that their kernels read and write per token: eager
PyTorch runs one kernel per arithmetic step, fused kernels (Apex, Transformer Engine, Liger) and compiled
graphs one per chain (Ivanov et al. 2021 count the same for BERT).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import singledispatch
from typing import NamedTuple

from service.planning.models.architecture import LayerBlock, ModelHead
from service.planning.models.layers import (
    Activation,
    Attention,
    CompressedAttention,
    Convolution,
    EmbeddingTable,
    FeedForward,
    Interaction,
    LatentAttention,
    LayerTensor,
    LearnedVectors,
    LinearAttention,
    MixtureOfExperts,
    Modulation,
    Normalization,
    Resampling,
    StateSpace,
    TensorSplit,
)
from service.planning.models.profile.activations import CHUNK_TOKENS, TrainedMatrices


class OperatorKind(StrEnum):
    """Property that sets the time of an operator."""

    GEMM = "gemm"
    GROUPED_GEMM = "grouped_gemm"
    ATTENTION = "attention"
    CONVOLUTION = "convolution"
    SCAN = "scan"
    MEMORY = "memory"
    GATHER = "gather"


class OperatorFusion(StrEnum):
    """Fusion of memory-bound operators into kernels: none, chains by hand, or chains by a compiler."""

    EAGER = "eager"
    FUSED = "fused"
    COMPILED = "compiled"


class FusedAttention(StrEnum):
    """Releases of fused attention: FlashAttention, FlashAttention-2, or for the device's own instructions."""

    FIRST = "first"
    SECOND = "second"
    NATIVE = "native"


class KernelChoice(NamedTuple):
    """Kernels that a block is run with. ``trained`` is None if all matrices are trained.

    ``one_norm_kernel`` is true if even unfused norms are one kernel, as PyTorch's layer norm is. ``serves``
    is true if no gradient follows: there is no dropout, and a batch norm has its statistics beforehand.
    ``built`` marks an engine that was built for one model: in addition to the work of a compiler, it joins
    matrices with the same input, computes an activation where its matrix is written, and locates the tokens
    of experts in few kernels.
    """

    flash: bool = True
    fused: FusedAttention = FusedAttention.SECOND
    fusion: OperatorFusion = OperatorFusion.FUSED
    rotary: bool = True
    one_norm_kernel: bool = False
    trained: TrainedMatrices | None = None
    serves: bool = False
    built: bool = False

    @property
    def joins(self) -> bool:
        """True if matrices that read the same input are joined into one."""
        return self.fusion is OperatorFusion.FUSED or self.built


class MatrixTemplate(NamedTuple):
    """A matrix that each token multiplies, ``copies`` of them at once and ``times`` one after the other.

    ``rows_of`` names the positions that multiply it.
    """

    name: str
    depth: float
    columns: float
    split: TensorSplit = TensorSplit.NONE
    copies: float = 1.0
    trained: bool = True
    least: float = 0.0
    """Columns below which tensor parallelism repeats the matrix: the size of a head of keys and values."""
    rows_of: str = "entering"
    times: float = 1.0


class ExpertsTemplate(NamedTuple):
    """Matrices of routed experts; each token multiplies those of ``chosen`` of ``experts``."""

    name: str
    depth: float
    columns: float
    inward: bool
    """True if tensor parallelism splits the depth (the last matrix) rather than the columns."""
    experts: float
    chosen: float
    trained: bool = True
    times: float = 1.0


class AttentionTemplate(NamedTuple):
    """Scores and weighted sum of one attention; FLOPs are per token and token of context."""

    name: str
    query_heads: float
    key_value_heads: float
    key_size: float
    value_size: float
    causal: bool
    window: float
    attended: float
    flash: bool
    fused: FusedAttention
    index_flops: float = 0.0
    fusion: OperatorFusion = OperatorFusion.FUSED
    dropout: bool = False
    cross: bool = False
    times: float = 1.0


class ScanTemplate(NamedTuple):
    """A recurrence over the positions: FLOPs and elements moved per token, divided by tensor parallelism."""

    name: str
    flops: float
    elements: float
    times: float = 1.0


class ConvolutionTemplate(NamedTuple):
    """A convolution: output channels times the depth of the kernel, at each position that leaves it."""

    name: str
    input_channels: float
    output_channels: float
    depth: float
    """Input channels of a group times the positions of the kernel."""
    trained: bool = True
    times: float = 1.0


class InteractionTemplate(NamedTuple):
    """Products of every two of ``features`` vectors of a sample."""

    name: str
    features: float
    size: float
    times: float = 1.0


class LookupTemplate(NamedTuple):
    """Rows of an embedding table that a sample looks up and sums."""

    name: str
    lookups: float
    size: float
    times: float = 1.0


class MovedElements(NamedTuple):
    """Elements (narrow) and FP32 elements (wide) read and written per token, in ``kernels`` kernels.

    ``split`` parts are divided by tensor parallelism, ``whole`` ones only under sequence parallelism.
    """

    whole: float = 0.0
    split: float = 0.0
    whole_wide: float = 0.0
    split_wide: float = 0.0
    kernels: float = 0.0
    flops: float = 0.0

    def add_scaled(self, other: "MovedElements", times: float = 1.0) -> "MovedElements":
        """Returns the sum of both, the other multiplied by ``times``."""
        return MovedElements(*[a + b * times for a, b in zip(self, other, strict=True)])


class StreamedTemplate(NamedTuple):
    """A memory-bound operator, forward and backward."""

    name: str
    forward: MovedElements
    backward: MovedElements
    gathers: float = 0.0
    """Elements of a row where rows are read in random order, else 0."""


OperatorTemplate = (
    MatrixTemplate
    | ExpertsTemplate
    | AttentionTemplate
    | ScanTemplate
    | ConvolutionTemplate
    | InteractionTemplate
    | LookupTemplate
    | StreamedTemplate
)

_NORM_FLOPS, _ACTIVATION_FLOPS, _SOFTMAX_FLOPS = 5.0, 8.0, 5.0


def _compute_norm_traffic(
    size: float, kind: str, choice: KernelChoice
) -> tuple[MovedElements, MovedElements]:
    """Returns a norm over ``size`` elements: one kernel in PyTorch, except for an unfused RMS norm."""
    flops, fusion = _NORM_FLOPS * size, choice.fusion
    if kind == "rms" and fusion is OperatorFusion.EAGER and not choice.one_norm_kernel:
        return (
            MovedElements(whole=4 * size, whole_wide=7 * size, kernels=6, flops=flops),
            MovedElements(whole=6 * size, whole_wide=12 * size, kernels=9, flops=2 * flops),
        )
    reads = 3.0 if kind in ("group", "batch") else 2.0
    behind = 3.0 if kind == "rms" or fusion is OperatorFusion.COMPILED else 5.0
    return (
        MovedElements(whole=reads * size, kernels=1, flops=flops),
        MovedElements(whole=behind * size, kernels=2, flops=2 * flops),
    )


def _split_traffic(pair: tuple[MovedElements, MovedElements]) -> tuple[MovedElements, MovedElements]:
    """Returns the same traffic over elements that tensor parallelism divides."""
    first, second = (
        each._replace(split=each.whole, split_wide=each.whole_wide, whole=0.0, whole_wide=0.0)
        for each in pair
    )
    return first, second


def _build_residual(size: float, fusion: OperatorFusion) -> StreamedTemplate:
    """Builds the sum of a layer's output and its input; a compiler writes it with the norm after it."""
    moved = 2.0 if fusion is OperatorFusion.COMPILED else 3.0
    kernels = 0.0 if fusion is OperatorFusion.COMPILED else 1.0
    each = MovedElements(whole=moved * size, kernels=kernels, flops=size)
    return StreamedTemplate("residual", each, each)


def _build_dropout(size: float, fusion: OperatorFusion) -> StreamedTemplate:
    """Builds dropout: elements and a mask of one byte, half an element.

    Fused into the residual if possible.
    """
    if fusion is OperatorFusion.EAGER:
        return StreamedTemplate(
            "dropout", MovedElements(whole=2.5 * size, kernels=1), MovedElements(whole=2.5 * size, kernels=1)
        )
    return StreamedTemplate(
        "dropout", MovedElements(whole=0.5 * size), MovedElements(whole=2.5 * size, kernels=1)
    )


def _build_activation(size: float, choice: KernelChoice, *, gated: bool) -> StreamedTemplate:
    """Builds the activation function, and the product with the gate."""
    fusion = choice.fusion
    if choice.built and not gated:
        return StreamedTemplate("activation", MovedElements(), MovedElements())
    flops = _ACTIVATION_FLOPS * size
    if not gated:
        forward, backward = (2.0, 1.0), (3.0, 1.0)
    elif fusion is OperatorFusion.EAGER:
        forward, backward = (5.0, 2.0), (9.0, 3.0)
    else:
        forward, backward = (3.0, 1.0), (5.0, 1.0)
    return StreamedTemplate(
        "activation",
        MovedElements(split=forward[0] * size, kernels=forward[1], flops=flops),
        MovedElements(split=backward[0] * size, kernels=backward[1], flops=2 * flops),
    )


def _build_rotary(size: float, fusion: OperatorFusion) -> StreamedTemplate:
    """Builds the rotation of queries and keys: read and written once, or in five kernels each."""
    moved, kernels = (10.0, 10.0) if fusion is OperatorFusion.EAGER else (2.0, 2.0)
    if fusion is OperatorFusion.COMPILED:
        kernels = 1.0
    each = MovedElements(split=moved * size, kernels=kernels, flops=3.0 * size)
    return StreamedTemplate("rotary", each, each)


def _build_low_rank(tensor: LayerTensor, choice: KernelChoice, copies: float) -> Iterator[MatrixTemplate]:
    """Yields the two low-rank matrices that adapt a frozen one (Hu et al. 2021)."""
    if choice.trained is None or tensor.name not in choice.trained.names:
        return
    inputs, outputs = tensor.shape[-2:]
    into = tensor.split if tensor.split is not TensorSplit.COLUMN else TensorSplit.NONE
    out = tensor.split if tensor.split is not TensorSplit.ROW else TensorSplit.NONE
    yield MatrixTemplate("low_rank_in", inputs, choice.trained.rank, into, copies)
    yield MatrixTemplate("low_rank_out", choice.trained.rank, outputs, out, copies)


def _build_matrix(
    tensor: LayerTensor, choice: KernelChoice, *, least: float = 0.0, rows_of: str = "entering"
) -> MatrixTemplate:
    """Builds a matrix that every token multiplies; further leading axes are equal diagonal blocks."""
    copies, depth, columns = 1.0, *tensor.shape[-2:]
    for side in tensor.shape[:-2]:
        copies *= side
    return MatrixTemplate(
        tensor.name, depth, columns, tensor.split, copies, choice.trained is None, least, rows_of
    )


def _build_matrices(
    tensors: Iterable[LayerTensor],
    choice: KernelChoice,
    *,
    least: float = 0.0,
    source: frozenset[str] = frozenset(),
) -> Iterator[MatrixTemplate]:
    for tensor in tensors:
        if not tensor.multiplied or tensor.split is TensorSplit.EXPERT:
            continue
        rows_of = "context" if tensor.name in source else "entering"
        replicated = least if tensor.name in ("key", "value") else 0.0
        yield _build_matrix(tensor, choice, least=replicated, rows_of=rows_of)
        yield from _build_low_rank(tensor, choice, 1.0)


_JOINED = (
    ("query_key_value", frozenset({"query", "key", "value"})),
    ("gate_up", frozenset({"gate", "up"})),
    ("shared_gate_up", frozenset({"shared_gate", "shared_up"})),
)


def _join_matrices(matrices: Iterable[MatrixTemplate], choice: KernelChoice) -> Iterator[MatrixTemplate]:
    """Yields matrices with the same input as one, as frameworks with fused kernels store them."""
    rest = list(matrices)
    if not choice.joins:
        yield from rest
        return
    for name, parts in _JOINED:
        found = [each for each in rest if each.name in parts and each.split is TensorSplit.COLUMN]
        alike = {(each.depth, each.rows_of, each.trained) for each in found}
        if len(found) < 2 or len(alike) > 1:  # noqa: PLR2004
            continue
        least = min((each.least for each in found), default=0.0)
        yield found[0]._replace(name=name, columns=sum(each.columns for each in found), least=least)
        rest = [each for each in rest if each not in found]
    yield from rest


def _build_bias_gradients(tensors: Iterable[LayerTensor]) -> Iterator[StreamedTemplate]:
    """Yields sums of output gradients over all tokens, one for each bias."""
    for tensor in tensors:
        if tensor.name.endswith("bias") and len(tensor.shape) == 1:
            split = tensor.split is not TensorSplit.NONE
            each = MovedElements(
                split=tensor.shape[0] * split, whole=tensor.shape[0] * (not split), kernels=1
            )
            yield StreamedTemplate("bias_gradients", MovedElements(), each)


@singledispatch
def layer_templates(layer: object, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    """Yields the operators of one layer; matrices alone for kinds without a separate case."""
    tensors = list(layer.list_tensors())  # type: ignore[attr-defined]
    yield from _build_matrices(tensors, choice)
    if choice.trained is None:
        yield from _build_bias_gradients(tensors)


@layer_templates.register
def _(layer: Attention, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    tensors = list(layer.list_tensors())
    value_size = layer.value_head_size or layer.head_size
    query, result = layer.query_heads * layer.head_size, layer.query_heads * value_size
    heads = 0 if layer.key_value == "shared" else layer.key_value_heads
    cross = layer.cross_size is not None
    source = frozenset({"key", "value"}) if cross else frozenset()
    matrices = _build_matrices(tensors, choice, least=layer.head_size, source=source)
    yield from _join_matrices(matrices, choice)
    if choice.trained is None:
        yield from _build_bias_gradients(tensors)
    if layer.query_key_norm != "none":
        yield StreamedTemplate(
            "norm", *_split_traffic(_compute_norm_traffic(query + heads * layer.head_size, "rms", choice))
        )
    if layer.output_norm:
        yield StreamedTemplate("norm", *_split_traffic(_compute_norm_traffic(result, "rms", choice)))
    if layer.index_pool is not None:
        pooled = MovedElements(whole=2.0 * (layer.index_head_size or 0), kernels=1)
        yield StreamedTemplate("compression", pooled, pooled)
    if choice.rotary and layer.causal and not cross:
        yield _build_rotary(query + heads * layer.head_size, choice.fusion)
    yield AttentionTemplate(
        "attention",
        layer.query_heads,
        layer.key_value_heads,
        layer.head_size,
        value_size,
        layer.causal and not cross,
        float(layer.window_tokens or "inf"),
        float(layer.index_tokens or "inf"),
        choice.flash,
        choice.fused,
        index_flops=2.0 * (layer.index_heads or 0) * (layer.index_head_size or 0) * layer.index_share,
        fusion=choice.fusion,
        dropout=layer.dropout and not choice.serves,
        cross=cross,
    )
    if layer.gate != "none":
        yield _build_activation(result, choice, gated=True)
    if layer.dropout and not choice.serves:
        yield _build_dropout(layer.hidden_size, choice.fusion)
    yield _build_residual(layer.output_size or layer.hidden_size, choice.fusion)


@layer_templates.register
def _(layer: LatentAttention, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    tensors = list(layer.list_tensors())
    yield from _join_matrices(_build_matrices(tensors, choice), choice)
    ranks = layer.key_value_rank + (layer.query_rank or 0)
    yield StreamedTemplate("norm", *_compute_norm_traffic(ranks, "rms", choice))
    if layer.rotary_head_size:
        rotated = (layer.query_heads + 1) * layer.rotary_head_size
        yield _build_rotary(rotated, choice.fusion)
        # The rotary key is written after the rebuilt one of every head.
        keys = layer.query_heads * (layer.plain_head_size + layer.rotary_head_size)
        joined = MovedElements(split=2.0 * keys, kernels=2)
        yield StreamedTemplate("key_assembly", joined, joined)
    if layer.index_pool is not None:
        # Key and gate of each token, weighed by a softmax over its pool.
        weighed = 2.0 * (layer.index_head_size or 0)
        pooled = MovedElements(whole=2.0 * weighed, kernels=1, flops=_SOFTMAX_FLOPS * weighed)
        yield StreamedTemplate("compression", pooled, pooled)
    yield AttentionTemplate(
        "attention",
        layer.query_heads,
        layer.query_heads,
        layer.plain_head_size + layer.rotary_head_size,
        layer.value_head_size,
        causal=True,
        window=float(layer.window_tokens or "inf"),
        attended=float(layer.index_tokens or "inf"),
        flash=choice.flash,
        fused=choice.fused,
        index_flops=2.0 * (layer.index_heads or 0) * (layer.index_head_size or 0) * layer.index_share,
        fusion=choice.fusion,
    )
    if layer.gate != "none":
        yield _build_activation(layer.query_heads * layer.value_head_size, choice, gated=True)
    yield _build_residual(layer.hidden_size, choice.fusion)


@layer_templates.register
def _(layer: CompressedAttention, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    tensors = list(layer.list_tensors())
    yield from _join_matrices(_build_matrices(tensors, choice), choice)
    query = layer.query_heads * layer.head_size
    yield StreamedTemplate("norm", *_compute_norm_traffic(layer.query_rank + layer.head_size, "rms", choice))
    yield StreamedTemplate("norm", *_split_traffic(_compute_norm_traffic(query, "rms", choice)))
    # Positions are written into queries and key, and taken out of the result.
    yield _build_rotary(2.0 * query + layer.head_size, choice.fusion)
    window = AttentionTemplate(
        "attention",
        layer.query_heads,
        1.0,
        layer.head_size,
        layer.head_size,
        causal=True,
        window=float(layer.window_tokens),
        attended=float("inf"),
        flash=choice.flash,
        fused=choice.fused,
        fusion=choice.fusion,
    )
    yield window
    if layer.compression is not None:
        each, scorer = 1.0 / layer.compression, layer.index_head_size or 0
        weighed = 2.0 * layer.series * (layer.head_size + scorer)
        moved = MovedElements(whole=2.0 * weighed, kernels=1 + bool(scorer), flops=_SOFTMAX_FLOPS * weighed)
        yield StreamedTemplate("compression", moved, moved)
        yield window._replace(
            name="compressed_attention",
            window=float("inf"),
            attended=layer.compression * layer.index_entries if layer.index_entries else float("inf"),
            index_flops=2.0 * (layer.index_heads or 0) * scorer,
            times=each,
        )
    yield _build_residual(layer.hidden_size, choice.fusion)


_ELEMENT_FLOPS = 6.0
_SCAN_PASSES = 4.0


@layer_templates.register
def _(layer: LinearAttention, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    yield from _build_matrices(layer.list_tensors(), choice)
    key = layer.key_heads * layer.key_head_size
    value = layer.value_heads * layer.value_head_size
    state = layer.value_heads * layer.key_head_size * layer.value_head_size
    convolved = 0 if layer.rule == "fixed" else 2 * key + value
    flops = _ELEMENT_FLOPS * state + 2.0 * convolved * layer.convolution_width
    moved = 2.0 * convolved + 2 * key + 2 * value + 2.0 * state / CHUNK_TOKENS
    yield ScanTemplate("linear_attention", flops, moved)
    yield StreamedTemplate("norm", *_split_traffic(_compute_norm_traffic(value, "rms", choice)))
    yield _build_activation(value, choice, gated=True)
    yield _build_residual(layer.hidden_size, choice.fusion)


@layer_templates.register
def _(layer: StateSpace, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    yield from _build_matrices(layer.list_tensors(), choice)
    states = layer.groups * layer.state_size
    convolved = layer.inner_size + (2 * states if layer.heads else 0)
    state = layer.inner_size * layer.state_size
    flops = _ELEMENT_FLOPS * state + 2.0 * convolved * layer.convolution_width
    chunked = 2.0 * state / CHUNK_TOKENS if layer.heads else 0.0
    moved = 2.0 * convolved + _SCAN_PASSES * layer.inner_size + 2.0 * states + chunked
    yield ScanTemplate("state_space", flops, moved)
    if layer.heads and layer.gated_norm:
        yield StreamedTemplate(
            "norm", *_split_traffic(_compute_norm_traffic(layer.inner_size, "rms", choice))
        )
    yield _build_activation(layer.inner_size, choice, gated=True)
    yield _build_residual(layer.hidden_size, choice.fusion)


@layer_templates.register
def _(layer: FeedForward, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    tensors = list(layer.list_tensors())
    yield from _join_matrices(_build_matrices(tensors, choice), choice)
    if choice.trained is None:
        yield from _build_bias_gradients(tensors)
    yield _build_activation(layer.inner_size, choice, gated=layer.gated)
    if layer.inner_norm:
        yield StreamedTemplate(
            "norm", *_split_traffic(_compute_norm_traffic(layer.inner_size, "layer", choice))
        )
    if layer.dropout and not choice.serves:
        yield _build_dropout(layer.hidden_size, choice.fusion)
    yield _build_residual(layer.hidden_size, choice.fusion)


_ROUTING_KERNELS = {OperatorFusion.EAGER: 12.0, OperatorFusion.COMPILED: 8.0, OperatorFusion.FUSED: 6.0}
"""Kernels of routing: softmax, choice of the largest, counts and order of the tokens of each expert."""


@layer_templates.register
def _(layer: MixtureOfExperts, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    yield from _join_matrices(_build_matrices(layer.list_tensors(), choice), choice)
    width, chosen = layer.latent_size or layer.hidden_size, layer.experts_per_token
    ups = 2.0 if layer.gated else 1.0
    inner, trained = layer.expert_inner_size, choice.trained is None
    count = layer.expert_count
    columns, times = (ups * inner, 1.0) if choice.joins else (inner, ups)
    yield ExpertsTemplate("expert_up", width, columns, False, count, chosen, trained, times)  # noqa: FBT003
    yield ExpertsTemplate("expert_down", inner, width, True, count, chosen, trained)  # noqa: FBT003
    kernels = 2.0 if choice.built else _ROUTING_KERNELS[choice.fusion]
    routing = MovedElements(whole_wide=4.0 * count, kernels=kernels, flops=_SOFTMAX_FLOPS * count)
    yield StreamedTemplate("routing", routing, routing._replace(kernels=kernels / 2.0))
    # Each token's copies are written and read; outputs come back weighted.
    sent = 1.0 if choice.built else 2.0
    copies = MovedElements(whole=(1.0 + 3.0 * chosen + 1.0) * width, kernels=sent, flops=2.0 * chosen * width)
    yield StreamedTemplate("dispatch", copies, copies._replace(kernels=3.0), gathers=width)
    yield _build_activation(chosen * inner, choice, gated=layer.gated)
    if layer.shared_inner_size:
        yield _build_activation(layer.shared_inner_size, choice, gated=layer.gated)
    yield _build_residual(layer.hidden_size, choice.fusion)


@layer_templates.register
def _(layer: Normalization, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    if layer.norm == "batch" and choice.serves:
        # A compiler folds shift and scale into the convolution before it and applies the activation after it.
        if choice.fusion is not OperatorFusion.COMPILED:
            each = MovedElements(whole=2.0 * layer.size, kernels=1, flops=2.0 * layer.size)
            yield StreamedTemplate("norm", each, each)
            yield StreamedTemplate("activation", each, each)
        return
    yield StreamedTemplate("norm", *_compute_norm_traffic(layer.size, layer.norm, choice))
    if layer.norm == "batch":
        # The activation runs in a separate kernel, which has no layer of its own.
        yield _unsplit_operator(_build_activation(layer.size, choice, gated=False))


def _unsplit_operator(streamed: StreamedTemplate) -> StreamedTemplate:
    """Returns the same work for a layer that tensor parallelism does not divide."""
    return StreamedTemplate(
        streamed.name, _unsplit_traffic(streamed.forward), _unsplit_traffic(streamed.backward)
    )


def _unsplit_traffic(traffic: MovedElements) -> MovedElements:
    return traffic._replace(whole=traffic.split, split=0.0)


@layer_templates.register
def _(layer: Activation, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    yield _unsplit_operator(_build_activation(layer.size, choice, gated=False))


@layer_templates.register
def _(layer: Resampling, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    del choice
    if layer.channels:
        # A maximum reads its input and writes less; backward, the input's size is written again.
        moved = MovedElements(whole=1.25 * layer.channels, kernels=1)
        yield StreamedTemplate("pooling", moved, moved)


@layer_templates.register
def _(layer: Convolution, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    places = layer.kernel_frames * layer.kernel_height * layer.kernel_width
    depth = layer.input_channels // layer.groups * places
    trained = choice.trained is None
    yield ConvolutionTemplate("convolution", layer.input_channels, layer.output_channels, depth, trained)
    if layer.bias and trained:
        yield StreamedTemplate(
            "bias_gradients", MovedElements(), MovedElements(whole=layer.output_channels, kernels=1)
        )
    if layer.shortcut:
        yield _build_residual(layer.output_channels, choice.fusion)


@layer_templates.register
def _(layer: Modulation, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    for matrix in _build_matrices(layer.list_tensors(), choice):
        yield matrix._replace(rows_of="sample")
    # Of three vectors, two shift and scale after a norm and one scales the addition to the stream.
    kernels = 1.0 if choice.fusion is OperatorFusion.EAGER else 0.5
    moved = (4.0 if choice.fusion is OperatorFusion.EAGER else 2.0) * layer.hidden_size * layer.vectors / 3.0
    each = MovedElements(
        whole=moved, kernels=kernels * layer.vectors, flops=layer.hidden_size * layer.vectors
    )
    yield StreamedTemplate("modulation", each, each.add_scaled(each, 0.5))


@layer_templates.register
def _(layer: Interaction, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    del choice
    yield InteractionTemplate("interaction", layer.features, layer.size)


@layer_templates.register
def _(layer: EmbeddingTable, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    del choice
    yield LookupTemplate("embedding_table", layer.lookups_per_sample, layer.size)


@layer_templates.register
def _(layer: LearnedVectors, choice: KernelChoice) -> Iterator[OperatorTemplate]:
    if layer.purpose in ("positions", "layer_scale"):
        yield _build_residual(layer.size, choice.fusion)


def merge_templates(templates: Iterable[tuple[OperatorTemplate, float]]) -> tuple[OperatorTemplate, ...]:
    """Merges equal operators into one that occurs more often, and memory-bound ones by name."""
    streamed: dict[tuple[str, float], StreamedTemplate] = {}
    others: dict[OperatorTemplate, OperatorTemplate] = {}
    for template, count in templates:
        if isinstance(template, StreamedTemplate):
            key = (template.name, template.gathers)
            known = streamed.get(key) or StreamedTemplate(
                template.name, MovedElements(), MovedElements(), template.gathers
            )
            streamed[key] = known._replace(
                forward=known.forward.add_scaled(template.forward, count),
                backward=known.backward.add_scaled(template.backward, count),
            )
            continue
        alike = template._replace(name="", times=1.0)
        known_one = others.get(alike)
        times = template.times * count + (known_one.times if known_one else 0.0)  # type: ignore[union-attr]
        name = template.name
        if known_one and name not in known_one.name.split("+"):
            name = f"{known_one.name}+{name}"
        others[alike] = template._replace(name=name, times=times)
    return (*others.values(), *streamed.values())


def block_templates(block: LayerBlock, choice: KernelChoice) -> tuple[OperatorTemplate, ...]:
    """Returns the operators of one repetition of a block, equal ones together."""
    return merge_templates(
        (template, float(layer.count))
        for layer in block.layers
        for template in layer_templates(layer, choice)
    )


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCatalog:
    """Operators of every block of a model, for each requested choice of kernels.

    ``loose`` are the norms and matrices outside the blocks, before the heads. ``heads`` are used without the
    language model's, which tensor parallelism divides and a loss follows.
    """

    blocks: tuple[LayerBlock, ...] = ()
    loose: tuple[LayerBlock, ...] = ()
    heads: tuple[ModelHead, ...] = ()
    _known: dict[KernelChoice, tuple[tuple[OperatorTemplate, ...], ...]] = field(
        default_factory=dict, repr=False
    )
    _loose: dict[KernelChoice, tuple[OperatorTemplate, ...]] = field(default_factory=dict, repr=False)

    def get_block_templates(self, choice: KernelChoice) -> tuple[tuple[OperatorTemplate, ...], ...]:
        """Returns templates of one repetition of each block, in order.

        Blocks of the same content share theirs.
        """
        known = self._known.get(choice)
        if known is None:
            distinct = {block: block_templates(block, choice) for block in set(self.blocks)}
            known = self._known[choice] = tuple(distinct[block] for block in self.blocks)
        return known

    def get_outside_templates(self, choice: KernelChoice) -> tuple[OperatorTemplate, ...]:
        """Returns templates of all layers outside the blocks."""
        known = self._loose.get(choice)
        if known is None:
            found = (
                (template, float(layer.count * block.count))
                for block in self.loose
                for layer in block.layers
                for template in layer_templates(layer, choice)
            )
            trained = choice.trained is None
            heads = (
                (MatrixTemplate("head", head.input_size, head.output_size, trained=trained), 1.0)
                for head in self.heads
                if head.per == "token" and head.kind != "language_model"
            )
            known = self._loose[choice] = merge_templates((*found, *heads))
        return known
