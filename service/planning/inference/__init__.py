"""What a served model does: seconds of an iteration of its engine, and a server over them."""

from service.planning.inference.frontier import (
    Chosen,
    Constraint,
    Degrees,
    Frontier,
    IterationModel,
    IterationTime,
    MOST_REQUESTS,
    Speed,
    Tabulated,
    Variant,
<<<<<<< HEAD
    batch_sizes,
    frontier,
    layouts,
    ruled_out,
)
=======
    and a server over them."""

>>>>>>> questions
from service.planning.inference.iteration import (
    Batch,
    batch_sizes,
    frontier,
    iteration_model,
<<<<<<< HEAD
=======
    layouts,
    ruled_out,
>>>>>>> questions
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
<<<<<<< HEAD
    "MOST_REQUESTS",
    "Batch",
=======
>>>>>>> questions
    "Chosen",
    "Constraint",
    "Degrees",
    "Frontier",
    "Iteration",
    "IterationModel",
    "IterationTime",
<<<<<<< HEAD
=======
    "MOST_REQUESTS",
>>>>>>> questions
    "ServingTime",
    "Speed",
    "Tabulated",
    "Variant",
    "and a server over them."""

from service.planning.inference.iteration import (
    Batch",
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
