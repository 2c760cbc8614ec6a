"""Charts of two figures, the axes around their points, and figures in three digits."""

import pytest

from service.kit.reports.charts import ChartLabel, TradeoffPoint, render_tradeoff
from service.kit.reports.numbers import BYTES, SECONDS, UnitScale
from service.kit.reports.rounded import round_amount, round_money, round_quantity
from service.kit.reports.scaling import build_close_axis
from tests.quotes.reading import Page

DAYS = UnitScale(86400.0, "days")
EURO = UnitScale(1.0, "EUR")


def chart(*places, best=()):
    points = [TradeoffPoint(str(number), *place, number in best) for number, place in enumerate(places, 1)]
    about = ChartLabel("tradeoff", "Price against time", "Points.")
    return Page(render_tradeoff(about, points, (DAYS, EURO), "price, EUR")).charts["Price against time"]


def labels(drawn):
    return [text for kind, text in drawn["texts"] if kind == "number"]


def test_the_best_points_are_filled_and_joined_and_the_others_hollow():
    drawn = chart((86400, 300), (2 * 86400, 200), (3 * 86400, 250), best=(1, 2))
    (line,) = (given for tag, given in drawn["marks"] if tag == "polyline")
    circles = [given for tag, given in drawn["marks"] if tag == "circle"]
    filled = [f"{given['cx']},{given['cy']}" for given in circles if given["class"] == "point"]
    assert sorted(line["points"].split()) == sorted(filled)
    assert len(filled) == 2
    assert [given["class"] for given in circles].count("point hollow") == 1
    assert sorted(labels(drawn)) == ["1", "2", "3"]


def test_points_at_one_place_share_a_label():
    drawn = chart((86400, 300), (86400, 300), (86400, 300), (86400, 300), (2 * 86400, 200), best=(5,))
    assert sorted(labels(drawn)) == ["1, 2, 3, …", "5"]


def test_labels_do_not_overlap(monkeypatch):
    places = [(86400 * (1 + (7 * each) % 30 / 10), 200 + 13 * each) for each in range(30)]
    boxes = []
    from service.kit.reports import charts  # noqa: PLC0415

    found = charts._find_free_box

    def find(plane, at, width, taken):
        box = found(plane, at, width, taken)
        boxes.extend([] if box is None else [(box, list(taken))])
        return box

    monkeypatch.setattr(charts, "_find_free_box", find)
    chart(*places, best=(1,))
    assert len(boxes) > 20
    assert not any(box.overlaps(other) for box, taken in boxes for other in taken)
    assert all(box.left > 0 and box.right < charts.WIDTH for box, _ in boxes)


@pytest.mark.parametrize(
    ("values", "low", "high", "is_log"),
    [
        ((250.0, 310.0), 240.0, 320.0, False),
        ((100.0, 100.0), 99.0, 101.0, False),
        ((0.0, 90.0), 0.0, 100.0, False),
        ((3.0, 900.0), 1.0, 1000.0, True),
    ],
)
def test_an_axis_lies_close_around_its_values(values, low, high, is_log):
    axis = build_close_axis(*values)
    assert (axis.low, axis.high, axis.is_log) == (pytest.approx(low), pytest.approx(high), is_log)
    assert all(0 <= axis.to_position(value) <= 1 for value in values)


def test_ticks_of_an_axis_are_round_in_their_unit():
    axis = build_close_axis(1.2 * 86400, 3.4 * 86400, unit=86400.0)
    assert [tick / 86400 for tick in axis.ticks] == pytest.approx([1.0, 1.5, 2.0, 2.5, 3.0, 3.5])
    axis = build_close_axis(0.4 * 86400, 31 * 86400, unit=86400.0)
    assert [tick / 86400 for tick in axis.ticks] == pytest.approx([0.1, 1.0, 10.0, 100.0])


@pytest.mark.parametrize(
    ("ends", "ladder", "said"),
    [
        ((106_272.0, 85_449.6, 142_560.0), SECONDS, ("1.23 days", "likely 0.989 to 1.65 days")),
        ((0.0226, 0.0226, 0.0226), SECONDS, ("22.6 ms", "")),
        ((7.39 * 2**30, 2**30, 8 * 2**30), BYTES, ("7.39 GiB", "likely 1 to 8 GiB")),
    ],
)
def test_a_quantity_has_three_digits_and_its_unit_once(ends, ladder, said):
    found = round_quantity(dict(zip(("value", "low", "high"), ends, strict=True)), ladder)
    assert tuple(text.replace("\N{NO-BREAK SPACE}", " ") for text in found) == said


@pytest.mark.parametrize(
    ("amount", "text"), [("1234.56", "1,235"), ("12.5", "12.50"), ("0", "0.00"), ("0.0123456", "0.01235")]
)
def test_an_amount_has_cents_below_a_thousand(amount, text):
    assert round_amount(amount) == text
    money = {"amount": amount, "low": amount, "high": amount, "currency_code": "EUR"}
    assert round_money(money).shown == f"{text}\N{NO-BREAK SPACE}EUR"
