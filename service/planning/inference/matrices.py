"""Matrices of a served model on one device, all shapes at once: their streaming and multiplication.

Kinds are entries of the last axis of every figure: dense matrices inside blocks, those of routed experts, and
the head. Weights are read as they are stored, once a pass; of the experts, only the chosen ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.figures import (
    Figure,
    doublings,
    larger,
    natural_log,
    power_of_two,
    smaller,
    square_root,
)
from service.planning.hardware.calibration import ServingRates
from service.planning.hardware.storage import WeightFormat
from service.planning.hardware.storage.named import ALWAYS_WIDE, EXPERT_MODULES
from service.planning.hardware.storage.scheme import MatrixPath
from service.planning.models.layers import TensorSplit
from service.planning.models.profile import ModelProfile
from service.planning.models.profile.layer_operators import ExpertsTemplate, MatrixTemplate, OperatorTemplate
from service.planning.operators import DeviceMachine, MatrixUnit, get_multipliers, tiled_seconds
from service.planning.precision import ELEMENT_BITS, ELEMENT_BYTES, NumberFormat

Array: TypeAlias = NDArray[np.float64]
CountedTemplate: TypeAlias = tuple[OperatorTemplate, float]

DENSE, ROUTED, HEAD, IMAGE_ROUTED = 0, 1, 2, 3
LEAST_TILE_ROWS = 16.0
"""Rows of the smallest tile of a multiplication."""
_LEAST = 1e-9
_WIDE_BYTES = 2.0


class StoredMatrices(NamedTuple):
    """Storage of the matrices of one kind, and the format that they multiply in."""

    number_format: NumberFormat
    widened: bool = False
    casts: bool = False
    """True if their input is cast with its own scales."""
    blocks: bool = False
    """True if they have 8 bits and a scale for each block."""


def build_stored_format(
    profile: ModelProfile,
    storage: WeightFormat,
    narrow: NumberFormat,
    wide: NumberFormat,
    *,
    routed: bool,
    has_fp4: bool,
) -> StoredMatrices:
    """Returns the storage of dense matrices or of experts.

    A mixed format leaves one of them in high precision. Weights that the device does not multiply as they are
    stored are widened to the format of activations. A device with FP4 (``has_fp4``) multiplies weights of
    four bits with activations in FP8, at the rate of FP8.
    """
    facts = profile.weights.facts
    bits, grouped = storage.mean_bits, False
    for matrix in profile.weights.matrices:
        if (matrix.module in EXPERT_MODULES) is routed and matrix.module not in ALWAYS_WIDE:
            scheme = storage.scheme_of(MatrixPath(matrix.module, 0, facts.depth, matrix.inputs), facts)
            bits, grouped = scheme.element_bits, scheme.group_inputs > 0
            break
    if bits >= ELEMENT_BITS[wide]:
        return StoredMatrices(wide)
    is_packed = has_fp4 and narrow is NumberFormat.FP8 and bits == ELEMENT_BITS[NumberFormat.FP4]
    if bits < ELEMENT_BITS[narrow] and not is_packed:
        return StoredMatrices(wide, widened=True)
    return StoredMatrices(narrow, casts=grouped, blocks=grouped and bits == ELEMENT_BITS[NumberFormat.FP8])


class MatrixKind(NamedTuple):
    """Matrices of one kind: columns, depth, times and copies of each shape, and the bytes of all."""

    shapes: list[tuple[float, float, float, float]]
    weight_bytes: float
    stored: StoredMatrices
    bandwidth: float
    """Share of a streaming kernel's rate."""
    share: float
    """Share of the rate that a large multiplication alone sustains."""
    added_rows: float = 0.0
    """Rows that are multiplied in addition to those of each copy."""


class MatrixTimes(NamedTuple):
    """Seconds of each kind on the last axis; the other members are sums over all kinds."""

    seconds: Array
    bound: float
    flops: float
    moved_bytes: float


