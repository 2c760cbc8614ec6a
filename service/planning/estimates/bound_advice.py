"""Changes worth trying by what bounds a served model, where none is estimated anew."""

from collections.abc import Mapping
from typing import Final

from service.planning.estimates.advice import Advice
from service.planning.operators import TimeBound

PASS_ADVICE: Final[Mapping[TimeBound, tuple[Advice, ...]]] = {
    TimeBound.MEMORY: (
        Advice("MORE_CONCURRENCY", "a pass reads the weights once for all of its requests"),
        Advice("FUSED_KERNELS", "an engine that joins operators moves activations less often"),
    ),
    TimeBound.COMPUTE: (
        Advice("NARROWER_COMPUTE", "a format with a higher dense rate"),
        Advice("FEWER_EVALUATIONS", "of a sampled picture: fewer steps, or guidance distilled"),
    ),
    TimeBound.COMMUNICATION: (Advice("LESS_TENSOR_PARALLELISM", "replicas send nothing to each other"),),
    TimeBound.HOST: (
        Advice("FEWER_LAUNCHES", "an engine, a compiler or a graph launches kernels at once"),
        Advice("MORE_CONCURRENCY", "larger batches take no more launches"),
    ),
    TimeBound.WAITING: (),
}
"""Advice on forward passes."""

ROOFLINE_ADVICE: Final[Mapping[TimeBound, tuple[Advice, ...]]] = {
    TimeBound.MEMORY: (
        Advice("MORE_CONCURRENCY", "a decode step reads the weights once for all requests"),
        Advice("NARROWER_WEIGHTS", "fewer bytes per decode step"),
    ),
    TimeBound.COMPUTE: (
        Advice("MORE_TENSOR_PARALLELISM", "each device computes a smaller share of a pass"),
        Advice("NARROWER_COMPUTE", "a format with a higher dense rate"),
    ),
}
"""Advice on tokens at assumed shares of rate and bandwidth."""
