"""Statistics of samples: order statistics first, because samples have long tails."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb, fsum
from statistics import fmean, median, pstdev, quantiles

CONFIDENCE = 0.95
_EXACT_LIMIT = 1000
_NORMAL_QUANTILE = 1.959964


@dataclass(frozen=True, slots=True)
class SampleStatistics:
    """Statistics of samples: of seconds of one execution, or of readings in the unit of the metric."""

    size: int
    """Number of samples."""
    minimum: float
    """Lowest sample."""
    q1: float
    """Lower quartile."""
    median: float
    """Middle sample."""
    q3: float
    """Upper quartile."""
    maximum: float
    """Highest sample."""
    mean: float
    """Arithmetic mean."""
    standard_deviation: float
    """Standard deviation of all samples."""
    median_absolute_deviation: float
    """Median of the distances from the median."""
    p95: float
    """95th percentile."""
    p99: float
    """99th percentile."""
    median_low: float
    """Lower end of the 95% confidence interval of the median."""
    median_high: float
    """Upper end of the 95% confidence interval of the median."""
    drift: float
    """Change over the whole window by least squares, as a share of the median."""
    autocorrelation: float
    """Correlation of each sample with the next."""

    @property
    def relative_spread(self) -> float:
        """Interquartile range as a share of the median."""
        return (self.q3 - self.q1) / self.median if self.median else 0.0


def summarize_samples(samples: Sequence[float]) -> SampleStatistics:
    """Returns the statistics of at least one sample, in the order in which they were taken."""
    ordered = sorted(samples)
    middle = median(ordered)
    low, high = _compute_median_interval(len(ordered))
    q1, _, q3 = quantiles(ordered, n=4, method="inclusive") if len(ordered) > 1 else [ordered[0]] * 3
    return SampleStatistics(
        size=len(ordered),
        minimum=ordered[0],
        q1=q1,
        median=middle,
        q3=q3,
        maximum=ordered[-1],
        mean=fmean(ordered),
        standard_deviation=pstdev(ordered),
        median_absolute_deviation=median(abs(sample - middle) for sample in ordered),
        p95=_select_nearest_rank(ordered, 95),
        p99=_select_nearest_rank(ordered, 99),
        median_low=ordered[low],
        median_high=ordered[high],
        drift=_compute_drift(samples) / middle if middle else 0.0,
        autocorrelation=_compute_autocorrelation(samples),
    )


def _select_nearest_rank(ordered: Sequence[float], percent: int) -> float:
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _compute_median_interval(count: int) -> tuple[int, int]:
    """Returns the places of the order statistics that enclose the median with 95% confidence.

    Distribution-free, by the sign test (Conover, Practical Nonparametric Statistics, 3.2): the number of
    samples below the median is binomial. With fewer than six samples it is the whole range.
    """
    if count > _EXACT_LIMIT:
        # Half a sample for continuity: without it the interval would be less sure than it says.
        below = int((count - 1 - _NORMAL_QUANTILE * count**0.5) / 2)
    else:
        tail, below = 0, -1
        while (tail + comb(count, below + 1)) * 2 <= (1 - CONFIDENCE) * 2**count:
            below += 1
            tail += comb(count, below)
    place = max(below, 0)
    return place, count - 1 - place


def _compute_drift(samples: Sequence[float]) -> float:
    count = len(samples)
    if count == 1:
        return 0.0
    centre = (count - 1) / 2
    slope = fsum((place - centre) * sample for place, sample in enumerate(samples))
    return slope / (count * (count * count - 1) / 12) * (count - 1)


def _compute_autocorrelation(samples: Sequence[float]) -> float:
    mean = fmean(samples)
    deviations = [sample - mean for sample in samples]
    variance = sum(deviation * deviation for deviation in deviations)
    if not variance:
        return 0.0
    return sum(a * b for a, b in pairwise(deviations)) / variance
