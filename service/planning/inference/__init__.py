"""What a served model does: seconds of an iteration of its engine, and a server over them."""

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
from service.planning.inference.iteration import (
    Batch,
    IterationModel,
    IterationTime,
    Tabulated,
    iteration_model,
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
    "Batch",
    "Chosen",
    "Constraint",
    "Degrees",
    "Frontier",
    "Iteration",
    "IterationModel",
    "IterationTime",
    "ServingTime",
    "Speed",
    "Tabulated",
    "Variant",
    "batch_sizes",
    "decode_iteration",
    "frontier",
    "iteration_model",
    "layouts",
    "prefill_iteration",
    "ruled_out",
    "serving_time",
    "touched_expert_share",
]
