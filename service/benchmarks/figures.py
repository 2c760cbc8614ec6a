"""Figures of samples: of a result, of the repeats of a run, and of one run compared with another.

Everything here is computed from raw samples; statistics that a node reports are not used.
"""

from collections.abc import Sequence
from statistics import median
from typing import Literal, NamedTuple

from pydantic import MISSING

from service.protocol.results import BenchmarkMeasurement, BenchmarkResultReport
from service.protocol.summary import SampleStatistics, summarize_samples

ComparisonVerdict = Literal["slower", "same", "faster", "lower", "higher", "ambiguous"]
READ_METRICS = frozenset({"bytes", "watts"})
"""Metrics whose samples are readings; samples of the others are times."""


class ResultFigure(NamedTuple):
    """The figure of one result, and its samples: seconds of one execution each, or readings."""

    figure: float
    summary: SampleStatistics
    clock_hz: float | None
    """Median clock of the device that was measured; None if it is unknown."""


def is_metric_matching(result: BenchmarkResultReport) -> bool:
    """Returns true if the samples are of the kind that the metric of their benchmark is computed from."""
    measurement = result.measurement
    if measurement is MISSING:
        return True
    return bool(measurement.readings) == (result.benchmark.metric in READ_METRICS)


def compute_measured(result: BenchmarkResultReport) -> ResultFigure | None:
    """Computes the figure of a result from its samples; None if there are none."""
    measurement = result.measurement
    if measurement is MISSING:
        return None
    values, executions = measurement.values, measurement.inner_iterations
    return ResultFigure(
        figure=result.benchmark.compute_figure(values, inner_iterations=executions),
        summary=summarize_samples(
            [value / executions for value in values] if measurement.samples_ns else values
        ),
        clock_hz=_get_clock(measurement),
    )


def _get_clock(measurement: BenchmarkMeasurement) -> float | None:
    if measurement.telemetry is MISSING:
        return None
    given = (measurement.telemetry.sm_clock_hz, measurement.telemetry.cpu_clock_hz)
    return next((clock.median for clock in given if clock is not MISSING), None)


class RunFigure(NamedTuple):
    """The figure of a run: the median of its repeats, each measured by a process of its own.

    The spread between them is the uncertainty; samples within one process follow each other too closely.
    """

    value: float
    lowest: float
    highest: float
    repeats: int

    @property
    def relative_spread(self) -> float | None:
        """Spread between the repeats as a share of the figure; None if it is unknown."""
        if self.repeats == 1 or not self.value:
            return None
        return (self.highest - self.lowest) / self.value


def compute_run_figure(figures: Sequence[float]) -> RunFigure:
    """Computes the figure of at least one repeat."""
    return RunFigure(median(figures), min(figures), max(figures), len(figures))


class SampleSpread(NamedTuple):
    """Spread of the samples of a run: lowest minimum, median of the medians and highest q3 of its repeats."""

    minimum: float
    median: float
    q3: float

    @classmethod
    def from_repeats(cls, repeats: Sequence["SampleSpread"]) -> "SampleSpread":
        """Combines the samples of all repeats."""
        minima, medians, upper = zip(*repeats, strict=True)
        return cls(min(minima), median(medians), max(upper))

    def scale_by(self, factor: float) -> "SampleSpread":
        """Converts the samples to another unit."""
        return SampleSpread(self.minimum * factor, self.median * factor, self.q3 * factor)


class RunSamples(NamedTuple):
    """The samples of a run, in their unit and, if the clock is known, in cycles."""

    samples: SampleSpread
    cycles: SampleSpread | None

    @classmethod
    def from_repeats(cls, repeats: Sequence[ResultFigure]) -> "RunSamples":
        """Combines the samples of the repeats of a run."""
        each = [SampleSpread(one.summary.minimum, one.summary.median, one.summary.q3) for one in repeats]
        clocks = [one.clock_hz for one in repeats if one.clock_hz is not None]
        cycles = [samples.scale_by(clock) for samples, clock in zip(each, clocks, strict=False)]
        return cls(
            SampleSpread.from_repeats(each),
            SampleSpread.from_repeats(cycles) if len(clocks) == len(each) else None,
        )


def _compare_ranges(one: SampleSpread, other: SampleSpread) -> int:
    """Returns 1 if ``other`` lies above ``one``, from minimum to q3, -1 if it lies below, 0 if they touch."""
    return (other.minimum > one.q3) - (other.q3 < one.minimum)


def _is_near(one: SampleSpread, other: SampleSpread) -> bool:
    return one.minimum <= other.median <= one.q3 and other.minimum <= one.median <= other.q3


def compare_standings(baseline: RunSamples, other: RunSamples, *, is_time: bool) -> ComparisonVerdict:
    """Compares ``other`` with ``baseline``, by nvbench's rule for two runs.

    A difference is real if the intervals from minimum to third quartile are disjoint, in time and in cycles:
    a lower clock is not a slower kernel. Without clocks on both sides time alone decides.
    """
    gap = _compare_ranges(baseline.samples, other.samples)
    if not gap:
        return "same" if _is_near(baseline.samples, other.samples) else "ambiguous"
    if not is_time:
        return "higher" if gap > 0 else "lower"
    if baseline.cycles and other.cycles and _compare_ranges(baseline.cycles, other.cycles) != gap:
        return "ambiguous"
    return "slower" if gap > 0 else "faster"
