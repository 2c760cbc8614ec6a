"""Load, server and served load of one replica of an engine: immutable values of both solvers.

Times are in seconds, lengths in tokens.
"""

from enum import StrEnum
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.inference.iteration import IterationTime
from service.planning.inference.speculation import Speculation

HOUR_SECONDS = 3600.0


class LengthDistribution(NamedTuple):
    """A distribution of lengths: ``weights``, which sum to 1, of ``values`` in ascending order."""

    mean: float
    values: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def square(self) -> float:
        """Mean of the squares."""
        return sum(w * v * v for v, w in zip(self.values, self.weights, strict=True))

    @property
    def variation(self) -> float:
        """Variance over the square of the mean."""
        if len(self.values) == 1:
            return 0.0
        return max(0.0, self.square / (self.mean * self.mean) - 1.0) if self.mean else 0.0

    @property
    def longest(self) -> float:
        """Largest value."""
        return self.values[-1]

    def compute_mean_longest(self, requests: float) -> float:
        """Returns the mean of the longest of ``requests`` independent ones.

        Sum of values x increase of F^requests.
        """
        below, mean, passed = 0.0, 0.0, 0.0
        for value, weight in zip(self.values, self.weights, strict=True):
            passed = min(1.0, passed + weight)
            power = passed**requests
            mean += value * (power - below)
            below = power
        return mean + self.values[-1] * (1.0 - below)

    def get_quantiles(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the values at the quantiles ``shares`` of the distribution."""
        if len(self.values) == 1:
            return np.full(shares.shape, self.values[0])
        steps = list(accumulate(self.weights))
        return np.asarray(self.values)[np.minimum(np.searchsorted(steps, shares), len(self.values) - 1)]


def build_fixed_lengths(tokens: float) -> LengthDistribution:
    """Builds lengths that are all equal."""
    return LengthDistribution(tokens, (tokens,), (1.0,))


def build_uniform_lengths(least: float, most: float, points: int = 8) -> LengthDistribution:
    """Builds uniform lengths between ``least`` and ``most``, at the middles of ``points`` equal parts."""
    if least == most:
        return build_fixed_lengths(least)
    part = (most - least) / points
    values = tuple(least + (i + 0.5) * part for i in range(points))
    return LengthDistribution((least + most) / 2.0, values, (1.0 / points,) * points)


class ArrivalProcess(StrEnum):
    """Arrival process of the requests of an open loop."""

    POISSON = "poisson"
    UNIFORM = "uniform"
    TRACE = "trace"


class Arrivals(NamedTuple):
    """Arrivals of requests; ``at_seconds`` are the ascending times of a trace."""

    process: ArrivalProcess = ArrivalProcess.POISSON
    at_seconds: tuple[float, ...] = ()

    @property
    def variation(self) -> float:
        """Variance of the gaps over the square of their mean: 1 for Poisson, 0 for even arrivals."""
        if self.process is not ArrivalProcess.TRACE:
            return 1.0 if self.process is ArrivalProcess.POISSON else 0.0
        gaps = [b - a for a, b in pairwise(self.at_seconds)]
        if not gaps or not sum(gaps):
            return 1.0
        mean = sum(gaps) / len(gaps)
        return sum((g - mean) ** 2 for g in gaps) / len(gaps) / (mean * mean)

    @property
    def rate_per_second(self) -> float:
        """Rate of a trace, whose last request is followed by a mean gap."""
        first, last, count = self.at_seconds[0], self.at_seconds[-1], len(self.at_seconds)
        return (count - 1) / (last - first) if last > first else float(count)


class ReplicaLoad(NamedTuple):
    """Load of a replica: a closed loop of ``concurrency`` requests or an open one at a rate.

    ``burst_requests`` are the requests of a closed loop that starts cold, ``concurrency`` of them at once.
    ``prefix_hit_rate`` is the share of the prompt tokens whose keys and values are cached already. An open
    loop is observed for ``open_seconds``: an unbounded queue has grown for that long.
    """

    inputs: LengthDistribution
    outputs: LengthDistribution
    concurrency: float | None
    rate_per_second: float | None = None
    arrivals: Arrivals = Arrivals()
    burst_requests: float | None = None
    prefix_hit_rate: float = 0.0
    open_seconds: float = HOUR_SECONDS

    @property
    def is_all_at_once(self) -> bool:
        """True if no request arrives after the start."""
        burst, together = self.burst_requests, self.concurrency
        return burst is not None and together is not None and burst <= together

    @property
    def computed_tokens(self) -> float:
        """Prompt tokens of a request that have to be computed; at least its last one."""
        return max(1.0, self.inputs.mean * (1.0 - self.prefix_hit_rate))

    @property
    def prefill_context(self) -> float:
        """Mean tokens that a computed prompt token attends to.

        All of the prefix and half of the computed tokens, weighted by tokens: long prompts have more of them.
        """
        hits = self.prefix_hit_rate
        mean = self.inputs.square / self.inputs.mean if self.inputs.mean else 0.0
        return mean * (hits + 0.5 * (1.0 - hits))

    @property
    def decodes(self) -> float:
        """Tokens of a request after the first, which the prefill yields."""
        return sum(
            w * max(0.0, v - 1.0) for v, w in zip(self.outputs.values, self.outputs.weights, strict=True)
        )

    @property
    def decoding_context(self) -> float:
        """Mean context of a decoding request, over all the tokens that it decodes.

        Token j attends to I + j: I + E[n (n + 1) / 2] / E[n], with n tokens after the first.
        """
        decodes = self.decodes
        if decodes == 0.0:
            return self.inputs.mean
        halves = sum(
            w * max(0.0, v - 1.0) * max(1.0, v) / 2.0
            for v, w in zip(self.outputs.values, self.outputs.weights, strict=True)
        )
        return self.inputs.mean + halves / decodes


class BatchScheduler(StrEnum):
    """Rule by which requests join a batch: whenever a place is free, or together after the last ended."""

    CONTINUOUS = "continuous"
    STATIC = "static"


class ReplicaServer(NamedTuple):
    """One replica of an engine.

    ``batched_tokens`` is the maximum that one iteration processes, ``cache_tokens`` the size of its cache,
    None for no limit. With ``mixed_prefill`` prompts are computed in the iterations that decode (vLLM,
    TensorRT-LLM); else in separate iterations, in which nothing decodes (SGLang). A request is admitted when
    its prompt and ``reserved_output`` of its output find room: 0 for engines that admit greedily and preempt
    (vLLM), 1 for those that never evict (TensorRT-LLM). ``frontend_seconds`` pass between a request's sending
    and the scheduler, and back with its first token. Each of ``ranks`` with separate attention, which share
    the replica's batch, takes whole prompts; all wait for the last.
    """

    most_requests: int | None
    batched_tokens: int
    cache_tokens: float | None
    block_tokens: int = 16
    chunked_prefill: bool = True
    scheduler: BatchScheduler = BatchScheduler.CONTINUOUS
    pipeline: int = 1
    speculation: Speculation | None = None
    mixed_prefill: bool = True
    reserved_output: float = 0.0
    frontend_seconds: float = 0.0
    ranks: int = 1
    cold_seconds: float = 0.0
    """Additional wait of the first requests after a cold start, in which kernels are compiled and tuned."""


class Percentiles(NamedTuple):
    """Mean and percentiles over requests."""

    mean: float
    p50: float
    p95: float
    p99: float


class RequestLatencies(NamedTuple):
    """Latencies of requests, each of equal weight."""

    first_token_seconds: NDArray[np.float64]
    per_token_seconds: NDArray[np.float64] | None
    """Seconds per output token; None where no request has a second token."""
    request_seconds: NDArray[np.float64]


class LatencyLimits(NamedTuple):
    """Service levels; None for a latency without one."""

    time_to_first_token_seconds: float | None = None
    time_per_output_token_seconds: float | None = None
    request_seconds: float | None = None


class ServedLoad(NamedTuple):
    """Load that one replica serves. Rates are per second, ``decoding`` and ``waiting`` are means over time.

    ``utilization`` is the share of time in which it computes, ``prefill_share`` the share of that time that
    prompts take. ``most_requests_per_second`` is its highest rate; a ``saturated`` replica receives more, and
    its latencies are those of ``ReplicaLoad.open_seconds``. ``iteration`` is the mean iteration.
    """

    time_to_first_token_seconds: Percentiles
    time_per_output_token_seconds: Percentiles | None
    """Seconds per output token; None where no request has a second token."""
    request_seconds: Percentiles
    requests_per_second: float
    output_tokens_per_second: float
    decoding: float
    waiting: float
    utilization: float
    saturated: bool
    most_requests_per_second: float
    preemptions_per_request: float
    prefill_share: float
    iteration: IterationTime
    outcomes: RequestLatencies
    knee_requests: float | None = None
    """Concurrent requests at which rate over latency is largest (Kleinrock 1979), where it was computed."""

    def compute_goodput(self, levels: LatencyLimits) -> float:
        """Returns the share of requests within all service levels."""
        within = np.ones(self.outcomes.first_token_seconds.shape, dtype=bool)
        for measured, most in zip(self.outcomes, levels, strict=True):
            if measured is not None and most is not None:
                within &= ~(measured > most)
        return float(within.mean())


def compute_percentiles(values: NDArray[np.float64]) -> Percentiles:
    """Returns the percentiles of requests of equal weight; NaN marks requests without the latency."""
    # NaN is sorted after all numbers.
    ordered = np.sort(values)
    ordered = ordered[: len(ordered) - int(np.isnan(values).sum())]
    last = len(ordered) - 1
    p50, p95, p99 = (float(ordered[round(share * last)]) for share in (0.50, 0.95, 0.99))
    return Percentiles(float(ordered.mean()), p50, p95, p99)
