"""What a served model does: seconds of an iteration of its engine, a server over them, and their frontier."""

from service.planning.inference.curve import places_of
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
    iteration_model,
)
from service.planning.inference.load import (
    Arrivals,
    Lengths,
    Levels,
    Load,
    Percentiles,
    Process,
    Scheduler,
    Served,
    Server,
    fixed,
)
from service.planning.inference.replicas import ReplicaDegrees, fewest, replica_layouts
from service.planning.inference.roofline import (
    Iteration,
    ServingTime,
    decode_iteration,
    prefill_iteration,
    serving_time,
    touched_expert_share,
)
from service.planning.inference.serving import served, served_alike, served_closed
from service.planning.inference.simulated import simulated
from service.planning.inference.speculation import Speculation

__all__ = [
    "MOST_REQUESTS",
    "Arrivals",
    "Batch",
    "Chosen",
    "Constraint",
    "Degrees",
    "Frontier",
    "Iteration",
    "IterationModel",
    "IterationTime",
    "Lengths",
    "Levels",
    "Load",
    "Percentiles",
    "Process",
    "ReplicaDegrees",
    "Scheduler",
    "Served",
    "Server",
    "ServingTime",
    "Speculation",
    "Speed",
    "Variant",
    "batch_sizes",
    "decode_iteration",
    "fewest",
    "fixed",
    "frontier",
    "iteration_model",
    "layouts",
    "places_of",
    "prefill_iteration",
    "replica_layouts",
    "ruled_out",
    "served",
    "served_alike",
    "served_closed",
    "serving_time",
    "simulated",
    "touched_expert_share",
]
