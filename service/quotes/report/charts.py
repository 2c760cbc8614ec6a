"""Charts as inline SVG: bars from zero, labelled axes, a title and a description, no meaning in colour alone.

Every chart stands beside a table of the same figures, so it may cut a name or leave out a label.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.kit.http.html import seen
from service.quotes.report.numbers import Scale, digits, tick
from service.quotes.report.scaling import Axis, linear, logarithmic

WIDTH = 420
_LINE = 15
_BAR = 12
_ROW = _LINE + _BAR + 9
_NAME_LENGTH = 34
_SHORTEST_NAME = 12
_LABEL = 7.0
"""Width of a character of a label, about."""


class Bar(NamedTuple):
    """A row of a chart: from ``start`` to ``end``, or a point in its interval where both are equal."""

    name: str
    shown: str
    start: float
    end: float
    low: float | None = None
    high: float | None = None
    is_total: bool = False


class Mark(NamedTuple):
    """A value that all rows are to be compared with."""

    name: str
    value: float


def stacked(parts: Sequence[tuple[str, str, float]]) -> list[Bar]:
    """Name, text and value of parts, each from where the last one ends."""
    bars: list[Bar] = []
    reached = 0.0
    for name, text, value in parts:
        bars.append(Bar(name, text, reached, reached + value))
        reached += value
    return bars


def cut(name: str, length: int = _NAME_LENGTH) -> str:
    """A name that is not too long for a label."""
    return name if len(name) <= length else f"{name[: length - 1].rstrip()}…"


class About(NamedTuple):
    """What a chart is called and what it shows, in words; ``key`` is its own in a page."""

    key: str
    title: str
    description: str


def _svg(about: About, height: float, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" role="img" aria-labelledby="{key}-title {key}-description" '
        'viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}">'
        '<title id="{key}-title">{title}</title><desc id="{key}-description">{description}</desc>'
        "{parts}</svg>"
    ).format(
        key=f"report-{about.key}",
        title=seen(about.title),
        description=seen(about.description),
        width=WIDTH,
        height=height,
        parts=Markup("").join(parts),
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    written = Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>')
    return written.format(x, y, kind or "label", anchor, seen(text))


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    written = Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>')
    return written.format(x1, y1, x2, y2, kind)


def _rectangle(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    written = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>')
    return written.format(x, y, max(width, 0.0), height, kind)


def _anchor(at: float, text: str, width: float) -> str:
    """Where to hold a text that stands at ``at`` of ``width``, so that it does not run out of the chart."""
    half = len(text) * _LABEL / 2
    if at < half:
        return "start"
    return "end" if at > width - half else "middle"


def bars(about: About, rows: Sequence[Bar], axis: Axis, scale: Scale, marks: Sequence[Mark] = ()) -> Markup:
    """Rows of bars, one under the other, each under its name and its figure, over an axis in ``scale``."""
    top = len(marks) * _LINE + 4.0
    bottom = top + len(rows) * _ROW
    parts: list[Markup] = []
    for at in axis.ticks:
        x, text = axis.place(at) * WIDTH, tick(scale)(at)
        parts.append(_line(x, top, x, bottom, "grid"))
        parts.append(_text(x, bottom + _LINE, text, "tick", _anchor(x, text, WIDTH)))
    for position, mark in enumerate(marks):
        x = axis.place(mark.value) * WIDTH
        y = (position + 1) * _LINE - 3
        parts.append(_line(x, y + 3, x, bottom, "mark"))
        parts.append(_text(x, y, mark.name, "mark-name", _anchor(x, mark.name, WIDTH)))
    for position, row in enumerate(rows):
        parts.extend(_row(row, top + position * _ROW, axis))
    parts.append(_text(WIDTH, bottom + 2 * _LINE, scale.unit, "tick", "end"))
    return _svg(about, bottom + 2 * _LINE + 6, parts)


def _row(row: Bar, top: float, axis: Axis) -> list[Markup]:
    start, end = sorted((axis.place(row.start) * WIDTH, axis.place(row.end) * WIDTH))
    under = top + _LINE + 3
    parts = [
        _text(0, top + _LINE - 1, cut(row.name, _room(row.shown)), "name"),
        _text(WIDTH, top + _LINE - 1, row.shown, "figure", "end"),
    ]
    middle = under + _BAR / 2
    if row.start == row.end and row.low is not None:
        parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="point"/>').format(end, middle))
    else:
        kind = "block total" if row.is_total else "block saved" if row.end < row.start else "block"
        # What is not nothing can be seen.
        parts.append(
            _rectangle(start, under, max(end - start, 1.0) if row.end != row.start else 0.0, _BAR, kind)
        )
    if row.low is not None and row.high is not None:
        low, high = axis.place(row.low) * WIDTH, axis.place(row.high) * WIDTH
        parts.append(_line(low, middle, high, middle, "whisker"))
        parts.extend(_line(x, under + 1, x, under + _BAR - 1, "whisker") for x in (low, high))
    return parts


def _room(shown: str) -> int:
    """Characters that a name may have beside a figure."""
    return min(_NAME_LENGTH, max(_SHORTEST_NAME, int(WIDTH / _LABEL) - len(shown) - 2))


class Point(NamedTuple):
    """A point of a roofline: what an operator reaches."""

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


class _Plane(NamedTuple):
    """Two axes and where they are drawn."""

    across: Axis
    up: Axis
    height: float = _HEIGHT

    def x(self, value: float) -> float:
        return _LEFT + self.across.place(value) * (WIDTH - _LEFT - 12)

    def y(self, value: float) -> float:
        return self.height - _FOOT - self.up.place(value) * (self.height - _FOOT - _TOP)

    def frame(self, scales: tuple[Scale, Scale], name: str) -> list[Markup]:
        """Grid, ticks and the names of both axes: the unit across, and ``name`` on top."""
        parts: list[Markup] = []
        floor, ceiling = self.height - _FOOT, _TOP
        show_x, show_y = map(tick, scales)
        for at in self.across.ticks:
            x, text = self.x(at), show_x(at)
            parts.append(_line(x, ceiling, x, floor, "grid"))
            parts.append(_text(x, floor + _LINE, text, "tick", _anchor(x, text, WIDTH)))
        for at in self.up.ticks:
            parts.append(_line(_LEFT, self.y(at), WIDTH - 12, self.y(at), "grid"))
            parts.append(_text(_LEFT - 6, self.y(at) + 4, show_y(at), "tick", "end"))
        parts.append(_text(WIDTH - 12, self.height - 8, scales[0].unit, "tick", "end"))
        parts.append(_text(0, 12, name, "tick"))
        return parts


def roofline(
    about: About, points: Sequence[Point], peak: float, bandwidth: float | None, scale: Scale
) -> Markup:
    """Points under the roof: a peak rate and, where known, a bandwidth, both axes logarithmic."""
    knee = peak / bandwidth if bandwidth else None
    intensities = [point.intensity for point in points] + ([knee] if knee else [])
    plane = _Plane(logarithmic(*intensities), logarithmic(peak, *(point.rate for point in points)))
    parts = plane.frame((Scale(1.0, "FLOP per byte (logarithmic)"), scale), f"{scale.unit} (logarithmic)")
    parts.append(_roof(plane, peak, bandwidth))
    if knee:
        text = f"ridge {digits(knee)} FLOP/byte"
        x = plane.x(knee)
        parts.append(_line(x, plane.y(peak), x, _HEIGHT - _FOOT, "mark"))
        parts.append(_text(x, _TOP - 8, text, "mark-name", _anchor(x, text, WIDTH)))
    taken: list[tuple[float, float]] = [(plane.x(p.intensity), plane.y(p.rate)) for p in points]
    for point in points:
        x, y = plane.x(point.intensity), plane.y(point.rate)
        kind = "point" if point.is_forward else "point hollow"
        if point.is_compute_bound:
            parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4.5" class="{}"/>').format(x, y, kind))
        else:
            parts.append(_rectangle(x - 4, y - 4, 8, 8, kind))
    for point in points[:_MOST_NUMBERED]:
        place = _free(plane.x(point.intensity), plane.y(point.rate), taken)
        if place is not None:
            taken.append(place)
            parts.append(_text(place[0], place[1] + 4, str(point.number), "number", "middle"))
    return _svg(about, _HEIGHT, parts)


def _roof(plane: _Plane, peak: float, bandwidth: float | None) -> Markup:
    low, high = plane.across.low, plane.across.high
    corners = [(low, peak), (high, peak)]
    if bandwidth:
        knee = peak / bandwidth
        # The slope begins where it enters the plane, at its left side or at its floor.
        begin = max(low, plane.up.low / bandwidth)
        corners = [(begin, begin * bandwidth), (knee, peak), (high, peak)]
    path = " ".join(f"{plane.x(x):.1f},{plane.y(y):.1f}" for x, y in corners)
    return Markup('<polyline points="{}" class="roof"/>').format(path)


def _free(x: float, y: float, taken: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """A place for a number beside a point where nothing else is, if there is one."""
    for away in (13.0, 22.0):
        for angle in range(0, 360, 45):
            at = (x + away * math.cos(math.radians(angle)), y - away * math.sin(math.radians(angle)))
            inside = _LEFT < at[0] < WIDTH - 14 and _TOP < at[1] < _HEIGHT - _FOOT - 6
            if inside and all(math.dist(at, other) >= _APART for other in taken):
                return at
    return None


class Slot(NamedTuple):
    """A stretch of time with its mean and the range within it."""

    start: float
    end: float
    mean: float
    low: float
    high: float


def course(about: About, slots: Sequence[Slot], time: Scale, power: Scale) -> Markup:
    """A quantity in time: its mean as an area from 0, the range of each stretch as a line over it."""
    end = slots[-1].end
    across = linear(end, unit=time.factor)
    across = across._replace(high=end, ticks=tuple(at for at in across.ticks if at <= end * (1 + 1e-9)))
    up = linear(*(value for slot in slots for value in (slot.high, slot.low)), unit=power.factor)
    plane = _Plane(across, up, _COURSE_HEIGHT)
    parts = plane.frame((time, power), power.unit)
    floor = plane.y(0.0)
    corners = [f"{plane.x(slots[0].start):.1f},{floor:.1f}"]
    for slot in slots:
        y = plane.y(slot.mean)
        corners += [f"{plane.x(slot.start):.1f},{y:.1f}", f"{plane.x(slot.end):.1f},{y:.1f}"]
    corners.append(f"{plane.x(end):.1f},{floor:.1f}")
    parts.append(Markup('<polygon points="{}" class="area"/>').format(" ".join(corners)))
    for slot in slots:
        if slot.high > slot.low:
            x = plane.x((slot.start + slot.end) / 2)
            parts.append(_line(x, plane.y(slot.low), x, plane.y(slot.high), "range"))
    return _svg(about, _COURSE_HEIGHT, parts)
