"""Operators of templates, with the shapes that a layout gives them on one device.

Tensor parallelism splits columns or depth of matrices and the heads of attention (Shoeybi et al. 2019),
sequence parallelism the operators between them (Korthikanti et al. 2022), context parallelism the positions
of a sequence (each device meets all keys in turn, the causal half spread evenly), expert parallelism the
experts (each device meets the tokens of its whole group). A fused attention kernel executes 2 products
forward and 5 backward, as it recomputes the scores (Dao 2023, section 3.2), and skips masked ones; the
standard kernel multiplies the whole score matrix.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from service.planning.figures import is_zero, larger, natural_log, smaller, square_root
from service.planning.models.layers import TensorSplit
from service.planning.models.profile.layer_operators import (
    AttentionTemplate,
    ConvolutionTemplate,
    ExpertsTemplate,
    InteractionTemplate,
    LookupTemplate,
    MatrixTemplate,
    MovedElements,
    OperatorFusion,
    OperatorTemplate,
    ScanTemplate,
    StreamedTemplate,
)
from service.planning.operators.kinds import OperatorKind, OperatorWork
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, LOW_PRECISION_BYTES, NumberFormat, TrainingRecipe

_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]
# Enumerations are slow to look up in a loop over operators.
_NONE, _ROW = TensorSplit.NONE, TensorSplit.ROW
_GEMM, _GROUPED, _MEMORY, _GATHER = (
    OperatorKind.GEMM,
    OperatorKind.GROUPED_GEMM,
    OperatorKind.MEMORY,
    OperatorKind.GATHER,
)


class DeviceShard(NamedTuple):
    """One device's part of a micro-batch: its positions, and the split of the layers by the layout.

    ``tokens`` are positions on the device, ``sequence_length`` those of a whole sequence, ``seen`` those that
    an attention reads: its own, or those of another sequence too. ``leaving`` is positions after a layer over
    those before it, ``samples`` the number of sequences on the device. ``shared`` is the tensor-parallel
    degree under sequence parallelism, else 1.
    """

    tokens: float
    sequence_length: float
    seen: float
    samples: float
    tensor: float = 1.0
    context: float = 1.0
    expert: float = 1.0
    shared: float = 1.0
    leaving: float = 1.0


def build_shard(micro_batch_size: float, sequence_length: float, layout: Parallelism) -> DeviceShard:
    """Returns the positions of ``micro_batch_size`` sequences on a device of ``layout``."""
    return DeviceShard(
        tokens=micro_batch_size * sequence_length / layout.context,
        sequence_length=sequence_length,
        seen=sequence_length,
        samples=micro_batch_size,
        tensor=layout.tensor,
        context=layout.context,
        expert=layout.expert,
        shared=layout.tensor if layout.sequence_parallel else 1.0,
    )


class PassFormats(NamedTuple):
    """Formats of a pass: number formats of matrices and attention, and bytes of an element of each."""

    matrix: NumberFormat
    wide: NumberFormat
    """Format of attention and of the head, which no FP8 recipe narrows."""
    element: float
    operand: float
    gradient: float
    cast: float = 0.0
    """Bytes moved to scale and store an element of an operand in FP8, plain and transposed."""
    packed: float = 0.0
    """Bytes of a frozen weight that is unpacked before it is multiplied, else 0."""
    unpacking_kernels: float = 1.0
    """Launches that unpack a matrix."""
    master: float = 0.0
    """Bytes of a weight that is cast before it is multiplied, else 0."""
    weight_uses: float = 1.0
    """Micro-batches that multiply with a weight once it is scaled and stored in FP8."""


def build_widths(
    recipe: TrainingRecipe,
    compute: NumberFormat,
    *,
    packed: float = 0.0,
    unpacking_kernels: float = 1.0,
    casts: bool = False,
    weight_uses: float = 1.0,
) -> PassFormats:
    """Returns the widths under ``recipe`` on a device that multiplies in ``compute``.

    ``packed`` is the width of a quantised base, whose matrices take ``unpacking_kernels`` each; ``casts`` is
    true if each device narrows whole weights.
    """
    element = ELEMENT_BYTES[recipe.activations]
    low = recipe.low if compute in (NumberFormat.FP8, NumberFormat.FP4) else None
    operand = LOW_PRECISION_BYTES[low] if low else element
    return PassFormats(
        matrix=compute,
        wide=recipe.activations if low else compute,
        element=element,
        operand=operand,
        gradient=ELEMENT_BYTES[recipe.main_gradients or recipe.accumulated_gradients or recipe.gradients],
        cast=element + 2.0 * operand if low else 0.0,
        packed=packed,
        unpacking_kernels=unpacking_kernels,
        master=ELEMENT_BYTES[recipe.weights] if casts else 0.0,
        weight_uses=weight_uses,
    )


def build_gemm(
    name: str,
    shape: tuple[float, float, float],
    number_format: NumberFormat,
    *,
    operand: float,
    result: float,
    batch: float = 1.0,
    kernels: float = 1.0,
) -> OperatorWork:
    """Builds ``kernels`` launches of ``batch`` multiplications of rows, columns and depth, all moved once."""
    rows, columns, depth = shape
    each = batch * kernels
    area = rows * columns
    return OperatorWork(
        name,
        OperatorKind.GEMM,
        number_format,
        2.0 * area * depth * each,
        ((rows + columns) * depth * operand + area * result) * each,
        kernels,
        rows,
        columns,
        depth,
        batch,
    )


def _compute_matrix_shape(template: MatrixTemplate, shard: DeviceShard) -> tuple[float, float, float]:
    """Returns rows, columns and depth of a matrix on one device."""
    rows, columns, depth = shard.tokens, template.columns, template.depth
    if template.rows_of == "context":
        rows = shard.tokens * shard.seen / shard.sequence_length
    elif template.rows_of == "sample":
        rows = shard.samples
    split = template.split
    if split is _NONE:
        return rows / shard.shared, columns, depth
    if split is _ROW:
        return rows, columns, depth / shard.tensor
    columns = columns / shard.tensor
    return rows, larger(columns, template.least) if template.least else columns, depth


def _compute_expert_shape(template: ExpertsTemplate, shard: DeviceShard) -> tuple[float, float, float, float]:
    """Returns rows of one expert, columns and depth, and the experts of one device."""
    rows = shard.tokens * shard.expert * template.chosen / template.experts
    batch = template.experts / shard.expert
    if template.inward:
        return rows, template.columns, template.depth / shard.tensor, batch
    return rows, template.columns / shard.tensor, template.depth, batch


def busiest_deviations(experts: float, degree: float) -> float:
    """Returns the excess of the busiest of ``degree`` devices over the mean, in deviations of one expert.

    The mean of experts / degree independent experts deviates less by the root of their number; the largest of
    n normal figures lies near sqrt(2 ln n) deviations above their mean.
    """
    return square_root(2.0 * natural_log(degree) * degree / experts)


class _ElementwiseTraffic:
    """Traffic of a pass's matrices beside multiplying: casts to FP8, unpacked and narrowed weights."""

    def __init__(self, widths: PassFormats) -> None:
        self.widths = widths
        self.cast = self.unpacked = 0.0
        self.casts = self.unpacks = 0.0

    def add(self, template: MatrixTemplate | ExpertsTemplate, inputs: float, weights: float) -> None:
        """Adds a matrix of ``weights`` elements that multiplies ``inputs`` elements."""
        of, times = self.widths, template.times
        if of.cast and template.trained:
            self.cast += (inputs + weights / of.weight_uses) * of.cast * times
            self.casts += 2.0 * times
        stored = of.master if template.trained else of.packed
        if stored and not is_zero(weights):
            self.unpacked += weights * (stored + of.element) * times
            self.unpacks += times * (1.0 if template.trained else of.unpacking_kernels)

    def list_operators(self) -> Iterator[OperatorWork]:
        """Yields casts and unpacking as one operator each."""
        wide = self.widths.wide
        if self.casts:
            yield OperatorWork("casts", OperatorKind.MEMORY, wide, 0.0, self.cast, self.casts)
        if self.unpacks:
            yield OperatorWork(
                "unpacked_weights", OperatorKind.MEMORY, wide, 0.0, self.unpacked, self.unpacks
            )


