"""Time of a training step: from operators and collectives, or by the Iron Law at a share of the peak."""

from service.planning.training.changes import LayoutChange, compute_max_gain, list_changes
from service.planning.training.compute import select_step_widths
from service.planning.training.iron_law import (
    IRON_LAW_TERMS,
    IronLawTechnique,
    TrainingTime,
    compute_utilization,
    count_flops_per_token,
    estimate_training_time,
    iron_law_seconds,
    unmasked_flops_per_token,
    weight_traffic_bytes,
)
from service.planning.training.modelled import (
    ModelledTime,
    StepContext,
    build_empty_known,
    build_training_machine,
    estimate_modelled_time,
    estimate_step,
)
from service.planning.training.step import FurtherPhase, StepSeconds

__all__ = [
    "IRON_LAW_TERMS",
    "FurtherPhase",
    "IronLawTechnique",
    "LayoutChange",
    "ModelledTime",
    "StepContext",
    "StepSeconds",
    "TrainingTime",
    "build_empty_known",
    "build_training_machine",
    "compute_max_gain",
    "compute_utilization",
    "count_flops_per_token",
    "estimate_modelled_time",
    "estimate_step",
    "estimate_training_time",
    "iron_law_seconds",
    "list_changes",
    "select_step_widths",
    "unmasked_flops_per_token",
    "weight_traffic_bytes",
]
