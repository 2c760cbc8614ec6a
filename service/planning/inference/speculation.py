"""Speculative decoding: tokens that a pass yields, and the pass that proposes and checks them.

Leviathan, Kalman and Matias 2023: when each proposed token is accepted with probability a, independently,
k proposals and the check of all of them yield 1 + a + ... + a^k tokens. A draft model proposes one token
at a time; a head for further tokens (MTP) is a pass of a share of the model; looking up n-grams costs
nothing on the device.
"""

from typing import NamedTuple, Protocol

import numpy as np

from service.planning.inference.iteration import IterationBatch, IterationTime


class IterationSource(Protocol):
    """Interface of an iteration model, as both solvers call it."""

    def compute_time(self, batch: IterationBatch) -> IterationTime: ...  # noqa: D102


class Speculation(NamedTuple):
    """Speculation with ``tokens`` proposed per pass, each accepted with probability ``acceptance_rate``.

    ``draft`` is the model that proposes; without one a proposal takes ``pass_share`` of a pass of the served
    model: 0 for n-grams, the share of its layers for a head.
    """

    tokens: int
    acceptance_rate: float
    draft: IterationSource | None = None
    pass_share: float = 0.0

    @property
    def tokens_per_pass(self) -> float:
        """Mean tokens that a pass yields."""
        return tokens_per_pass(self.acceptance_rate, self.tokens)

    @property
    def positions(self) -> float:
        """Positions of a request in the pass that checks."""
        return 1.0 + self.tokens


def tokens_per_pass(acceptance_rate: float, tokens: int) -> float:
    """Returns (1 - a^(k + 1)) / (1 - a), or k + 1 where every proposal is accepted (Leviathan et al.

    2023).
    """
    return sum(acceptance_rate**accepted for accepted in range(tokens + 1))


class SpeculativeIterations:
    """An iteration model whose passes propose and check; prompts pass the draft as well."""

    def __init__(self, target: IterationSource, speculation: Speculation) -> None:
        self._target, self._speculation = target, speculation

    def compute_time(self, batch: IterationBatch) -> IterationTime:
        """Returns the seconds of the pass that checks and of those that propose, part by part."""
        speculation = self._speculation
        checked = self._target.compute_time(batch._replace(positions=speculation.positions))
        if speculation.draft is None and not speculation.pass_share:
            return checked
        proposer, share = speculation.draft or self._target, 1.0
        if speculation.draft is None:
            share = speculation.pass_share
        first = proposer.compute_time(batch._replace(positions=1.0))
        later = proposer.compute_time(IterationBatch(batch.decoding, batch.cached_tokens))
        # An iteration without a decoding request proposes nothing.
        more = (speculation.tokens - 1.0) * share * np.minimum(batch.decoding, 1.0)
        return IterationTime(
            *(c + share * f + more * n for c, f, n in zip(checked, first, later, strict=True))
        )
