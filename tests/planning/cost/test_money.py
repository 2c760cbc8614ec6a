"""Amounts of money: rounded once, half to even."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost import break_even_runs, compute_charge, round_amount


@pytest.mark.parametrize(
    ("amount", "currency", "expected"),
    [
        ("2.345", "USD", "2.34"),
        ("2.355", "USD", "2.36"),
        ("2.5", "JPY", "2"),
        ("3.5", "JPY", "4"),
        ("1.2345", "KWD", "1.234"),
        ("1.005", "XYZ", "1.00"),
    ],
)
def test_half_to_even_at_the_minor_unit(amount, currency, expected):
    assert str(round_amount(Decimal(amount), currency)) == expected


def test_the_rent_of_the_reference_run():
    assert compute_charge(471857.0947084598, Decimal(3), "USD") == Decimal("1415571.28")


def test_break_even_of_the_reference_run():
    assert break_even_runs(30_000_000, 1415571.2841253793) == pytest.approx(21.19285714285714)


@given(st.floats(0, 1e9), st.decimals("0.01", "1000", places=4))
def test_a_charge_is_within_half_a_cent(quantity, price):
    assert abs(compute_charge(quantity, price, "EUR") - Decimal(quantity) * price) <= Decimal("0.005")
