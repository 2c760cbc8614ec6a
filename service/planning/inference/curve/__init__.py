"""A replica with continuous batching over its mean batch: the closed form behind ``serving``."""

from service.planning.inference.curve.iterations import (
    average_iterations,
    compute_iteration_times,
    select_iteration,
)
from service.planning.inference.curve.moments import (
    NOTHING,
    Array,
    LoadTokens,
    ServerSetting,
    compute_load_moments,
    compute_request_capacity,
)
from service.planning.inference.curve.points import (
    ReplicaCurve,
    compute_curve,
    compute_point,
    compute_points,
    compute_prompt_seconds,
    select_point,
)

__all__ = [
    "NOTHING",
    "Array",
    "LoadTokens",
    "ReplicaCurve",
    "ServerSetting",
    "average_iterations",
    "compute_curve",
    "compute_iteration_times",
    "compute_load_moments",
    "compute_point",
    "compute_points",
    "compute_prompt_seconds",
    "compute_request_capacity",
    "select_iteration",
    "select_point",
]
