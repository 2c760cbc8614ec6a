"""Growth of speed with devices: Amdahl, Gustafson, an empirical curve, and the decision to scale.

Amdahl 1967 for a fixed problem (strong scaling), Gustafson 1988 for one that grows with the devices (weak
scaling). A "communication tax" r with speed-up n / (1 + (n - 1) r) is Amdahl's law with the serial share r.
Counts of devices are relative to the smallest that the job runs on; floats or arrays.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from service.planning.figures import rounded_up


def amdahl_speedup(devices: float, serial_share: float) -> float:
    """Returns the speed-up of a fixed problem with an undivided ``serial_share``: n / (1 + (n - 1) a).

    At most 1 / a (Amdahl 1967).
    """
    return devices / (1.0 + (devices - 1.0) * serial_share)


communication_tax_speedup = amdahl_speedup
"""Amdahl's law by its other name, the serial share read as a tax of communication."""


def gustafson_speedup(devices: float, serial_share: float) -> float:
    """Returns the speed-up of a problem that grows with the devices: n - a (n - 1) (Gustafson 1988)."""
    return devices - serial_share * (devices - 1.0)


def fit_serial_share(devices: Sequence[float], speedups: Sequence[float], *, weak: bool = False) -> float:
    """Returns the serial share in 0..1 whose curve comes closest to measured speed-ups, by least squares.

    Amdahl: 1 / S = 1 / n + a (1 - 1 / n) (Karp and Flatt 1990); ``weak``, Gustafson: n - S = a (n - 1).
    Raises :class:`ValueError` without a count above 1.
    """
    counts, measured = np.asarray(devices, dtype=float), np.asarray(speedups, dtype=float)
    factor, off = 1.0 - 1.0 / counts, 1.0 / measured - 1.0 / counts
    if weak:
        factor, off = counts - 1.0, counts - measured
    if not factor.any():
        raise ValueError("a serial share needs a count above 1")
    share = float(factor @ off / (factor @ factor))
    return min(max(share, 0.0), 1.0)


def strong_efficiency(first_seconds: float, devices: float, seconds: float) -> float:
    """Returns speed-up over devices of a fixed problem: T(1) / (n T(n))."""
    return first_seconds / (devices * seconds)


def weak_efficiency(first_seconds: float, seconds: float) -> float:
    """Returns the efficiency of a problem that grows with the devices: T(1) / T(n)."""
    return first_seconds / seconds


def overhead_share(compute_seconds: float, communication_seconds: float) -> float:
    """Returns the share of a step that exposed communication takes."""
    return communication_seconds / (compute_seconds + communication_seconds)


def crossover_devices(compute_seconds: float, communication_seconds: float) -> float:
    """Returns the devices at which divided compute takes as long as constant communication."""
    return compute_seconds / communication_seconds


def work_cost_factor(efficiency: float) -> float:
    """Returns the cost of a unit of work over its cost at full efficiency: 1 / E."""
    return 1.0 / efficiency


class EmpiricalCurve(NamedTuple):
    """Slow-down of a device, n / S(n) = a + b n + c ln n, fitted to points.

    ``largest_error`` is the largest relative error of the fit at its own points.
    """

    constant: float
    linear: float
    logarithmic: float
    largest_error: float

    def compute_slowdown(self, devices: float) -> float:
        """Returns the time of a share of the work, where one device takes 1."""
        return float(self.constant + self.linear * devices + self.logarithmic * np.log(devices))

    def compute_speedup(self, devices: float) -> float:
        """Returns the speed-up of a fixed problem."""
        return devices / self.compute_slowdown(devices)


LEAST_POINTS = 4
"""Least number of points, one above the three constants, which any curve would fit otherwise."""


def fit_empirical_curve(devices: Sequence[float], speedups: Sequence[float]) -> EmpiricalCurve:
    """Fits n / S(n) on 1, n and ln n by ordinary least squares.

    Raises :class:`ValueError` for fewer than four different counts.
    """
    counts = np.asarray(devices, dtype=float)
    if len(set(counts.tolist())) < LEAST_POINTS:
        raise ValueError(f"a fit needs {LEAST_POINTS} different counts")
    slowdown = counts / np.asarray(speedups, dtype=float)
    terms = np.column_stack([np.ones_like(counts), counts, np.log(counts)])
    constants = np.linalg.lstsq(terms, slowdown, rcond=None)[0]
    errors = np.abs(terms @ constants / slowdown - 1.0)
    constant, linear, logarithmic = (float(value) for value in constants)
    return EmpiricalCurve(constant, linear, logarithmic, float(errors.max()))


def linear_learning_rate(learning_rate: float, batch_factor: float) -> float:
    """Returns the learning rate for a batch ``batch_factor`` times as large (Goyal et al. 2017)."""
    return learning_rate * batch_factor


def square_root_learning_rate(learning_rate: float, batch_factor: float) -> float:
    """Returns the learning rate for adaptive optimizers, which divide by gradient noise (Malladi et al.

    2022).
    """
    return learning_rate * math.sqrt(batch_factor)


LAYERWISE_BATCH = 32_768
"""Sequences of a step above which layer-wise rates (LARS, LAMB) are needed (You et al. 2017, 2020)."""

SMALL_MODEL_PARAMETERS = 100_000_000
"""Parameters below which the gradients are too few to keep many devices busy."""

SMALL_DEVICE_BATCH = 8.0
"""Sequences of a step on a device below which strong scaling ends."""


def least_devices(needed_bytes: float, usable_bytes: float) -> float:
    """Returns the devices that hold ``needed_bytes`` together, as if they divided evenly."""
    return rounded_up(needed_bytes / usable_bytes)


class RunScale(StrEnum):
    """Scale on which a run is spread."""

    SINGLE_DEVICE = "single_device"
    SINGLE_NODE = "single_node"
    CLUSTER = "cluster"


class ScaleHint(NamedTuple):
    """Hint of a rule of thumb, with ``streaming`` true if the data is streamed rather than staged."""

    scale: RunScale
    streaming: bool


_NODE_PARAMETERS, _CLUSTER_PARAMETERS = 1e9, 10e9
_NODE_BYTES, _STREAMED_BYTES = 100e9, 10e12


def suggest_scale(parameters: float, dataset_bytes: float) -> ScaleHint:
    """Suggests the scale by sizes alone: a hint in addition to the estimates, never in their place.

    One device below 1e9 parameters and 100 GB, a node below 1e10 parameters, a cluster above and beyond 10
    TB, which is streamed. Sizes that the rule leaves out go to the next larger row.
    """
    streaming = dataset_bytes > _STREAMED_BYTES
    if streaming or parameters >= _CLUSTER_PARAMETERS:
        return ScaleHint(RunScale.CLUSTER, streaming)
    if parameters < _NODE_PARAMETERS and dataset_bytes < _NODE_BYTES:
        return ScaleHint(RunScale.SINGLE_DEVICE, streaming=False)
    return ScaleHint(RunScale.SINGLE_NODE, streaming=False)


TIME_LIMIT_SECONDS = 14 * 86_400.0
"""Default of the longest acceptable run before it is spread over more devices."""