def _build_matrix_operators(
    template: MatrixTemplate | ExpertsTemplate,
    shard: DeviceShard,
    of: PassFormats,
    beside: _ElementwiseTraffic,
    *,
    backward: bool,
) -> Iterator[OperatorWork]:
    kind, batch, deviations = _GEMM, 1.0, 0.0
    if isinstance(template, MatrixTemplate):
        rows, columns, depth = _compute_matrix_shape(template, shard)
        batch = template.copies
    else:
        rows, columns, depth, batch = _compute_expert_shape(template, shard)
        kind = _GROUPED
        if not template.is_even:
            deviations = busiest_deviations(template.experts, shard.expert)
    matrix, operand, times = of.matrix, of.operand, template.times
    each = batch * times
    flops = 2.0 * rows * columns * depth * each
    inputs, outputs, weights = rows * depth, rows * columns, depth * columns
    if of.cast or of.packed or of.master:
        # Weights are unpacked in both passes; trained ones were narrowed and cast before.
        widened = 0.0 if backward and template.trained else weights * batch
        beside.add(template, (outputs if backward else inputs) * batch, widened)
    if not backward:
        moved = ((inputs + weights) * operand + outputs * of.element) * each
        shape = (rows, columns, depth)
        yield OperatorWork(
            template.name, kind, matrix, flops, moved, times, *shape, batch, deviations=deviations
        )
        return
    moved = ((outputs + weights) * operand + inputs * of.element) * each
    name, shape = f"{template.name}_input_gradient", (rows, depth, columns)
    yield OperatorWork(name, kind, matrix, flops, moved, times, *shape, batch, deviations=deviations)
    if template.trained:
        # Gradients of micro-batches are added to the existing ones.
        moved = ((inputs + outputs) * operand + 2.0 * weights * of.gradient) * each
        name, shape = f"{template.name}_weight_gradient", (depth, columns, rows)
        yield OperatorWork(name, kind, matrix, flops, moved, times, *shape, batch, deviations=deviations)


