"""Bus bandwidth of a collective, as tests of NCCL print it."""

from collections.abc import Callable, Mapping
from typing import Final

from service.planning.hardware.collectives.kinds import Collective

BUS_FACTORS: Final[Mapping[Collective, Callable[[float], float]]] = {
    Collective.ALL_REDUCE: lambda devices: 2.0 * (devices - 1.0) / devices,
    Collective.ALL_GATHER: lambda devices: (devices - 1.0) / devices,
    Collective.REDUCE_SCATTER: lambda devices: (devices - 1.0) / devices,
    Collective.ALL_TO_ALL: lambda devices: (devices - 1.0) / devices,
    Collective.BROADCAST: lambda _devices: 1.0,
    Collective.POINT_TO_POINT: lambda _devices: 1.0,
}


def bus_bandwidth(kind: Collective, message_bytes: float, devices: float, seconds: float) -> float:
    """Returns the bytes per second that a ring would send in this time, as NCCL's tests print a collective.

    The message over the time, by 2 (n - 1) / n for an all-reduce, (n - 1) / n for gathers, scatters and
    all-to-all, 1 for a broadcast (nccl-tests, PERFORMANCE.md).
    """
    return message_bytes / seconds * BUS_FACTORS[kind](devices)
