"""Search of a workload's layouts for the best of each cluster."""

from service.planning.search.bounds import least_block_seconds, least_state_bytes, least_step_seconds
from service.planning.search.engine import (
    PROOFS,
    FoundLayout,
    LayoutTimes,
    PruningProof,
    SearchLimits,
    SearchObjective,
    SearchOutcome,
    search_layouts,
)
from service.planning.search.layouts import (
    LayoutArray,
    LayoutChoice,
    LayoutOptions,
    RecomputationChoice,
    SearchCluster,
    collapse_column,
    count_layouts,
)
from service.planning.search.pareto import select_pareto_front
from service.planning.search.shapes import SearchShape

__all__ = [
    "PROOFS",
    "FoundLayout",
    "LayoutArray",
    "LayoutChoice",
    "LayoutOptions",
    "LayoutTimes",
    "PruningProof",
    "RecomputationChoice",
    "SearchCluster",
    "SearchLimits",
    "SearchObjective",
    "SearchOutcome",
    "SearchShape",
    "collapse_column",
    "count_layouts",
    "least_block_seconds",
    "least_state_bytes",
    "least_step_seconds",
    "search_layouts",
    "select_pareto_front",
]
