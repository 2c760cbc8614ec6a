"""Time of a training step: from operators and collectives, or by the Iron Law at a share of the peak."""

from service.planning.training.changes import Change, changes, most_gain
from service.planning.training.compute import step_widths
from service.planning.training.iron_law import (
    IRON_LAW_TERMS,
    Technique,
    TrainingTime,
    flops_per_token,
    iron_law_seconds,
    training_time,
    unmasked_flops_per_token,
    utilization_of,
    weight_traffic_bytes,
)
from service.planning.training.modelled import (
    Known,
    ModelledTime,
    machine_under,
    modelled_step,
    modelled_time,
    nothing_known,
)
from service.planning.training.step import FurtherPhase, StepSeconds

__all__ = [
    "IRON_LAW_TERMS",
    "Change",
    "FurtherPhase",
    "Known",
    "ModelledTime",
    "StepSeconds",
    "Technique",
    "TrainingTime",
    "changes",
    "flops_per_token",
    "iron_law_seconds",
    "machine_under",
    "modelled_step",
    "modelled_time",
    "most_gain",
    "nothing_known",
    "step_widths",
    "training_time",
    "unmasked_flops_per_token",
    "utilization_of",
    "weight_traffic_bytes",
]
