"""Repeats of runs as rows: those that count, their figure and their samples."""

from collections.abc import Iterable, Sequence
from typing import Any

from service.benchmarks.figures import ResultFigure, RunSamples, compute_run_figure
from service.benchmarks.tables import BenchmarkResultRow
from service.protocol.summary import SampleStatistics


def select_latest_attempt(rows: Sequence[BenchmarkResultRow]) -> list[BenchmarkResultRow]:
    """Returns the results of the last attempt of a run, since two attempts may be by two nodes."""
    last = max((row.fencing_token for row in rows), default=0)
    return [row for row in rows if row.fencing_token == last]


def select_slowest(rows: Sequence[BenchmarkResultRow]) -> list[BenchmarkResultRow]:
    """Returns the worst of the accelerators that measured a repeat at the same time, if all have reported."""
    beside: dict[tuple[str, int], list[BenchmarkResultRow]] = {}
    for row in rows:
        beside.setdefault((row.benchmark, row.repeat), []).append(row)
    return [
        (min if each[0].direction == "higher" else max)(each, key=lambda row: row.figure or 0.0)
        for each in beside.values()
        if len(each) >= each[0].conditions.get("concurrent_accelerators", 1)
    ]


def compute_figures(rows: Sequence[BenchmarkResultRow]) -> list[dict[str, Any]]:
    """Computes the figure of each benchmark from the counted results of a run."""
    by_benchmark: dict[str, list[BenchmarkResultRow]] = {}
    for row in select_slowest(select_latest_attempt(rows)):
        repeats = by_benchmark.setdefault(row.benchmark, [])
        if repeats and repeats[-1].work_sha256 != row.work_sha256:
            repeats.clear()  # the device had less room for this repeat, and its figure is another one
        repeats.append(row)
    return [
        {
            "benchmark": name,
            "metric": repeats[0].metric,
            "direction": repeats[0].direction,
            **compute_figure(repeats),
        }
        for name, repeats in by_benchmark.items()
    ]


def compute_figure(repeats: Sequence[BenchmarkResultRow]) -> dict[str, Any]:
    """Computes the figure of the repeats of a run."""
    figure = compute_run_figure([row.figure for row in repeats if row.figure is not None])
    shown = figure._asdict()
    return shown if figure.relative_spread is None else {**shown, "relative_spread": figure.relative_spread}


def group_by_run(rows: Iterable[BenchmarkResultRow]) -> list[list[BenchmarkResultRow]]:
    """Returns the repeats of the last attempt of each run, in the order of their first result.

    A run without a repeat that all of its accelerators have reported is left out.
    """
    runs: dict[str, list[BenchmarkResultRow]] = {}
    for row in rows:
        runs.setdefault(row.run_id, []).append(row)
    grouped = (select_slowest(select_latest_attempt(run)) for run in runs.values())
    return [repeats for repeats in grouped if repeats]


def compute_standing(repeats: Sequence[BenchmarkResultRow]) -> RunSamples:
    """Combines the samples of the repeats of a run."""
    return RunSamples.from_repeats([_to_measured(row) for row in repeats])


def _to_measured(row: BenchmarkResultRow) -> ResultFigure:
    clock = row.conditions.get("sm_clock_hz", row.conditions.get("cpu_clock_hz"))
    return ResultFigure(row.counted_figure, SampleStatistics(**(row.summary or {})), clock)
