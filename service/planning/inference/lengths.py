"""Distributions of lengths as a few values with weights, which keep the mean of the distribution."""

import math
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

_NORMAL = NormalDist()
_SHARES = (*(step / 10.0 for step in range(10)), 0.95, 0.98, 0.995, 1.0)
"""Ends of the classes of a lognormal length: tenths, and a tail that reaches the 99th percentile."""
_ENDS = (-math.inf, *(_NORMAL.inv_cdf(share) for share in _SHARES[1:-1]), math.inf)
_MOST_VALUES = 24
_P95_DEVIATIONS = _NORMAL.inv_cdf(0.95)
LARGEST_P95_RATIO = math.exp(_P95_DEVIATIONS**2 / 2.0)
"""Upper bound of the ratio of 95th percentile to mean in a lognormal distribution: 3.87."""


class DiscreteLengths(NamedTuple):
    """Tokens, ascending, and the share of requests with each number."""

    values: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean tokens."""
        return math.fsum(value * weight for value, weight in zip(self.values, self.weights, strict=True))


def lognormal_sigma(ratio: float) -> float:
    """Returns the deviation of ln of a lognormal length whose 95th percentile is ``ratio`` times the mean.

    ln p95 = mu + z sigma and ln mean = mu + sigma^2 / 2 give sigma^2 / 2 - z sigma + ln ratio = 0, of which
    the smaller root is taken: the larger one has its 95th percentile in a body below the mean of a tail.
    ``ratio`` lies between 1 and :data:`LARGEST_P95_RATIO`.
    """
    return _P95_DEVIATIONS - math.sqrt(max(0.0, _P95_DEVIATIONS**2 - 2.0 * math.log(ratio)))


@lru_cache(maxsize=256)
def build_lognormal_lengths(mean: float, sigma: float, most: float = math.inf) -> DiscreteLengths:
    """Builds a lognormal length cut at ``most`` tokens, from the mean of each of its classes.

    The mean of e^X over a class a < z < b of a normal X = mu + sigma z is mean (F(b - sigma) - F(a - sigma))
    / (F(b) - F(a)).
    """
    cut = math.inf if most == math.inf else (math.log(most / mean) + sigma**2 / 2.0) / sigma
    classes = []
    for low, high, share in zip(_ENDS, _ENDS[1:], _class_shares(), strict=False):
        within = min(max(cut, low), high)
        whole = mean * (_NORMAL.cdf(within - sigma) - _NORMAL.cdf(low - sigma))
        above = _NORMAL.cdf(high) - _NORMAL.cdf(within)
        tokens = (whole + (most * above if above else 0.0)) / share
        classes.append((max(1.0, tokens), share))
    return build_counted_lengths(classes)


def _class_shares() -> tuple[float, ...]:
    return tuple(high - low for low, high in pairwise(_SHARES))


def build_counted_lengths(counts: Iterable[tuple[float, float]]) -> DiscreteLengths:
    """Builds lengths from their counts, as shares; very many are grouped by the mean of each class."""
    merged: dict[float, float] = {}
    for tokens, weight in counts:
        if weight:
            merged[float(tokens)] = merged.get(float(tokens), 0.0) + weight
    total = math.fsum(merged.values())
    lengths = sorted((tokens, weight / total) for tokens, weight in merged.items())
    if len(lengths) > _MOST_VALUES:
        lengths = _group_in_classes(lengths)
    return DiscreteLengths(*(tuple(column) for column in zip(*lengths, strict=True)))


def _group_in_classes(lengths: list[tuple[float, float]]) -> list[tuple[float, float]]:
    sums: dict[int, tuple[float, float]] = {}
    below = 0.0
    for tokens, weight in lengths:
        place = bisect_right(_SHARES, below + weight / 2.0)
        total, share = sums.get(place, (0.0, 0.0))
        sums[place] = total + tokens * weight, share + weight
        below += weight
    return [(total / share, share) for total, share in sums.values()]
