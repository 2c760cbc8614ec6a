"""Serving of models: seconds of an engine's iterations, servers that run them, and their Pareto frontier."""

from service.planning.inference.curve import compute_request_capacity
from service.planning.inference.frontier import (
    MOST_REQUESTS,
    Frontier,
    FrontierChoice,
    FrontierConstraint,
    FrontierSpeed,
    FrontierVariant,
    SearchDegrees,
    find_frontier,
    find_layout_constraint,
    list_batch_sizes,
    list_layouts,
)
from service.planning.inference.iteration import (
    IterationBatch,
    IterationModel,
    IterationTime,
    build_iteration_model,
)
from service.planning.inference.load import (
    ArrivalProcess,
    Arrivals,
    BatchScheduler,
    LatencyLimits,
    LengthDistribution,
    Percentiles,
    ReplicaLoad,
    ReplicaServer,
    ServedLoad,
    build_fixed_lengths,
)
from service.planning.inference.replicas import ReplicaDegrees, find_fewest_replicas, list_replica_layouts
from service.planning.inference.roofline import (
    IterationWork,
    ServingTime,
    build_decode_iteration,
    build_prefill_iteration,
    estimate_serving_time,
    touched_expert_share,
)
from service.planning.inference.serving import (
    estimate_closed_loops,
    estimate_served_load,
    estimate_similar_loads,
)
from service.planning.inference.simulation import simulate_served_load
from service.planning.inference.speculation import Speculation

__all__ = [
    "MOST_REQUESTS",
    "ArrivalProcess",
    "Arrivals",
    "BatchScheduler",
    "Frontier",
    "FrontierChoice",
    "FrontierConstraint",
    "FrontierSpeed",
    "FrontierVariant",
    "IterationBatch",
    "IterationModel",
    "IterationTime",
    "IterationWork",
    "LatencyLimits",
    "LengthDistribution",
    "Percentiles",
    "ReplicaDegrees",
    "ReplicaLoad",
    "ReplicaServer",
    "SearchDegrees",
    "ServedLoad",
    "ServingTime",
    "Speculation",
    "build_decode_iteration",
    "build_fixed_lengths",
    "build_iteration_model",
    "build_prefill_iteration",
    "compute_request_capacity",
    "estimate_closed_loops",
    "estimate_served_load",
    "estimate_serving_time",
    "estimate_similar_loads",
    "find_fewest_replicas",
    "find_frontier",
    "find_layout_constraint",
    "list_batch_sizes",
    "list_layouts",
    "list_replica_layouts",
    "simulate_served_load",
    "touched_expert_share",
]
