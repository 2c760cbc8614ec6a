"""Observations: one benchmark as measured on one device, with the median and the extremes of its runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from service.calibrations.sets import FigureSources
from service.planning.hardware.calibration.measured import MeasuredFigure
from service.planning.quantity import Quantity
from service.protocol.work import BenchmarkWork


class BenchmarkObservation(NamedTuple):
    """Figures of several runs of one benchmark, in the unit of its metric."""

    benchmark: str
    work: BenchmarkWork
    metric: str
    warmup_seconds: float
    figures: tuple[float, ...]
    """Median of the repeats of each run."""
    low: float
    """Lowest figure of all repeats."""
    high: float
    result_ids: tuple[str, ...]
    run_ids: tuple[str, ...]
    conditions: Mapping[str, float | str] = {}

    @property
    def ends(self) -> tuple[float, float, float]:
        """Lowest, median and highest figure."""
        return self.low, median(self.figures), self.high

    @property
    def taken(self) -> tuple[float, float, float]:
        """Seconds of one execution or of an equal part of it, or the reading: lowest, median and highest."""
        low, middle, high = self.ends
        amount = self.work.count_work()
        match self.metric:
            case "flops_per_second":
                return amount.flops / high, amount.flops / middle, amount.flops / low
            case "bytes_per_second":
                return amount.moved_bytes / high, amount.moved_bytes / middle, amount.moved_bytes / low
            case _:
                return self.ends

    @property
    def seconds(self) -> float:
        """Median of the seconds, or of the reading."""
        return self.taken[1]


_Kind = TypeVar("_Kind")


def select_work(
    observations: Iterable[BenchmarkObservation], kind: type[_Kind]
) -> list[tuple[BenchmarkObservation, _Kind]]:
    """Returns the observations of one kind of work, each with its work."""
    return [(one, one.work) for one in observations if isinstance(one.work, kind)]


class FittedFigure(NamedTuple):
    """A computed figure under its name, with its sources."""

    name: str
    figure: MeasuredFigure | Quantity
    rests_on: FigureSources


FigureSolver = Callable[[BenchmarkObservation, float], float | None]
"""Returns the constant that explains the seconds or reading of an observation, or None."""


def solve_figure(
    name: str,
    observations: Sequence[BenchmarkObservation],
    solve: FigureSolver,
    *,
    limit: float | None,
    method: str,
) -> list[FittedFigure]:
    """Returns the median of the constants of all observations, with their extremes; empty without any."""
    found = [(one, ends) for one in observations if (ends := _solve_interval(one, solve)) is not None]
    if not found:
        return []
    used = [one for one, _ in found]
    figure = MeasuredFigure(
        low=min(low for _, (low, _, _) in found),
        value=median(value for _, (_, value, _) in found),
        high=max(high for _, (_, _, high) in found),
        runs=count_runs(used),
        limit=limit,
        source=format_source(used),
    )
    return [FittedFigure(name, figure, build_rests_on(used, method))]


def _solve_interval(one: BenchmarkObservation, solve: FigureSolver) -> tuple[float, float, float] | None:
    found = [solve(one, seconds) for seconds in one.taken]
    known = [value for value in found if value is not None and value > 0.0]
    if len(known) < len(found):
        return None
    return min(known), known[1], max(known)


def count_runs(observations: Iterable[BenchmarkObservation]) -> int:
    """Counts the runs behind several observations."""
    return len({run for one in observations for run in one.run_ids})


def format_source(observations: Sequence[BenchmarkObservation]) -> str:
    """Describes the benchmarks that a figure was measured by."""
    return f"measured by {', '.join(dict.fromkeys(one.benchmark for one in observations))}"


def build_rests_on(observations: Sequence[BenchmarkObservation], method: str) -> FigureSources:
    """Returns the sources of a figure of these observations."""
    return FigureSources(
        result_ids=tuple(dict.fromkeys(result for one in observations for result in one.result_ids)),
        run_ids=tuple(dict.fromkeys(run for one in observations for run in one.run_ids)),
        benchmarks=tuple(dict.fromkeys(one.benchmark for one in observations)),
        method=method,
        conditions=join_conditions([one.conditions for one in observations]),
    )


def join_conditions(several: Sequence[Mapping[str, float | str]]) -> dict[str, float | str]:
    """Joins conditions of several measurements: the median of numbers, and texts on which all agree."""
    together: dict[str, float | str] = {}
    for name in dict.fromkeys(name for each in several for name in each):
        values = [each[name] for each in several if name in each]
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) == len(values):
            together[name] = float(median(numbers))
        elif len(set(values)) == 1:
            together[name] = values[0]
    return together