def _count_heads(template: AttentionTemplate, shard: DeviceShard) -> tuple[float, float]:
    """Returns the heads of queries and of keys and values on one device."""
    query = template.query_heads / shard.tensor
    return query, larger(template.key_value_heads / shard.tensor, 1.0)


def _count_context_tokens(template: AttentionTemplate, shard: DeviceShard) -> tuple[float, float]:
    """Returns the tokens that a query may see, and the mean tokens that a kernel multiplies."""
    length = shard.seen
    window = smaller(length, template.window)
    if not (template.causal and template.flash):
        return length, length if not template.flash else window
    return length, window - window * window / (2.0 * length)


_FORWARD_PRODUCTS, _BACKWARD_PRODUCTS = (1.0, 1.0), (3.0, 2.0)


def _build_flash_attention(
    template: AttentionTemplate, shard: DeviceShard, of: PassFormats, *, backward: bool
) -> Iterator[OperatorWork]:
    query, key_value = _count_heads(template, shard)
    length, context = _count_context_tokens(template, shard)
    scored = smaller(context, template.attended)
    keys, values = _BACKWARD_PRODUCTS if backward else _FORWARD_PRODUCTS
    sizes = template.key_size + template.value_size
    each = 2.0 * query * (keys * template.key_size + values * template.value_size)
    flops = shard.tokens * each * scored * template.times
    sources = shard.tokens * shard.context * length / shard.sequence_length
    passes = 2.0 if backward else 1.0
    moved = (
        passes * (shard.tokens * query * sizes + sources * key_value * sizes) * of.element * template.times
    )
    yield OperatorWork(
        "attention_gradient" if backward else template.name,
        OperatorKind.ATTENTION,
        of.wide,
        flops,
        moved,
        kernels=(3.0 if backward else 1.0) * template.times,
        columns=sizes / 2.0,
        context=scored,
        backward=backward,
        fused=template.fused,
    )
    if template.index_flops:
        # The scorer of sparse attention multiplies all heads on each device.
        scale = (2.0 if backward else 1.0) * template.times
        yield OperatorWork(
            "index_scores",
            OperatorKind.ATTENTION,
            of.wide,
            shard.tokens * template.index_flops * context * scale / shard.shared,
            shard.tokens * context * of.element * scale / shard.shared,
            kernels=2.0 * template.times,
            columns=128.0,
            context=context,
            backward=backward,
        )


