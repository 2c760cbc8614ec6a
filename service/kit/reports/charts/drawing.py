"""Parts of a chart: its frame, texts, lines and boxes.

Charts are inline SVG: bars from zero, labelled axes, a title and a description, no meaning in colour alone.
A table next to every chart has the same figures, so that the chart may cut a name or leave out a label.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from service.kit.http.html import escape_invisible

WIDTH = 420
LINE_HEIGHT = 15
NAME_LENGTH = 34
LABEL_WIDTH = 7.0
"""Approximate width of a character of a label."""
BOLD_WIDTH = 8.3
"""The same of a bold one."""
ASCENT, DESCENT = 10.0, 3.0
"""Approximate height of a label above and below its baseline."""


class ChartMark(NamedTuple):
    """A reference value for all rows."""

    name: str
    value: float


def truncate_name(name: str, length: int = NAME_LENGTH) -> str:
    """Returns a name that fits a label."""
    return name if len(name) <= length else f"{name[: length - 1].rstrip()}…"


class ChartLabel(NamedTuple):
    """Title and description of a chart. ``key`` is unique in a page."""

    key: str
    title: str
    description: str


def render_svg(about: ChartLabel, height: float, parts: Sequence[Markup]) -> Markup:
    """Returns the drawn parts as a picture with its title and description."""
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


def render_text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    """Returns a text at its baseline, with invisible characters written out."""
    written = Markup('<text x="{:.1f}" y="{:.1f}" class="{}" text-anchor="{}">{}</text>')
    return written.format(x, y, kind or "label", anchor, escape_invisible(text))


def render_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Returns a line between two points."""
    written = Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>')
    return written.format(x1, y1, x2, y2, kind)


def render_rectangle(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Returns a rectangle by its upper left corner."""
    written = Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>')
    return written.format(x, y, max(width, 0.0), height, kind)


def select_anchor(at: float, text: str, width: float, character: float = LABEL_WIDTH) -> str:
    """Returns the anchor of a text at ``at`` of ``width`` that keeps it within the chart."""
    half = len(text) * character / 2
    if at < half:
        return "start"
    return "end" if at > width - half else "middle"


class ChartBox(NamedTuple):
    """A rectangle that a label or a point takes."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "ChartBox") -> bool:
        """Returns true if two boxes share a place."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


def measure_text(x: float, y: float, text: str, anchor: str = "start") -> ChartBox:
    """Returns the rectangle of a text whose baseline is at ``y``."""
    width = len(text) * LABEL_WIDTH
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return ChartBox(left, y - ASCENT, left + width, y + DESCENT)
