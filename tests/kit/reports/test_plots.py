"""Series over two axes, and tornadoes: points where their figures are, and labels apart from each other."""

import pytest

from service.kit.reports.charts.bars import TornadoBar, render_tornado
from service.kit.reports.charts.drawing import WIDTH, ChartLabel, ChartMark
from service.kit.reports.charts.series import ChartSeries, PlotAxis, SeriesPoint, render_series
from service.kit.reports.numbers import UnitScale
from service.kit.reports.scaling import build_doubling_axis, build_linear_axis, build_logarithmic_axis
from tests.quotes.reading import Page

ABOUT = ChartLabel("x", "t", "d")
MILLISECONDS = UnitScale(1e-3, "ms")
USERS = UnitScale(1.0, "")
FIRST = ChartSeries("First token", [SeriesPoint(n, 0.05 * n, 0.04 * n, 0.06 * n, f"{n}") for n in (1, 4, 16)])
NEXT = ChartSeries("Next token", [SeriesPoint(n, 0.02) for n in (1, 4, 16)])
ACROSS = PlotAxis("Users", build_doubling_axis(1, 16), USERS, [ChartMark("as asked", 4)])
UP = PlotAxis("Time", build_logarithmic_axis(0.01, 1), MILLISECONDS, [ChartMark("at most 500 ms", 0.5)])


def drawn(*series, across=ACROSS, up=UP):
    return Page(str(render_series(ABOUT, series, across, up)))


def marks(page, tag, kind=""):
    return [given for found, given in page.charts["t"]["marks"] if found == tag and given["class"] == kind]


def test_points_stand_where_their_figures_are():
    page = drawn(FIRST, NEXT)
    circles = [given for given in marks(page, "circle", "point") if float(given["cx"]) > 30]
    xs = [float(given["cx"]) for given in circles]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    ys = [float(given["cy"]) for given in circles]
    assert ys == sorted(ys, reverse=True)
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)
    (line,) = marks(page, "polyline", "series")
    assert line["points"].split() == [f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True)]


def test_series_are_told_by_shape_and_dashes():
    page = drawn(FIRST, NEXT, ChartSeries("Ideal", [SeriesPoint(1, 0.05), SeriesPoint(16, 0.1)], "line"))
    assert len(marks(page, "circle", "point")) == len(FIRST.points) + 1
    assert len(marks(page, "rect", "point hollow")) == len(NEXT.points) + 1
    assert marks(page, "polygon", "point") == []
    assert {given["class"] for tag, given in page.charts["t"]["marks"] if tag == "polyline"} == {
        "series",
        "series dashed",
        "series dotted",
    }
    assert page.texts("t", "label") == ["First token", "Next token", "Ideal"]


def test_single_points_are_not_joined():
    page = drawn(ChartSeries("Candidates", FIRST.points, "points"))
    assert marks(page, "polyline", "series") == []
    assert len(marks(page, "circle", "point")) == len(FIRST.points) + 1


def test_intervals_are_whiskers():
    whiskers = marks(drawn(FIRST), "line", "whisker")
    assert len(whiskers) == 3 * len(FIRST.points)
    assert marks(drawn(NEXT), "line", "whisker") == []


def test_reference_values_are_lines_with_a_name():
    page = drawn(FIRST)
    upright, level = marks(page, "line", "mark")[-2:]
    assert upright["x1"] == upright["x2"]
    assert level["y1"] == level["y2"]
    assert page.texts("t", "mark-name") == ["at most 500 ms", "as asked"]
    assert page.texts("t", "tick")[-2:] == ["Users (logarithmic)", "Time, ms (logarithmic)"]


def test_a_linear_axis_does_not_say_that_it_is_logarithmic():
    page = drawn(FIRST, up=PlotAxis("Time", build_linear_axis(1.0), MILLISECONDS))
    assert "Time, ms" in page.texts("t", "tick")


def boxes(page):
    """Rectangles of the texts of a chart in a wide font: 7 units a character, and 8.3 a bold one."""
    found = []
    for given, text in zip(page.charts["t"]["text_marks"], page.charts["t"]["texts"], strict=True):
        wide = 8.3 if text[0] in {"figure", "mark-name"} else 7.0
        x, y, width = float(given["x"]), float(given["y"]), wide * len(text[1])
        left = x - {"start": 0, "middle": width / 2, "end": width}[given["text-anchor"]]
        found.append((left, y - 10, left + width, y + 3, text[1]))
    return found


def overlapping(page):
    found = boxes(page)
    return [
        (a[4], b[4])
        for place, a in enumerate(found)
        for b in found[place + 1 :]
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


@pytest.mark.parametrize("count", [1, 7, 60])
def test_labels_do_not_overlap(count):
    crowded = [SeriesPoint(1 + n / 50, 0.1 + n / 1000, name=f"{n} devices of a kind") for n in range(count)]
    many = ChartSeries("A name that is far too long for the legend of a chart of this width" * 2, crowded)
    wide = PlotAxis("Users", build_linear_axis(9e12), USERS, [ChartMark("here", 1), ChartMark("there", 1)])
    page = drawn(many, FIRST, across=wide)
    assert overlapping(page) == []
    page = drawn(many, FIRST)
    assert overlapping(page) == []
    assert page.texts("t", "number")
    assert all(box[0] >= 0 and box[2] <= WIDTH + 1 for box in boxes(page))


def test_a_tornado_has_a_bar_for_each_end():
    rows = [
        TornadoBar("Price", "8 to 12 USD", -0.2, 0.2),
        TornadoBar("Users", "9 to 11 USD", 0.1, -0.05),
        TornadoBar("Length of a prompt", "11 to 12 USD", 0.1, 0.2),
        TornadoBar("Nothing", "10 USD", 0.0, 0.0),
    ]
    axis = build_linear_axis(-0.2, 0.2, unit=0.01)
    page = Page(str(render_tornado(ABOUT, rows, axis, UnitScale(0.01, "%"), ("20% less", "20% more"))))
    base = WIDTH / 2
    bars = page.blocks("t")[2:]
    assert bars[:2] == [(0, base), (base, base)]
    assert bars[2:4] == [(base, base / 2), (base * 3 / 4, base / 4)]
    assert bars[4:] == [(base, base / 2), (base, base)]
    assert page.texts("t", "label") == ["20% less", "20% more"]
    assert overlapping(page) == []
    shared = [given for tag, given in page.charts["t"]["marks"] if tag == "rect"][-2:]
    assert float(shared[0]["y"]) + float(shared[0]["height"]) <= float(shared[1]["y"])
