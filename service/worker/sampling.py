"""Stopping rules of a benchmark: of its warm-up, of the length of a sample, and of the number of samples.

Warm-up is limited by time and not by count, because a cold device scores higher (Bekman, Machine Learning
Engineering, MAMF finder). On request it continues until the device is steady: two consecutive spans at the
same rate, and no warmer. Sampling ends once the interquartile range is a small share of the median
(torch.utils.benchmark, adaptive_autorange). No sample is discarded for its value.
"""

import time
from bisect import insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median, quantiles
from typing import Literal

from service.protocol.suites import BenchmarkSampling
from service.worker.benchmark import TimedBenchmark

NanosecondClock = Callable[[], int]
TemperatureReader = Callable[[], float | None]
StopReason = Literal["spread", "time_limit", "sample_limit"]

LEAST_SAMPLE_NS = 100_000
RESOLUTIONS = 200
"""Least steps of the timer in a sample, so that reading it adds at most 0.5%."""
CUDA_EVENT_NS = 500
"""Resolution of event times: about half a microsecond (CUDA Runtime API, cudaEventElapsedTime)."""
MOST_ITERATIONS = 10**7
SPAN_SECONDS = 5.0
"""Length of the spans that are compared when a warm-up waits for a steady state."""
SAME_RATE = 0.005
"""Relative difference up to which two spans have the same rate."""
SAME_CELSIUS = 1.0
"""Difference up to which two temperatures are equal; a reading is in whole degrees."""
_MARGIN = 1.25
_NS = 10**9


class WorkTooShort(Exception):
    """The work is too short for the timer, however often it is repeated."""


@dataclass(frozen=True, slots=True)
class Warmup:
    """Executions before the first sample, and the number of executions of a sample."""

    inner_iterations: int
    iterations: int
    seconds: float
    first_call_seconds: float
    """Seconds of the first call by the host's clock, including loading, compiling and flushing."""
    rests: bool = True
    """False if the device was still changing when the time for the warm-up was over."""


@dataclass(frozen=True, slots=True)
class TimedSamples:
    """Nanoseconds of each sample in the order taken, discarded samples by reason, and the stop reason."""

    samples_ns: list[int]
    discarded: dict[str, int]
    stop_reason: StopReason


def resolution_ns(timer: str, clock: NanosecondClock = time.perf_counter_ns) -> int:
    """Returns the smallest step of a timer in nanoseconds: measured for the host, documented for events."""
    if timer == "cuda_event":
        return CUDA_EVENT_NS

    def measure_step() -> int:
        start = clock()
        while not (passed := clock() - start):
            pass
        return passed

    return min(measure_step() for _ in range(10))


def least_sample_ns(sampling: BenchmarkSampling, timer_ns: int) -> int:
    """Returns the least length of a sample in nanoseconds.

    It is at least 100 us and 200 steps of the timer, and so long that the most samples together last the
    least time that is required.
    """
    return max(
        LEAST_SAMPLE_NS, RESOLUTIONS * timer_ns, ceil(sampling.least_seconds * _NS / sampling.most_samples)
    )


def warm_up(
    timed: TimedBenchmark,
    sampling: BenchmarkSampling,
    *,
    timer_ns: int,
    clock: NanosecondClock = time.perf_counter_ns,
    temperature: TemperatureReader = lambda: None,
) -> Warmup:
    """Executes the same work until its time is spent and a sample of it is long enough.

    There are at least two calls, since the first one may be long only because it is the first. If
    ``most_warmup_seconds`` is longer, it continues until the device is steady; ``temperature`` is in degrees
    Celsius, None if it is unknown. Raises :class:`WorkTooShort`.
    """
    least, unit = _MARGIN * least_sample_ns(sampling, timer_ns), timed.facts.executions_per_launch
    start = clock()
    timed.execute(unit)
    first = clock() - start
    inner, iterations, rest = unit, unit, _WarmupTrend(clock, temperature)
    while True:
        took = timed.execute(inner)
        iterations += inner
        if took < least:
            wanted = _increase_iterations(inner, took, least)
            inner, rest = ceil(wanted / unit) * unit, _WarmupTrend(clock, temperature)
            continue
        rest.add(took)
        passed = (clock() - start) / _NS
        is_over = passed >= max(sampling.most_warmup_seconds, sampling.warmup_seconds)
        if is_over or (passed >= sampling.warmup_seconds and rest.is_there):
            is_asked = sampling.most_warmup_seconds > sampling.warmup_seconds
            return Warmup(inner, iterations, passed, first / _NS, rest.is_there or not is_asked)