@dataclass(frozen=True, slots=True, eq=False)
class MatrixTable:
    """All shapes of matrices of a device, with one entry for each."""

    columns: float
    depth: float
    copies: float
    times: float
    weight_bytes: float
    """Bytes of all copies and times together."""
    entering_bytes: float
    """Bytes of inputs and outputs of a row, over all times."""
    row_flops: float
    bytes_per_second: float
    added_rows: float
    by: MatrixUnit
    kinds: NDArray[np.intp]
    of_kind: Array
    """1 where a shape is of a kind, else 0."""
    launches: tuple[float, ...]
    """Kernels of each kind."""

    def compute_matmul_time(self, rows: Array, each: Array, share: Array, batch: Array) -> MatrixTimes:
        """Returns the seconds of a pass; all four arguments have the kind on their last axis.

        ``rows`` are multiplied in total, ``each`` by one of ``batch`` copies; ``share`` of the weights is
        read.
        """
        kinds = self.kinds
        height = cast("float", each[..., kinds])
        total = cast("float", rows[..., kinds])
        fitting = smaller(power_of_two(doublings(larger(each, LEAST_TILE_ROWS))), self.by.tile_rows)
        by = self.by._replace(tile_rows=cast("float", cast("Array", fitting)[..., kinds]))
        copies = self.copies * cast("float", batch[..., kinds])
        read = cast("float", share[..., kinds])
        filled = height + self.added_rows
        compute = self.times * tiled_seconds(filled, self.columns, self.depth, copies, by) * (read > 0.0)
        moved = self.weight_bytes * read + total * self.entering_bytes
        memory = moved / self.bytes_per_second
        seconds = cast("Array", larger(compute, memory))
        bound = seconds * (compute >= memory)
        return MatrixTimes(
            seconds @ self.of_kind,
            _sum_shapes(bound),
            _sum_shapes(total * self.row_flops),
            _sum_shapes(moved),
        )


def _sum_shapes(figure: Figure) -> float:
    """Returns the sum over shapes, as a number where there is no other axis."""
    whole: float = np.sum(figure, axis=-1)
    return whole if np.ndim(whole) else float(whole)


def build_matrices(kinds: Sequence[MatrixKind], machine: DeviceMachine, rates: ServingRates) -> MatrixTable:
    """Builds the matrices of all kinds, in their order, as an engine's kernels run them on ``machine``."""
    shapes = np.array([shape for kind in kinds for shape in kind.shapes], dtype=np.float64).reshape(-1, 4).T
    columns, depth, times, copies = shapes
    index = np.repeat(np.arange(len(kinds)), [len(kind.shapes) for kind in kinds])
    per_kind = [_compute_kind_rates(kind, machine, rates) for kind in kinds]
    elements = columns * depth * times * copies
    of_kind = (index[:, None] == np.arange(len(kinds))).astype(np.float64)
    whole = np.maximum(elements @ of_kind, 1.0)
    stored = np.array([kind.weight_bytes for kind in kinds]) / whole
    operand, stream, peak, share, filling = (
        cast("float", np.array(figure)[index]) for figure in zip(*per_kind, strict=True)
    )
    by = get_multipliers(machine, kinds[0].stored.number_format)
    figures = (
        columns,
        depth,
        copies,
        times,
        elements * stored[index],
        times * copies * (depth * operand + columns * _WIDE_BYTES),
        2.0 * elements,
        stream,
        np.array([kind.added_rows for kind in kinds])[index],
    )
    return MatrixTable(
        *cast("tuple[float, float, float, float, float, float, float, float, float]", figures),
        by=by._replace(peak_flops_per_second=peak, share=share, filling=filling),
        kinds=index,
        of_kind=of_kind,
        launches=tuple((times @ of_kind).tolist()),
    )


