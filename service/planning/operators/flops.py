"""FLOPs counted from operators.

A multiplication and an addition are two FLOPs. The backward pass costs twice the forward pass
(gradients of inputs and of weights), so a training step costs three forward passes: 6 N D for N
weights and D tokens, plus attention.
"""

from typing import NamedTuple

from service.planning.models.profile import AttentionWork, ModelProfile


def mean_context_tokens(work: AttentionWork, sequence_length: float, *, skips_masked: bool) -> float:
    """Returns the tokens whose scores count for a token, averaged over a sequence.

    All tokens in its window count, as model FLOPs are defined (Chowdhery et al. 2022, appendix B), or, where
    the masked half of a causal matrix is skipped, min(i, window) for position i: on average w - w^2 / (2 s)
    with w = min(s, window), half of s without a window.
    """
    window = min(sequence_length, work.window_tokens)
    if not (skips_masked and work.causal):
        return window
    return window - window * window / (2.0 * sequence_length)


def forward_flops_per_token(
    profile: ModelProfile, sequence_length: float, *, skips_masked: bool = False
) -> float:
    """Returns the FLOPs of one token's forward pass: 2 per active weight, plus attention and states.

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
    """FLOPs of training per token, by phase; ``model`` are the FLOPs that the mathematics needs."""

    forward: float
    backward: float
    recomputation: float
    further: tuple[tuple[str, float], ...] = ()
    """Name and FLOPs of an objective's further work: generation, and passes of other models."""

    @property
    def model(self) -> float:
        """Forward, backward and further FLOPs: the numerator of model FLOPs utilization."""
        return self.forward + self.backward + sum((flops for _, flops in self.further), 0.0)

    @property
    def hardware(self) -> float:
        """All executed FLOPs: the numerator of hardware FLOPs utilization."""
        return self.model + self.recomputation


def step_flops(forward: float, *, recomputed: float = 0.0) -> StepFlops:
    """Returns training FLOPs from those of a forward pass; ``recomputed`` ones run again before backward."""
    return StepFlops(forward, 2.0 * forward, recomputed)
