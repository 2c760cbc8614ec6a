"""The chart of a roofline: rates over intensities under a peak and a bandwidth."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.kit.reports.charts.drawing import (
    WIDTH,
    ChartLabel,
    render_line,
    render_rectangle,
    render_svg,
    render_text,
    select_anchor,
)
from service.kit.reports.charts.plane import FOOT, HEIGHT, LEFT, TOP, ChartPlane
from service.kit.reports.numbers import UnitScale, format_number
from service.kit.reports.scaling import (
    build_logarithmic_axis,
)


class RooflinePoint(NamedTuple):
    """A point of a roofline: intensity and achieved rate of an operator."""

    number: int
    intensity: float
    rate: float
    is_compute_bound: bool
    is_forward: bool


_APART = 12.0
_MOST_NUMBERED = 60


def render_roofline(
    about: ChartLabel, points: Sequence[RooflinePoint], peak: float, bandwidth: float | None, scale: UnitScale
) -> Markup:
    """Returns points under a peak rate and, if known, a bandwidth, with both axes logarithmic."""
    knee = peak / bandwidth if bandwidth else None
    intensities = [point.intensity for point in points] + ([knee] if knee else [])
    plane = ChartPlane(
        build_logarithmic_axis(*intensities), build_logarithmic_axis(peak, *(point.rate for point in points))
    )
    parts = plane.render_frame(
        (UnitScale(1.0, "FLOP per byte (logarithmic)"), scale), f"{scale.unit} (logarithmic)"
    )
    parts.append(_render_roof(plane, peak, bandwidth))
    if knee:
        text = f"ridge {format_number(knee)} FLOP/byte"
        x = plane.to_x(knee)
        parts.append(render_line(x, plane.to_y(peak), x, HEIGHT - FOOT, "mark"))
        parts.append(render_text(x, TOP - 8, text, "mark-name", select_anchor(x, text, WIDTH)))
    taken: list[tuple[float, float]] = [(plane.to_x(p.intensity), plane.to_y(p.rate)) for p in points]
    for point in points:
        x, y = plane.to_x(point.intensity), plane.to_y(point.rate)
        kind = "point" if point.is_forward else "point hollow"
        if point.is_compute_bound:
            parts.append(Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4.5" class="{}"/>').format(x, y, kind))
        else:
            parts.append(render_rectangle(x - 4, y - 4, 8, 8, kind))
    for point in points[:_MOST_NUMBERED]:
        place = _find_label_position(plane.to_x(point.intensity), plane.to_y(point.rate), taken)
        if place is not None:
            taken.append(place)
            parts.append(render_text(place[0], place[1] + 4, str(point.number), "number", "middle"))
    return render_svg(about, HEIGHT, parts)


def _render_roof(plane: ChartPlane, peak: float, bandwidth: float | None) -> Markup:
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
            inside = LEFT < at[0] < WIDTH - 14 and TOP < at[1] < HEIGHT - FOOT - 6
            if inside and all(math.dist(at, other) >= _APART for other in taken):
                return at
    return None
