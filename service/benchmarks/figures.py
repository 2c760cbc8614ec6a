"""What samples say: the figure of a result, of the repeats of a run, and of one run beside another.

Everything here is computed from raw samples; what a node says about them is not read.
"""

from collections.abc import Sequence
from statistics import median
from typing import Literal, NamedTuple

from pydantic import MISSING

from service.protocol.results import Measurement, Result
from service.protocol.summary import Summary, summarize

Verdict = Literal["slower", "same", "faster", "lower", "higher", "ambiguous"]
READ_METRICS = frozenset({"bytes", "watts"})
"""Metrics whose samples are readings; those of the others are times."""


class Measured(NamedTuple):
    """The figure of one result, and its samples: seconds of one execution each, or readings."""

    figure: float
    summary: Summary
    clock_hz: float | None
    """Middle reading of the clock of what worked, None where it is unknown."""


def fits_metric(result: Result) -> bool:
    """Whether the samples are of the kind that the metric of their benchmark is computed from."""
    measurement = result.measurement
    if measurement is MISSING:
        return True
    return bool(measurement.readings) == (result.benchmark.metric in READ_METRICS)


def measured(result: Result) -> Measured | None:
    """What the samples of a result say; None where there are none."""
    measurement = result.measurement
    if measurement is MISSING:
        return None
    values, executions = measurement.values, measurement.inner_iterations
    return Measured(
        figure=result.benchmark.figure(values, inner_iterations=executions),
        summary=summarize([value / executions for value in values] if measurement.samples_ns else values),
        clock_hz=_clock(measurement),
    )


def _clock(measurement: Measurement) -> float | None:
    if measurement.telemetry is MISSING:
        return None
    given = (measurement.telemetry.sm_clock_hz, measurement.telemetry.cpu_clock_hz)
    return next((clock.median for clock in given if clock is not MISSING), None)


class RunFigure(NamedTuple):
    """The figure of a run: the middle one of its repeats, each measured by a process of its own.

    The spread between them is the uncertainty; within one process samples follow each other too closely.
    """

    value: float
    lowest: float
    highest: float
    repeats: int

    @property
    def relative_spread(self) -> float | None:
        """What lies between the repeats as a share of the figure; None where it is unknown."""
        if self.repeats == 1 or not self.value:
            return None
        return (self.highest - self.lowest) / self.value


def run_figure(figures: Sequence[float]) -> RunFigure:
    """The figure of at least one repeat."""
    return RunFigure(median(figures), min(figures), max(figures), len(figures))


class Samples(NamedTuple):
    """Where the samples of a run lie: the lowest minimum, middle median and highest q3 of its repeats."""

    minimum: float
    median: float
    q3: float

    @classmethod
    def of(cls, repeats: Sequence["Samples"]) -> "Samples":
        """The samples of all repeats together."""
        minima, medians, upper = zip(*repeats, strict=True)
        return cls(min(minima), median(medians), max(upper))

    def times(self, factor: float) -> "Samples":
        """The same samples in another unit."""
        return Samples(self.minimum * factor, self.median * factor, self.q3 * factor)


class Standing(NamedTuple):
    """The samples of a run, in the unit they were taken in and, where the clock is known, in cycles."""

    samples: Samples
    cycles: Samples | None

    @classmethod
    def of(cls, repeats: Sequence[Measured]) -> "Standing":
        """How the repeats of a run stand."""
        each = [Samples(one.summary.minimum, one.summary.median, one.summary.q3) for one in repeats]
        clocks = [one.clock_hz for one in repeats if one.clock_hz is not None]
        cycles = [samples.times(clock) for samples, clock in zip(each, clocks, strict=False)]
        return cls(Samples.of(each), Samples.of(cycles) if len(clocks) == len(each) else None)


def _gap(one: Samples, other: Samples) -> int:
    """1 where ``other`` lies above ``one``, minimum to q3, -1 where it lies below, 0 where they touch."""
    return (other.minimum > one.q3) - (other.q3 < one.minimum)


def _near(one: Samples, other: Samples) -> bool:
    return one.minimum <= other.median <= one.q3 and other.minimum <= one.median <= other.q3


def verdict(baseline: Standing, other: Standing, *, is_time: bool) -> Verdict:
    """How ``other`` stands to ``baseline``, by nvbench's rule for two runs.

    A difference is real where the intervals from minimum to third quartile are disjoint, in time and in
    cycles: a clock that was lower is no slower kernel. Without clocks on both sides time decides alone.
    """
    gap = _gap(baseline.samples, other.samples)
    if not gap:
        return "same" if _near(baseline.samples, other.samples) else "ambiguous"
    if not is_time:
        return "higher" if gap > 0 else "lower"
    if baseline.cycles and other.cycles and _gap(baseline.cycles, other.cycles) != gap:
        return "ambiguous"
    return "slower" if gap > 0 else "faster"
