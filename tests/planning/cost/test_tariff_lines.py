"""Lines of a bill as charges, each rounded once."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost.tariff_lines import build_tariff_lines, sum_rounded_bill
from service.planning.tariff.allocation import BillAllocation, PeriodShare
from service.planning.tariff.bill import BillingPeriod, BillLine

JULY = BillingPeriod(date(2026, 7, 1), date(2026, 8, 1))


def line(amount, price="0.1", kind="energy", quantity=1.0):
    return BillLine("energy", kind, quantity, "kWh", Decimal(price), Decimal(amount))


def bill(*lines):
    return BillAllocation("USD", (PeriodShare(JULY, lines, 1.0, 1.0, after_run=False),))


@given(st.lists(st.decimals("-1000", "1000", places=6), min_size=1, max_size=8))
def test_the_sum_is_that_of_the_rounded_lines(amounts):
    billed = bill(*(line(amount) for amount in amounts))
    charges = [one.charge for one in build_tariff_lines(billed, "given")]
    assert sum(charge.amount for charge in charges) == sum_rounded_bill(billed)
    assert all(charge.amount.as_tuple().exponent == -2 for charge in charges)


def test_a_bill_without_lines_costs_nothing():
    assert sum_rounded_bill(bill()) == Decimal("0.00")


@pytest.mark.parametrize(
    ("price", "kind", "category"),
    [("0.1", "energy", None), ("-0.1", "energy", "credit"), ("0.1", "tax", "tax"), ("-0.1", "tax", "tax")],
)
def test_taxes_and_credits_are_named(price, kind, category):
    [found] = build_tariff_lines(bill(line("1", price, kind)), "given")
    assert found.charge.category == category


def test_digits_that_only_a_quotient_has_are_left_out():
    [found] = build_tariff_lines(bill(line("1", "0.3333333333333333333333", quantity=0.1 + 0.2)), "given")
    assert found.charge.unit_price == Decimal("0.333333333333")
    assert found.charge.quantity == 0.3
    [short] = build_tariff_lines(bill(line("1", "0.25")), "given")
    assert short.charge.unit_price == Decimal("0.25")
