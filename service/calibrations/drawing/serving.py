"""What serving reads: weights that few rows are multiplied with, and the cache of a decoding sequence."""

from collections.abc import Sequence
from typing import Final

from service.calibrations.drawing.device import Device
from service.calibrations.drawing.observations import Figure, Observation, Solve, having, solved
from service.calibrations.sets import name_of
from service.planning.hardware.calibration import ServingQuantity
from service.protocol.work import GEMM_BYTES, Attention, Gemm

_MOST_ROWS: Final = 16
"""A product of so few rows is bound by its weights on any device."""
_LEAST_WEIGHT_BYTES: Final = 2**26
"""More than the last-level cache of a device holds beside what else it reads."""
_LIBRARIES: Final = frozenset({"flash", "cudnn", "efficient"})


def weight_bandwidth(
    observations: Sequence[Observation], device: Device, beside_seconds: float
) -> list[Figure]:
    """Rate at which matrices stream weights of 16 bits, or of 32 where a device has none of 16."""
    skinny = [
        (one, work)
        for one, work in having(observations, Gemm)
        if work.m <= _MOST_ROWS and GEMM_BYTES[work.dtype][0] * work.n * work.k >= _LEAST_WEIGHT_BYTES
    ]
    narrow = [one for one, work in skinny if work.dtype in ("bf16", "fp16")]
    used = narrow or [one for one, work in skinny if work.dtype == "fp32"]
    name = name_of("serving", ServingQuantity.WEIGHT_BANDWIDTH)
    method = f"bytes over the time without that of a kernel, of products of at most {_MOST_ROWS} rows"
    return solved(name, used, _rate(beside_seconds), limit=device.bandwidth, method=method)


def cache_bandwidth(
    observations: Sequence[Observation], device: Device, beside_seconds: float
) -> list[Figure]:
    """Rate at which attention reads a cache, by the fastest of the kernels that frameworks have.

    An engine chooses among such kernels; the worker's own is in none of them.
    """
    decoding = [
        (one, work)
        for one, work in having(observations, Attention)
        if work.phase == "decode" and work.back_end in _LIBRARIES
    ]
    by_work: dict[tuple[object, ...], Observation] = {}
    for one, work in decoding:
        shape = tuple(work.model_dump(exclude={"back_end"}).values())
        fastest = by_work.setdefault(shape, one)
        if one.seconds < fastest.seconds:
            by_work[shape] = one
    name = name_of("serving", ServingQuantity.CACHE_BANDWIDTH)
    method = "bytes of keys and values over the time without that of a kernel, by the fastest back end"
    used = list(by_work.values())
    return solved(name, used, _rate(beside_seconds), limit=device.bandwidth, method=method)


def _rate(beside_seconds: float) -> Solve:
    def rate(one: Observation, seconds: float) -> float | None:
        moved = one.work.amount().moved_bytes
        return moved / (seconds - beside_seconds) if seconds > beside_seconds else None

    return rate
