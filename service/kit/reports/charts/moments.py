"""Charts over time: slots with their means and ranges, and figures of single moments."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from service.kit.reports.charts.drawing import (
    BOLD_WIDTH,
    LINE_HEIGHT,
    WIDTH,
    ChartLabel,
    ChartMark,
    render_line,
    render_svg,
    render_text,
)
from service.kit.reports.charts.plane import LEFT, ChartPlane
from service.kit.reports.numbers import UnitScale
from service.kit.reports.scaling import (
    build_close_axis,
    build_linear_axis,
    build_time_axis,
)

_COURSE_HEIGHT = 230.0


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
    plane = ChartPlane(across, up, _COURSE_HEIGHT)
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
            parts.append(render_line(x, plane.to_y(slot.low), x, plane.to_y(slot.high), "range"))
    return render_svg(about, _COURSE_HEIGHT, parts)


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
    plane = ChartPlane(build_time_axis(min(times), max(times)), up, _COURSE_HEIGHT)
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
        render_line(LEFT, plane.to_y(mark.value), WIDTH - 12, plane.to_y(mark.value), "mark")
        for mark in marks
    )
    parts.append(Markup('<polyline points="{}" class="trend"/>').format(path))
    for (x, y), figure in zip(points, figures, strict=True):
        parts.append(render_line(x, plane.to_y(figure.low), x, plane.to_y(figure.high), "whisker"))
        parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="point"/>').format(x, y))
    parts.extend(_render_level_names([(mark.name, plane.to_y(mark.value)) for mark in marks], points))
    return render_svg(about, _COURSE_HEIGHT, parts)


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
        half = len(name) * BOLD_WIDTH / 2
        places = [
            (x, level + below)
            for below in (-_BESIDE, LINE_HEIGHT + _BESIDE / 2)
            for x in (LEFT + 4 + half, (LEFT + WIDTH) / 2, WIDTH - 16 - half)
        ]
        x, y = min(places, key=lambda place: _count_covered(place, half, taken))
        taken += [(x + step * half, y - 4) for step in (-1.0, -0.5, 0.0, 0.5, 1.0)] * len(points)
        parts.append(render_text(x, y, name, "mark-name", "middle"))
    return parts


def _count_covered(place: tuple[float, float], half: float, points: Sequence[tuple[float, float]]) -> int:
    """Returns the number of points under a text in the middle of ``place`` with half the width ``half``."""
    left, line = place
    return sum(abs(x - left) < half + _AWAY and line - LINE_HEIGHT < y < line + _AWAY for x, y in points)


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
