"""Low-discrepancy points in seven dimensions: requests of equal weight, without random numbers.

The additive sequence of Roberts (2018), a root of x^8 = x + 1 in each dimension.
"""

from statistics import NormalDist

import numpy as np

from service.planning.inference.curve import Array

SAMPLES = 256
_ROOT = 1.0969815577985598
_LATTICE = (0.5 + np.outer(np.arange(1, SAMPLES + 1), [_ROOT**-k for k in range(1, 8)])) % 1.0

INDEPENDENT_SHARE = _LATTICE[:, 6].copy()
INPUT, OUTPUT, WAIT, PLACE, PHASE = (_LATTICE[:, k].copy() for k in range(5))
"""Shares of a request's input, output, wait for prompts, wait for a place, phase of an iteration."""
_NORMAL = NormalDist()
NORMAL, INDEPENDENT = (
    np.asarray([_NORMAL.inv_cdf(min(max(u, 0.5 / SAMPLES), 1.0 - 0.5 / SAMPLES)) for u in _LATTICE[:, k]])
    for k in (5, 6)
)
"""Normal deviates."""


def sample_waits(shares: Array, mean: float, waiting: float) -> Array:
    """Samples exponential waits of a share ``waiting`` of the requests, with ``mean`` over all requests."""
    waiting = min(max(waiting, 1e-3), 1.0)
    tail = np.maximum(1.0 - shares, 0.5 / SAMPLES) / waiting
    return np.asarray(-np.log(np.minimum(tail, 1.0)) * (mean / waiting))
