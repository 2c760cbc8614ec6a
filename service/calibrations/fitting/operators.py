"""Operators: rates of large products, streams and fused attention, and the overhead of a kernel.

A constant is computed by inverting the formula of :mod:`service.planning.operators`: the value with which
planning would estimate the measured seconds, given the constants that were computed before it.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

from service.calibrations.fitting.device import FORMATS, FittedDevice
from service.calibrations.fitting.observations import (
    BenchmarkObservation,
    FittedFigure,
    build_rests_on,
    count_runs,
    format_source,
    select_work,
    solve_figure,
)
from service.calibrations.fitting.search import ConstantRange, fit_values
from service.calibrations.sets import build_name
from service.planning.hardware.calibration import OperatorQuantity
from service.planning.hardware.calibration.measured import MeasuredFigure
from service.planning.hardware.calibration.shares import AchievedShare
from service.planning.models.profile import FusedAttention
from service.planning.operators import DeviceMachine, OperatorWork, build_gemm, operator_seconds
from service.planning.precision import NumberFormat
from service.protocol.work.arithmetic import GEMM_BYTES, AttentionWork, GemmWork
from service.protocol.work.memory import StreamWork
from service.protocol.work.products import BlockScaledGemmWork

SKINNY_ROWS: Final = 64
"""A product of fewer rows streams its weights, and does not measure the peak of multiplication."""
LARGE_SIDE: Final = 1024
"""Least sides of a large product without a data sheet; launches do not bound such a product."""
_AS_LARGE: Final = 8.0
"""Large products have at least this fraction of the FLOPs of the largest."""
_TINY: Final = 2.0
"""A kernel whose work takes less than this many times the kernel overhead measures the overhead."""
_LEAST_SHAPES: Final = 4
"""Least shapes by which the filling of tiles and the tail of waves can be told apart."""
_PLAUSIBLE: Final = 2.0
"""Factor by which a fitted constant may lie outside of the reference's own interval."""


class MeasuredProduct(NamedTuple):
    """A measured product, with its operator as planning defines it."""

    observation: BenchmarkObservation
    work: GemmWork
    operator: OperatorWork

    @property
    def number_format(self) -> NumberFormat:
        """Number format of the operands."""
        return self.operator.number_format


def list_products(observations: Sequence[BenchmarkObservation]) -> list[MeasuredProduct]:
    """Returns the matrix products among observations."""
    return [
        MeasuredProduct(one, work, build_operator(work)) for one, work in select_work(observations, GemmWork)
    ]


def build_operator(work: GemmWork) -> OperatorWork:
    """Builds the operator of a product."""
    read, written = GEMM_BYTES[work.dtype]
    shape = (float(work.m), float(work.n), float(work.k))
    return build_gemm("gemm", shape, FORMATS[work.dtype], operand=float(read), result=float(written))


def replace_rates(machine: DeviceMachine, **rates: object) -> DeviceMachine:
    """Returns a machine with some of its constants replaced."""
    return machine._replace(rates=machine.rates._replace(**rates))  # type: ignore[arg-type]


def compute_bandwidth(
    observations: Sequence[BenchmarkObservation], device: FittedDevice
) -> list[FittedFigure]:
    """Computes the bandwidth of streaming kernels: copies and triads, which access memory as operators do."""
    streams = select_work(observations, StreamWork)
    mixed = [one for one, work in streams if work.pattern in ("copy", "triad")]
    beside = device.kernel_seconds

    def solve_rate(one: BenchmarkObservation, seconds: float) -> float | None:
        return one.work.count_work().moved_bytes / (seconds - beside) if seconds > beside else None

    name = build_name("operators", OperatorQuantity.BANDWIDTH)
    method = "bytes over the time without that of a kernel, the middle of copies and triads"
    return solve_figure(
        name, mixed or [one for one, _ in streams], solve_rate, limit=device.bandwidth, method=method
    )


