"""One benchmark as it was measured on one device: the middle of its runs, and what lies between them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from service.calibrations.sets import FigureSources
from service.planning.hardware.calibration.measured import MeasuredFigure
from service.planning.quantity import Quantity
from service.protocol.work import BenchmarkWork


class BenchmarkObservation(NamedTuple):
    """What several runs say of one benchmark; figures are in the unit of its metric."""

    benchmark: str
    work: BenchmarkWork
    metric: str
    warmup_seconds: float
    figures: tuple[float, ...]
    """Of each run the middle of its repeats."""
    low: float
    """The least of all repeats."""
    high: float
    result_ids: tuple[str, ...]
    run_ids: tuple[str, ...]
    conditions: Mapping[str, float | str] = {}

    @property
    def ends(self) -> tuple[float, float, float]:
        """Least, middle and most."""
        return self.low, median(self.figures), self.high

    @property
    def taken(self) -> tuple[float, float, float]:
        """Seconds of one execution or of one of its equal parts, or what was read: least, middle and most."""
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
        """The middle of what it took."""
        return self.taken[1]


_Kind = TypeVar("_Kind")


def select_work(
    observations: Iterable[BenchmarkObservation], kind: type[_Kind]
) -> list[tuple[BenchmarkObservation, _Kind]]:
    """The observations of one kind of work, each with its work."""
    return [(one, one.work) for one in observations if isinstance(one.work, kind)]


class FittedFigure(NamedTuple):
    """A figure that was drawn, under its name, with what it rests on."""

    name: str
    figure: MeasuredFigure | Quantity
    rests_on: FigureSources


FigureSolver = Callable[[BenchmarkObservation, float], float | None]
"""The constant under which an observation takes so many seconds, or reads so much; None where none does."""


def solve_figure(
    name: str,
    observations: Sequence[BenchmarkObservation],
    solve: FigureSolver,
    *,
    limit: float | None,
    method: str,
) -> list[FittedFigure]:
    """The middle of what each observation says, between the extremes of all; nothing where none says it."""
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
    """Runs behind several observations."""
    return len({run for one in observations for run in one.run_ids})


def format_source(observations: Sequence[BenchmarkObservation]) -> str:
    """What a figure was measured by, in words."""
    return f"measured by {', '.join(dict.fromkeys(one.benchmark for one in observations))}"


def build_rests_on(observations: Sequence[BenchmarkObservation], method: str) -> FigureSources:
    """What a figure of these observations rests on."""
    return FigureSources(
        result_ids=tuple(dict.fromkeys(result for one in observations for result in one.result_ids)),
        run_ids=tuple(dict.fromkeys(run for one in observations for run in one.run_ids)),
        benchmarks=tuple(dict.fromkeys(one.benchmark for one in observations)),
        method=method,
        conditions=join_conditions([one.conditions for one in observations]),
    )


def join_conditions(several: Sequence[Mapping[str, float | str]]) -> dict[str, float | str]:
    """Conditions of several measurements: the middle of numbers, and words in which all agree."""
    together: dict[str, float | str] = {}
    for name in dict.fromkeys(name for each in several for name in each):
        values = [each[name] for each in several if name in each]
        numbers = [value for value in values if not isinstance(value, str)]
        if len(numbers) == len(values):
            together[name] = float(median(numbers))
        elif len(set(values)) == 1:
            together[name] = values[0]
    return together
