"""Closed-form estimate of a server under a load."""

from service.planning.inference.serving.groups import combine_groups, count_active_groups, split_group
from service.planning.inference.serving.served_load import (
    estimate_closed_loops,
    estimate_served_load,
    estimate_similar_loads,
)

__all__ = [
    "combine_groups",
    "count_active_groups",
    "estimate_closed_loops",
    "estimate_served_load",
    "estimate_similar_loads",
    "split_group",
]
