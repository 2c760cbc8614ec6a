"""Benchmarks of a node without an accelerator: NumPy does the same kinds of work on its processor."""

from typing import TYPE_CHECKING

from service.worker.benchmark import BenchmarkPreparer
from service.worker.preparing import find_preparers

if TYPE_CHECKING:
    from service.worker.measure import MeasuredDevice

PREPARE: dict[str, BenchmarkPreparer] = find_preparers(__name__, __path__)
"""Preparer of each kind of work, in the module of its name. Other kinds cannot be measured on a processor."""


def load_device() -> "MeasuredDevice":
    """Returns the benchmarks, with telemetry of the host."""
    from service.worker import host  # noqa: PLC0415  # only a measurement needs it
    from service.worker.measure import MeasuredDevice  # noqa: PLC0415

    return MeasuredDevice(PREPARE, host.watch)
