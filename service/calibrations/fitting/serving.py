"""Rates of serving: streaming of weights in products of few rows, and reading of the cache in decoding."""

from collections.abc import Sequence
from typing import Final

from pydantic import MISSING

from service.calibrations.fitting.device import FittedDevice
from service.calibrations.fitting.observations import (
    BenchmarkObservation,
    FigureSolver,
    FittedFigure,
    select_work,
    solve_figure,
)
from service.calibrations.fitting.operators import compute_mixed_clock, list_scaled_products
from service.calibrations.sets import build_name
from service.planning.hardware.calibration import ServingQuantity
from service.planning.operators import DeviceMachine
from service.planning.precision import NumberFormat
from service.protocol.work.arithmetic import GEMM_BYTES, AttentionWork, GemmWork
from service.protocol.work.products import GroupedGemmWork, WeightOnlyGemmWork

_MOST_ROWS: Final = 16
"""Most rows of a product that is bound by its weights on any device."""
_LEAST_WEIGHT_BYTES: Final = 2**26
"""Least weights in bytes; more than the last-level cache of a device."""
_LIBRARIES: Final = frozenset({"cudnn", "flashinfer", "flash3", "flash", "efficient"})


def compute_weight_bandwidth(
    observations: Sequence[BenchmarkObservation], device: FittedDevice, beside_seconds: float
) -> list[FittedFigure]:
    """Computes the rate at which products stream weights of 16 bits, or of 32 if there are none of 16."""
    skinny = [
        (one, work)
        for one, work in select_work(observations, GemmWork)
        if work.m <= _MOST_ROWS and GEMM_BYTES[work.dtype][0] * work.n * work.k >= _LEAST_WEIGHT_BYTES
    ]
    narrow = [one for one, work in skinny if work.dtype in ("bf16", "fp16")]
    used = narrow or [one for one, work in skinny if work.dtype == "fp32"]
    name = build_name("serving", ServingQuantity.WEIGHT_BANDWIDTH)
    method = f"bytes over the time without that of a kernel, of products of at most {_MOST_ROWS} rows"
    return solve_figure(name, used, _build_rate_solver(beside_seconds), limit=device.bandwidth, method=method)


def compute_expert_bandwidth(
    observations: Sequence[BenchmarkObservation], device: FittedDevice, beside_seconds: float
) -> list[FittedFigure]:
    """Computes the rate at which grouped products of few rows stream the weights of experts."""
    used = [
        one
        for one, work in select_work(observations, GroupedGemmWork)
        if work.m <= _MOST_ROWS and 2 * work.groups * work.n * work.k >= _LEAST_WEIGHT_BYTES
    ]
    name = build_name("serving", ServingQuantity.EXPERT_BANDWIDTH)
    method = f"bytes over the time without that of a kernel, of experts of at most {_MOST_ROWS} rows each"
    return solve_figure(name, used, _build_rate_solver(beside_seconds), limit=device.bandwidth, method=method)


def compute_cache_bandwidth(
    observations: Sequence[BenchmarkObservation], device: FittedDevice, beside_seconds: float
) -> list[FittedFigure]:
    """Computes the rate at which attention reads a cache, by the fastest kernel of frameworks.

    An engine chooses among such kernels; the worker's own is in none of them. Caches in pages are used where
    any was measured, because those of engines are.
    """
    known = [
        (one, work)
        for one, work in select_work(observations, AttentionWork)
        if work.phase == "decode" and work.back_end in _LIBRARIES
        if work.dtype != "fp8_e4m3" and not work.shares_latent
    ]
    decoding = [pair for pair in known if pair[1].page_tokens is not MISSING] or known
    by_work: dict[tuple[object, ...], BenchmarkObservation] = {}
    for one, work in decoding:
        shape = tuple(work.model_dump(exclude={"back_end"}).values())
        fastest = by_work.setdefault(shape, one)
        if one.seconds < fastest.seconds:
            by_work[shape] = one
    name = build_name("serving", ServingQuantity.CACHE_BANDWIDTH)
    method = "bytes of keys and values over the time without that of a kernel, by the fastest back end"
    used = list(by_work.values())
    return solve_figure(name, used, _build_rate_solver(beside_seconds), limit=device.bandwidth, method=method)


def compute_widened_bandwidth(
    observations: Sequence[BenchmarkObservation],
    device: FittedDevice,
    machine: DeviceMachine,
    of_others: float,
) -> list[FittedFigure]:
    """Computes the rate at which weights of 4 bits stream that are widened, over that of other weights.

    ``of_others`` is in bytes per second. The kernel is the worker's own: what is below all that is plausible
    of a device is the kernel's, and is not used.
    """
    name = build_name("serving", ServingQuantity.WIDENED_BANDWIDTH)
    used = [
        one
        for one, work in select_work(observations, WeightOnlyGemmWork)
        if work.n * work.k // 2 >= _LEAST_WEIGHT_BYTES
    ]

    def solve_ratio(one: BenchmarkObservation, seconds: float) -> float | None:
        left = seconds - machine.rates.kernel_seconds
        return one.work.count_work().moved_bytes / left / of_others if left > 0.0 else None

    method = "rate of products with weights of 4 bits over that of products of as few rows"
    found = solve_figure(name, used, solve_ratio, limit=None, method=method)
    least = device.reference.serving.find_share(ServingQuantity.WIDENED_BANDWIDTH, None).low
    return [each for each in found if each.figure.value >= least]


def compute_scaled_share(
    observations: Sequence[BenchmarkObservation], machine: DeviceMachine
) -> list[FittedFigure]:
    """Computes the rate of products of 8 bits with a scale for each block over that of others of 8 bits.

    Blocks of 128 x 128, whose sums are scaled outside of the multipliers, come before those of 32 elements,
    whose scales the multipliers of newer devices apply.
    """
    peak = machine.peak_flops_per_second.get(NumberFormat.FP8)
    if peak is None:
        return []
    of_others = peak * machine.rates.matrix_peak[NumberFormat.FP8]
    used = list_scaled_products(observations, "fp8_blocks") or list_scaled_products(observations, "mxfp8")

    def solve_share(one: BenchmarkObservation, seconds: float) -> float | None:
        left = seconds - machine.rates.kernel_seconds
        # Peaks are those of mixed work, in which the power limit leaves a higher clock.
        rate = one.work.count_work().flops * compute_mixed_clock(one, observations)
        return rate / left / of_others if left > 0.0 else None

    name = build_name("serving", ServingQuantity.SCALED_SHARE)
    method = "rate of large products of 8 bits with scales of blocks over that of others, warmed longest"
    return solve_figure(name, used, solve_share, limit=None, method=method)


def _build_rate_solver(beside_seconds: float) -> FigureSolver:
    def solve_rate(one: BenchmarkObservation, seconds: float) -> float | None:
        moved = one.work.count_work().moved_bytes
        return moved / (seconds - beside_seconds) if seconds > beside_seconds else None

    return solve_rate
