"""Estimate of a served model: the load of each replica, its latencies and rates, and their intervals."""

from service.planning.estimates.serving.cluster import do_nothing, estimate_serving
from service.planning.estimates.serving.estimate import ServingEstimate, find_bound
from service.planning.estimates.serving.replica import (
    build_load,
    build_server,
    build_speculation,
    count_replica_requests,
)
from service.planning.estimates.serving.spreads import ServingSpreads

__all__ = [
    "ServingEstimate",
    "ServingSpreads",
    "build_load",
    "build_server",
    "build_speculation",
    "count_replica_requests",
    "do_nothing",
    "estimate_serving",
    "find_bound",
]
