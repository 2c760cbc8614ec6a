"""The last results of a node beside what is expected of them, as a chart and as rows of a table."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from service.benchmarks.service import LastFigure, MiddleFigure
from service.fleet.words import (
    describe_count,
    describe_finding,
    describe_verdict,
    format_change,
    format_figure,
    format_range,
    format_share,
    select_figure_scale,
)
from service.kit.reports.charts.bars import ChartBar, render_bars
from service.kit.reports.charts.drawing import ChartLabel
from service.kit.reports.numbers import PERCENT
from service.kit.reports.scaling import build_linear_axis

MOST_SHOWN: Final = 12
"""Figures that are charted and listed at once; the others are folded."""
FEWEST_DATED: Final = 2
"""Fewest runs of a benchmark that are shown over time."""


class ExpectedFigure(NamedTuple):
    """A figure that another one is held against, and its source in words."""

    value: float
    source: str


def _find_expected(figure: LastFigure) -> ExpectedFigure | None:
    """Returns the nearest figure to hold one against: data sheet, equal nodes, or earlier runs."""
    if figure.datasheet is not None:
        return ExpectedFigure(figure.datasheet, "data sheet")
    if figure.other_nodes is not None:
        return ExpectedFigure(figure.other_nodes.value, "equal nodes")
    if figure.earlier_runs is not None:
        return ExpectedFigure(figure.earlier_runs.value, "earlier runs")
    return None


def name_nodes(middle: MiddleFigure) -> str:
    """Returns the middle of equal nodes in words."""
    return "an equal node" if middle.compared == 1 else f"middle of {middle.compared} equal nodes"


def describe_figure(figure: LastFigure) -> dict[str, Any]:
    """Returns a figure beside what is expected, in words."""
    scale = select_figure_scale(figure.value, figure.metric)
    expected = _find_expected(figure)
    low, high = (format_figure(end, figure.metric, scale) for end in (figure.lowest, figure.highest))
    return {
        "benchmark": figure.benchmark,
        "run_id": figure.run_id,
        "received_on": figure.received_at.date().isoformat(),
        "is_dated": figure.runs >= FEWEST_DATED,
        "shown": format_figure(figure.value, figure.metric, scale),
        "range": format_range(low, high),
        "repeats": describe_count(figure.repeats, "repeat"),
        "is_lower_better": figure.direction == "lower",
        "expected": format_figure(expected.value, figure.metric) if expected else "",
        "source": expected.source if expected else "",
        "share": format_share(figure.value / expected.value) if expected and expected.value else "",
        "against_nodes": _compare(figure, figure.other_nodes),
        "against_runs": _compare(figure, figure.earlier_runs),
        "verdict": describe_verdict(figure.verdict),
    }


def _compare(figure: LastFigure, middle: MiddleFigure | None) -> dict[str, Any] | None:
    if middle is None or not middle.value:
        return None
    return {"change": format_change(figure.value / middle.value - 1), "compared": middle.compared}


def select_shown(figures: Sequence[LastFigure], worse: Collection[str]) -> list[LastFigure]:
    """Returns the figures to show at once: those with news, then some of each family, by name.

    The family of ``hbm.copy`` is ``hbm``. ``worse`` are benchmarks that became worse.
    """
    places: Counter[str] = Counter()
    ranked = []
    for figure in figures:
        family = figure.benchmark.partition(".")[0]
        is_news = figure.benchmark in worse or has_news(figure)
        ranked.append((not is_news, places[family], figure))
        places[family] += not is_news
    ranked.sort(key=lambda one: one[:2])
    news = sum(not is_usual for is_usual, *_ in ranked)
    chosen = [figure for *_, figure in ranked[: max(MOST_SHOWN, news)]]
    return sorted(chosen, key=lambda figure: figure.benchmark)


def has_news(figure: LastFigure) -> bool:
    """Returns true if a figure has a verdict that keeps it from calibrations."""
    return figure.verdict is not None and figure.verdict != "accepted"


def describe_findings(figure: LastFigure) -> dict[str, Any]:
    """Returns why a figure is not accepted."""
    reasons = [describe_finding(one) for one in figure.findings if one["verdict"] != "accepted"]
    verdict = describe_verdict(figure.verdict)
    return {"benchmark": figure.benchmark, "run_id": figure.run_id, "verdict": verdict, "reasons": reasons}


class _ShareGroup(NamedTuple):
    """Figures that are held against one kind of expectation."""

    caption: str
    whole: str
    shares: Sequence[tuple[LastFigure, float]]


class ShareChart(NamedTuple):
    """A chart of shares, whose figures are in the table of the page."""

    caption: str
    chart: Markup


def build_bars(figures: Sequence[LastFigure]) -> ShareChart | None:
    """Returns a chart of shares of what is expected, of figures that are better if they are higher."""
    group = _select_group([figure for figure in figures if figure.direction == "higher"])
    if not group.shares:
        return None
    rows = [
        ChartBar(
            figure.benchmark,
            f"{format_share(figure.value / expected)}, {format_figure(figure.value, figure.metric)}",
            0.0,
            figure.value / expected,
            *((figure.lowest / expected, figure.highest / expected) if figure.repeats > 1 else ()),
        )
        for figure, expected in group.shares
    ]
    ends = [end for row in rows for end in (row.end, row.high or 0.0)]
    shares = "; ".join(f"{row.name} {row.shown}" for row in rows)
    about = ChartLabel(
        "shares",
        group.caption,
        f"Bars from zero, with the lowest and the highest repeat. 100% is {group.whole}. {shares}",
    )
    axis = build_linear_axis(1.0, *ends, unit=PERCENT[0].factor)
    return ShareChart(group.caption, render_bars(about, rows, axis, PERCENT[0]))


def _select_group(figures: Sequence[LastFigure]) -> _ShareGroup:
    """Returns the figures that the data sheet bounds, else those with equal nodes or with earlier runs."""
    groups = (
        _ShareGroup(
            "Share of the data sheet",
            "the data sheet",
            [(one, one.datasheet) for one in figures if one.datasheet],
        ),
        _ShareGroup(
            "Share of the middle of equal nodes",
            "the middle of equal nodes",
            [(one, one.other_nodes.value) for one in figures if one.other_nodes and one.other_nodes.value],
        ),
        _ShareGroup(
            "Share of the middle of its earlier runs",
            "the middle of its earlier runs",
            [(one, one.earlier_runs.value) for one in figures if one.earlier_runs and one.earlier_runs.value],
        ),
    )
    return next((group for group in groups if group.shares), groups[0])
