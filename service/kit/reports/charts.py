"""Charts as inline SVG: bars from zero, labelled axes, a title and a description, no meaning in colour alone.

A table next to every chart has the same figures, so the chart may cut a name or leave out a label.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.kit.http.html import escape_invisible
from service.kit.reports.numbers import UnitScale, build_tick_format, format_number
from service.kit.reports.scaling import (
    ChartAxis,
    build_close_axis,
    build_linear_axis,
    build_logarithmic_axis,
)

WIDTH = 420
_LINE = 15
_BAR = 12
_ROW = _LINE + _BAR + 9
_NAME_LENGTH = 34
_SHORTEST_NAME = 12
_LABEL = 7.0
"""Approximate width of a character of a label."""


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


def _select_anchor(at: float, text: str, width: float) -> str:
    """Returns the anchor of a text at ``at`` of ``width`` that keeps it within the chart."""
    half = len(text) * _LABEL / 2
    if at < half:
        return "start"
    return "end" if at > width - half else "middle"


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
    return min(_NAME_LENGTH, max(_SHORTEST_NAME, int(WIDTH / _LABEL) - len(shown) - 2))


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

    def to_x(self, value: float) -> float:
        return _LEFT + self.across.to_position(value) * (WIDTH - _LEFT - 12)

    def to_y(self, value: float) -> float:
        return self.height - _FOOT - self.up.to_position(value) * (self.height - _FOOT - _TOP)

    def render_frame(self, scales: tuple[UnitScale, UnitScale], name: str) -> list[Markup]:
        """Returns grid, ticks and the labels of both axes: the unit below, and ``name`` on top."""
        parts: list[Markup] = []
        floor, ceiling = self.height - _FOOT, _TOP
        show_x, show_y = map(build_tick_format, scales)
        for at in self.across.ticks:
            x, text = self.to_x(at), show_x(at)
            parts.append(_render_line(x, ceiling, x, floor, "grid"))
            parts.append(_render_text(x, floor + _LINE, text, "tick", _select_anchor(x, text, WIDTH)))
        for at in self.up.ticks:
            parts.append(_render_line(_LEFT, self.to_y(at), WIDTH - 12, self.to_y(at), "grid"))
            parts.append(_render_text(_LEFT - 6, self.to_y(at) + 4, show_y(at), "tick", "end"))
        parts.append(_render_text(WIDTH - 12, self.height - 8, scales[0].unit, "tick", "end"))
        parts.append(_render_text(0, 12, name, "tick"))
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


class TradeoffPoint(NamedTuple):
    """A point of two figures of which less is better. A point ``is_best`` if no other is better in both."""

    label: str
    across: float
    up: float
    is_best: bool


_RADIUS = 4.5
_SAME_PLACE = 9.0
_MOST_LABELS = 3
_LABEL_HEIGHT = 12.0


class _LabelBox(NamedTuple):
    """Rectangle of a label or of a point."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "_LabelBox") -> bool:
        """Returns true if two rectangles have a point in common."""
        is_beside = self.right <= other.left or other.right <= self.left
        return not (is_beside or self.bottom <= other.top or other.bottom <= self.top)


def render_tradeoff(
    about: ChartLabel, points: Sequence[TradeoffPoint], scales: tuple[UnitScale, UnitScale], name: str
) -> Markup:
    """Returns points of two figures. The best are filled and joined, the others are hollow."""
    plane = _ChartPlane(
        build_close_axis(*(point.across for point in points), unit=scales[0].factor),
        build_close_axis(*(point.up for point in points), unit=scales[1].factor),
    )
    across, up = (" (logarithmic)" if axis.is_log else "" for axis in (plane.across, plane.up))
    parts = plane.render_frame((scales[0]._replace(unit=scales[0].unit + across), scales[1]), name + up)
    best = sorted((point for point in points if point.is_best), key=lambda point: (point.across, -point.up))
    path = " ".join(f"{plane.to_x(point.across):.1f},{plane.to_y(point.up):.1f}" for point in best)
    parts.append(Markup('<polyline points="{}" class="roof"/>').format(path))
    for point in sorted(points, key=lambda point: point.is_best):
        kind = "point" if point.is_best else "point hollow"
        circle = Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}" class="{}"/>')
        parts.append(circle.format(plane.to_x(point.across), plane.to_y(point.up), _RADIUS, kind))
    parts.extend(_render_point_labels(plane, points))
    return _render_svg(about, _HEIGHT, parts)


def _render_point_labels(plane: _ChartPlane, points: Sequence[TradeoffPoint]) -> list[Markup]:
    """Returns the labels that find a free place. Points at one place share a label."""
    places: dict[tuple[float, float], list[str]] = {}
    for point in points:
        at = plane.to_x(point.across), plane.to_y(point.up)
        near = next((place for place in places if math.dist(place, at) < _SAME_PLACE), at)
        places.setdefault(near, []).append(point.label)
    taken = [
        _LabelBox(
            plane.to_x(one.across) - 6,
            plane.to_y(one.up) - 6,
            plane.to_x(one.across) + 6,
            plane.to_y(one.up) + 6,
        )
        for one in points
    ]
    parts = []
    for (x, y), labels in places.items():
        text = ", ".join(labels[:_MOST_LABELS]) + (", …" if len(labels) > _MOST_LABELS else "")
        box = _find_free_box(plane, (x, y), len(text) * _LABEL, taken)
        if box is not None:
            taken.append(box)
            middle = (box.left + box.right) / 2
            parts.append(_render_text(middle, box.bottom - 2, text, "number", "middle"))
    return parts


def _find_free_box(
    plane: _ChartPlane, at: tuple[float, float], width: float, taken: Sequence[_LabelBox]
) -> _LabelBox | None:
    """Returns a free place for a label beside, above or below a point, or None."""
    x, y = at
    half, middle = width / 2, _LABEL_HEIGHT / 2
    away = _RADIUS + 3
    offsets = [(away + half, 0.0), (-away - half, 0.0), (0.0, -away - middle), (0.0, away + middle)]
    offsets += [(dx * (away + half), dy * (away + middle)) for dx in (1, -1) for dy in (1, -1)]
    offsets += [(0.0, dy * (away + 3 * middle)) for dy in (1, -1)]
    for dx, dy in offsets:
        box = _LabelBox(x + dx - half, y + dy - middle, x + dx + half, y + dy + middle)
        is_inside = box.left > _LEFT and box.right < WIDTH and box.top > _TOP - middle
        is_inside = is_inside and box.bottom < plane.height - _FOOT
        if is_inside and not any(box.overlaps(other) for other in taken):
            return box
    return None
