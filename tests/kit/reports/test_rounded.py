"""Axes around points that are compared, and figures in three digits."""

import pytest

from service.kit.reports.numbers import BYTES, SECONDS
from service.kit.reports.rounded import round_amount, round_money, round_quantity
from service.kit.reports.scaling import build_point_axis


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
    axis = build_point_axis(*values)
    assert (axis.low, axis.high, axis.is_log) == (pytest.approx(low), pytest.approx(high), is_log)
    assert all(0 <= axis.to_position(value) <= 1 for value in values)


def test_ticks_of_an_axis_are_round_in_their_unit():
    axis = build_point_axis(1.2 * 86400, 3.4 * 86400, unit=86400.0)
    assert [tick / 86400 for tick in axis.ticks] == pytest.approx([1.0, 1.5, 2.0, 2.5, 3.0, 3.5])
    axis = build_point_axis(0.4 * 86400, 31 * 86400, unit=86400.0)
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
