"""The plane of a chart with two axes."""

from collections.abc import Callable
from typing import NamedTuple

from markupsafe import Markup

from service.kit.reports.charts.drawing import (
    LINE_HEIGHT,
    WIDTH,
    measure_text,
    render_line,
    render_text,
    select_anchor,
)
from service.kit.reports.numbers import UnitScale, build_tick_format
from service.kit.reports.scaling import (
    ChartAxis,
)

HEIGHT = 330.0
LEFT = 66.0
FOOT = 44.0
TOP = 24.0


class ChartPlane(NamedTuple):
    """Two axes and the height of the plane."""

    across: ChartAxis
    up: ChartAxis
    height: float = HEIGHT
    top: float = TOP
    mark_rows: int = 0
    """Rows between the name of the upward axis and the plane, for names of reference values."""

    @property
    def floor(self) -> float:
        """Returns the ordinate of the lower edge."""
        return self.height - FOOT

    def to_x(self, value: float) -> float:
        """Returns the abscissa of a value across."""
        return LEFT + self.across.to_position(value) * (WIDTH - LEFT - 12)

    def to_y(self, value: float) -> float:
        """Returns the ordinate of a value upwards."""
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
            parts.append(render_line(x, self.top, x, self.floor, "grid"))
            anchor = select_anchor(x, text, WIDTH)
            label = measure_text(x, self.floor + LINE_HEIGHT, text, anchor)
            if label.left >= written:
                parts.append(render_text(x, self.floor + LINE_HEIGHT, text, "tick", anchor))
                written = label.right
        for at in self.up.ticks:
            parts.append(render_line(LEFT, self.to_y(at), WIDTH - 12, self.to_y(at), "grid"))
            parts.append(render_text(LEFT - 6, self.to_y(at) + 4, show_y(at), "tick", "end"))
        parts.append(render_text(WIDTH - 12, self.height - 8, scales[0].unit, "tick", "end"))
        parts.append(render_text(0, self.top - 12 - self.mark_rows * LINE_HEIGHT, name, "tick"))
        return parts