_SCORE_TRAFFIC = {
    OperatorFusion.EAGER: (
        MovedElements(split=6.0, split_wide=4.0, kernels=5.0),
        MovedElements(split=4.0, split_wide=5.0, kernels=4.0),
    ),
    OperatorFusion.FUSED: (MovedElements(split=2.0, kernels=1.0), MovedElements(split=3.0, kernels=1.0)),
    OperatorFusion.COMPILED: (MovedElements(split=2.0, kernels=1.0), MovedElements(split=3.0, kernels=1.0)),
}
"""Scale, mask and softmax of stored scores: elements read and written for each. Eager ones widen to FP32."""


def _build_standard_attention(
    template: AttentionTemplate, shard: DeviceShard, of: PassFormats, *, backward: bool
) -> Iterator[OperatorWork]:
    query, _ = _count_heads(template, shard)
    _, context = _count_context_tokens(template, shard)
    positions = shard.sequence_length / shard.context
    batch = query * shard.tokens / positions
    key, value = template.key_size, template.value_size
    shapes = (
        [
            ("value_gradient", context, value, positions),
            ("score_gradient", positions, context, value),
            ("query_gradient", positions, key, context),
            ("key_gradient", context, key, positions),
        ]
        if backward
        else [("scores", positions, context, key), ("weighted_sum", positions, value, context)]
    )
    for name, rows, columns, depth in shapes:
        yield build_gemm(
            name,
            (rows, columns, depth),
            of.wide,
            operand=of.element,
            result=of.element,
            batch=batch,
            kernels=template.times,
        )
    scores = positions * context * batch * template.times
    traffic = _SCORE_TRAFFIC[template.fusion][backward]
    elements, kernels = traffic.split, traffic.kernels
    if template.dropout:
        elements, kernels = elements + 2.5, kernels + 1.0
    yield OperatorWork(
        "softmax_gradient" if backward else "softmax",
        OperatorKind.MEMORY,
        of.wide,
        5.0 * scores,
        scores * (elements * of.element + traffic.split_wide * _FP32_BYTES),
        kernels * template.times,
    )


def _build_scan(
    template: ScanTemplate, shard: DeviceShard, of: PassFormats, *, backward: bool
) -> OperatorWork:
    times = template.times * (2.0 if backward else 1.0)
    tokens = shard.tokens / shard.tensor
    return OperatorWork(
        f"{template.name}_gradient" if backward else template.name,
        OperatorKind.SCAN,
        of.wide,
        tokens * template.flops * times,
        tokens * template.elements * of.element * times,
        4.0 * times,
        backward=backward,
    )


