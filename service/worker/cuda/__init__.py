"""Benchmarks of an NVIDIA accelerator. No library of CUDA is imported before a benchmark is prepared."""

from typing import TYPE_CHECKING

from service.worker.benchmark import BenchmarkPreparer
from service.worker.preparing import find_preparers

if TYPE_CHECKING:
    from service.worker.measure import MeasuredDevice

PREPARE: dict[str, BenchmarkPreparer] = find_preparers(__name__, __path__)
"""Preparer of each kind of work, in the module of its name."""


def load_device() -> "MeasuredDevice":
    """Returns the benchmarks, with telemetry and loss of a device as NVML tells them."""
    from service.worker import nvml, telemetry  # noqa: PLC0415  # kernels need neither
    from service.worker.measure import MeasuredDevice  # noqa: PLC0415

    return MeasuredDevice(PREPARE, telemetry.watch, telemetry.thermometer, nvml.is_device_lost)
