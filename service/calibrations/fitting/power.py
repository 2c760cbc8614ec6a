"""Power of a device when idle, under a stream and under products, as planning's formula defines it.

Three loads determine three constants. A context without a kernel is the idle share. A stream adds the active
share and the energy of its bytes: one reading for both, so both are scaled alike. Products add theirs to
that, unless the device draws its limit: then its unlimited power is not known.
"""

from collections.abc import Sequence
from typing import Final

from service.calibrations.fitting.observations import (
    BenchmarkObservation,
    FittedFigure,
    select_work,
    solve_figure,
)
from service.calibrations.sets import build_name
from service.planning.hardware.calibration import PowerQuantity, PowerRates
from service.protocol.work.arithmetic import GEMM_BYTES
from service.protocol.work.device import PowerWork

GEMM_SIDE: Final = 8192
"""Sides of the product that the load `gemm` multiplies."""
_LIMITED: Final = 0.97
"""Share of its limit from which a device counts as limited."""


def compute_power_figures(
    observations: Sequence[BenchmarkObservation],
    *,
    limit_watts: float,
    rates: PowerRates,
    stream_bytes_per_second: float,
    multiplied_flops_per_second: float | None,
) -> list[FittedFigure]:
    """Computes the constants that the loads of a device determine, under ``rates`` until then."""
    loads: dict[str, list[BenchmarkObservation]] = {}
    for one, work in select_work(observations, PowerWork):
        if work.duty == 1.0:
            loads.setdefault(work.load, []).append(one)
    found = solve_figure(
        build_name("power", PowerQuantity.IDLE_SHARE),
        loads.get("context", []),
        lambda _one, watts: watts,
        limit=limit_watts,
        method="draw under a context without a kernel",
    )
    idle = _get_value(found, rates.idle_share * limit_watts)
    streaming = _compute_streaming(loads.get("stream", []), idle, limit_watts, rates, stream_bytes_per_second)
    found += streaming
    active = _get_value(streaming[:1], rates.active_share * limit_watts)
    joules = _get_value(streaming[1:], rates.byte_joules)
    if multiplied_flops_per_second is not None:
        read, written = GEMM_BYTES["bf16"]
        moved = (2.0 * read + written) * GEMM_SIDE**2 * multiplied_flops_per_second / (2.0 * GEMM_SIDE**3)
        found += _compute_matrix_power(loads.get("gemm", []), idle + active + joules * moved, limit_watts)
    return found


def _get_value(drawn: Sequence[FittedFigure], otherwise: float) -> float:
    return drawn[0].figure.value if drawn else otherwise


def _compute_streaming(
    observations: Sequence[BenchmarkObservation],
    idle_watts: float,
    limit_watts: float,
    rates: PowerRates,
    bytes_per_second: float,
) -> list[FittedFigure]:
    """Computes the active share and the energy of a byte, both scaled from the reference by one factor."""
    estimated = rates.active_share * limit_watts + rates.byte_joules * bytes_per_second
    below = [one for one in observations if one.ends[1] < _LIMITED * limit_watts]
    method = "draw of a stream above idle, over what the reference estimates for it"

    def solve_constant(quantity: PowerQuantity, constant: float, limit: float | None) -> list[FittedFigure]:
        def scale_constant(_one: BenchmarkObservation, watts: float) -> float:
            return constant * (watts - idle_watts) / estimated

        return solve_figure(build_name("power", quantity), below, scale_constant, limit=limit, method=method)

    return [
        *solve_constant(PowerQuantity.ACTIVE_SHARE, rates.active_share * limit_watts, limit_watts),
        *solve_constant(PowerQuantity.BYTE_JOULES, rates.byte_joules, None),
    ]


def _compute_matrix_power(
    observations: Sequence[BenchmarkObservation], other_watts: float, limit_watts: float
) -> list[FittedFigure]:
    below = [one for one in observations if one.ends[1] < _LIMITED * limit_watts]
    return solve_figure(
        build_name("power", PowerQuantity.MATRIX_SHARE),
        below,
        lambda _one, watts: watts - other_watts,
        limit=limit_watts,
        method="draw of large products above that of a kernel and of its bytes, below the limit",
    )
