"""Intervals of whole answers, from what rows outside of their fit were off by."""

from service.planning.curves import ReferenceCurves
from service.planning.quantity import Quantity, Spread
from service.questions.answer import quantity
from service.questions.answers import DeviceMemory
from service.questions.software import software_of
from service.questions.workloads import TrainingWorkloadInput, WorkloadInput

_UNNAMED = frozenset({"", "generic"})


def as_measured(device: DeviceMemory, workload: WorkloadInput, curves: ReferenceCurves) -> DeviceMemory:
    """The memory with the interval of measured rows of the same software; as it is where there are none.

    A workload that names no software takes the interval over all. One that names other software keeps the
    interval of its own constants.
    """
    if "total_bytes" not in device:
        return device
    total = device["total_bytes"]
    family = "training_memory" if isinstance(workload, TrainingWorkloadInput) else "inference_memory"
    software = software_of(workload)
    name = family if software in _UNNAMED else f"{family}/{software}"
    spread = curves.residuals.get((name, total["basis"]))
    if spread is None:
        return device
    around = Spread(min(spread.low, 1.0), max(spread.high, 1.0), spread.source)
    figure: Quantity = around.around(total["value"], total["basis"])
    return {**device, "total_bytes": quantity(figure)}