def compute_peaks(
    observations: Sequence[BenchmarkObservation], machine: DeviceMachine | None
) -> list[FittedFigure]:
    """Computes the peak of large products of each format in work that is mixed with other kernels.

    Of the products that nothing else bounds, those with the longest warm-up are used: a device that is still
    cool, or has not yet reached its power limit, is faster than in steady state. A product that the power
    limit holds is slower alone than among kernels that draw less, by a ratio of clocks that is between 1 and
    that of :func:`compute_clock_room`: the figure is the geometric mean, and its interval has both ends.
    """
    by_format: dict[NumberFormat, list[MeasuredProduct]] = {}
    for one in list_products(observations):
        by_format.setdefault(one.number_format, []).append(one)
    beside = machine.rates.kernel_seconds if machine else 0.0

    def solve_rate(one: BenchmarkObservation, seconds: float) -> float | None:
        return one.work.count_work().flops / (seconds - beside) if seconds > beside else None

    found = []
    for number_format, of_format in by_format.items():
        peak = machine.peak_flops_per_second.get(number_format) if machine else None
        large = [one for one in of_format if _is_large(one, machine if peak else None)]
        longest = max((one.observation.warmup_seconds for one in large), default=0.0)
        warm = [one for one in large if one.observation.warmup_seconds == longest]
        most = max((one.operator.flops for one in warm), default=0.0)
        used = [one.observation for one in warm if one.operator.flops >= most / _AS_LARGE]
        name = build_name("operators", OperatorQuantity.MATRIX_PEAK, number_format)
        method = "FLOPs over the time without that of a kernel, of large products warmed longest"
        of_alone = solve_figure(name, used, solve_rate, limit=peak, method=method)
        found += [_widen_by_clock(each, used, observations) for each in of_alone]
    scaled = list_scaled_products(observations, "nvfp4")
    peak = machine.peak_flops_per_second.get(NumberFormat.FP4) if machine else None
    name = build_name("operators", OperatorQuantity.MATRIX_PEAK, NumberFormat.FP4)
    method = "FLOPs over the time without that of a kernel, of large products with scales warmed longest"
    of_alone = solve_figure(name, scaled, solve_rate, limit=peak, method=method)
    return found + [_widen_by_clock(each, scaled, observations) for each in of_alone]


def compute_clock_room(one: BenchmarkObservation, observations: Sequence[BenchmarkObservation]) -> float:
    """Computes the highest clock of a device over that at which the power limit held a benchmark.

    Returns 1 where nothing held it or a clock is unknown. Clocks are medians, in Hz.
    """
    clock, held = (one.conditions.get(name, 0.0) for name in ("sm_clock_hz", "throttle_sw_power_cap_seconds"))
    if not (isinstance(clock, float) and isinstance(held, float) and clock and held):
        return 1.0
    clocks = [each.conditions.get("sm_clock_hz") for each in observations]
    return max(clock, *(each for each in clocks if isinstance(each, float))) / clock


def compute_mixed_clock(one: BenchmarkObservation, observations: Sequence[BenchmarkObservation]) -> float:
    """Computes the clock that is expected in mixed work over that at which a benchmark was held."""
    return math.sqrt(compute_clock_room(one, observations))


def _widen_by_clock(
    fitted: FittedFigure,
    used: Sequence[BenchmarkObservation],
    observations: Sequence[BenchmarkObservation],
) -> FittedFigure:
    """Returns the peak of products as that of mixed work, up to the rate at the highest clock."""
    room, mixed = (
        median(compute(one, observations) for one in used)
        for compute in (compute_clock_room, compute_mixed_clock)
    )
    figure = fitted.figure
    if room == 1.0 or not isinstance(figure, MeasuredFigure):
        return fitted
    return fitted._replace(figure=figure._replace(value=figure.value * mixed, high=figure.high * room))


def list_scaled_products(
    observations: Sequence[BenchmarkObservation], number_format: str
) -> list[BenchmarkObservation]:
    """Returns the large products of a format of scaled blocks that were warmed longest."""
    large = [
        one
        for one, work in select_work(observations, BlockScaledGemmWork)
        if work.number_format == number_format and min(work.m, work.n, work.k) >= LARGE_SIDE
    ]
    longest = max((one.warmup_seconds for one in large), default=0.0)
    return [one for one in large if one.warmup_seconds == longest]


def _is_large(one: MeasuredProduct, machine: DeviceMachine | None) -> bool:
    """Returns true if neither tiles nor bytes nor the launch bound a product."""
    work = one.work
    if machine is None:
        return min(work.m, work.n, work.k) >= LARGE_SIDE
    if work.m < SKINNY_ROWS:
        return False
    unlimited = replace_rates(machine, matrix_peak=dict.fromkeys(machine.rates.matrix_peak, 1.0))
    other = operator_seconds(one.operator, unlimited)
    share = machine.rates.matrix_peak[one.number_format]
    sustained = one.operator.flops / (machine.peak_flops_per_second[one.number_format] * share)
    return sustained >= max(other.compute_seconds, other.memory_seconds)