class _WarmupTrend:
    """Comparison of the last span of a warm-up with the one before it."""

    def __init__(self, clock: NanosecondClock, temperature: TemperatureReader) -> None:
        self._clock, self._temperature = clock, temperature
        self._times: list[int] = []
        self._began = clock()
        self._before: tuple[float, float | None] | None = None
        self.is_there = False

    def add(self, took: int) -> None:
        """Adds a time of the same number of executions."""
        self._times.append(took)
        if self._clock() - self._began < SPAN_SECONDS * _NS:
            return
        now = median(self._times), self._temperature()
        if self._before:
            (rate, celsius), (former, cooler) = now, self._before
            is_warmer = celsius is not None and cooler is not None and celsius - cooler > SAME_CELSIUS
            self.is_there = abs(rate - former) <= SAME_RATE * former and not is_warmer
        self._before, self._times, self._began = now, [], self._clock()


def _increase_iterations(inner: int, took: int, least: float) -> int:
    if inner >= MOST_ITERATIONS:
        raise WorkTooShort(f"{inner} executions take {took} ns")
    wanted = ceil(inner * _MARGIN * least / took) if took > 0 else 10 * inner
    return min(max(wanted, inner + 1), 10 * inner, MOST_ITERATIONS)


def take_samples(
    timed: TimedBenchmark,
    sampling: BenchmarkSampling,
    inner_iterations: int,
    *,
    clock: NanosecondClock = time.perf_counter_ns,
) -> TimedSamples:
    """Takes samples until the stopping rule is met; the first and any time of 0 are discarded.

    ``most_seconds`` is by the host's clock and includes the flushes between samples; one sample is always
    taken, however long it is. Raises :class:`WorkTooShort` if no sample has a time.
    """
    samples: list[int] = []
    ordered: list[int] = []
    discarded = Counter({"first": 1})
    total = 0
    start = clock()
    timed.execute(inner_iterations)
    while True:
        took = timed.execute(inner_iterations)
        if took > 0:
            samples.append(took)
            total += took
            insort(ordered, took)
        else:
            discarded["no-time"] += 1
        reason = _find_stop_reason(ordered, sum_ns=total, elapsed_ns=clock() - start, sampling=sampling)
        if reason and samples:
            return TimedSamples(samples, dict(discarded), reason)
        if reason:
            raise WorkTooShort(f"{inner_iterations} executions take no time")


def _find_stop_reason(
    ordered: Sequence[int], *, sum_ns: int, elapsed_ns: int, sampling: BenchmarkSampling
) -> StopReason | None:
    enough = len(ordered) >= sampling.least_samples and sum_ns >= sampling.least_seconds * _NS
    if enough and relative_spread(ordered) <= sampling.relative_spread:
        return "spread"
    if len(ordered) >= sampling.most_samples:
        return "sample_limit"
    return "time_limit" if elapsed_ns >= sampling.most_seconds * _NS else None


def relative_spread(samples: Sequence[int]) -> float:
    """Returns the interquartile range as a share of the median; 0 for a single sample."""
    if len(samples) == 1:
        return 0.0
    q1, middle, q3 = quantiles(samples, n=4, method="inclusive")
    return (q3 - q1) / middle
