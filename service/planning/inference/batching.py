"""A server that takes all waiting requests, up to a most, in one pass: bulk service.

What stands in line when a pass ends is a Markov chain: of n requests the pass takes b = min(n, B) in T(b)
seconds, in which Poisson arrivals join the n - b that are left (Bailey 1954). Its stationary distribution is
solved for; a request waits for the rest of the pass that it meets, for full passes of those ahead of it, and
takes part in its own. Counts are in steps of several requests where many stand in line, with arrivals of the
same mean and variance.

With a constant number of requests and nothing between them, each pass takes all of them or B, so that
latencies follow from Little's law and the passes that lie between.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PassSeconds = Callable[[Floats], Floats]
"""Seconds of a pass over as many requests, which need not be whole."""

_STATES = 72
"""States of the chain up to which a step is one request: larger systems take a library's threads to solve."""
_MOST_STATES = 96
_WITHIN = (np.arange(6) + 0.5) / 6.0
"""When in a pass requests arrive: shares of it at equal weight."""
_TAIL = 8.0
"""Standard deviations of a count beyond which it does not come."""


class BatchedPasses(NamedTuple):
    """One server of passes. ``pass_seconds`` is the mean over passes, ``batch`` the mean of their requests.

    ``utilization`` is the share of time in which a pass runs. A ``saturated`` server is asked for more than
    it can do; its latencies are None, as the line grows without end.
    """

    latencies: Floats | None
    """In seconds and rising: of requests of equal weight."""
    mean_seconds: float
    """Of all requests; infinite where the server is saturated."""
    requests_per_second: float
    batch: float
    pass_seconds: float
    waiting: float
    utilization: float
    saturated: bool
    most_requests_per_second: float


_SAMPLES = (np.arange(256) + 0.5) / 256.0
"""Shares of the requests whose latencies are kept."""


def _sample_latencies(seconds: Floats, weights: Floats) -> tuple[Floats, float]:
    """Latencies of requests of equal weight, and the mean of all."""
    order = np.argsort(seconds)
    seconds, passed = seconds[order], np.cumsum(weights[order])
    places = np.searchsorted(passed, _SAMPLES * passed[-1])
    mean = float(seconds @ np.diff(passed, prepend=0.0) / passed[-1])
    return seconds[np.minimum(places, len(seconds) - 1)], mean


def estimate_closed_batching(pass_seconds: PassSeconds, requests: float, most: float) -> BatchedPasses:
    """A server with ``requests`` at a time, a new one behind each that ends, ``most`` of them in a pass.

    Those that do not find room wait for whole passes: of c requests, B in a pass, the share of c / B behind
    the point waits for one more.
    """
    batch = min(requests, most)
    each = float(pass_seconds(np.array([batch]))[0])
    rounds = max(1.0, requests / most)
    short = math.floor(rounds)
    longer = rounds - short
    seconds = np.array([short, short + 1.0]) * each
    latencies, mean = _sample_latencies(seconds, np.array([1.0 - longer, longer]))
    return BatchedPasses(
        latencies=latencies,
        mean_seconds=mean,
        requests_per_second=batch / each,
        batch=batch,
        pass_seconds=each,
        waiting=requests - batch,
        utilization=1.0,
        saturated=False,
        most_requests_per_second=_find_peak_rate(pass_seconds, most),
    )


def _find_peak_rate(pass_seconds: PassSeconds, most: float) -> float:
    """The rate of passes of the size that ends most requests a second."""
    sizes = np.unique(np.round(np.geomspace(1.0, max(1.0, most), 24)))
    return float(np.max(sizes / pass_seconds(sizes)))


@lru_cache(maxsize=8)
def _log_factorials(count: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count, dtype=np.float64)))])


