"""Compute and memory limits of a device, and the one that sets a time (Williams et al. 2009)."""

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
    """Devices wait for each other: stages of a pipeline, or for the slowest of all."""
    HOST = "host"


class TimedPhase(NamedTuple):
    """A part of a step or of a request, and the limit that sets its time."""

    name: str
    seconds: Quantity
    bound: TimeBound


class RooflineTime(NamedTuple):
    """Seconds at the peak rate and at the peak bandwidth, and the limit that sets the time."""

    compute_seconds: float
    memory_seconds: float
    bound: TimeBound

    @property
    def seconds(self) -> float:
        """Longer of the two."""
        return max(self.compute_seconds, self.memory_seconds)


def arithmetic_intensity(flops: float, moved_bytes: float) -> float:
    """Returns the FLOP per byte moved."""
    return flops / moved_bytes


def ridge_point(peak_flops_per_second: float, bandwidth_bytes_per_second: float) -> float:
    """Returns the intensity in FLOP/byte above which a kernel is bound by compute."""
    return peak_flops_per_second / bandwidth_bytes_per_second


def compute_roofline(
    flops: float,
    moved_bytes: float,
    *,
    peak_flops_per_second: float,
    bandwidth_bytes_per_second: float,
) -> RooflineTime:
    """Returns the times of one piece of work against both limits; below the ridge memory binds."""
    ridge = ridge_point(peak_flops_per_second, bandwidth_bytes_per_second)
    return RooflineTime(
        compute_seconds=flops / peak_flops_per_second,
        memory_seconds=moved_bytes / bandwidth_bytes_per_second,
        bound=TimeBound.MEMORY if arithmetic_intensity(flops, moved_bytes) < ridge else TimeBound.COMPUTE,
    )


class RooflinePoint(NamedTuple):
    """One operator under the roof: FLOPs and bytes of a pass, and rates in FLOP/s.

    ``intensity`` is in FLOP/byte, ``attainable_flops_per_second`` the rate that the data sheet allows at it,
    ``achieved_flops_per_second`` the rate of the operator's estimated time.
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
    """Returns the position of ``operator`` under the roof of ``machine``; for one layout, not for arrays."""
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
