"""Charts of series over two axes, under a legend."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from markupsafe import Markup

from service.kit.reports.charts.drawing import (
    BOLD_WIDTH,
    DESCENT,
    LABEL_WIDTH,
    LINE_HEIGHT,
    WIDTH,
    ChartBox,
    ChartLabel,
    ChartMark,
    measure_text,
    render_line,
    render_rectangle,
    render_svg,
    render_text,
    select_anchor,
    truncate_name,
)
from service.kit.reports.charts.plane import LEFT, TOP, ChartPlane
from service.kit.reports.numbers import UnitScale
from service.kit.reports.scaling import (
    ChartAxis,
)

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
SWATCH = 26.0
_LEGEND_LENGTH = int((WIDTH - SWATCH - 6) / LABEL_WIDTH)
_POINT = 4.5
_SERIES_STYLES = ("series", "series dashed", "series dotted")


def render_series(about: ChartLabel, series: Sequence[ChartSeries], across: PlotAxis, up: PlotAxis) -> Markup:
    """Returns series of points over two axes, under a legend of the series and of the upward marks.

    A series is told by the shape of its points and the dashes of its line. Marks of the axis across are named
    above the plane.
    """
    legend = _render_legend(series, up.marks)
    rows = len(series) + len(up.marks)
    top = TOP + (rows + len(across.marks)) * LINE_HEIGHT
    plane = ChartPlane(across.axis, up.axis, _PLOT_HEIGHT + top, top, len(across.marks))
    scales = (across.scale._replace(unit=across.label), up.scale)
    parts = [*legend, *plane.render_frame(scales, up.label), *_render_marks(plane, across.marks, up.marks)]
    # Lines lie under all points, so that a point on two series can be seen.
    for place, each in enumerate(series):
        parts += _render_series_lines(plane, each, place)
    for place, each in enumerate(series):
        if each.kind != "line":
            parts += [_render_point(plane.to_x(one.x), plane.to_y(one.y), place) for one in each.points]
    parts += _render_point_names(plane, series)
    return render_svg(about, plane.height, parts)


def _render_legend(series: Sequence[ChartSeries], marks: Sequence[ChartMark]) -> list[Markup]:
    parts: list[Markup] = []
    for place, each in enumerate(series):
        middle = place * LINE_HEIGHT + 8
        if each.kind != "points":
            style = _SERIES_STYLES[place % len(_SERIES_STYLES)]
            parts.append(render_line(0, middle, SWATCH, middle, style))
        if each.kind != "line":
            parts.append(_render_point(SWATCH / 2, middle, place))
        parts.append(render_text(SWATCH + 6, middle + 4, truncate_name(each.name, _LEGEND_LENGTH)))
    for place, mark in enumerate(marks, len(series)):
        middle = place * LINE_HEIGHT + 8
        parts.append(render_line(0, middle, SWATCH, middle, "mark"))
        name = truncate_name(mark.name, int(_LEGEND_LENGTH * LABEL_WIDTH / BOLD_WIDTH))
        parts.append(render_text(SWATCH + 6, middle + 4, name, "mark-name"))
    return parts


def _render_marks(plane: ChartPlane, across: Sequence[ChartMark], up: Sequence[ChartMark]) -> list[Markup]:
    parts: list[Markup] = []
    for place, mark in enumerate(across):
        x, y = plane.to_x(mark.value), plane.top - 10 - place * LINE_HEIGHT
        parts.append(render_line(x, y + 2, x, plane.floor, "mark"))
        anchor = select_anchor(x, mark.name, WIDTH, BOLD_WIDTH)
        parts.append(render_text(x, y, mark.name, "mark-name", anchor))
    for mark in up:
        y = plane.to_y(mark.value)
        parts.append(render_line(LEFT, y, WIDTH - 12, y, "mark"))
    return parts


def _render_series_lines(plane: ChartPlane, series: ChartSeries, place: int) -> list[Markup]:
    """Returns the line of a series, and a whisker for each interval."""
    parts: list[Markup] = []
    if series.kind != "points":
        path = " ".join(f"{plane.to_x(one.x):.1f},{plane.to_y(one.y):.1f}" for one in series.points)
        style = _SERIES_STYLES[place % len(_SERIES_STYLES)]
        parts.append(Markup('<polyline points="{}" class="{}"/>').format(path, style))
    for one in series.points:
        if one.low is not None and one.high is not None:
            x, low, high = plane.to_x(one.x), plane.to_y(one.low), plane.to_y(one.high)
            parts.append(render_line(x, low, x, high, "whisker"))
            parts.extend(render_line(x - 3, y, x + 3, y, "whisker") for y in (low, high))
    return parts


def _render_point(x: float, y: float, place: int) -> Markup:
    """Returns a point in the shape of its series: circle, square, triangle, in turn filled and hollow."""
    kind = "point hollow" if place % 2 else "point"
    if place % 3 == 0:
        return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="{}"/>').format(x, y, _POINT, kind)
    if place % 3 == 1:
        return render_rectangle(x - _POINT, y - _POINT, 2 * _POINT, 2 * _POINT, kind)
    corners = f"{x:.1f},{y - 5.5:.1f} {x + 5.5:.1f},{y + 4.5:.1f} {x - 5.5:.1f},{y + 4.5:.1f}"
    return Markup('<polygon points="{}" class="{}"/>').format(corners, kind)


def _render_point_names(plane: ChartPlane, series: Sequence[ChartSeries]) -> list[Markup]:
    """Returns names beside their points, without those that would overlap a point or another name."""
    drawn = [one for each in series if each.kind != "line" for one in each.points]
    places = [(plane.to_x(one.x), plane.to_y(one.y)) for one in drawn]
    taken = [_measure_point(plane, one) for one in drawn]
    parts: list[Markup] = []
    for one, (x, y) in zip(drawn, places, strict=True):
        label = _find_name_position(plane, x, y, one.name, taken) if one.name else None
        if label is not None:
            taken.append(label)
            parts.append(render_text(label.left, label.bottom - DESCENT, one.name, "number"))
    return parts


def _measure_point(plane: ChartPlane, point: SeriesPoint) -> ChartBox:
    """Returns the rectangle of a point with its interval."""
    x, y = plane.to_x(point.x), plane.to_y(point.y)
    low = y if point.low is None else plane.to_y(point.low)
    high = y if point.high is None else plane.to_y(point.high)
    return ChartBox(x - _POINT, min(y, high) - _POINT, x + _POINT, max(y, low) + _POINT)


def _find_name_position(
    plane: ChartPlane, x: float, y: float, name: str, taken: Sequence[ChartBox]
) -> ChartBox | None:
    """Returns a free place for a name above or around a point, or None."""
    ways = ((0, -9, "middle"), (7, -7, "start"), (-7, -7, "end"), (7, 16, "start"), (-7, 16, "end"))
    for right, down, anchor in ways:
        label = measure_text(x + right, y + down, name, anchor)
        inside = label.left >= LEFT and label.right <= WIDTH and plane.top <= label.top
        if inside and label.bottom <= plane.floor and not any(map(label.overlaps, taken)):
            return label
    return None
