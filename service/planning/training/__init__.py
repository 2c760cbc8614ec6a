"""Time of a training step: from operators and collectives, or by the Iron Law at an assumed share of the peak."""

from service.planning.training.iron_law import (
    IRON_LAW_TERMS,
    Technique,
    TrainingTime,
    flops_per_token,
    iron_law_seconds,
    training_time,
    utilization_of,
    weight_traffic_bytes,
)

__all__ = [
    "IRON_LAW_TERMS",
    "Technique",
    "TrainingTime",
    "flops_per_token",
    "iron_law_seconds",
    "training_time",
    "utilization_of",
    "weight_traffic_bytes",
]
