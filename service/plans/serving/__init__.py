"""Search of the configurations of a service, each with the fewest replicas that keep the service levels.

A configuration is a kind of devices, the layout of a replica, and the formats of weights and cache. Its
figures equal those of a single estimate. It carries the load if no replica is saturated, all concurrent
requests fit, and the requested percentile of requests keeps the levels.
"""

from service.plans.serving.pieces import split_services
from service.plans.serving.search import search_services
from service.plans.serving.settings import build_workload

__all__ = [
    "build_workload",
    "search_services",
    "split_services",
]
