"""Contents of a file of measurements: runs with their readings in SI units, and refused parts.

A reading keeps its place in the file. Facts of a run are members of a question by their path, such as
``workload.concurrency``, and also ``model_name`` and ``accelerator_name`` as the file spells them. Facts that
a file does not state are absent: no reader guesses a model, a device or a unit.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple, TypeVar

from service.formats.offers.listed import RefusedOffer, RowError
from service.planning.errors import PlanningError

RunFact = str | int | float | bool | Mapping[str, object]
RunFacts = Mapping[str, RunFact]
_Part = TypeVar("_Part")


class FigureReading(NamedTuple):
    """One figure: ``value`` in the unit that ``metric`` ends in, ``of`` its subject in the run.

    ``statistic`` is ``mean``, ``p50``, another percentile, ``min``, ``max``, or ``single`` for one value.
    ``pointer`` is the line (``/12``) or the JSON Pointer of the figure.
    """

    pointer: str
    metric: str
    value: float
    statistic: str = "single"
    of: Mapping[str, str | int | float] = {}


class MeasuredFileRun(NamedTuple):
    """One run of the file: its readings and the facts that the file states."""

    pointer: str
    readings: tuple[FigureReading, ...]
    facts: RunFacts = {}

    def find_reading(self, metric: str, *statistics: str) -> FigureReading | None:
        """The first reading of ``metric`` with the first of ``statistics`` that there is."""
        for statistic in statistics or ("single",):
            for reading in self.readings:
                if (reading.metric, reading.statistic) == (metric, statistic):
                    return reading
        return None


@dataclass(slots=True)
class FileMeasurements:
    """Contents of one file; ``notes`` are caveats with their place."""

    runs: list[MeasuredFileRun] = field(default_factory=list)
    refused: list[RefusedOffer] = field(default_factory=list)
    notes: list[RefusedOffer] = field(default_factory=list)

    def record_refusal(self, pointer: str, error: RowError) -> None:
        """Records a part that cannot be read."""
        self.refused.append(RefusedOffer(pointer, error.code, error.detail))

    def record_note(self, pointer: str, code: str, detail: str) -> None:
        """Records a caveat of a part that was read."""
        self.notes.append(RefusedOffer(pointer, code, detail))


NUMBER: Final = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
"""A number as logs print it, with or without commas between thousands."""
_SECONDS: Final = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecond", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "usecond", "microsecond", "microseconds", "µs"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecond", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
}


def parse_printed_number(text: str) -> float:
    """A number that a log prints, commas between thousands left out; raises RowError for anything else."""
    if not re.fullmatch(NUMBER, text.strip()):
        raise RowError("NOT_A_NUMBER", "a figure is not a number")
    return _check_finite(float(text.replace(",", "")))


def _check_finite(value: float) -> float:
    if not math.isfinite(value):
        raise RowError("NOT_A_NUMBER", "a figure is not finite")
    return value


def read_number(value: object) -> float:
    """A number of a document, also one that is written as text; raises RowError for anything else."""
    if isinstance(value, str):
        return parse_printed_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise RowError("NOT_A_NUMBER", "a figure is not a number")
    return _check_finite(float(value))


def read_positive(value: object) -> float:
    """A number above 0: a rate or a time of 0 was not measured."""
    figure = read_number(value)
    if figure <= 0.0:
        raise RowError("NOT_POSITIVE", "a figure that must be above 0 is not")
    return figure


def read_count(value: object) -> int | None:
    """Returns a whole number above 0; None for anything else."""
    if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
        try:
            figure = read_number(value)
        except RowError:
            return None
        if figure > 0.0 and figure == int(figure):
            return int(figure)
    return None


def read_seconds(value: object, unit: str) -> float:
    """A time of any unit in seconds; raises RowError where the unit is not one of time."""
    scale = _SECONDS.get(unit.strip().lower())
    if scale is None:
        raise RowError("UNIT_UNKNOWN", "a time has a unit that is not one of time")
    return read_number(value) * scale


def read_mapping(value: object) -> Mapping[str, object]:
    """An object of a document; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def read_sequence(value: object) -> list[object]:
    """A list of a document; an empty one for anything else."""
    return value if isinstance(value, list) else []