def _build_convolution(
    template: ConvolutionTemplate, shard: DeviceShard, of: PassFormats, *, backward: bool
) -> Iterator[OperatorWork]:
    """Yields an implicit multiplication: positions by channels, as deep as the kernel (Chetlur et al. 2014).

    The input is read once, not once for each position of the kernel.
    """
    behind = shard.tokens * shard.leaving
    inputs, outputs = shard.tokens * template.input_channels, behind * template.output_channels
    shape = (behind, template.output_channels, template.depth)
    shapes = [("", shape, outputs * of.element)]
    if backward:
        weights = template.output_channels * template.depth
        shapes = [
            ("_input_gradient", (behind, template.depth, template.output_channels), inputs * of.element)
        ]
        if template.trained:
            place = (template.depth, template.output_channels, behind)
            shapes.append(("_weight_gradient", place, 2.0 * weights * of.gradient))
    for suffix, (rows, columns, depth), written in shapes:
        read = (outputs if suffix else inputs) + (inputs if suffix == "_weight_gradient" else 0.0)
        yield OperatorWork(
            template.name + suffix,
            OperatorKind.CONVOLUTION,
            of.matrix,
            2.0 * rows * columns * depth * template.times,
            (read * of.element + written) * template.times,
            template.times,
            rows,
            columns,
            depth,
        )


def _build_pairs(
    template: InteractionTemplate, shard: DeviceShard, of: PassFormats, *, backward: bool
) -> Iterator[OperatorWork]:
    """Yields all pairs of the vectors of a sample; backward the gradient of both sides at once."""
    features, size = template.features, template.size
    shape = (features, size, features) if backward else (features, features, size)
    name = f"{template.name}_gradient" if backward else template.name
    kernels = 2.0 * template.times if backward else template.times
    yield build_gemm(
        name, shape, of.wide, operand=of.element, result=of.element, batch=shard.samples, kernels=kernels
    )


def _build_lookups(
    template: LookupTemplate, shard: DeviceShard, of: PassFormats, *, backward: bool
) -> OperatorWork:
    """Returns the lookup of rows: read and summed; backward their gradients read, added and written."""
    rows = shard.samples * template.lookups * template.times
    passes = 3.0 if backward else 1.0
    return OperatorWork(
        f"{template.name}_gradient" if backward else template.name,
        OperatorKind.GATHER,
        of.wide,
        0.0,
        (rows * passes + shard.samples * template.times) * template.size * _FP32_BYTES,
        (2.0 if backward else 1.0) * template.times,
        row_bytes=template.size * _FP32_BYTES,
        backward=backward,
    )


def _build_streamed(
    template: StreamedTemplate, shard: DeviceShard, of: PassFormats, *, backward: bool
) -> OperatorWork:
    traffic = template.backward if backward else template.forward
    whole, split = shard.tokens / shard.shared, shard.tokens / shard.tensor
    narrow = whole * traffic.whole + split * traffic.split
    wide = whole * traffic.whole_wide + split * traffic.split_wide
    return OperatorWork(
        f"{template.name}_gradient" if backward else template.name,
        _GATHER if template.gathers else _MEMORY,
        of.wide,
        whole * traffic.flops,
        narrow * of.element + wide * _FP32_BYTES,
        traffic.kernels,
        row_bytes=template.gathers * of.element,
        backward=backward,
    )


def build_operators(
    templates: Iterable[OperatorTemplate], shard: DeviceShard, widths: PassFormats, *, backward: bool = False
) -> list[OperatorWork]:
    """Returns the operators of one pass over one micro-batch on one device."""
    beside = _ElementwiseTraffic(widths)
    found: list[OperatorWork] = []
    for template in templates:
        match template:
            case MatrixTemplate() | ExpertsTemplate():
                found.extend(_build_matrix_operators(template, shard, widths, beside, backward=backward))
            case AttentionTemplate(flash=True):
                found.extend(_build_flash_attention(template, shard, widths, backward=backward))
            case AttentionTemplate():
                found.extend(_build_standard_attention(template, shard, widths, backward=backward))
            case ConvolutionTemplate():
                found.extend(_build_convolution(template, shard, widths, backward=backward))
            case InteractionTemplate():
                found.extend(_build_pairs(template, shard, widths, backward=backward))
            case LookupTemplate():
                found.append(_build_lookups(template, shard, widths, backward=backward))
            case ScanTemplate():
                found.append(_build_scan(template, shard, widths, backward=backward))
            case _:
                if any(template.backward if backward else template.forward):
                    found.append(_build_streamed(template, shard, widths, backward=backward))
    found.extend(beside.list_operators())
    return found