_TENSOR_FORMATS: Final = frozenset({NumberFormat.BF16, NumberFormat.FP16, NumberFormat.FP8})
"""Formats that are multiplied in the tiles of planning's formula."""


def _is_tiled(one: MeasuredProduct, machine: DeviceMachine) -> bool:
    """Returns true if tiles bound a product, and neither the sustained peak nor bytes."""
    known = one.number_format in _TENSOR_FORMATS & machine.peak_flops_per_second.keys()
    if not known or one.work.m < SKINNY_ROWS or _is_large(one, machine):
        return False
    time = operator_seconds(one.operator, machine)
    return time.compute_seconds > time.memory_seconds


def compute_kernel_seconds(
    observations: Sequence[BenchmarkObservation], machine: DeviceMachine
) -> list[FittedFigure]:
    """Computes the overhead of a kernel from products so small that it is most of their time.

    An empty kernel would not measure it: the overhead includes first loads and last stores.
    """
    tiny = []
    for one in list_products(observations):
        if one.number_format in _TENSOR_FORMATS & machine.peak_flops_per_second.keys():
            time = operator_seconds(one.operator, machine)
            if max(time.compute_seconds, time.memory_seconds) < _TINY * machine.rates.kernel_seconds:
                tiny.append(one.observation)

    def solve_overhead(one: BenchmarkObservation, seconds: float) -> float | None:
        if not isinstance(one.work, GemmWork):
            return None
        time = operator_seconds(build_operator(one.work), machine)
        left = seconds - max(time.compute_seconds, time.memory_seconds)
        return left if left > 0.0 else None

    name = build_name("operators", OperatorQuantity.KERNEL_SECONDS)
    method = "time of small products without that of their tiles and bytes"
    return solve_figure(name, tiny, solve_overhead, limit=None, method=method)


SHAPED: Final = (
    OperatorQuantity.MATRIX_FILL,
    OperatorQuantity.WAVE_TAIL,
    OperatorQuantity.KERNEL_SECONDS,
)


def fit_shapes(
    observations: Sequence[BenchmarkObservation],
    machine: DeviceMachine,
    reference: Mapping[OperatorQuantity, AchievedShare],
) -> list[FittedFigure]:
    """Fits the constants of tiles, waves and kernel starts to products of all shapes.

    Small and medium products show all three at once, so that none can be computed before the others. A value
    at the end of its plausible range is discarded: something else slowed the products.
    """
    used = [one for one in list_products(observations) if _is_tiled(one, machine)]
    if len({(one.work.m, one.work.n, one.work.k) for one in used}) < _LEAST_SHAPES:
        return []
    ranges = {
        quantity.value: ConstantRange(share.low / _PLAUSIBLE, share.value, share.high * _PLAUSIBLE)
        for quantity, share in reference.items()
    }
    tail = ranges[OperatorQuantity.WAVE_TAIL.value]
    ranges[OperatorQuantity.WAVE_TAIL.value] = tail._replace(high=1.0)

    def compute_residuals(values: Mapping[str, float]) -> list[float]:
        tried = replace_rates(machine, **values)
        return [
            math.log(operator_seconds(one.operator, tried).seconds / one.observation.seconds) for one in used
        ]

    found = fit_values(ranges, compute_residuals)
    bounded = (OperatorQuantity.MATRIX_FILL.value, OperatorQuantity.KERNEL_SECONDS.value)
    if not all(ranges[name].is_inside(found[name]) for name in bounded):
        return []
    observed = [one.observation for one in used]
    runs, source = count_runs(observed), format_source(observed)
    rest = build_rests_on(
        observed, "the values with which the time of products of all shapes is estimated best"
    )
    return [
        FittedFigure(
            build_name("operators", quantity),
            MeasuredFigure(*_build_interval(found[quantity.value], share), runs, None, source),
            rest,
        )
        for quantity, share in reference.items()
    ]


def _build_interval(value: float, share: AchievedShare) -> tuple[float, float, float]:
    """Returns a fitted value with the relative interval of the reference.

    Shapes of one device do not narrow it.
    """
    return value * share.low / share.value, value, value * share.high / share.value


