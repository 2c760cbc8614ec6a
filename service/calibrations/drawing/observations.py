"""One benchmark as it was measured on one device: the middle of its runs, and what lies between them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from service.calibrations.sets import RestsOn
from service.planning.hardware.calibration.measured import MeasuredFigure
from service.planning.quantity import Quantity
from service.protocol.work import Work


class Observation(NamedTuple):
    """What several runs say of one benchmark; figures are in the unit of its metric."""

    benchmark: str
    work: Work
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
        amount = self.work.amount()
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


def having(observations: Iterable[Observation], kind: type[_Kind]) -> list[tuple[Observation, _Kind]]:
    """The observations of one kind of work, each with its work."""
    return [(one, one.work) for one in observations if isinstance(one.work, kind)]


class Figure(NamedTuple):
    """A figure that was drawn, under its name, with what it rests on."""

    name: str
    figure: MeasuredFigure | Quantity
    rests_on: RestsOn


Solve = Callable[[Observation, float], float | None]
"""The constant under which an observation takes so many seconds, or reads so much; None where none does."""


def solved(
    name: str, observations: Sequence[Observation], solve: Solve, *, limit: float | None, method: str
) -> list[Figure]:
    """The middle of what each observation says, between the extremes of all; nothing where none says it."""
    found = [(one, ends) for one in observations if (ends := _ends(one, solve)) is not None]
    if not found:
        return []
    used = [one for one, _ in found]
    figure = MeasuredFigure(
        low=min(low for _, (low, _, _) in found),
        value=median(value for _, (_, value, _) in found),
        high=max(high for _, (_, _, high) in found),
        runs=runs_of(used),
        limit=limit,
        source=source_of(used),
    )
    return [Figure(name, figure, rests_on(used, method))]


def _ends(one: Observation, solve: Solve) -> tuple[float, float, float] | None:
    found = [solve(one, seconds) for seconds in one.taken]
    known = [value for value in found if value is not None and value > 0.0]
    if len(known) < len(found):
        return None
    return min(known), known[1], max(known)


def runs_of(observations: Iterable[Observation]) -> int:
    """Runs behind several observations."""
    return len({run for one in observations for run in one.run_ids})


def source_of(observations: Sequence[Observation]) -> str:
    """What a figure was measured by, in words."""
    return f"measured by {', '.join(dict.fromkeys(one.benchmark for one in observations))}"


def rests_on(observations: Sequence[Observation], method: str) -> RestsOn:
    """What a figure of these observations rests on."""
    return RestsOn(
        result_ids=tuple(dict.fromkeys(result for one in observations for result in one.result_ids)),
        run_ids=tuple(dict.fromkeys(run for one in observations for run in one.run_ids)),
        benchmarks=tuple(dict.fromkeys(one.benchmark for one in observations)),
        method=method,
        conditions=joined([one.conditions for one in observations]),
    )


def joined(several: Sequence[Mapping[str, float | str]]) -> dict[str, float | str]:
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
