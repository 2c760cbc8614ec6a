"""Templates of operators with the shapes that a layout leaves of them on one device.

Tensor parallelism cuts columns or depth of matrices and the heads of attention (Shoeybi et al. 2019),
sequence parallelism what stands between them (Korthikanti et al. 2022), context parallelism the positions of
a sequence (each device meets all keys in turn, the causal half spread evenly), expert parallelism the experts
(each device meets the tokens of its whole group). A fused attention kernel executes 2 products forward and 5
backward, as it computes the scores again (Dao 2023, section 3.2), and skips what a causal mask hides; the
standard one multiplies the whole score matrix.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from service.planning.figures import larger, natural_log, root, smaller
from service.planning.operators.kinds import Operator, OperatorKind
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES, LOW_PRECISION_BYTES, NumberFormat, TrainingRecipe
from service.planning.profile.layer_operators import (
    Core,
    Experts,
    Fusion,
    Matrix,
    Scan,
    Streamed,
    Template,
    Traffic,
)

_FP32_BYTES = ELEMENT_BYTES[NumberFormat.FP32]


class Shard(NamedTuple):
    """What one device has of a micro-batch: its positions, and how the layout cuts the layers.

    ``tokens`` are positions on the device, ``sequence_length`` those of a whole sequence, ``source_length``
    those of the other sequence that a cross-attention reads. ``shared`` is the tensor-parallel degree under
    sequence parallelism, else 1.
    """

    tokens: float
    sequence_length: float
    tensor: float = 1.0
    context: float = 1.0
    expert: float = 1.0
    shared: float = 1.0
    source_length: float = 0.0


def shard_of(micro_batch_size: float, sequence_length: float, layout: Parallelism) -> Shard:
    """The positions of ``micro_batch_size`` sequences on a device of ``layout``."""
    return Shard(
        tokens=micro_batch_size * sequence_length / layout.context,
        sequence_length=sequence_length,
        tensor=layout.tensor,
        context=layout.context,
        expert=layout.expert,
        shared=layout.tensor if layout.sequence_parallel else 1.0,
    )


class Widths(NamedTuple):
    """Formats of a pass: how matrices and attention are multiplied, and bytes of an element of each."""

    matrix: NumberFormat
    wide: NumberFormat
    """Of attention and of the head, which no FP8 recipe narrows."""
    element: float
    operand: float
    gradient: float
    cast: float = 0.0
    """Bytes moved to scale and store an element of an operand in FP8, as it is and transposed."""
    packed: float = 0.0
    """Bytes of a frozen weight that is unpacked before it is multiplied, else 0."""
    master: float = 0.0
    """Bytes of a weight that is cast before it is multiplied, else 0."""
    weight_uses: float = 1.0
    """Micro-batches that multiply with a weight once it is scaled and stored in FP8."""


def widths_of(
    recipe: TrainingRecipe,
    compute: NumberFormat,
    *,
    packed: float = 0.0,
    casts: bool = False,
    weight_uses: float = 1.0,
) -> Widths:
    """Widths under ``recipe`` on a device that multiplies in ``compute``.

    ``packed`` is the width of a quantised base; ``casts`` says that each device narrows whole weights.
    """
    element = ELEMENT_BYTES[recipe.activations]
    low = recipe.low if compute in (NumberFormat.FP8, NumberFormat.FP4) else None
    operand = LOW_PRECISION_BYTES[low] if low else element
    return Widths(
        matrix=compute,
        wide=recipe.activations if low else compute,
        element=element,
        operand=operand,
        gradient=ELEMENT_BYTES[recipe.main_gradients or recipe.accumulated_gradients or recipe.gradients],
        cast=element + 2.0 * operand if low else 0.0,
        packed=packed,
        master=ELEMENT_BYTES[recipe.weights] if casts else 0.0,
        weight_uses=weight_uses,
    )


def gemm(
    name: str,
    shape: tuple[float, float, float],
    number_format: NumberFormat,
    *,
    operand: float,
    result: float,
    batch: float = 1.0,
    kernels: float = 1.0,
    kind: OperatorKind = OperatorKind.GEMM,
    deviations: float = 0.0,
) -> Operator:
    """``kernels`` launches of ``batch`` multiplications of rows, columns and depth, all moved once."""
    rows, columns, depth = shape
    each = batch * kernels
    area = rows * columns
    return Operator(
        name,
        kind,
        number_format,
        2.0 * area * depth * each,
        ((rows + columns) * depth * operand + area * result) * each,
        kernels,
        rows,
        columns,
        depth,
        batch,
        deviations=deviations,
    )


def _shape(template: Matrix, shard: Shard) -> tuple[float, float, float]:
    """Rows, columns and depth of a matrix on one device."""
    rows, columns, depth = shard.tokens, template.columns, template.depth
    if template.rows_of == "context":
        rows = shard.tokens * shard.source_length / shard.sequence_length
    match template.split.value:
        case "none":
            return rows / shard.shared, columns, depth
        case "row":
            return rows, columns, depth / shard.tensor
        case _:
            columns = columns / shard.tensor
            if template.least:
                columns = larger(columns, template.least)
            return rows, columns, depth


def _expert_shape(template: Experts, shard: Shard) -> tuple[float, float, float, float]:
    """Rows of one expert, columns and depth, and the experts of one device."""
    rows = shard.tokens * shard.expert * template.chosen / template.experts
    batch = template.experts / shard.expert
    if template.inward:
        return rows, template.columns, template.depth / shard.tensor, batch
    return rows, template.columns / shard.tensor, template.depth, batch


def busiest_deviations(experts: float, degree: float) -> float:
    """How far the busiest of ``degree`` devices lies above the mean, in standard deviations of one expert.

    The mean of experts / degree independent experts deviates by the root of their number less; the largest of
    n normal figures lies near sqrt(2 ln n) deviations above their mean.
    """
    return root(2.0 * natural_log(degree) * degree / experts)


class _Beside:
    """What the matrices of a pass move beside multiplying: casts to FP8, unpacked and narrowed weights."""

    def __init__(self, widths: Widths) -> None:
        self.widths = widths
        self.cast = self.unpacked = 0.0
        self.casts = self.unpacks = 0.0

    def add(self, template: Matrix | Experts, inputs: float, weights: float) -> None:
        """A matrix of ``weights`` elements that multiplies ``inputs`` elements."""
        of, times = self.widths, template.times
        if of.cast and template.trained:
            self.cast += (inputs + weights / of.weight_uses) * of.cast * times
            self.casts += 2.0 * times
        stored = of.master if template.trained else of.packed
        if stored and weights:
            self.unpacked += weights * (stored + of.element) * times
            self.unpacks += times

    def operators(self) -> Iterator[Operator]:
        """Both as one operator each."""
        wide = self.widths.wide
        if self.casts:
            yield Operator("casts", OperatorKind.MEMORY, wide, 0.0, self.cast, self.casts)
        if self.unpacks:
            yield Operator("unpacked_weights", OperatorKind.MEMORY, wide, 0.0, self.unpacked, self.unpacks)


class _Product(NamedTuple):
    """A matrix on one device: rows, columns and depth of ``batch`` equal multiplications."""

    rows: float
    columns: float
    depth: float
    batch: float
    kind: OperatorKind
    deviations: float = 0.0


def _product(template: Matrix | Experts, shard: Shard) -> _Product:
    if isinstance(template, Matrix):
        return _Product(*_shape(template, shard), template.copies, OperatorKind.GEMM)
    deviations = busiest_deviations(template.experts, shard.expert)
    return _Product(*_expert_shape(template, shard), OperatorKind.GROUPED_GEMM, deviations)


def _matrix(
    template: Matrix | Experts, shard: Shard, of: Widths, beside: _Beside, *, backward: bool
) -> Iterator[Operator]:
    rows, columns, depth, batch, kind, deviations = _product(template, shard)
    weights = columns * depth * batch

    def product(name: str, m: float, n: float, k: float, result: float) -> Operator:
        return gemm(
            name,
            (m, n, k),
            of.matrix,
            operand=of.operand,
            result=result,
            batch=batch,
            kernels=template.times,
            kind=kind,
            deviations=deviations,
        )

    if not backward:
        beside.add(template, rows * batch * depth, weights)
        yield product(template.name, rows, columns, depth, of.element)
        return
    # The weights are unpacked again; those that are trained were narrowed and cast before.
    beside.add(template, rows * batch * columns, 0.0 if template.trained else weights)
    yield product(f"{template.name}_input_gradient", rows, depth, columns, of.element)
    if template.trained:
        # Gradients of micro-batches are added to those that are there.
        yield product(f"{template.name}_weight_gradient", depth, columns, rows, 2.0 * of.gradient)


def _heads(template: Core, shard: Shard) -> tuple[float, float]:
    """Heads of queries and of keys and values on one device."""
    query = template.query_heads / shard.tensor
    return query, larger(template.key_value_heads / shard.tensor, 1.0)


def _contexts(template: Core, shard: Shard) -> tuple[float, float]:
    """Tokens that a query may see, and those that a kernel multiplies on average."""
    length = shard.source_length if template.cross else shard.sequence_length
    window = smaller(length, template.window)
    if not (template.causal and template.flash):
        return length, length if not template.flash else window
    return length, window - window * window / (2.0 * length)


_FORWARD_PRODUCTS, _BACKWARD_PRODUCTS = (1.0, 1.0), (3.0, 2.0)


def _flash(template: Core, shard: Shard, of: Widths, *, backward: bool) -> Iterator[Operator]:
    query, key_value = _heads(template, shard)
    length, context = _contexts(template, shard)
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
    yield Operator(
        "attention_gradient" if backward else template.name,
        OperatorKind.ATTENTION,
        of.wide,
        flops,
        moved,
        kernels=(3.0 if backward else 1.0) * template.times,
        columns=sizes / 2.0,
        context=scored,
        backward=backward,
        native=template.native,
    )
    if template.index_flops:
        # The scorer of sparse attention multiplies all heads on each device.
        scale = (2.0 if backward else 1.0) * template.times
        yield Operator(
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
    Fusion.EAGER: (
        Traffic(split=6.0, split_wide=4.0, kernels=5.0),
        Traffic(split=4.0, split_wide=5.0, kernels=4.0),
    ),
    Fusion.FUSED: (Traffic(split=2.0, kernels=1.0), Traffic(split=3.0, kernels=1.0)),
    Fusion.COMPILED: (Traffic(split=2.0, kernels=1.0), Traffic(split=3.0, kernels=1.0)),
}
"""Scale, mask and softmax of stored scores: elements read and written for each. Eager ones widen to FP32."""


def _standard(template: Core, shard: Shard, of: Widths, *, backward: bool) -> Iterator[Operator]:
    query, _ = _heads(template, shard)
    _, context = _contexts(template, shard)
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
        yield gemm(
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
    yield Operator(
        "softmax_gradient" if backward else "softmax",
        OperatorKind.MEMORY,
        of.wide,
        5.0 * scores,
        scores * (elements * of.element + traffic.split_wide * _FP32_BYTES),
        kernels * template.times,
    )


def _scan(template: Scan, shard: Shard, of: Widths, *, backward: bool) -> Operator:
    times = template.times * (2.0 if backward else 1.0)
    tokens = shard.tokens / shard.tensor
    return Operator(
        f"{template.name}_gradient" if backward else template.name,
        OperatorKind.SCAN,
        of.wide,
        tokens * template.flops * times,
        tokens * template.elements * of.element * times,
        4.0 * times,
        backward=backward,
    )


def _streamed(template: Streamed, shard: Shard, of: Widths, *, backward: bool) -> Operator:
    traffic = template.backward if backward else template.forward
    whole, split = shard.tokens / shard.shared, shard.tokens / shard.tensor
    narrow = whole * traffic.whole + split * traffic.split
    wide = whole * traffic.whole_wide + split * traffic.split_wide
    return Operator(
        f"{template.name}_gradient" if backward else template.name,
        OperatorKind.GATHER if template.gathers else OperatorKind.MEMORY,
        of.wide,
        whole * traffic.flops,
        narrow * of.element + wide * _FP32_BYTES,
        traffic.kernels,
        row_bytes=template.gathers * of.element,
        backward=backward,
    )


def operators(
    templates: Iterable[Template], shard: Shard, widths: Widths, *, backward: bool = False
) -> list[Operator]:
    """The operators of one pass over one micro-batch on one device."""
    beside = _Beside(widths)
    found: list[Operator] = []
    for template in templates:
        match template:
            case Matrix() | Experts():
                found.extend(_matrix(template, shard, widths, beside, backward=backward))
            case Core(flash=True):
                found.extend(_flash(template, shard, widths, backward=backward))
            case Core():
                found.extend(_standard(template, shard, widths, backward=backward))
            case Scan():
                found.append(_scan(template, shard, widths, backward=backward))
            case _:
                found.append(_streamed(template, shard, widths, backward=backward))
    found.extend(beside.operators())
    return found
