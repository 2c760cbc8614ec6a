"""Compressed gradients: their messages, their cost, and whether they pay.

Sources: Alistarh et al. 2017 (QSGD), Bernstein et al. 2018 (signSGD), Karimireddy et al. 2019 (error
feedback), Lin et al. 2018 (top-k), Stich et al. 2018 (random-k), Vogels et al. 2019 (PowerSGD: a matrix of m
x n as m x r and n x r, so mn over r (m + n)), Tang et al. 2021 (formats that cannot be added in transit are
exchanged and gathered: 1-bit Adam, section 4).

A gradient of g bytes an element on n replicas becomes, for each element,

    fp16       2 bytes                          all-reduce
    int8       1 byte and a scale a tensor      all-to-all and all-gather
    one_bit    1/8 byte and a scale a tensor    all-to-all and all-gather
    top_k      k (g + 4) bytes of each replica  all-gather of n of them
    random_k   k g bytes                        all-reduce
    power_sgd  r (m + n) / (m n) g bytes        all-reduce, once for each of the two matrices

Vectors are unchanged under power_sgd. The work is memory-bound except for the products of power_sgd.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from service.planning.hardware.collectives import Collective
from service.planning.hardware.traffic import CollectiveMessage, ReplicaExchange
from service.planning.models.layers import LayerTensor, TensorSplit
from service.planning.models.profile import ModelProfile
from service.planning.operators import OperatorKind, OperatorWork
from service.planning.parallelism import DeviceGroup, GroupPlacement
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.workload import Compression, GradientCompressionKind

INDEX_BYTES: Final = 4.0
"""Bytes of the index of a sent element."""
_SCALE_BYTES: Final = 4.0
_RESIDUAL_BYTES: Final = ELEMENT_BYTES[NumberFormat.FP32]
_SELECTION_PASSES: Final = 4.0
"""Passes of a radix selection over the bytes of an FP32 magnitude."""


class GradientShapes(NamedTuple):
    """Tensors whose gradients are sent: elements, those in matrices, and the sides of the matrices.

    Tensor parallelism divides ``cut_sides``; a matrix that it does not split has both sides in
    ``whole_sides``.
    """

    elements: float
    matrices: float
    cut_sides: float
    whole_sides: float
    tensors: float


def _build_tensor_shapes(tensor: LayerTensor) -> GradientShapes:
    size = float(tensor.size)
    if not size or len(tensor.shape) < 2:  # noqa: PLR2004
        return GradientShapes(size, 0.0, 0.0, 0.0, 1.0)
    rows, columns = tensor.shape[-2:]
    stacked = size / (rows * columns)
    cut, whole = {
        TensorSplit.NONE: (0, rows + columns),
        TensorSplit.ROW: (rows, columns),
        TensorSplit.VOCABULARY: (rows, columns),
    }.get(tensor.split, (columns, rows))
    return GradientShapes(size, size, stacked * cut, stacked * whole, stacked)


def sum_gradient_shapes(counted: Iterable[tuple[LayerTensor, float]]) -> GradientShapes:
    """Sums the gradients of so many tensors of each shape; the last two sides of a stack are its matrices."""
    sums = [0.0] * len(GradientShapes._fields)
    for tensor, count in counted:
        sums = [total + each * count for total, each in zip(sums, _build_tensor_shapes(tensor), strict=True)]
    return GradientShapes(*sums)


def build_gradient_shapes(profile: ModelProfile) -> GradientShapes:
    """Returns the gradients of a model; for one without shapes, their number alone."""
    if not profile.shapes_known:
        return GradientShapes(float(profile.parameter_count), 0.0, 0.0, 0.0, 1.0)
    blocks = (
        (tensor, 1.0 * count * each.repeats)
        for each in profile.blocks
        for tensor, count in each.block.list_tensors()
    )
    tables = ((tensor, 1.0) for tensor in profile.table_tensors)
    heads = ((tensor, 1.0 * count) for tensor, count in profile.head_tensors)
    return sum_gradient_shapes([*blocks, *tables, *heads])


class CompressedBytes(NamedTuple):
    """Bytes of an element that one replica sends, and of the gradient that they replace."""

    sent_bytes: float
    gradient_bytes: float

    @property
    def ratio(self) -> float:
        """Factor by which fewer bytes are sent."""
        return self.gradient_bytes / self.sent_bytes


def compute_compressed_bytes(
    compression: Compression, shapes: GradientShapes, gradient_bytes: float, tensor: float = 1.0
) -> CompressedBytes:
    """Returns the mean bytes of an element on a device of a ``tensor``-parallel group, over the gradients."""
    elements = shapes.elements / tensor
    scale = _SCALE_BYTES * shapes.tensors / elements
    match compression.kind:
        case GradientCompressionKind.FP16:
            sent = ELEMENT_BYTES[NumberFormat.FP16]
        case GradientCompressionKind.INT8:
            sent = 1.0 + scale
        case GradientCompressionKind.ONE_BIT:
            sent = 1.0 / 8.0 + scale
        case GradientCompressionKind.TOP_K:
            sent = compression.kept_share * (gradient_bytes + INDEX_BYTES)
        case GradientCompressionKind.RANDOM_K:
            sent = compression.kept_share * gradient_bytes
        case GradientCompressionKind.POWER_SGD:
            thin = compression.rank * (shapes.whole_sides + shapes.cut_sides / tensor)
            left = elements - shapes.matrices / tensor
            sent = (thin + left) / elements * gradient_bytes
    return CompressedBytes(sent, gradient_bytes)


def build_compressed_messages(
    compression: Compression, found: CompressedBytes, elements: float, group: DeviceGroup, units: float = 1.0
) -> tuple[CollectiveMessage, ...]:
    """Returns the messages that exchange ``elements`` gradients of a device, in ``units`` parts."""
    sent = elements * found.sent_bytes / units

    def build_message(kind: Collective, message_bytes: float, times: float = 1.0) -> CollectiveMessage:
        return CollectiveMessage("gradients", kind, group, message_bytes, times * units)

    match compression.kind:
        case GradientCompressionKind.FP16 | GradientCompressionKind.RANDOM_K:
            return (build_message(Collective.ALL_REDUCE, sent),)
        case GradientCompressionKind.POWER_SGD:
            return (build_message(Collective.ALL_REDUCE, sent / 2.0, 2.0),)
        case GradientCompressionKind.TOP_K:
            return (build_message(Collective.ALL_GATHER, sent * group.devices),)
        case GradientCompressionKind.INT8 | GradientCompressionKind.ONE_BIT:
            return build_message(Collective.ALL_TO_ALL, sent), build_message(Collective.ALL_GATHER, sent)


def list_compression_operators(
    compression: Compression,
    shapes: GradientShapes,
    found: CompressedBytes,
    elements: float,
    group: DeviceGroup,
) -> Iterator[OperatorWork]:
    """Yields the work of compressing and restoring ``elements`` gradients of a device once.

    Passes over the gradients: narrowing reads them and writes the sent data, and back; scales and signs are
    read once before; a selection passes over the magnitudes four times, then adds the data of all replicas;
    error feedback reads and writes the residual. PowerSGD multiplies the gradient by a thin matrix twice and
    the two thin ones at the end (6 r flops an element, bound by memory at ranks that pay: r / 2 flops a
    byte), and orthogonalises one of them column by column.
    """
    gradient, sent = found.gradient_bytes, found.sent_bytes
    narrowed = 2.0 * (gradient + sent)
    match compression.kind:
        case GradientCompressionKind.FP16:
            moved = narrowed
        case GradientCompressionKind.INT8 | GradientCompressionKind.ONE_BIT:
            moved = gradient + narrowed
        case GradientCompressionKind.TOP_K:
            restored = group.devices * (sent + 2.0 * compression.kept_share * gradient)
            moved = (_SELECTION_PASSES + 1.0) * gradient + sent + restored + gradient
        case GradientCompressionKind.RANDOM_K:
            moved = 4.0 * sent + gradient
        case GradientCompressionKind.POWER_SGD:
            moved = 0.0
    if compression.error_feedback:
        moved = moved + 2.0 * _RESIDUAL_BYTES
    yield OperatorWork("compression", OperatorKind.MEMORY, NumberFormat.FP32, 0.0, elements * moved, 4.0)
    if compression.kind is GradientCompressionKind.POWER_SGD:
        share, rank = elements / shapes.elements, 1.0 * compression.rank
        thin = share * rank * (shapes.cut_sides + shapes.whole_sides) * gradient
        many = share * shapes.matrices
        products = 3.0 * many * gradient + 3.0 * thin
        yield OperatorWork(
            "power_products", OperatorKind.MEMORY, NumberFormat.FP32, 6.0 * rank * many, products, 3.0
        )
        yield OperatorWork(
            "orthogonalisation",
            OperatorKind.MEMORY,
            NumberFormat.FP32,
            rank * thin / gradient,
            rank * thin,
            2.0 * rank,
        )


class CompressedExchange(NamedTuple):
    """Messages of a step's compressed gradients, and the work before and after them."""

    messages: tuple[CollectiveMessage, ...]
    operators: tuple[OperatorWork, ...]


def build_compressed_exchange(
    compression: Compression,
    profile: ModelProfile,
    exchanged: ReplicaExchange,
    placed: GroupPlacement,
    tensor: float,
) -> CompressedExchange:
    """Builds the exchange of plain replicas, compressed; experts exchange among their own."""
    shapes = build_gradient_shapes(profile)
    found = compute_compressed_bytes(compression, shapes, exchanged.gradient_bytes, tensor)
    messages: list[CollectiveMessage] = []
    operators: list[OperatorWork] = []
    for elements, group in (
        (exchanged.dense, placed.replicas),
        (exchanged.expert, placed.expert_replicas),
    ):
        if not np.any(elements):
            continue
        messages.extend(build_compressed_messages(compression, found, elements, group, exchanged.units))
        operators.extend(list_compression_operators(compression, shapes, found, elements, group))
    return CompressedExchange(tuple(messages), tuple(operators))


class CompressionVerdict(NamedTuple):
    """Seconds of communication wait that the compression saves a step, and seconds that it takes.

    It pays where the cost and the compressed exchange are shorter than the plain one.
    """

    saved_seconds: float
    cost_seconds: float

    @property
    def pays(self) -> bool:
        """True if a step is shorter with it."""
        return self.saved_seconds > self.cost_seconds
