"""Both limits of a device, and which of them sets a time (Williams, Waterman and Patterson 2009)."""

from enum import StrEnum
from typing import NamedTuple

from service.planning.operators.kinds import OperatorWork
from service.planning.operators.machine import DeviceMachine
from service.planning.operators.timing import operator_seconds
from service.planning.quantity import Quantity


class TimeBound(StrEnum):
    """The limit that sets a time."""

    COMPUTE = "compute"
    MEMORY = "memory"
    COMMUNICATION = "communication"
    WAITING = "waiting"
    """Devices wait for each other: stages of a pipeline, the slowest of all."""
    HOST = "host"


class TimedPhase(NamedTuple):
    """A part of a step or of a request, and the limit that sets its time."""

    name: str
    seconds: Quantity
    bound: TimeBound


class RooflineTime(NamedTuple):
    """Time at the peak rate, time at the peak bandwidth, in seconds, and which of them counts."""

    compute_seconds: float
    memory_seconds: float
    bound: TimeBound

    @property
    def seconds(self) -> float:
        """The longer of the two."""
        return max(self.compute_seconds, self.memory_seconds)


def arithmetic_intensity(flops: float, moved_bytes: float) -> float:
    """FLOP per byte moved."""
    return flops / moved_bytes


def ridge_point(peak_flops_per_second: float, bandwidth_bytes_per_second: float) -> float:
    """Intensity in FLOP/byte above which a kernel is bound by compute."""
    return peak_flops_per_second / bandwidth_bytes_per_second


def compute_roofline(
    flops: float,
    moved_bytes: float,
    *,
    peak_flops_per_second: float,
    bandwidth_bytes_per_second: float,
) -> RooflineTime:
    """Times of one piece of work against both limits of a device; below the ridge memory binds."""
    ridge = ridge_point(peak_flops_per_second, bandwidth_bytes_per_second)
    return RooflineTime(
        compute_seconds=flops / peak_flops_per_second,
        memory_seconds=moved_bytes / bandwidth_bytes_per_second,
        bound=TimeBound.MEMORY if arithmetic_intensity(flops, moved_bytes) < ridge else TimeBound.COMPUTE,
    )


class RooflinePoint(NamedTuple):
    """One operator under the roof: FLOPs and bytes of a pass, and rates in FLOP/s.

    ``intensity`` is in FLOP/byte, ``attainable`` what the data sheet allows at it, ``achieved`` what the
    operator's estimated time amounts to.
    """

    name: str
    flops: float
    moved_bytes: float
    intensity: float
    attainable_flops_per_second: float
    achieved_flops_per_second: float
    seconds: float
    bound: TimeBound


def roofline_point(operator: OperatorWork, machine: DeviceMachine) -> RooflinePoint:
    """Where ``operator`` stands under the roof of ``machine``; for one layout, not for arrays of them."""
    time = operator_seconds(operator, machine)
    intensity = operator.flops / operator.moved_bytes
    peak = machine.peak_flops_per_second[operator.number_format]
    return RooflinePoint(
        operator.name,
        operator.flops,
        operator.moved_bytes,
        intensity,
        min(peak, intensity * machine.bandwidth_bytes_per_second),
        operator.flops / time.seconds,
        time.seconds,
        TimeBound.COMPUTE if time.compute_seconds >= time.memory_seconds else TimeBound.MEMORY,
    )
