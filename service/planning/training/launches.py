"""Seconds in which the host program launches the kernels of a pass."""

from service.planning.hardware.calibration.steps import StepQuantity, StepRates
from service.planning.models.profile import OperatorFusion
from service.planning.operators import PassWork, resolve_fusion
from service.planning.software.frameworks import LAUNCHES_EACH_EXPERT
from service.planning.workload import CudaGraphs, TrainingWorkload


def get_launch_quantity(workload: TrainingWorkload) -> StepQuantity:
    """Returns the constant of a launch: that of eager PyTorch where each operator is run by itself."""
    is_eager = resolve_fusion(workload) is OperatorFusion.EAGER
    return StepQuantity.EAGER_LAUNCH_SECONDS if is_eager else StepQuantity.LAUNCH_SECONDS


def compute_launch_seconds(workload: TrainingWorkload, work: PassWork, rates: StepRates) -> float:
    """Returns the seconds in which the host launches the kernels of a pass."""
    each: float = getattr(rates, get_launch_quantity(workload).value)
    return _count_launches(workload, work) * each


def _count_launches(workload: TrainingWorkload, work: PassWork) -> float:
    """Returns the kernels of a pass that the host launches one by one; those of a graph are launched at once.

    Graphs of layers leave out what the routing of tokens decides.
    """
    each = work.expert_kernels if LAUNCHES_EACH_EXPERT[workload.framework] else work.routed_kernels
    match workload.graphs:
        case CudaGraphs.ITERATION:
            return 0.0 * each
        case CudaGraphs.LAYER:
            return each
        case _:
            return work.kernels - work.routed_kernels + each
