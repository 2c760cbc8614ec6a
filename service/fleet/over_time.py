"""One benchmark of a node over time, as a chart and a table."""

from collections.abc import Sequence
from typing import Any, Final

from service.benchmarks import service as benchmarks
from service.benchmarks.schemas import ComparisonQuery
from service.benchmarks.service import LastFigure
from service.fleet.last_results import FEWEST_DATED, name_nodes
from service.fleet.words import format_change, format_figure, format_range, select_figure_scale
from service.kit.database.engine import Reader
from service.kit.http.html import format_moment
from service.kit.reports.charts.drawing import ChartLabel, ChartMark
from service.kit.reports.charts.moments import DatedFigure, render_dated_figures
from service.kit.reports.numbers import UnitScale
from service.kit.reports.shapes import ReportChart, ReportTable

MOST_DATED: Final = 50
_NEAR: Final = 0.5
"""Least share of a data sheet that is drawn as a level; a farther one would flatten the chart."""


def select_dated(figures: Sequence[LastFigure], wanted: str, worse: Sequence[str]) -> LastFigure | None:
    """Returns the figure to show over time: the one asked for, else the worst regression, else the first."""
    dated = {figure.benchmark: figure for figure in figures if figure.runs >= FEWEST_DATED}
    names = [name for name in (wanted, *worse, *dated) if name in dated]
    return dated[names[0]] if names else None


def build_dated(session: Reader, tenant_id: str, node_id: str, figure: LastFigure) -> dict[str, Any]:
    """Returns the chart and the table of a benchmark over the last runs of a node."""
    query = ComparisonQuery(
        benchmark=figure.benchmark, node_id=node_id, baseline_run_id=figure.run_id, runs=MOST_DATED
    )
    runs = benchmarks.compare_runs(session, tenant_id, query)["runs"]
    scale = select_figure_scale(max(run["value"] for run in runs), figure.metric)
    caption = f"{figure.benchmark} over time"
    first, last = (format_figure(runs[place]["value"], figure.metric, scale) for place in (0, -1))
    about = ChartLabel(
        "dated",
        caption,
        f"Points of {len(runs)} runs with the range of their repeats, from {first} to {last}. "
        "The axis need not begin at zero.",
    )
    points = [DatedFigure(run["received_at"], run["value"], run["lowest"], run["highest"]) for run in runs]
    chart = render_dated_figures(about, points, scale, _list_marks(figure))
    note = f"These are the newest {MOST_DATED} runs." if len(runs) == MOST_DATED else ""
    table = _build_table(figure, runs, scale)
    return {"benchmark": figure.benchmark, "picture": ReportChart(caption, chart, table, note)}


def _list_marks(figure: LastFigure) -> list[ChartMark]:
    """Returns the levels that the figure is held against."""
    marks = []
    if figure.datasheet is not None and figure.value >= _NEAR * figure.datasheet:
        marks.append(ChartMark("data sheet", figure.datasheet))
    if figure.other_nodes is not None:
        marks.append(ChartMark(name_nodes(figure.other_nodes), figure.other_nodes.value))
    return marks


def _build_table(figure: LastFigure, runs: Sequence[dict[str, Any]], scale: UnitScale) -> ReportTable:
    rows = []
    before = None
    for run in runs:
        value, low, high = (
            format_figure(run[end], figure.metric, scale) for end in ("value", "lowest", "highest")
        )
        change = format_change(run["value"] / before - 1) if before else ""
        rows.append((format_moment(run["received_at"]), value, format_range(low, high), change))
        before = run["value"]
    return ReportTable(
        f"Runs of {figure.benchmark}, the newest first",
        ("Received", "Measured", "Repeats", "Change"),
        rows[::-1],
        frozenset({1, 2, 3}),
    )
