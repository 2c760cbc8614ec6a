"""The service's own table of measurements: a CSV with ``metric`` and ``value``, and what else is known.

``metric`` is the name of a figure with its unit in it, such as ``time_per_output_token_seconds``, always in
SI units; ``statistic`` is ``mean`` when left out, else a percentile or ``max``. ``run`` joins rows of a run.
Every further column is a member of the question by its path, such as ``workload.concurrency`` or
``cluster.accelerator_count``, or ``model_name`` and ``accelerator_name``; an empty cell leaves it out.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from service.formats.measurements import serving, training_logs
from service.formats.measurements.readings import (
    MOST_PARTS,
    FigureReading,
    FileMeasurements,
    MeasuredFileRun,
    RunFact,
    check_lines,
    read_positive,
    require_results,
)
from service.formats.offers.listed import RowError, read_table

METRICS: Final = frozenset(
    {
        *(serving.FIRST_TOKEN, serving.OUTPUT_TOKEN, serving.REQUEST, serving.REQUESTS, serving.OUTPUT),
        *(serving.TOTAL, serving.POWER, "energy_per_output_token_joules"),
        *(training_logs.STEP, training_logs.RATE, training_logs.SAMPLES, training_logs.ALLOCATED),
        training_logs.RESERVED,
    }
)
STATISTICS: Final = frozenset({"mean", "p50", "p95", "p99", "max"})
_OWN: Final = frozenset({"metric", "value", "statistic", "run"})
_PATH = re.compile(
    r"(?:workload|cluster|parallelism|model)(?:\.[a-z][a-z0-9_]*)+|model_name|accelerator_name"
)


def measurements_from_own_csv(content: str) -> FileMeasurements:
    """The runs of the service's own table; raises PlanningError for other files."""
    check_lines(content, MOST_PARTS)
    rows, refused, _ = read_table(content, ("metric", "value"), _read_row)
    read = FileMeasurements(refused=list(refused))
    runs: dict[str, MeasuredFileRun] = {}
    readings: dict[str, list[FigureReading]] = {}
    for run, reading, said in rows:
        known = runs.get(run)
        if known is None:
            runs[run] = MeasuredFileRun(reading.pointer, (), said)
            readings[run] = [reading]
        elif known.facts == said:
            readings[run].append(reading)
        else:
            error = RowError("CONTRADICTS_ANOTHER_ROW", "rows of one run must have the same members")
            read.record_refusal(reading.pointer, error)
    read.runs.extend(known._replace(readings=tuple(readings[run])) for run, known in runs.items())
    return require_results(read, "rows of measurements")


def _read_row(pointer: str, cells: Mapping[str, str]) -> tuple[str, FigureReading, dict[str, RunFact]]:
    metric = cells["metric"].strip()
    if metric not in METRICS:
        raise RowError("METRIC_UNKNOWN", "the metric is not one of those that are read")
    statistic = cells.get("statistic", "").strip() or "mean"
    if statistic not in STATISTICS:
        raise RowError("STATISTIC_UNKNOWN", "the statistic must be one of mean, p50, p95, p99 and max")
    said: dict[str, RunFact] = {}
    for name, text in cells.items():
        if name in _OWN or not text.strip():
            continue
        if not _PATH.fullmatch(name):
            raise RowError("COLUMN_UNKNOWN", "a column is not a member of a question")
        said[name] = _parse_fact(text.strip())
    return (
        cells.get("run", "").strip() or pointer,
        FigureReading(pointer, metric, read_positive(cells["value"]), statistic),
        said,
    )


def _parse_fact(text: str) -> RunFact:
    """A number, true or false, an object, or else text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float | bool | dict) else text
