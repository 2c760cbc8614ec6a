"""Charts of bars: each under its name and figure, over one axis."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.kit.reports.charts.drawing import (
    BOLD_WIDTH,
    LABEL_WIDTH,
    LINE_HEIGHT,
    NAME_LENGTH,
    WIDTH,
    ChartLabel,
    ChartMark,
    render_line,
    render_rectangle,
    render_svg,
    render_text,
    select_anchor,
    truncate_name,
)
from service.kit.reports.charts.series import SWATCH
from service.kit.reports.numbers import UnitScale, build_tick_format
from service.kit.reports.scaling import (
    ChartAxis,
)

_BAR = 12
_ROW = LINE_HEIGHT + _BAR + 9
_SHORTEST_NAME = 12


class ChartBar(NamedTuple):
    """A row of a chart: from ``start`` to ``end``, or a point in its interval if both are equal."""

    name: str
    shown: str
    start: float
    end: float
    low: float | None = None
    high: float | None = None
    is_total: bool = False


def stack_bars(parts: Sequence[tuple[str, str, float]]) -> list[ChartBar]:
    """Returns bars of the named parts, each from the end of the last one."""
    bars: list[ChartBar] = []
    reached = 0.0
    for name, text, value in parts:
        bars.append(ChartBar(name, text, reached, reached + value))
        reached += value
    return bars


def render_bars(
    about: ChartLabel,
    rows: Sequence[ChartBar],
    axis: ChartAxis,
    scale: UnitScale,
    marks: Sequence[ChartMark] = (),
) -> Markup:
    """Returns rows of bars, each under its name and figure, over an axis in ``scale``."""
    top = len(marks) * LINE_HEIGHT + 4.0
    bottom = top + len(rows) * _ROW
    parts: list[Markup] = []
    for at in axis.ticks:
        x, text = axis.to_position(at) * WIDTH, build_tick_format(scale)(at)
        parts.append(render_line(x, top, x, bottom, "grid"))
        parts.append(render_text(x, bottom + LINE_HEIGHT, text, "tick", select_anchor(x, text, WIDTH)))
    for position, mark in enumerate(marks):
        x = axis.to_position(mark.value) * WIDTH
        y = (position + 1) * LINE_HEIGHT - 3
        parts.append(render_line(x, y + 3, x, bottom, "mark"))
        parts.append(render_text(x, y, mark.name, "mark-name", select_anchor(x, mark.name, WIDTH)))
    for position, row in enumerate(rows):
        parts.extend(_render_row(row, top + position * _ROW, axis))
    parts.append(render_text(WIDTH, bottom + 2 * LINE_HEIGHT, scale.unit, "tick", "end"))
    return render_svg(about, bottom + 2 * LINE_HEIGHT + 6, parts)


def _render_row(row: ChartBar, top: float, axis: ChartAxis) -> list[Markup]:
    start, end = sorted((axis.to_position(row.start) * WIDTH, axis.to_position(row.end) * WIDTH))
    under = top + LINE_HEIGHT + 3
    parts = [
        render_text(
            0, top + LINE_HEIGHT - 1, truncate_name(row.name, _count_name_characters(row.shown)), "name"
        ),
        render_text(WIDTH, top + LINE_HEIGHT - 1, row.shown, "figure", "end"),
    ]
    middle = under + _BAR / 2
    if row.start == row.end and row.low is not None:
        parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="point"/>').format(end, middle))
    else:
        kind = "block total" if row.is_total else "block saved" if row.end < row.start else "block"
        # Bars above zero have a visible width.
        parts.append(
            render_rectangle(start, under, max(end - start, 1.0) if row.end != row.start else 0.0, _BAR, kind)
        )
    if row.low is not None and row.high is not None:
        low, high = axis.to_position(row.low) * WIDTH, axis.to_position(row.high) * WIDTH
        parts.append(render_line(low, middle, high, middle, "whisker"))
        parts.extend(render_line(x, under + 1, x, under + _BAR - 1, "whisker") for x in (low, high))
    return parts


def _count_name_characters(shown: str) -> int:
    """Returns the number of characters of a name next to a figure."""
    return min(NAME_LENGTH, max(_SHORTEST_NAME, int((WIDTH - len(shown) * BOLD_WIDTH) / LABEL_WIDTH) - 1))


class TornadoBar(NamedTuple):
    """An assumption, the figure at both of its ends, and the change of the figure there."""

    name: str
    shown: str
    less: float
    more: float


def render_tornado(
    about: ChartLabel,
    rows: Sequence[TornadoBar],
    axis: ChartAxis,
    scale: UnitScale,
    ends: tuple[str, str],
) -> Markup:
    """Returns rows of bars from no change to the changes with less and with more of an assumption.

    ``ends`` are the names of both in the legend. Bars on the same side share the height of the row.
    """
    parts: list[Markup] = []
    for place, (kind, name) in enumerate(zip(_TORNADO_KINDS, ends, strict=True)):
        parts.append(render_rectangle(0, place * LINE_HEIGHT + 3, SWATCH, 10, kind))
        parts.append(render_text(SWATCH + 6, place * LINE_HEIGHT + 12, name))
    top = len(ends) * LINE_HEIGHT + 6.0
    bottom = top + len(rows) * _ROW
    for at in axis.ticks:
        x, text = axis.to_position(at) * WIDTH, build_tick_format(scale)(at)
        parts.append(render_line(x, top, x, bottom, "grid"))
        parts.append(render_text(x, bottom + LINE_HEIGHT, text, "tick", select_anchor(x, text, WIDTH)))
    for place, row in enumerate(rows):
        parts.extend(_render_tornado_row(row, top + place * _ROW, axis))
    base = axis.to_position(0.0) * WIDTH
    parts.append(render_line(base, top, base, bottom, "mark"))
    parts.append(render_text(WIDTH, bottom + 2 * LINE_HEIGHT, scale.unit, "tick", "end"))
    return render_svg(about, bottom + 2 * LINE_HEIGHT + 6, parts)


_TORNADO_KINDS = ("block saved", "block")


def _render_tornado_row(row: TornadoBar, top: float, axis: ChartAxis) -> list[Markup]:
    name = truncate_name(row.name, _count_name_characters(row.shown))
    parts = [
        render_text(0, top + LINE_HEIGHT - 1, name, "name"),
        render_text(WIDTH, top + LINE_HEIGHT - 1, row.shown, "figure", "end"),
    ]
    is_shared = row.less * row.more > 0
    height = _BAR / 2 if is_shared else _BAR
    for place, (kind, change) in enumerate(zip(_TORNADO_KINDS, (row.less, row.more), strict=True)):
        if change:
            start, end = sorted((axis.to_position(0.0) * WIDTH, axis.to_position(change) * WIDTH))
            under = top + LINE_HEIGHT + 3 + (place * height if is_shared else 0.0)
            parts.append(render_rectangle(start, under, max(end - start, 1.0), height, kind))
    return parts
