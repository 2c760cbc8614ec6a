"""What a served model does: seconds of an iteration of its engine, and a server over them."""

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
    "Batch",
    "Iteration",
    "IterationModel",
    "IterationTime",
    "ServingTime",
    "Tabulated",
    "decode_iteration",
    "iteration_model",
    "prefill_iteration",
    "serving_time",
    "touched_expert_share",
]
