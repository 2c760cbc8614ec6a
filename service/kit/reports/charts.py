"""Charts as inline SVG: bars from zero, labelled axes, a title and a description, no meaning in colour alone.

A table next to every chart has the same figures, so the chart may cut a name or leave out a label.
"""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal, NamedTuple

from markupsafe import Markup

from service.kit.http.html import escape_invisible
from service.kit.reports.numbers import UnitScale, build_tick_format, format_number
from service.kit.reports.scaling import (
    ChartAxis,
    build_close_axis,
    build_linear_axis,
    build_logarithmic_axis,
    build_time_axis,
)

WIDTH = 420
_LINE = 15
_BAR = 12
_ROW = _LINE + _BAR + 9
_NAME_LENGTH = 34
_SHORTEST_NAME = 12
_LABEL = 7.0
"""Approximate width of a character of a label."""
_BOLD = 8.3
"""The same of a bold one."""
_ASCENT, _DESCENT = 10.0, 3.0
"""Approximate height of a label above and below its baseline."""


class ChartBar(NamedTuple):
    """A row of a chart: from ``start`` to ``end``, or a point in its interval if both are equal."""

    name: str
    shown: str
    start: float
    end: float
    low: float | None = None
    high: float | None = None
    is_total: bool = False


class ChartMark(NamedTuple):
    """A reference value for all rows."""

    name: str
    value: float


def stack_bars(parts: Sequence[tuple[str, str, float]]) -> list[ChartBar]:
    """Returns bars of the named parts, each from the end of the last one."""
    bars: list[ChartBar] = []
    reached = 0.0
    for name, text, value in parts:
        bars.append(ChartBar(name, text, reached, reached + value))
        reached += value
    return bars


def truncate_name(name: str, length: int = _NAME_LENGTH) -> str:
    """Returns a name that fits a label."""
    return name if len(name) <= length else f"{name[: length - 1].rstrip()}…"


class ChartLabel(NamedTuple):
    """Title and description of a chart. ``key`` is unique in a page."""

    key: str
    title: str
    description: str


def _render_svg(about: ChartLabel, height: float, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" role="img" aria-labelledby="{key}-title {key}-description" '
        'viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}">'
        '<title id="{key}-title">{title}</title><desc id="{key}-description">{description}</desc>'
        "{parts}</svg>"
    ).format(
        key=f"report-{about.key}",
        title=escape_invisible(about.title),
        description=escape_invisible(about.description),
        width=WIDTH,
        height=height,
        parts=Markup("").join(parts),
    )


def _render_text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    written = Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>')
    return written.format(x, y, kind or "label", anchor, escape_invisible(text))


def _render_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    written = Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>')
    return written.format(x1, y1, x2, y2, kind)


