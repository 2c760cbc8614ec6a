"""FLOPs counted from operators, and the roofline that bounds them.

A multiplication and an addition are two FLOPs. The backward pass costs twice the forward pass
(gradients of inputs and of weights), so a training step costs three forward passes: 6 N D for N
weights and D tokens, plus attention. Roofline: Williams, Waterman and Patterson 2009.
"""

from enum import StrEnum
from typing import NamedTuple

from service.planning.profile import AttentionWork, Profile
from service.planning.quantity import Quantity


class Bound(StrEnum):
    """The limit that sets a time."""

    COMPUTE = "compute"
    MEMORY = "memory"


class Phase(NamedTuple):
    """A part of a step or of a request, and the limit that sets its time."""

    name: str
    seconds: Quantity
    bound: Bound


class Roofline(NamedTuple):
    """Time at the peak rate, time at the peak bandwidth, in seconds, and which of them counts."""

    compute_seconds: float
    memory_seconds: float
    bound: Bound

    @property
    def seconds(self) -> float:
        """The longer of the two."""
        return max(self.compute_seconds, self.memory_seconds)


def arithmetic_intensity(flops: float, moved_bytes: float) -> float:
    """FLOP per byte moved."""
    return flops / moved_bytes


def ridge_point(peak_flops_per_second: float, bandwidth_bytes_per_second: float) -> float:
    """Intensity in FLOP/byte above which a kernel is bound by compute."""
    return peak_flops_per_second / bandwidth_bytes_per_second


def roofline(
    flops: float,
    moved_bytes: float,
    *,
    peak_flops_per_second: float,
    bandwidth_bytes_per_second: float,
) -> Roofline:
    """Times of one piece of work against both limits of a device; below the ridge memory binds."""
    ridge = ridge_point(peak_flops_per_second, bandwidth_bytes_per_second)
    return Roofline(
        compute_seconds=flops / peak_flops_per_second,
        memory_seconds=moved_bytes / bandwidth_bytes_per_second,
        bound=Bound.MEMORY if arithmetic_intensity(flops, moved_bytes) < ridge else Bound.COMPUTE,
    )


def mean_context_tokens(work: AttentionWork, sequence_length: float, *, skips_masked: bool) -> float:
    """Tokens whose scores count for a token, averaged over a sequence.

    All that its window reaches, as model FLOPs are counted (Chowdhery et al. 2022, appendix B), or,
    where the masked half of a causal matrix is skipped, min(i, window) for position i: on average
    w - w^2 / (2 s) with w = min(s, window), half of s without a window.
    """
    window = min(sequence_length, work.window_tokens)
    if not (skips_masked and work.causal):
        return window
    return window - window * window / (2.0 * sequence_length)


def forward_flops_per_token(profile: Profile, sequence_length: float, *, skips_masked: bool = False) -> float:
    """FLOPs of one token's forward pass within a sequence: 2 per active weight, plus attention and states.

    Without ``skips_masked`` these are model FLOPs, in which utilizations of training are published.
    """
    flops = profile.matmul_flops_per_token
    for work in profile.attention:
        context = mean_context_tokens(work, sequence_length, skips_masked=skips_masked)
        scored = min(context, work.attended_tokens)
        each = work.score_flops * scored + work.index_flops * context + work.token_flops
        flops += work.layers * each
    return flops


class StepFlops(NamedTuple):
    """FLOPs of training per token, by phase. ``model`` is what the mathematics needs."""

    forward: float
    backward: float
    recomputation: float

    @property
    def model(self) -> float:
        """Forward and backward: the numerator of model FLOPs utilization."""
        return self.forward + self.backward

    @property
    def hardware(self) -> float:
        """All that is executed: the numerator of hardware FLOPs utilization."""
        return self.forward + self.backward + self.recomputation


def step_flops(forward: float, *, recomputed: float = 0.0) -> StepFlops:
    """Training FLOPs from those of a forward pass; ``recomputed`` is run again before backward."""
    return StepFlops(forward, 2.0 * forward, recomputed)
