"""Seconds of an operator on a device: the longer of compute and memory, and its launches.

A matrix multiplication is split into tiles of the result, one per multiprocessor at a time. Tiles that the
edge cuts and places that the last wave leaves idle take as long as full ones (tile and wave quantization:
NVIDIA, Matrix Multiplication Background User's Guide, section 4), and before a tile multiplies its pipeline
fills, as if it were some elements deeper. The rate that the power limit sustains is a second ceiling, not a
factor: a kernel that leaves places idle draws less, so its clock does not fall. Few tiles of a deep product
are divided along the depth, each part on its own multiprocessor (split-k).

    parts   = max(1, min(floor(SM / tiles), floor(k / 1024)))        tiles = ceil(m / tm) ceil(n / tn) batch
    waves   = tiles parts / SM
    rounds  = waves + tail (ceil(waves) - waves)
    seconds = max(2 m n k batch / (share peak), rounds SM 2 tm tn (k / parts + fill / width) / peak)

With a tail, a fill and launches of 0 and shares of 1, this is the roofline.
"""

from typing import NamedTuple

from service.planning.figures import larger, rounded_down, rounded_up, smaller
from service.planning.models.profile import FusedAttention
from service.planning.operators.kinds import OperatorKind, OperatorTime, OperatorWork
from service.planning.operators.machine import DeviceMachine
from service.planning.precision import ELEMENT_BYTES, NumberFormat

LEAST_DEPTH = 1024.0
"""Minimum depth of a part of a divided tile."""


def wave_rounds(tiles: float, multiprocessors: float, tail: float = 1.0) -> float:
    """Returns the rounds in which ``multiprocessors`` process ``tiles``.

    Idle places of the last count by ``tail``.
    """
    waves = tiles / multiprocessors
    return waves + tail * (rounded_up(waves) - waves)


class MatrixUnit(NamedTuple):
    """Matrix multiplication of a device in one format; figures may be arrays, one entry per matrix."""

    peak_flops_per_second: float
    share: float
    """Share of the peak that a large multiplication sustains."""
    filling: float
    """Elements of depth in which a tile's pipeline fills."""
    tile_rows: float
    tile_columns: float
    units: float
    tail: float


def get_multipliers(machine: DeviceMachine, number_format: NumberFormat) -> MatrixUnit:
    """Returns the matrix unit of ``machine`` for ``number_format``."""
    rates, facts = machine.rates, machine.facts
    return MatrixUnit(
        machine.peak_flops_per_second[number_format],
        rates.matrix_peak[number_format],
        rates.matrix_fill / ELEMENT_BYTES[number_format],
        facts.tile_rows,
        facts.tile_columns,
        facts.multiprocessors,
        rates.wave_tail,
    )


def tiled_seconds(rows: float, columns: float, depth: float, batch: float, by: MatrixUnit) -> float:
    """Returns the seconds of ``batch`` equal multiplications by the module's formula."""
    tiles = rounded_up(rows / by.tile_rows) * rounded_up(columns / by.tile_columns) * batch
    parts = larger(1.0, smaller(rounded_down(by.units / tiles), rounded_down(depth / LEAST_DEPTH)))
    rounds = wave_rounds(tiles * parts, by.units, by.tail)
    places = 2.0 * by.tile_rows * by.tile_columns * by.units
    sustained = 2.0 * rows * columns * depth * batch / by.share
    return larger(sustained, rounds * places * (depth / parts + by.filling)) / by.peak_flops_per_second


def matrix_seconds(
    rows: float,
    columns: float,
    depth: float,
    batch: float,
    *,
    machine: DeviceMachine,
    number_format: NumberFormat,
) -> float:
    """Returns the seconds in which ``machine`` computes ``batch`` equal multiplications."""
    return tiled_seconds(rows, columns, depth, batch, get_multipliers(machine, number_format))


_ATTENTION_RATES = {
    FusedAttention.FIRST: "attention_first_peak",
    FusedAttention.SECOND: "attention_peak",
    FusedAttention.NATIVE: "attention_native_peak",
}


def _compute_attention_seconds(operator: OperatorWork, machine: DeviceMachine) -> float:
    rates = machine.rates
    share: float = getattr(rates, _ATTENTION_RATES[operator.fused])
    if operator.backward:
        share *= rates.attention_backward
    peak = machine.peak_flops_per_second[operator.number_format] * share
    short = 1.0 + rates.attention_context / operator.context
    narrow = 1.0 + rates.attention_head / operator.columns
    return operator.flops / peak * short * narrow


_MATRICES = frozenset({OperatorKind.GEMM, OperatorKind.GROUPED_GEMM, OperatorKind.CONVOLUTION})
# Enumerations are slow to look up in a loop over operators.
_MEMORY, _GATHER, _GROUPED = OperatorKind.MEMORY, OperatorKind.GATHER, OperatorKind.GROUPED_GEMM
_ATTENTION = OperatorKind.ATTENTION


def operator_seconds(operator: OperatorWork, machine: DeviceMachine) -> OperatorTime:
    """Returns the seconds of ``operator`` on ``machine`` against compute and memory, and of its launches."""
    rates, kind = machine.rates, operator.kind
    launch = operator.kernels * rates.kernel_seconds
    memory = operator.moved_bytes / (machine.bandwidth_bytes_per_second * rates.bandwidth)
    if kind is _MEMORY:
        return OperatorTime(0.0 * memory, memory, launch)
    if kind is _GATHER:
        scattered = memory * (1.0 + rates.gather_row / operator.row_bytes)
        return OperatorTime(0.0 * memory, scattered, launch)
    if kind in _MATRICES:
        compute = operator.kernels * matrix_seconds(
            operator.rows,
            operator.columns,
            operator.depth,
            operator.batch,
            machine=machine,
            number_format=operator.number_format,
        )
        if kind is _GROUPED:
            busiest = 1.0 + rates.expert_variation * operator.deviations
            compute, memory = compute * busiest, memory * busiest
    elif kind is _ATTENTION:
        compute = _compute_attention_seconds(operator, machine)
    else:
        peak = machine.peak_flops_per_second[operator.number_format]
        compute = operator.flops / (peak * rates.scan_peak)
    return OperatorTime(compute, memory, launch)