def _compute_kind_rates(
    kind: MatrixKind, machine: DeviceMachine, rates: ServingRates
) -> tuple[float, float, float, float, float]:
    """Returns bytes of an operand, bytes per second of weights, peak, sustained share and filling."""
    number_format, widened = kind.stored.number_format, kind.stored.widened
    by = get_multipliers(machine, number_format)
    stream = machine.bandwidth_bytes_per_second * machine.rates.bandwidth * kind.bandwidth
    if machine.facts.bounds_streams:
        stream = smaller(stream, machine.facts.multiprocessors * rates.unit_bandwidth)
    share = by.share * kind.share
    if widened:
        stream, share = stream * rates.widened_bandwidth, share * rates.widening_share
    elif kind.stored.casts:
        share = share * rates.scaled_share
    operand = larger(1.0, ELEMENT_BYTES[number_format])
    return operand, stream, by.peak_flops_per_second, share, by.filling


class RoutedRows(NamedTuple):
    """Rows of the busiest group of devices, those of each expert that it reads, and the number of these."""

    rows: float
    rows_of_expert: float
    experts: float


NOTHING_ROUTED = RoutedRows(0.0, 1.0, _LEAST)


class ExpertRouting(NamedTuple):
    """Experts of a layer, the number that a token takes, and the groups of devices that hold them."""

    experts: float
    chosen: float
    holders: float
    imbalance: float
    variety: float

    def estimate_busiest_group(self, tokens: float) -> RoutedRows:
        """Returns the rows of the busiest group.

        Of X experts, N tokens take X (1 - (1 - x / X)^N) at random. Choices that depend on earlier tokens
        fall on experts that are taken already: of the tokens after the first, only the share ``variety``
        counts. The busiest of e groups lies sqrt(2 ln e) deviations above their mean, for experts and tokens
        alike.
        """
        held = self.experts / self.holders
        varied = smaller(tokens, 1.0 + (tokens - 1.0) * self.variety)
        share = 1.0 - (1.0 - self.chosen / self.experts) ** larger(varied, 0.0)
        spread = square_root(2.0 * natural_log(self.holders))
        touched = held * share + spread * square_root(held * share * (1.0 - share))
        touched = larger(smaller(smaller(touched, held), tokens * self.chosen), _LEAST)
        mean = tokens * self.chosen / self.holders
        rows = mean + spread * square_root(mean * (1.0 - 1.0 / self.holders))
        rows = smaller(rows, tokens * min(self.chosen, held))
        rows = rows * (1.0 + self.imbalance * spread / square_root(held))
        return RoutedRows(rows, rows / touched, touched)


def list_dense_shapes(
    profile: ModelProfile, templates: Sequence[CountedTemplate], tensor: float
) -> list[tuple[float, float, float, float]]:
    """Returns the matrices of blocks on one device; without shapes, one matrix as large as the model."""
    if not profile.shapes_known:
        side = profile.parameter_count**0.5
        return [(side / tensor, side, 1.0, 1.0)]
    rows = []
    for template, count in templates:
        # Keys and values of cross-attention are computed with the encoder's output, not for each token.
        if isinstance(template, MatrixTemplate) and template.rows_of == "entering":
            columns, depth = template.columns, template.depth
            if template.split is TensorSplit.ROW:
                depth = depth / tensor
            elif template.split is not TensorSplit.NONE:
                columns = larger(columns / tensor, template.least)
            rows.append((columns, depth, template.times * count, template.copies))
    return rows


def list_expert_shapes(
    templates: Sequence[CountedTemplate], cut: float, *, of_images: bool = False
) -> list[tuple[float, float, float, float]]:
    """Returns the matrices of one expert, each split over ``cut`` devices; those of images are apart."""
    rows = []
    for template, count in templates:
        if isinstance(template, ExpertsTemplate) and template.of_images is of_images:
            depth, columns = template.depth, template.columns
            if template.inward:
                depth = depth / cut
            else:
                columns = columns / cut
            rows.append((columns, depth, template.times * count, 1.0))
    return rows


def list_head_shapes(profile: ModelProfile, tensor: float) -> list[tuple[float, float, float, float]]:
    """Returns the language-model head on one device."""
    if not profile.vocabulary_size:
        return []
    depth = profile.head_flops_per_token / (2.0 * profile.vocabulary_size)
    return [(profile.vocabulary_size / tensor, depth, 1.0, 1.0)]
