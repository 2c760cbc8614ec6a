"""Searches the layouts of a workload for the best of each cluster."""

from service.planning.search.bounds import least_block_seconds, least_state_bytes, least_step_seconds
from service.planning.search.engine import (
    PROOFS,
    Decided,
    Found,
    Limits,
    Proof,
    Subject,
    Timed,
    searched,
)
from service.planning.search.layouts import (
    Choice,
    Devices,
    Layouts,
    Options,
    Recomputing,
    number_of,
    shared,
)
from service.planning.search.shapes import Shape
from service.planning.search.skyline import skyline

__all__ = [
    "PROOFS",
    "Choice",
    "Decided",
    "Devices",
    "Found",
    "Layouts",
    "Limits",
    "Options",
    "Proof",
    "Recomputing",
    "Shape",
    "Subject",
    "Timed",
    "least_block_seconds",
    "least_state_bytes",
    "least_step_seconds",
    "number_of",
    "searched",
    "shared",
    "skyline",
]
