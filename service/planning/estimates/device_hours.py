"""Device-hours of a run."""

from service.planning.errors import PlanningError
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.quantity import Quantity, scaled
from service.planning.units import HOUR_SECONDS


def estimate_device_hours(run: Run) -> Quantity | None:
    """Returns the hours of all devices together; None where the duration is not known.

    Refuses a case that does not give the duration of the run.
    """
    if isinstance(run, TrainingRun):
        if run.case.total_tokens is None:
            detail = "give total_tokens, total_steps or total_samples"
            raise PlanningError("TOTAL_REQUIRED", "/workload/total_tokens", detail)
    elif run.case.workload.horizon is None:
        detail = "a cost needs to know how long the service runs"
        raise PlanningError("HORIZON_REQUIRED", "/workload/horizon", detail)
    if run.duration_seconds is None:
        return None
    devices = float(run.case.cluster.accelerator_count)
    return scaled(run.duration_seconds, devices / HOUR_SECONDS)
