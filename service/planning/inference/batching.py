"""Bulk service: a server that takes all waiting requests, up to a maximum, in one pass.

The number of waiting requests at the end of a pass is a Markov chain: of n requests the pass takes b = min(n,
B) for T(b) seconds, in which Poisson arrivals join the remaining n - b (Bailey 1954). The stationary
distribution is computed; a request waits for the rest of the pass that it meets and for full passes of the
requests ahead of it, and takes part in its own pass. For long queues the chain counts in steps of several
requests, with arrivals of the same mean and variance.

With a constant number of requests and no pause between them, each pass takes all of them or B, so that
latencies follow from Little's law and the number of passes in between.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
PassSeconds = Callable[[Floats], Floats]
"""Seconds of a pass over a number of requests, which need not be whole."""

_STATES = 72
"""States of the chain up to which a step is one request; larger systems are slower to solve."""
_MOST_STATES = 96
_WITHIN = (np.arange(6) + 0.5) / 6.0
"""Arrival times within a pass as shares of it, at equal weight."""
_TAIL = 8.0
"""Standard deviations of a count beyond which its probability is neglected."""


class BatchedPasses(NamedTuple):
    """One server of passes.

    ``pass_seconds`` is the mean over passes, ``batch`` the mean number of their requests. ``utilization`` is
    the share of time in which a pass runs. A ``saturated`` server receives more requests than it can serve;
    its latencies are None, as the queue grows without bound.
    """

    latencies: Floats | None
    """Latencies in seconds, ascending, of requests of equal weight."""
    mean_seconds: float
    """Mean latency of all requests; infinite where the server is saturated."""
    requests_per_second: float
    batch: float
    pass_seconds: float
    waiting: float
    utilization: float
    saturated: bool
    most_requests_per_second: float


_SAMPLES = (np.arange(256) + 0.5) / 256.0
"""Quantiles of the requests whose latencies are kept."""


def _sample_latencies(seconds: Floats, weights: Floats) -> tuple[Floats, float]:
    """Returns latencies of requests of equal weight, and the mean of all."""
    order = np.argsort(seconds)
    seconds, passed = seconds[order], np.cumsum(weights[order])
    places = np.searchsorted(passed, _SAMPLES * passed[-1])
    mean = float(seconds @ np.diff(passed, prepend=0.0) / passed[-1])
    return seconds[np.minimum(places, len(seconds) - 1)], mean


def estimate_closed_batching(pass_seconds: PassSeconds, requests: float, most: float) -> BatchedPasses:
    """Estimates a server with ``requests`` at a time, each replaced as it ends, at most ``most`` in a pass.

    Requests that find no room wait for whole passes: of c requests with B in a pass, the fractional part of c
    / B is the share that waits for one more.
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
    """Returns the rate of passes of the size with the highest rate, in requests per second."""
    sizes = np.unique(np.round(np.geomspace(1.0, max(1.0, most), 24)))
    return float(np.max(sizes / pass_seconds(sizes)))


@lru_cache(maxsize=8)
def _log_factorials(count: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count, dtype=np.float64)))])


def _approximate_erf(x: Floats) -> Floats:
    """Returns the error function by Abramowitz and Stegun 7.1.26, with an error below 1.5e-7."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.asarray(np.sign(x) * (1.0 - p * np.exp(-x * x)))


def _compute_arrival_probabilities(means: Floats, states: int, step: float) -> Floats:
    """Returns the probability of each count of steps, a row per mean.

    The last column takes all larger counts.
    """
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
    """States in requests, the batch of a pass in each, its seconds, and the probability of each state."""

    waiting: Floats
    batch: Floats
    seconds: Floats
    share: Floats


def _estimate_queue_length(pass_seconds: PassSeconds, rate: float, most: float, busy: float) -> float:
    """Returns a length that the queue hardly exceeds, from the balanced batch and the backlog."""
    batch = 1.0
    for _ in range(60):
        following = min(most, max(1.0, rate * float(pass_seconds(np.array([batch]))[0])))
        if abs(following - batch) < 1e-3 * batch:
            break
        batch = following
    # A pass of B clears B (1 - busy) more requests than arrive, with the variance of B arrivals: the backlog
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
    """Estimates a server with Poisson arrivals of ``rate_per_second``, at most ``most`` in a pass.

    An idle server starts ``delay_seconds`` after the first request that it receives.
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
"""Three points of equal weight with variance 1."""


def _sample_counts(means: Floats) -> tuple[Floats, Floats]:
    """Returns whole counts around ``means`` with Poisson spread, along a new last axis, and their weights.

    Each of three points is split into the count below and the count above it, so that the mean is kept.
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
    """Returns latencies and their weights, of requests that meet a pass and of those that meet none."""
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