def _render_rectangle(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    written = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>')
    return written.format(x, y, max(width, 0.0), height, kind)


def _select_anchor(at: float, text: str, width: float, character: float = _LABEL) -> str:
    """Returns the anchor of a text at ``at`` of ``width`` that keeps it within the chart."""
    half = len(text) * character / 2
    if at < half:
        return "start"
    return "end" if at > width - half else "middle"


class _Box(NamedTuple):
    """A rectangle that a label or a point takes."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "_Box") -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def _measure_text(x: float, y: float, text: str, anchor: str = "start") -> _Box:
    """Returns the rectangle of a text whose baseline is at ``y``."""
    width = len(text) * _LABEL
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return _Box(left, y - _ASCENT, left + width, y + _DESCENT)


def render_bars(
    about: ChartLabel,
    rows: Sequence[ChartBar],
    axis: ChartAxis,
    scale: UnitScale,
    marks: Sequence[ChartMark] = (),
) -> Markup:
    """Returns rows of bars, each under its name and figure, over an axis in ``scale``."""
    top = len(marks) * _LINE + 4.0
    bottom = top + len(rows) * _ROW
    parts: list[Markup] = []
    for at in axis.ticks:
        x, text = axis.to_position(at) * WIDTH, build_tick_format(scale)(at)
        parts.append(_render_line(x, top, x, bottom, "grid"))
        parts.append(_render_text(x, bottom + _LINE, text, "tick", _select_anchor(x, text, WIDTH)))
    for position, mark in enumerate(marks):
        x = axis.to_position(mark.value) * WIDTH
        y = (position + 1) * _LINE - 3
        parts.append(_render_line(x, y + 3, x, bottom, "mark"))
        parts.append(_render_text(x, y, mark.name, "mark-name", _select_anchor(x, mark.name, WIDTH)))
    for position, row in enumerate(rows):
        parts.extend(_render_row(row, top + position * _ROW, axis))
    parts.append(_render_text(WIDTH, bottom + 2 * _LINE, scale.unit, "tick", "end"))
    return _render_svg(about, bottom + 2 * _LINE + 6, parts)


def _render_row(row: ChartBar, top: float, axis: ChartAxis) -> list[Markup]:
    start, end = sorted((axis.to_position(row.start) * WIDTH, axis.to_position(row.end) * WIDTH))
    under = top + _LINE + 3
    parts = [
        _render_text(0, top + _LINE - 1, truncate_name(row.name, _count_name_characters(row.shown)), "name"),
        _render_text(WIDTH, top + _LINE - 1, row.shown, "figure", "end"),
    ]
    middle = under + _BAR / 2
    if row.start == row.end and row.low is not None:
        parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="point"/>').format(end, middle))
    else:
        kind = "block total" if row.is_total else "block saved" if row.end < row.start else "block"
        # Bars above zero have a visible width.
        parts.append(
            _render_rectangle(
                start, under, max(end - start, 1.0) if row.end != row.start else 0.0, _BAR, kind
            )
        )
    if row.low is not None and row.high is not None:
        low, high = axis.to_position(row.low) * WIDTH, axis.to_position(row.high) * WIDTH
        parts.append(_render_line(low, middle, high, middle, "whisker"))
        parts.extend(_render_line(x, under + 1, x, under + _BAR - 1, "whisker") for x in (low, high))
    return parts


def _count_name_characters(shown: str) -> int:
    """Returns the number of characters of a name next to a figure."""
    return min(_NAME_LENGTH, max(_SHORTEST_NAME, int((WIDTH - len(shown) * _BOLD) / _LABEL) - 1))


class RooflinePoint(NamedTuple):
    """A point of a roofline: intensity and achieved rate of an operator."""

    number: int
    intensity: float
    rate: float
    is_compute_bound: bool
    is_forward: bool


_HEIGHT = 330.0
_COURSE_HEIGHT = 230.0
_LEFT = 66.0
_FOOT = 44.0
_TOP = 24.0
_APART = 12.0
_MOST_NUMBERED = 60


class _ChartPlane(NamedTuple):
    """Two axes and the height of the plane."""

    across: ChartAxis
    up: ChartAxis
    height: float = _HEIGHT
    top: float = _TOP
    mark_rows: int = 0
    """Rows between the name of the upward axis and the plane, for names of reference values."""

    @property
    def floor(self) -> float:
        return self.height - _FOOT

    def to_x(self, value: float) -> float:
        return _LEFT + self.across.to_position(value) * (WIDTH - _LEFT - 12)

    def to_y(self, value: float) -> float:
        return self.floor - self.up.to_position(value) * (self.floor - self.top)

    def render_frame(
        self, scales: tuple[UnitScale, UnitScale], name: str, show_x: Callable[[float], str] | None = None
    ) -> list[Markup]:
        """Returns grid, ticks and the labels of both axes: the unit below, and ``name`` on top.

        ``show_x`` writes ticks that are no numbers.
        """
        parts: list[Markup] = []
        show_x, show_y = show_x or build_tick_format(scales[0]), build_tick_format(scales[1])
        written = 0.0
        for at in self.across.ticks:
            x, text = self.to_x(at), show_x(at)
            parts.append(_render_line(x, self.top, x, self.floor, "grid"))
            anchor = _select_anchor(x, text, WIDTH)
            label = _measure_text(x, self.floor + _LINE, text, anchor)
            if label.left >= written:
                parts.append(_render_text(x, self.floor + _LINE, text, "tick", anchor))
                written = label.right
        for at in self.up.ticks:
            parts.append(_render_line(_LEFT, self.to_y(at), WIDTH - 12, self.to_y(at), "grid"))
            parts.append(_render_text(_LEFT - 6, self.to_y(at) + 4, show_y(at), "tick", "end"))
        parts.append(_render_text(WIDTH - 12, self.height - 8, scales[0].unit, "tick", "end"))
        parts.append(_render_text(0, self.top - 12 - self.mark_rows * _LINE, name, "tick"))
        return parts


def render_roofline(
    about: ChartLabel, points: Sequence[RooflinePoint], peak: float, bandwidth: float | None, scale: UnitScale
) -> Markup:
    """Returns points under a peak rate and, if known, a bandwidth, with both axes logarithmic."""
    knee = peak / bandwidth if bandwidth else None
    intensities = [point.intensity for point in points] + ([knee] if knee else [])
    plane = _ChartPlane(
        build_logarithmic_axis(*intensities), build_logarithmic_axis(peak, *(point.rate for point in points))
    )
    parts = plane.render_frame(
        (UnitScale(1.0, "FLOP per byte (logarithmic)"), scale), f"{scale.unit} (logarithmic)"
    )
    parts.append(_render_roof(plane, peak, bandwidth))
    if knee:
        text = f"ridge {format_number(knee)} FLOP/byte"
        x = plane.to_x(knee)
        parts.append(_render_line(x, plane.to_y(peak), x, _HEIGHT - _FOOT, "mark"))
        parts.append(_render_text(x, _TOP - 8, text, "mark-name", _select_anchor(x, text, WIDTH)))
    taken: list[tuple[float, float]] = [(plane.to_x(p.intensity), plane.to_y(p.rate)) for p in points]
    for point in points:
        x, y = plane.to_x(point.intensity), plane.to_y(point.rate)
        kind = "point" if point.is_forward else "point hollow"
        if point.is_compute_bound:
            parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4.5" class="{}"/>').format(x, y, kind))
        else:
            parts.append(_render_rectangle(x - 4, y - 4, 8, 8, kind))
    for point in points[:_MOST_NUMBERED]:
        place = _find_label_position(plane.to_x(point.intensity), plane.to_y(point.rate), taken)
        if place is not None:
            taken.append(place)
            parts.append(_render_text(place[0], place[1] + 4, str(point.number), "number", "middle"))
    return _render_svg(about, _HEIGHT, parts)


def _render_roof(plane: _ChartPlane, peak: float, bandwidth: float | None) -> Markup:
    low, high = plane.across.low, plane.across.high
    corners = [(low, peak), (high, peak)]
    if bandwidth:
        knee = peak / bandwidth
        # The slope begins at the left side or at the floor of the plane.
        begin = max(low, plane.up.low / bandwidth)
        corners = [(begin, begin * bandwidth), (knee, peak), (high, peak)]
    path = " ".join(f"{plane.to_x(x):.1f},{plane.to_y(y):.1f}" for x, y in corners)
    return Markup('<polyline points="{}" class="roof"/>').format(path)


def _find_label_position(
    x: float, y: float, taken: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """Returns a free place for a number next to a point, or None."""
    for away in (13.0, 22.0):
        for angle in range(0, 360, 45):
            at = (x + away * math.cos(math.radians(angle)), y - away * math.sin(math.radians(angle)))
            inside = _LEFT < at[0] < WIDTH - 14 and _TOP < at[1] < _HEIGHT - _FOOT - 6
            if inside and all(math.dist(at, other) >= _APART for other in taken):
                return at
    return None


class TimeSlot(NamedTuple):
    """A span of time with its mean and range."""

    start: float
    end: float
    mean: float
    low: float
    high: float


def render_time_series(
    about: ChartLabel, slots: Sequence[TimeSlot], time: UnitScale, power: UnitScale
) -> Markup:
    """Returns a chart over time: the mean as an area from 0, the range of each slot as a line."""
    end = slots[-1].end
    across = build_linear_axis(end, unit=time.factor)
    across = across._replace(high=end, ticks=tuple(at for at in across.ticks if at <= end * (1 + 1e-9)))
    up = build_linear_axis(*(value for slot in slots for value in (slot.high, slot.low)), unit=power.factor)
    plane = _ChartPlane(across, up, _COURSE_HEIGHT)
    parts = plane.render_frame((time, power), power.unit)
    floor = plane.to_y(0.0)
    corners = [f"{plane.to_x(slots[0].start):.1f},{floor:.1f}"]
    for slot in slots:
        y = plane.to_y(slot.mean)
        corners += [f"{plane.to_x(slot.start):.1f},{y:.1f}", f"{plane.to_x(slot.end):.1f},{y:.1f}"]
    corners.append(f"{plane.to_x(end):.1f},{floor:.1f}")
    parts.append(Markup('<polygon points="{}" class="area"/>').format(" ".join(corners)))
    for slot in slots:
        if slot.high > slot.low:
            x = plane.to_x((slot.start + slot.end) / 2)
            parts.append(_render_line(x, plane.to_y(slot.low), x, plane.to_y(slot.high), "range"))
    return _render_svg(about, _COURSE_HEIGHT, parts)


SeriesKind = Literal["joined", "points", "line"]


class SeriesPoint(NamedTuple):
    """A point with its interval. ``name`` is written beside it where there is room."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    name: str = ""


class ChartSeries(NamedTuple):
    """Points under a name of the legend: joined in their order, single, or only their line."""

    name: str
    points: Sequence[SeriesPoint]
    kind: SeriesKind = "joined"


class PlotAxis(NamedTuple):
    """An axis with the unit of its labels, what it measures, and its reference values."""

    name: str
    axis: ChartAxis
    scale: UnitScale
    marks: Sequence[ChartMark] = ()

    @property
    def label(self) -> str:
        """Name and unit, and that the axis is logarithmic if it is."""
        told = ", ".join(filter(None, (self.name, self.scale.unit)))
        return f"{told} (logarithmic)" if self.axis.is_log else told


_PLOT_HEIGHT = 270.0
_SWATCH = 26.0
_LEGEND_LENGTH = int((WIDTH - _SWATCH - 6) / _LABEL)
_POINT = 4.5
_SERIES_STYLES = ("series", "series dashed", "series dotted")


def render_series(about: ChartLabel, series: Sequence[ChartSeries], across: PlotAxis, up: PlotAxis) -> Markup:
    """Returns series of points over two axes, under a legend of the series and of the upward marks.

    A series is told by the shape of its points and the dashes of its line. Marks of the axis across are named
    above the plane.
    """
    legend = _render_legend(series, up.marks)
    rows = len(series) + len(up.marks)
    top = _TOP + (rows + len(across.marks)) * _LINE
    plane = _ChartPlane(across.axis, up.axis, _PLOT_HEIGHT + top, top, len(across.marks))
    scales = (across.scale._replace(unit=across.label), up.scale)
    parts = [*legend, *plane.render_frame(scales, up.label), *_render_marks(plane, across.marks, up.marks)]
    # Lines lie under all points, so that a point on two series can be seen.
    for place, each in enumerate(series):
        parts += _render_series_lines(plane, each, place)
    for place, each in enumerate(series):
        if each.kind != "line":
            parts += [_render_point(plane.to_x(one.x), plane.to_y(one.y), place) for one in each.points]
    parts += _render_point_names(plane, series)
    return _render_svg(about, plane.height, parts)


def _render_legend(series: Sequence[ChartSeries], marks: Sequence[ChartMark]) -> list[Markup]:
    parts: list[Markup] = []
    for place, each in enumerate(series):
        middle = place * _LINE + 8
        if each.kind != "points":
            style = _SERIES_STYLES[place % len(_SERIES_STYLES)]
            parts.append(_render_line(0, middle, _SWATCH, middle, style))
        if each.kind != "line":
            parts.append(_render_point(_SWATCH / 2, middle, place))
        parts.append(_render_text(_SWATCH + 6, middle + 4, truncate_name(each.name, _LEGEND_LENGTH)))
    for place, mark in enumerate(marks, len(series)):
        middle = place * _LINE + 8
        parts.append(_render_line(0, middle, _SWATCH, middle, "mark"))
        name = truncate_name(mark.name, int(_LEGEND_LENGTH * _LABEL / _BOLD))
        parts.append(_render_text(_SWATCH + 6, middle + 4, name, "mark-name"))
    return parts


def _render_marks(plane: _ChartPlane, across: Sequence[ChartMark], up: Sequence[ChartMark]) -> list[Markup]:
    parts: list[Markup] = []
    for place, mark in enumerate(across):
        x, y = plane.to_x(mark.value), plane.top - 10 - place * _LINE
        parts.append(_render_line(x, y + 2, x, plane.floor, "mark"))
        anchor = _select_anchor(x, mark.name, WIDTH, _BOLD)
        parts.append(_render_text(x, y, mark.name, "mark-name", anchor))
    for mark in up:
        y = plane.to_y(mark.value)
        parts.append(_render_line(_LEFT, y, WIDTH - 12, y, "mark"))
    return parts


def _render_series_lines(plane: _ChartPlane, series: ChartSeries, place: int) -> list[Markup]:
    """Returns the line of a series, and a whisker for each interval."""
    parts: list[Markup] = []
    if series.kind != "points":
        path = " ".join(f"{plane.to_x(one.x):.1f},{plane.to_y(one.y):.1f}" for one in series.points)
        style = _SERIES_STYLES[place % len(_SERIES_STYLES)]
        parts.append(Markup('<polyline points="{}" class="{}"/>').format(path, style))
    for one in series.points:
        if one.low is not None and one.high is not None:
            x, low, high = plane.to_x(one.x), plane.to_y(one.low), plane.to_y(one.high)
            parts.append(_render_line(x, low, x, high, "whisker"))
            parts.extend(_render_line(x - 3, y, x + 3, y, "whisker") for y in (low, high))
    return parts


def _render_point(x: float, y: float, place: int) -> Markup:
    """Returns a point in the shape of its series: circle, square, triangle, in turn filled and hollow."""
    kind = "point hollow" if place % 2 else "point"
    if place % 3 == 0:
        return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="{}"/>').format(x, y, _POINT, kind)
    if place % 3 == 1:
        return _render_rectangle(x - _POINT, y - _POINT, 2 * _POINT, 2 * _POINT, kind)
    corners = f"{x:.1f},{y - 5.5:.1f} {x + 5.5:.1f},{y + 4.5:.1f} {x - 5.5:.1f},{y + 4.5:.1f}"
    return Markup('<polygon points="{}" class="{}"/>').format(corners, kind)


def _render_point_names(plane: _ChartPlane, series: Sequence[ChartSeries]) -> list[Markup]:
    """Returns names beside their points, without those that would overlap a point or another name."""
    drawn = [one for each in series if each.kind != "line" for one in each.points]
    places = [(plane.to_x(one.x), plane.to_y(one.y)) for one in drawn]
    taken = [_measure_point(plane, one) for one in drawn]
    parts: list[Markup] = []
    for one, (x, y) in zip(drawn, places, strict=True):
        label = _find_name_position(plane, x, y, one.name, taken) if one.name else None
        if label is not None:
            taken.append(label)
            parts.append(_render_text(label.left, label.bottom - _DESCENT, one.name, "number"))
    return parts


def _measure_point(plane: _ChartPlane, point: SeriesPoint) -> _Box:
    """Returns the rectangle of a point with its interval."""
    x, y = plane.to_x(point.x), plane.to_y(point.y)
    low = y if point.low is None else plane.to_y(point.low)
    high = y if point.high is None else plane.to_y(point.high)
    return _Box(x - _POINT, min(y, high) - _POINT, x + _POINT, max(y, low) + _POINT)


def _find_name_position(
    plane: _ChartPlane, x: float, y: float, name: str, taken: Sequence[_Box]
) -> _Box | None:
    """Returns a free place for a name above or around a point, or None."""
    ways = ((0, -9, "middle"), (7, -7, "start"), (-7, -7, "end"), (7, 16, "start"), (-7, 16, "end"))
    for right, down, anchor in ways:
        label = _measure_text(x + right, y + down, name, anchor)
        inside = label.left >= _LEFT and label.right <= WIDTH and plane.top <= label.top
        if inside and label.bottom <= plane.floor and not any(map(label.overlaps, taken)):
            return label
    return None


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
        parts.append(_render_rectangle(0, place * _LINE + 3, _SWATCH, 10, kind))
        parts.append(_render_text(_SWATCH + 6, place * _LINE + 12, name))
    top = len(ends) * _LINE + 6.0
    bottom = top + len(rows) * _ROW
    for at in axis.ticks:
        x, text = axis.to_position(at) * WIDTH, build_tick_format(scale)(at)
        parts.append(_render_line(x, top, x, bottom, "grid"))
        parts.append(_render_text(x, bottom + _LINE, text, "tick", _select_anchor(x, text, WIDTH)))
    for place, row in enumerate(rows):
        parts.extend(_render_tornado_row(row, top + place * _ROW, axis))
    base = axis.to_position(0.0) * WIDTH
    parts.append(_render_line(base, top, base, bottom, "mark"))
    parts.append(_render_text(WIDTH, bottom + 2 * _LINE, scale.unit, "tick", "end"))
    return _render_svg(about, bottom + 2 * _LINE + 6, parts)


_TORNADO_KINDS = ("block saved", "block")


def _render_tornado_row(row: TornadoBar, top: float, axis: ChartAxis) -> list[Markup]:
    name = truncate_name(row.name, _count_name_characters(row.shown))
    parts = [
        _render_text(0, top + _LINE - 1, name, "name"),
        _render_text(WIDTH, top + _LINE - 1, row.shown, "figure", "end"),
    ]
    is_shared = row.less * row.more > 0
    height = _BAR / 2 if is_shared else _BAR
    for place, (kind, change) in enumerate(zip(_TORNADO_KINDS, (row.less, row.more), strict=True)):
        if change:
            start, end = sorted((axis.to_position(0.0) * WIDTH, axis.to_position(change) * WIDTH))
            under = top + _LINE + 3 + (place * height if is_shared else 0.0)
            parts.append(_render_rectangle(start, under, max(end - start, 1.0), height, kind))
    return parts


class DatedFigure(NamedTuple):
    """A figure of one moment with its range."""

    at: datetime
    value: float
    low: float
    high: float


def render_dated_figures(
    about: ChartLabel, figures: Sequence[DatedFigure], scale: UnitScale, marks: Sequence[ChartMark] = ()
) -> Markup:
    """Returns figures as points over time, each with its range, and levels to compare with.

    The axis of figures is close around them and need not contain 0.
    """
    times = [figure.at.timestamp() for figure in figures]
    ends = [end for figure in figures for end in (figure.low, figure.high)]
    up = build_close_axis(*ends, *(mark.value for mark in marks), unit=scale.factor)
    plane = _ChartPlane(build_time_axis(min(times), max(times)), up, _COURSE_HEIGHT)
    ticks = plane.across.ticks
    day = figures[0].at.astimezone(UTC)
    has_day = any(at % _DAY_SECONDS == 0 for at in ticks)
    across = UnitScale(1.0, "UTC" if has_day else f"{day.day} {day:%b %Y}, UTC")
    parts = plane.render_frame((across, scale), scale.unit, _build_time_format(ticks))
    points = [
        (plane.to_x(time), plane.to_y(figure.value)) for time, figure in zip(times, figures, strict=True)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts.extend(
        _render_line(_LEFT, plane.to_y(mark.value), WIDTH - 12, plane.to_y(mark.value), "mark")
        for mark in marks
    )
    parts.append(Markup('<polyline points="{}" class="trend"/>').format(path))
    for (x, y), figure in zip(points, figures, strict=True):
        parts.append(_render_line(x, plane.to_y(figure.low), x, plane.to_y(figure.high), "whisker"))
        parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="point"/>').format(x, y))
    parts.extend(_render_level_names([(mark.name, plane.to_y(mark.value)) for mark in marks], points))
    return _render_svg(about, _COURSE_HEIGHT, parts)


_BESIDE = 9.0
_AWAY = 7.0
"""Distance between the middle of a point and a text that does not touch it."""


def _render_level_names(
    levels: Sequence[tuple[str, float]], points: Sequence[tuple[float, float]]
) -> list[Markup]:
    """Returns names beside their levels, each where it covers fewest points and no other name."""
    taken = list(points)
    parts = []
    for name, level in levels:
        half = len(name) * _BOLD / 2
        places = [
            (x, level + below)
            for below in (-_BESIDE, _LINE + _BESIDE / 2)
            for x in (_LEFT + 4 + half, (_LEFT + WIDTH) / 2, WIDTH - 16 - half)
        ]
        x, y = min(places, key=lambda place: _count_covered(place, half, taken))
        taken += [(x + step * half, y - 4) for step in (-1.0, -0.5, 0.0, 0.5, 1.0)] * len(points)
        parts.append(_render_text(x, y, name, "mark-name", "middle"))
    return parts


def _count_covered(place: tuple[float, float], half: float, points: Sequence[tuple[float, float]]) -> int:
    """Returns the number of points under a text in the middle of ``place`` with half the width ``half``."""
    left, line = place
    return sum(abs(x - left) < half + _AWAY and line - _LINE < y < line + _AWAY for x, y in points)


_DAY_SECONDS = 86_400
_LONG_STEP = 60 * _DAY_SECONDS


def _build_time_format(ticks: Sequence[float]) -> Callable[[float], str]:
    """Returns a function that writes ticks as days, as months where they lie far apart, or as times."""
    step = min((after - before for before, after in pairwise(ticks)), default=_DAY_SECONDS)

    def show_time(at: float) -> str:
        time = datetime.fromtimestamp(at, UTC)
        if step >= _LONG_STEP:
            return f"{time:%b %Y}"
        return f"{time:%H:%M}" if at % _DAY_SECONDS else f"{time.day} {time:%b}"

    return show_time
