"""Operators: what large multiplications, streams and fused attention reach, and what a kernel costs beside.

A constant is drawn by turning the formula of :mod:`service.planning.operators` around: the value with which
planning would estimate the seconds that were measured, under what has been drawn before it.
"""

import math
from collections.abc import Mapping, Sequence
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
from service.protocol.work import GEMM_BYTES, AttentionWork, GemmWork, StreamWork

SKINNY_ROWS: Final = 64
"""A product of fewer rows streams its weights, so that it says nothing of multipliers."""
LARGE_SIDE: Final = 1024
"""Without a data sheet nobody can say what bounds a product; one with such sides is no matter of launches."""
_AS_LARGE: Final = 8.0
"""A product of so many times fewer FLOPs than the largest is none of the large ones."""
_TINY: Final = 2.0
"""A kernel whose work takes less than so many times the seconds of a kernel tells those."""
_LEAST_SHAPES: Final = 4
"""Shapes from which the filling of tiles and the tail of waves can be told apart."""
_PLAUSIBLE: Final = 2.0
"""How far beyond the reference's own interval a fitted constant may lie."""


class MeasuredProduct(NamedTuple):
    """A product that was measured, as planning sees it."""

    observation: BenchmarkObservation
    work: GemmWork
    operator: OperatorWork

    @property
    def number_format(self) -> NumberFormat:
        """What it multiplies."""
        return self.operator.number_format


def list_products(observations: Sequence[BenchmarkObservation]) -> list[MeasuredProduct]:
    """The products of matrices among observations."""
    return [
        MeasuredProduct(one, work, build_operator(work)) for one, work in select_work(observations, GemmWork)
    ]


def build_operator(work: GemmWork) -> OperatorWork:
    """A product as an operator."""
    read, written = GEMM_BYTES[work.dtype]
    shape = (float(work.m), float(work.n), float(work.k))
    return build_gemm("gemm", shape, FORMATS[work.dtype], operand=float(read), result=float(written))


def replace_rates(machine: DeviceMachine, **rates: object) -> DeviceMachine:
    """A machine some of whose constants are others."""
    return machine._replace(rates=machine.rates._replace(**rates))  # type: ignore[arg-type]


def compute_bandwidth(
    observations: Sequence[BenchmarkObservation], device: FittedDevice
) -> list[FittedFigure]:
    """What streaming kernels reach: copies and triads, which read and write as operators do."""
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
    """What large multiplications of each format sustain under the power limit.

    Of those that nothing else bounds the ones that were warmed longest: a device that is still cool, or that
    has not yet reached its limit, is faster than one that goes on.
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
        found += solve_figure(name, used, solve_rate, limit=peak, method=method)
    return found


def _is_large(one: MeasuredProduct, machine: DeviceMachine | None) -> bool:
    """Whether neither tiles nor bytes nor the launch bound a product."""
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
"""What is multiplied in the tiles that planning counts with."""


def _is_tiled(one: MeasuredProduct, machine: DeviceMachine) -> bool:
    """Whether tiles bound a product, and neither what is sustained nor bytes."""
    known = one.number_format in _TENSOR_FORMATS & machine.peak_flops_per_second.keys()
    if not known or one.work.m < SKINNY_ROWS or _is_large(one, machine):
        return False
    time = operator_seconds(one.operator, machine)
    return time.compute_seconds > time.memory_seconds


def compute_kernel_seconds(
    observations: Sequence[BenchmarkObservation], machine: DeviceMachine
) -> list[FittedFigure]:
    """What a kernel costs beside its work, of products so small that it is most of their time.

    An empty kernel would not say it: this counts first loads and last stores too.
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
    """How tiles fill, waves end and kernels start: the values that fit products of all shapes best.

    Small and middling products show all three at once, so that none is drawn before the others. A value at
    the end of what is plausible is none: something else slowed the products.
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
    """A fitted value with the interval of the reference: shapes of one device do not narrow it."""
    return value * share.low / share.value, value, value * share.high / share.value


_OLDER: Final = frozenset({"volta", "turing", "ampere", "ada"})
"""Generations that FlashAttention-2 was written for."""
_RELEASES: Final[Mapping[str, FusedAttention]] = {
    "flash": FusedAttention.SECOND,
    "cudnn": FusedAttention.NATIVE,
}


def compute_attention(
    observations: Sequence[BenchmarkObservation], machine: DeviceMachine, generation: str
) -> list[FittedFigure]:
    """What fused kernels of prompts reach for long rows and wide heads, by the release that they are of.

    The worker's own kernel is in no framework, so that it says nothing of what one reaches.
    """
    native = {FusedAttention.NATIVE}
    if generation in _OLDER:
        native.add(FusedAttention.SECOND)
    return [
        *_compute_attention_rate(
            observations, machine, OperatorQuantity.ATTENTION_PEAK, {FusedAttention.SECOND}
        ),
        *_compute_attention_rate(observations, machine, OperatorQuantity.ATTENTION_NATIVE_PEAK, native),
    ]


def _compute_attention_rate(
    observations: Sequence[BenchmarkObservation],
    machine: DeviceMachine,
    quantity: OperatorQuantity,
    releases: set[FusedAttention],
) -> list[FittedFigure]:
    peak = machine.peak_flops_per_second.get(NumberFormat.BF16)
    rates = machine.rates
    used = [
        one
        for one, work in select_work(observations, AttentionWork)
        if work.phase == "prefill" and work.dtype == "bf16" and _RELEASES.get(work.back_end) in releases
    ]

    def solve_rate(one: BenchmarkObservation, seconds: float) -> float | None:
        if not isinstance(one.work, AttentionWork):
            return None
        left = seconds - rates.kernel_seconds
        short = 1.0 + rates.attention_context / (one.work.context_tokens / 2.0)
        narrow = 1.0 + rates.attention_head / one.work.head_size
        return one.work.count_work().flops / left * short * narrow if left > 0.0 else None

    method = "FLOPs over the time without that of a kernel, as for endless rows and heads"
    return solve_figure(
        build_name("operators", quantity), used if peak else [], solve_rate, limit=peak, method=method
    )