_OLDER: Final = frozenset({"volta", "turing", "ampere", "ada"})
"""Generations that FlashAttention-2 was written for."""
_RELEASES: Final[Mapping[str, FusedAttention]] = {
    "cudnn": FusedAttention.NATIVE,
    "flashinfer": FusedAttention.NATIVE,
    "flash3": FusedAttention.NATIVE,
    "flash": FusedAttention.SECOND,
}
"""Release of the kernels of a back end, in the order in which back ends are preferred."""


def compute_attention(
    observations: Sequence[BenchmarkObservation], machine: DeviceMachine, generation: str
) -> list[FittedFigure]:
    """Computes the peak of fused prefill kernels for long rows and wide heads, by release of the kernel.

    The worker's own kernel is in no framework, so that its rate is not used.
    """
    native = {FusedAttention.NATIVE}
    if generation in _OLDER:
        native.add(FusedAttention.SECOND)
    found = [
        *_compute_attention_rate(
            observations, machine, OperatorQuantity.ATTENTION_PEAK, {FusedAttention.SECOND}
        ),
        *_compute_attention_rate(observations, machine, OperatorQuantity.ATTENTION_NATIVE_PEAK, native),
    ]
    return [*found, *_compute_backward_share(observations, machine, found)]


def _compute_attention_rate(
    observations: Sequence[BenchmarkObservation],
    machine: DeviceMachine,
    quantity: OperatorQuantity,
    releases: set[FusedAttention],
) -> list[FittedFigure]:
    peak = machine.peak_flops_per_second.get(NumberFormat.BF16)
    by_back_end: dict[str, list[BenchmarkObservation]] = {}
    for one, work in _select_plain_attention(observations, "prefill"):
        by_back_end.setdefault(work.back_end, []).append(one)
    back_ends = [each for each, release in _RELEASES.items() if release in releases and each in by_back_end]
    used = by_back_end[back_ends[0]] if back_ends and peak else []
    method = "FLOPs over the time without that of a kernel, as for endless rows and heads"

    def solve_rate(one: BenchmarkObservation, seconds: float) -> float | None:
        return _solve_attention_rate(one, seconds, machine)

    return solve_figure(build_name("operators", quantity), used, solve_rate, limit=peak, method=method)


def _compute_backward_share(
    observations: Sequence[BenchmarkObservation], machine: DeviceMachine, forward: Sequence[FittedFigure]
) -> list[FittedFigure]:
    """Computes the rate of the backward kernel over that of the forward one, as measured or as known."""
    native = build_name("operators", OperatorQuantity.ATTENTION_NATIVE_PEAK)
    measured = [each.figure.value for each in forward if each.name == native]
    peak = machine.peak_flops_per_second.get(NumberFormat.BF16, 0.0)
    of_forward = measured[0] if measured else peak * machine.rates.attention_native_peak
    used = [one for one, _ in _select_plain_attention(observations, "backward")] if of_forward else []

    def solve_share(one: BenchmarkObservation, seconds: float) -> float | None:
        rate = _solve_attention_rate(one, seconds, machine)
        return rate and rate / of_forward

    name = build_name("operators", OperatorQuantity.ATTENTION_BACKWARD)
    method = "rate of the gradients of attention over that of attention"
    return solve_figure(name, used, solve_share, limit=None, method=method)


def _select_plain_attention(
    observations: Sequence[BenchmarkObservation], phase: str
) -> list[tuple[BenchmarkObservation, AttentionWork]]:
    """Returns attention of bf16 with heads of one size, by the back ends of frameworks."""
    return [
        (one, work)
        for one, work in select_work(observations, AttentionWork)
        if work.phase == phase and work.dtype == "bf16" and work.back_end in _RELEASES
        if work.values == work.head_size
    ]


def _solve_attention_rate(one: BenchmarkObservation, seconds: float, machine: DeviceMachine) -> float | None:
    """Returns the FLOP/s of an execution as they would be for endless rows and heads."""
    if not isinstance(one.work, AttentionWork):
        return None
    left, rates = seconds - machine.rates.kernel_seconds, machine.rates
    short = 1.0 + rates.attention_context / (one.work.context_tokens / 2.0)
    narrow = 1.0 + rates.attention_head / one.work.head_size
    return one.work.count_work().flops / left * short * narrow if left > 0.0 else None
