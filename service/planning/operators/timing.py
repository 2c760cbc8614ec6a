"""Seconds of an operator on a device: the longer of compute and memory, and its launches.

A matrix multiplication is cut into tiles of the result, one a multiprocessor at a time. Tiles that the edge
cuts and places that the last wave leaves idle take time as full ones do (tile and wave quantization: NVIDIA,
Matrix Multiplication Background User's Guide, section 4); before a tile multiplies at its full rate its
pipeline fills, as if it were some elements deeper; the smaller a tile, the more operands it loads for each
multiplication. The kernel takes the tile that is fastest (as the heuristics of cuBLAS do):

    waves   = ceil(m / tm) ceil(n / tn) batch / SM
    rounds  = waves + tail (ceil(waves) - waves)
    seconds = rounds SM 2 tm tn (k + fill) / (share peak) (1 + side (tm + tn) / (2 tm tn))

with the share of the peak that the power limit sustains. Shares of 1 and all else at 0 leave the roofline.
"""

from service.planning.figures import rounded_up, smaller
from service.planning.operators.kinds import Operator, OperatorKind, OperatorTime
from service.planning.operators.machine import Machine
from service.planning.precision import NumberFormat

TILES = ((256.0, 128.0), (128.0, 128.0), (64.0, 64.0))
"""Rows and columns of the tiles that libraries build their kernels from (CUTLASS: 256 x 128, 128 x 128 and
64 x 64 are in the default set of every generation since Volta)."""


def wave_rounds(tiles: float, multiprocessors: float, tail: float = 1.0) -> float:
    """Rounds in which ``multiprocessors`` work off ``tiles``; idle places of the last count by ``tail``."""
    waves = tiles / multiprocessors
    return waves + tail * (rounded_up(waves) - waves)


def matrix_seconds(
    rows: float,
    columns: float,
    depth: float,
    batch: float,
    *,
    machine: Machine,
    number_format: NumberFormat,
) -> float:
    """Seconds in which the multipliers of ``machine`` work on ``batch`` equal multiplications."""
    rates, units = machine.rates, machine.multiprocessors
    share, fill = rates.matrix[number_format]
    rate = machine.peak_flops_per_second[number_format] * share / units
    tail, side = rates.wave_tail, rates.tile_side
    best = 0.0
    for number, (tile_rows, tile_columns) in enumerate(TILES):
        tiles = rounded_up(rows / tile_rows) * rounded_up(columns / tile_columns) * batch
        area = tile_rows * tile_columns
        feeding = 1.0 + side * (tile_rows + tile_columns) / (2.0 * area)
        seconds = wave_rounds(tiles, units, tail) * (2.0 * area * feeding)
        best = smaller(best, seconds) if number else seconds
    return best * (depth + fill) / rate


def _attention_seconds(operator: Operator, machine: Machine) -> float:
    rates = machine.rates
    share = rates.attention_peak
    if operator.backward:
        share *= rates.attention_backward
    peak = machine.peak_flops_per_second[operator.number_format] * share
    short = 1.0 + rates.attention_context / operator.context
    narrow = 1.0 + rates.attention_head / operator.columns
    return operator.flops / peak * short * narrow


def operator_seconds(operator: Operator, machine: Machine) -> OperatorTime:
    """Seconds of ``operator`` on ``machine`` against compute and memory, and of its launches."""
    rates = machine.rates
    bandwidth = machine.bandwidth_bytes_per_second * rates.bandwidth
    launch = operator.kernels * rates.kernel_seconds
    memory = operator.moved_bytes / bandwidth
    match operator.kind:
        case OperatorKind.GEMM | OperatorKind.GROUPED_GEMM | OperatorKind.CONVOLUTION:
            compute = operator.kernels * matrix_seconds(
                operator.rows,
                operator.columns,
                operator.depth,
                operator.batch,
                machine=machine,
                number_format=operator.number_format,
            )
            if operator.kind is OperatorKind.GROUPED_GEMM:
                busiest = 1.0 + rates.expert_variation * operator.deviations
                compute, memory = compute * busiest, memory * busiest
        case OperatorKind.ATTENTION:
            compute = _attention_seconds(operator, machine)
        case OperatorKind.SCAN:
            peak = machine.peak_flops_per_second[operator.number_format]
            compute = operator.flops / (peak * rates.scan_peak)
        case OperatorKind.GATHER:
            compute = 0.0 * memory
            memory = memory * (1.0 + rates.gather_row / operator.row_bytes)
        case _:
            compute = 0.0 * memory
    return OperatorTime(compute, memory, launch)
