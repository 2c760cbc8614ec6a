"""Numbers in the reader's units, and axes that do not lie."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from service.kit.reports.charts.bars import ChartBar, render_bars, stack_bars
from service.kit.reports.charts.drawing import ChartLabel, ChartMark, truncate_name
from service.kit.reports.charts.moments import DatedFigure, render_dated_figures
from service.kit.reports.numbers import (
    BYTES,
    KWH,
    SECONDS,
    TIMES,
    UnitScale,
    build_figure,
    format_figure_title,
    format_money,
    format_number,
    format_quantity,
    format_value,
    select_ladder,
    select_scale,
    to_title,
)
from service.kit.reports.rounding import round_shares, round_to_sum
from service.kit.reports.scaling import (
    build_close_axis,
    build_doubling_axis,
    build_linear_axis,
    build_logarithmic_axis,
    build_time_axis,
)
from tests.quotes.reading import Page


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1024, "1,024"),
        (0.1 + 0.2, "0.3000"),
        (1415571.28, "1,415,571"),
        (19.66071, "19.66"),
        (-2.5, "-2.500"),
        (8.4e23, f"8.400 {TIMES} 10²³"),
        (1.5e-7, f"1.500 {TIMES} 10⁻⁷"),
    ],
)
def test_numbers_have_four_digits_and_separators(value, text):
    assert format_number(value).replace("\N{NO-BREAK SPACE}", " ") == text


@pytest.mark.parametrize(
    ("value", "ladder", "text"),
    [
        (2**30, BYTES, "1 GiB"),
        (1e9, BYTES, "953.7 MiB"),
        (0, BYTES, "0 B"),
        (1_698_624.0, SECONDS, "19.66 days"),
        (0.0316, SECONDS, "31.60 ms"),
        (0.0, SECONDS, "0 s"),
        (330_300.0, KWH, "330.3 MWh"),
    ],
)
def test_units_are_those_of_the_size(value, ladder, text):
    assert format_value(value, ladder).replace("\N{NO-BREAK SPACE}", " ") == text


def test_an_interval_is_shown_in_the_unit_of_its_figure():
    quantity = {"value": 2e9, "low": 5e8, "high": 4e12, "basis": "datasheet"}
    found = build_figure("total_bytes", quantity)
    assert [text.split("\N{NO-BREAK SPACE}") for text in (found.shown, found.low, found.high)] == [
        ["1.863", "GiB"],
        ["0.4657", "GiB"],
        ["3,725", "GiB"],
    ]
    assert found.basis == "datasheet"


def test_what_is_given_has_no_interval():
    found = build_figure(
        "total", {"amount": "3.10", "low": "3.1", "high": "3.1", "currency_code": "USD", "basis": "exact"}
    )
    assert (found.shown, found.low) == ("3.10\N{NO-BREAK SPACE}USD", "")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("duration_seconds", "Duration"),
        ("it_kwh", "IT energy"),
        ("water_liters", "Water"),
        ("peak_flops_per_second_per_device", "Peak rate per device"),
        ("break_even_runs", "Break-even runs"),
        ("location_based_kg_co2e", "Location-based emissions"),
    ],
)
def test_members_are_called_what_they_are(name, title):
    assert format_figure_title(name) == title
    assert to_title("kv_cache") == "KV cache"


def test_members_of_other_kinds_are_no_figures():
    assert build_figure("advice", [1, 2]) is None
    assert build_figure("host", {"memory_bytes": 3}) is None
    assert select_ladder("tokens_per_second")[0].unit == ""


@pytest.mark.parametrize("values", [(0.3,), (7.0, 23.0), (1e-9,), (4.2e11, 9e9), (5.0, -3.0), (0.0,)])
def test_linear_axes_begin_at_zero_and_hold_what_they_show(values):
    axis = build_linear_axis(*values)
    assert axis.low <= min(0.0, *values)
    assert axis.high >= max(values)
    assert 0.0 in axis.ticks
    assert len(axis.ticks) <= 7
    steps = {round(b - a, 12) for a, b in zip(axis.ticks, axis.ticks[1:], strict=False)}
    assert len({f"{step:.6e}" for step in steps}) == 1
    assert axis.to_position(2 * axis.high - axis.low) == 1.0


def test_an_axis_of_credits_ends_at_nothing():
    axis = build_linear_axis(-7040.39, 0.0)
    assert (axis.low, axis.high) == (-8000.0, 0.0)
    assert axis.to_position(0.0) == 1.0


def test_ticks_are_round_in_the_unit_that_they_are_labelled_in():
    axis = build_linear_axis(79.1 * 2**30, unit=2**30)
    assert [tick / 2**30 for tick in axis.ticks] == [0, 20, 40, 60, 80]


def test_logarithmic_axes_are_of_whole_powers():
    axis = build_logarithmic_axis(0.2, 3000.0)
    assert (axis.low, axis.high) == (0.1, 10_000.0)
    assert axis.to_position(1.0) == pytest.approx(0.2)
    assert build_doubling_axis(0.5, 1.9).ticks == (0.5, 1.0, 2.0)
    assert build_logarithmic_axis(10.0).high > build_logarithmic_axis(10.0).low


def test_parts_begin_where_the_last_one_ends():
    assert [
        (bar.start, bar.end) for bar in stack_bars([("a", "", 2.0), ("b", "", -0.5), ("c", "", 1.0)])
    ] == [
        (0.0, 2.0),
        (2.0, 1.5),
        (1.5, 2.5),
    ]


def test_charts_escape_what_they_are_given():
    name = "<script>alert(1)</script>&\"'"
    chart = render_bars(
        ChartLabel("x", name, name),
        [ChartBar(name, "<&>", 0.0, 1.0)],
        build_linear_axis(1.0),
        UnitScale(1.0, name),
        [ChartMark(name, 1.0)],
    )
    page = Page(str(chart))
    assert {tag for tag, _ in page.tags} == {"svg", "title", "desc", "text", "line", "rect"}
    assert page.texts(name, "name") == [name]


def test_long_names_are_cut():
    assert truncate_name("a" * 34) == "a" * 34
    assert truncate_name("a" * 35) == "a" * 33 + "…"


def test_scales_of_nothing():
    assert select_scale(BYTES, 0.0).unit == "B"
    assert select_scale(KWH, 0.0).unit == "kWh"


@pytest.mark.parametrize(
    ("values", "whole", "parts", "text"),
    [
        ([1 / 3, 1 / 3, 1 / 3], 1.0, ["0.333334", "0.333333", "0.333333"], "1.000000"),
        ([65.0008, 0.0304], 65.0312, ["65.001", "0.030"], "65.031"),
        ([0.5, 0.25, 0.25], 1.0, ["0.500", "0.250", "0.250"], "1.000"),
        ([3.0, 4.0], 7.0, ["3", "4"], "7"),
        ([1e12, 1.0], 1e12 + 1, ["1,000,000,000,000", "1"], "1,000,000,000,001"),
        ([50.0, 1e-9], 50.000000001, ["50.00000", "< 0.00001"], "50.00000"),
        ([0.0, 0.0], 0.0, ["0", "0"], "0"),
        ([5.5, -0.75], 4.75, ["5.500", "-0.750"], "4.750"),
    ],
)
def test_parts_are_printed_so_that_they_sum(values, whole, parts, text):
    assert round_to_sum(values, whole) == (parts, text)


def test_shares_sum_to_a_hundred():
    found = round_shares([1.0, 1.0, 1.0, 1e-9], 3.0 + 1e-9)
    assert found.parts == [f"{share}\N{NO-BREAK SPACE}%" for share in ("33.4", "33.3", "33.3", "< 0.1")]
    assert found.whole == "100.0\N{NO-BREAK SPACE}%"
    assert round_shares([0.0], 0.0) == ([""], "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.99996, "10.00"), (999.96, "1,000"), (float("nan"), "not known"), (float("inf"), "not known")],
)
def test_digits_are_rounded_before_they_are_counted(value, text):
    assert format_number(value) == text


def test_quantities_of_charges_keep_their_digits():
    assert format_quantity(471_857.0933333333) == "471,857.093333"
    assert format_quantity(31.0) == "31"
    assert format_quantity(2.5e20) == "250,000,000,000,000,000,000"


def test_nothing_has_no_sign():
    assert format_money("-0.00", "USD") == "0.00\N{NO-BREAK SPACE}USD"


def test_a_long_name_leaves_room_for_its_figure():
    row = ChartBar("n" * 60, "123,456,789,012,345,678,901,234.00 IRR", 0.0, 1.0)
    page = Page(
        str(render_bars(ChartLabel("x", "t", "d"), [row], build_linear_axis(1.0), UnitScale(1.0, "IRR")))
    )
    (name,) = page.texts("t", "name")
    assert len(name) + len(row.shown) <= 60
    assert page.blocks("t") == [(0.0, 420.0)]


def test_a_bar_of_nothing_has_no_length():
    rows = [
        ChartBar("none", "0", 0.0, 0.0),
        ChartBar("little", "1", 0.0, 1e-9),
        ChartBar("one", "1", 0.0, 1.0),
    ]
    page = Page(str(render_bars(ChartLabel("x", "t", "d"), rows, build_linear_axis(1.0), UnitScale(1.0, ""))))
    assert [width for _, width in page.blocks("t")] == [0.0, 1.0, 420.0]


@pytest.mark.parametrize("values", [(2.9e12, 2.91e12, 3.35e12), (5.0,), (0.001, 0.5), (0.0,)])
def test_close_axes_hold_what_they_show(values):
    axis = build_close_axis(*values)
    assert axis.low <= min(values) <= max(values) <= axis.high
    assert axis.low >= 0
    assert 2 <= len(axis.ticks) <= 8


def test_a_close_axis_does_not_enlarge_noise():
    axis = build_close_axis(100.0, 100.5)
    assert axis.to_position(100.5) - axis.to_position(100.0) < 0.05


@pytest.mark.parametrize(
    ("days", "labels"),
    [
        (0.0, 2),
        (0.01, 2),
        (1.3, 2),
        (24.0, 3),
        (400.0, 2),
        (4000.0, 2),
    ],
)
def test_ticks_of_time_are_whole_and_few(days, labels):
    first = datetime(2026, 11, 4, 16, 18, tzinfo=UTC).timestamp()
    axis = build_time_axis(first, first + days * 86_400)
    assert axis.low < first < axis.high
    assert labels <= len(axis.ticks) <= 7
    assert all(axis.low <= at <= axis.high and at % 60 == 0 for at in axis.ticks)


def test_levels_are_named_where_no_point_is():
    """Points all along a level leave room above it or below."""
    times = [datetime(2026, 11, day, tzinfo=UTC) for day in range(1, 29, 2)]
    figures = [DatedFigure(at, 2.9 if place % 2 else 2.95, 2.88, 2.96) for place, at in enumerate(times)]
    marks = [ChartMark("data sheet", 3.35), ChartMark("middle of 4 equal nodes", 2.9)]
    chart = render_dated_figures(
        ChartLabel("dated", "<over time>", "said"), figures, UnitScale(1.0, "TB/s"), marks
    )
    assert "&lt;over time&gt;" in chart
    circles = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', chart)]
    assert len(circles) == len(figures)
    names = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="mark-name"[^>]*>([^<]+)<', chart)
    assert [name for *_, name in names] == ["data sheet", "middle of 4 equal nodes"]
    for x, y, name in names:
        half = len(name) * 3.5
        covered = [
            one for one in circles if abs(one[0] - float(x)) < half and float(y) - 11 < one[1] < float(y) + 3
        ]
        assert covered == [], name


@pytest.mark.parametrize(
    ("span", "label"),
    [
        (timedelta(hours=2), "17:00"),
        (timedelta(hours=2), "4 Nov 2026, UTC"),
        (timedelta(days=9), "7 Nov"),
        (timedelta(days=9), "UTC"),
        (timedelta(days=900), "Apr 2027"),
    ],
)
def test_times_are_written_as_their_distance_asks(span, label):
    first = datetime(2026, 11, 4, 16, 18, tzinfo=UTC)
    figures = [DatedFigure(at, 1.0, 1.0, 1.0) for at in (first, first + span)]
    chart = render_dated_figures(ChartLabel("dated", "t", "d"), figures, UnitScale(1.0, "s"))
    assert f">{label}</text>" in chart
