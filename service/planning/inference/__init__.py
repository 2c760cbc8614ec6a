"""Latency and rate of a served model."""

from service.planning.inference.frontier import (
    MOST_REQUESTS,
    Chosen,
    Constraint,
    Degrees,
    Frontier,
    Speed,
    Variant,
    batch_sizes,
    frontier,
    layouts,
    ruled_out,
)
from service.planning.inference.roofline import (
    Iteration,
    ServingTime,
    decode_iteration,
    prefill_iteration,
    serving_time,
    touched_expert_share,
)

__all__ = [
    "MOST_REQUESTS",
    "Chosen",
    "Constraint",
    "Degrees",
    "Frontier",
    "Iteration",
    "ServingTime",
    "Speed",
    "Variant",
    "batch_sizes",
    "decode_iteration",
    "frontier",
    "layouts",
    "prefill_iteration",
    "ruled_out",
    "serving_time",
    "touched_expert_share",
]