def _approximate_erf(x: Floats) -> Floats:
    """Abramowitz and Stegun 7.1.26; off by less than 1.5e-7."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(np.sign(x) * (1.0 - p * np.exp(-x * x)))


def _compute_arrival_probabilities(means: Floats, states: int, step: float) -> Floats:
    """Probability of each count of steps, a row for each mean of requests; the last takes what is beyond."""
    counts = np.arange(states, dtype=np.float64)
    means = np.maximum(means, 1e-12)[:, None]
    if step == 1.0:
        found = np.exp(counts * np.log(means) - means - _log_factorials(states))
    else:
        spread = np.sqrt(means) / step * math.sqrt(2.0)
        edges = _approximate_erf((np.arange(states + 1) - 0.5 - means / step) / spread)
        edges[:, 0] = -1.0
        found = 0.5 * np.diff(edges, axis=1)
    found[:, -1] += np.maximum(0.0, 1.0 - found.sum(axis=1))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


class _BatchChain(NamedTuple):
    """States in requests, what a pass takes in each, its seconds, and how often it starts there."""

    waiting: Floats
    batch: Floats
    seconds: Floats
    share: Floats


def _estimate_queue_length(pass_seconds: PassSeconds, rate: float, most: float, busy: float) -> float:
    """A length that the line hardly exceeds, by the passes that balance arrivals and what is left over."""
    batch = 1.0
    for _ in range(60):
        following = min(most, max(1.0, rate * float(pass_seconds(np.array([batch]))[0])))
        if abs(following - batch) < 1e-3 * batch:
            break
        batch = following
    # A pass of B clears B (1 - busy) more than comes, with the variance of B arrivals: what is left over
    # falls off by e with each 1 / (2 (1 - busy)).
    left = 0.5 / max(1e-3, 1.0 - busy)
    return batch + _TAIL * (math.sqrt(batch) + left)


def _build_queue_chain(
    pass_seconds: PassSeconds, rate: float, most: float, busy: float, delay: float
) -> _BatchChain:
    longest = _estimate_queue_length(pass_seconds, rate, most, busy)
    step = float(math.ceil(longest / _STATES))
    if step > 1.0:
        # A full pass is a whole number of steps.
        step = most / max(1.0, math.floor(most / step))
    states = max(4, min(_MOST_STATES, math.ceil(longest / step)) + 1)
    waiting = np.arange(states, dtype=np.float64) * step
    batch = np.minimum(np.maximum(waiting, 1.0), most)
    batch[0] = min(most, 1.0 + rate * delay)
    seconds = np.asarray(pass_seconds(batch), dtype=np.float64)
    arrivals = _compute_arrival_probabilities(rate * seconds, states, step)
    left = np.maximum(0.0, np.round((waiting - batch) / step)).astype(int)
    moves = np.zeros((states, states))
    for state, behind in enumerate(left):
        moves[state, behind:] = arrivals[state, : states - behind]
        moves[state, -1] += 1.0 - moves[state].sum()
    balance = moves.T - np.eye(states)
    balance[-1] = 1.0
    share = np.linalg.solve(balance, np.eye(states)[-1])
    share = np.maximum(share, 0.0)
    return _BatchChain(waiting, batch, seconds, share / share.sum())


def estimate_open_batching(
    pass_seconds: PassSeconds, rate_per_second: float, most: float, delay_seconds: float = 0.0
) -> BatchedPasses:
    """A server that requests reach at random, ``rate_per_second`` of them, ``most`` in a pass.

    A server that stands idle starts ``delay_seconds`` behind the first request that it meets.
    """
    rate = rate_per_second
    full = float(pass_seconds(np.array([most]))[0])
    peak = _find_peak_rate(pass_seconds, most)
    busy = rate * full / most
    if busy >= 1.0:
        return BatchedPasses(None, math.inf, most / full, most, full, math.inf, 1.0, True, peak)  # noqa: FBT003
    chain = _build_queue_chain(pass_seconds, rate, most, busy, delay_seconds)
    idle = float(chain.share[0])
    running = float(chain.share @ chain.seconds)
    cycle = running + idle * (1.0 / rate + delay_seconds)
    seconds, weights = _compute_waits(pass_seconds, chain, rate, most, delay_seconds)
    latencies, mean = _sample_latencies(seconds, weights)
    batch = float(chain.share @ chain.batch)
    return BatchedPasses(
        latencies=latencies,
        mean_seconds=mean,
        requests_per_second=rate,
        batch=batch,
        pass_seconds=running,
        waiting=max(0.0, rate * mean - float(chain.share @ (chain.batch * chain.seconds)) / cycle),
        utilization=running / cycle,
        saturated=False,
        most_requests_per_second=peak,
    )


_SPREAD = np.array([-1.5, 0.0, 1.5]) * math.sqrt(2.0 / 3.0)
"""Three equal weights with the variance of 1."""


def _sample_counts(means: Floats) -> tuple[Floats, Floats]:
    """Whole counts around ``means`` with the spread of chance, along a new last axis, and their weights.

    Each of three points is the count below and the one above it, so that the mean is kept.
    """
    points = np.maximum(0.0, means[..., None] + _SPREAD * np.sqrt(means)[..., None])
    points *= (means / np.maximum(points.mean(axis=-1), 1e-300))[..., None]
    below = np.floor(points)
    above = points - below
    counts = np.concatenate([below, below + 1.0], axis=-1)
    return counts, np.concatenate([1.0 - above, above], axis=-1) / len(_SPREAD)


def _compute_waits(
    pass_seconds: PassSeconds, chain: _BatchChain, rate: float, most: float, delay: float
) -> tuple[Floats, Floats]:
    """Latencies and how many requests have each: of those that meet a pass, and those that meet none."""
    left = np.maximum(0.0, chain.waiting - chain.batch)[:, None, None]
    seconds = chain.seconds[:, None]
    before, weights = _sample_counts(rate * seconds * _WITHIN)
    rounds = np.floor((left + before) / most)
    after = (rate * seconds * (1.0 - _WITHIN))[..., None]
    joined = np.clip(left + before + 1.0 + after - rounds * most, 1.0, most)
    own = np.asarray(pass_seconds(joined.ravel())).reshape(joined.shape)
    full = float(pass_seconds(np.array([most]))[0])
    met = (seconds * (1.0 - _WITHIN))[..., None] + rounds * full + own
    weights = weights * (chain.share * rate * chain.seconds)[:, None, None] / len(_WITHIN)
    idle, first = float(chain.share[0]), float(chain.seconds[0])
    alone = np.array([delay + first, 0.5 * delay + first])
    return (
        np.concatenate([met.ravel(), alone]),
        np.concatenate([weights.ravel(), idle * np.array([1.0, rate * delay])]),
    )
