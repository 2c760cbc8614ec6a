"""What a device draws: idle, under a stream and under multiplications, as the formula of power takes it.

Three loads tell three things. A context without a kernel is the idle share. A stream adds what any kernel
adds and the energy of its bytes: one reading for both, so both are scaled alike. Multiplications add theirs
to that, unless the device draws its limit: then what it would have drawn is not known.
"""

from collections.abc import Sequence
from typing import Final

from service.calibrations.drawing.observations import Figure, Observation, having, solved
from service.calibrations.sets import name_of
from service.planning.hardware.calibration import PowerQuantity, PowerRates
from service.protocol.work import GEMM_BYTES, Power

GEMM_SIDE: Final = 8192
"""Sides of the product that the load `gemm` multiplies."""
_LIMITED: Final = 0.97
"""A device that draws so much of its limit is held there."""


def power(
    observations: Sequence[Observation],
    *,
    limit_watts: float,
    rates: PowerRates,
    stream_bytes_per_second: float,
    multiplied_flops_per_second: float | None,
) -> list[Figure]:
    """The constants that the loads of a device tell, under ``rates`` until others are drawn."""
    loads: dict[str, list[Observation]] = {}
    for one, work in having(observations, Power):
        if work.duty == 1.0:
            loads.setdefault(work.load, []).append(one)
    found = solved(
        name_of("power", PowerQuantity.IDLE_SHARE),
        loads.get("context", []),
        lambda _one, watts: watts,
        limit=limit_watts,
        method="draw under a context without a kernel",
    )
    idle = _value(found, rates.idle_share * limit_watts)
    streaming = _streaming(loads.get("stream", []), idle, limit_watts, rates, stream_bytes_per_second)
    found += streaming
    active = _value(streaming[:1], rates.active_share * limit_watts)
    joules = _value(streaming[1:], rates.byte_joules)
    if multiplied_flops_per_second is not None:
        read, written = GEMM_BYTES["bf16"]
        moved = (2.0 * read + written) * GEMM_SIDE**2 * multiplied_flops_per_second / (2.0 * GEMM_SIDE**3)
        found += _multiplying(loads.get("gemm", []), idle + active + joules * moved, limit_watts)
    return found


def _value(drawn: Sequence[Figure], otherwise: float) -> float:
    return drawn[0].figure.value if drawn else otherwise


def _streaming(
    observations: Sequence[Observation],
    idle_watts: float,
    limit_watts: float,
    rates: PowerRates,
    bytes_per_second: float,
) -> list[Figure]:
    """What any kernel adds, and the energy of a byte, both over the reference by the same factor."""
    estimated = rates.active_share * limit_watts + rates.byte_joules * bytes_per_second
    below = [one for one in observations if one.ends[1] < _LIMITED * limit_watts]
    method = "draw of a stream above idle, over what the reference estimates for it"

    def drawn(quantity: PowerQuantity, constant: float, limit: float | None) -> list[Figure]:
        def scaled(_one: Observation, watts: float) -> float:
            return constant * (watts - idle_watts) / estimated

        return solved(name_of("power", quantity), below, scaled, limit=limit, method=method)

    return [
        *drawn(PowerQuantity.ACTIVE_SHARE, rates.active_share * limit_watts, limit_watts),
        *drawn(PowerQuantity.BYTE_JOULES, rates.byte_joules, None),
    ]


def _multiplying(observations: Sequence[Observation], other_watts: float, limit_watts: float) -> list[Figure]:
    below = [one for one in observations if one.ends[1] < _LIMITED * limit_watts]
    return solved(
        name_of("power", PowerQuantity.MATRIX_SHARE),
        below,
        lambda _one, watts: watts - other_watts,
        limit=limit_watts,
        method="draw of large products above that of a kernel and of its bytes, below the limit",
    )