def get_member(document: object, *path: str) -> object:
    """Returns the member at a path; None if there is none."""
    for name in path:
        document = read_mapping(document).get(name)
    return document


def build_facts(**given: RunFact | None) -> dict[str, RunFact]:
    """The facts that are known; two underscores stand for the dot of a path."""
    return {name.replace("__", "."): value for name, value in given.items() if value is not None}


def build_token_length(mean: float | None, deviation: float | None = None) -> RunFact | None:
    """A length of requests as a question has it, from the mean in tokens and the standard deviation.

    Lengths that vary are taken as lognormal, for which sigma^2 = ln(1 + deviation^2 / mean^2).
    """
    if mean is None or mean < 1.0:
        return None
    if deviation is None or deviation <= _EVEN * mean:
        return max(1, round(mean))
    sigma = math.sqrt(math.log1p((deviation / mean) ** 2))
    return {"distribution": "lognormal", "mean_tokens": mean, "sigma": sigma}


_EVEN: Final = 0.02
"""Deviation over mean below which lengths count as equal."""
MOST_LINES: Final = 200_000
"""Most lines of one file; a longer log continued after the run."""
MOST_PARTS: Final = 5000
"""Runs, tests or results of one file, each of which is read into an object of its own."""
_LONGEST_LINE: Final = 2000
"""Longest part of a line that is matched, so that no pattern takes long."""
_CODES: Final = re.compile(r"\x1b\[[0-9;]*+[A-Za-z]")


def read_lines(content: str) -> Iterator[tuple[str, str]]:
    """Lines of a log with their pointers, without codes of colour; the first is ``/1``.

    Raises PlanningError for more than ``MOST_LINES``.
    """
    check_lines(content)
    for place, line in enumerate(_CODES.sub("", content.removeprefix("\ufeff")).splitlines(), start=1):
        yield f"/{place}", line[:_LONGEST_LINE]


def check_lines(content: str, most: int = MOST_LINES) -> None:
    """Refuse a table, or parts of which each is a line, of more than ``most`` lines with a PlanningError."""
    if content.count("\n") + content.count("\r") > 2 * most or len(content.splitlines()) > most:
        raise PlanningError("TOO_MANY_LINES", "/content", f"the content has more than {most} lines")


def check_part_count(listed: Sequence[_Part]) -> Sequence[_Part]:
    """The parts of a document; raises PlanningError for more than ``MOST_PARTS``."""
    if len(listed) > MOST_PARTS:
        raise PlanningError("TOO_MANY_PARTS", "/content", f"the content lists more than {MOST_PARTS} results")
    return listed


def read_part_lines(content: str) -> Iterator[tuple[str, str]]:
    """Lines that each hold a document, those that are not empty; raises PlanningError for too many."""
    check_lines(content, MOST_PARTS)
    for place, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            yield f"/{place}", line


NOT_A_RESULT: Final = "NOT_A_RESULT"
"""Code of a part of a file that has no member of its format."""


def require_results(measurements: FileMeasurements, what: str) -> FileMeasurements:
    """Returns ``measurements``, which must not be empty; raises PlanningError for a file of another kind."""
    if not measurements.runs and all(one.code == NOT_A_RESULT for one in measurements.refused):
        raise PlanningError("FORMAT", "/content", f"the content contains no {what}")
    return measurements


def format_percentile(value: object) -> str:
    """``p99`` of 99, 99.0, p99 or 99.00; ``p99.9`` of 99.9."""
    return f"p{float(str(value).lower().removeprefix('p')):g}"


def select_worst(readings: Iterable[FigureReading], *, largest: bool) -> FigureReading | None:
    """Returns the reading that binds all devices; None if there is none."""
    known = list(readings)
    if not known:
        return None
    return (max if largest else min)(known, key=lambda reading: reading.value)
