"""What owning costs each year, and after how long a purchase has paid itself back."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost import (
    MONTH_HOURS,
    YEAR_HOURS,
    OwnershipTerms,
    PurchaseSaving,
    break_even_months,
    break_even_runs,
    runs_per_month,
    share_of_year,
    used_device_hours,
    yearly_cost,
)

SHARES = st.floats(0.0, 0.9)


def test_a_year_is_365_and_a_quarter_days():
    assert (YEAR_HOURS, MONTH_HOURS) == (8766.0, 730.5)


def test_straight_line_without_interest():
    """39.25 million over four years, a tenth left: 8,831,250 a year; 5% maintenance 1,962,500."""
    cost = yearly_cost(Decimal(39_250_000), OwnershipTerms(4.0, 0.1, 0.0, 0.05))
    assert cost == (Decimal(8_831_250), Decimal(0), Decimal(1_962_500))


def test_an_annuity_pays_principal_interest_and_residual():
    """At 6% the present value of four payments and of the residual is the purchase."""
    depreciation, financing, _ = yearly_cost(Decimal(39_250_000), OwnershipTerms(4.0, 0.1, 0.06))
    payment = float(depreciation + financing)
    paid = sum(payment / 1.06**year for year in range(1, 5)) + 3_925_000 / 1.06**4
    assert paid == pytest.approx(39_250_000, rel=1e-12)
    assert round(float(financing), 2) == 1_598_744.47


@given(st.integers(1, 10**9), st.floats(0.5, 20.0), SHARES, st.floats(0.001, 0.5))
def test_interest_costs_and_nothing_is_lost(price, years, residual, rate):
    with_interest = yearly_cost(Decimal(price), OwnershipTerms(years, residual, rate))
    without = yearly_cost(Decimal(price), OwnershipTerms(years, residual))
    assert with_interest.depreciation == without.depreciation
    assert with_interest.financing > 0
    total = float(without.depreciation) * years + price * residual
    assert total == pytest.approx(price, rel=1e-9)


def test_a_run_bears_its_share_of_the_hours_that_are_used():
    """471,857.09 of 1000 x 8766 x 0.7 device-hours: 7.69% of a year."""
    assert used_device_hours(1000, 0.7) == pytest.approx(6_136_200.0)
    assert share_of_year(471_857.0947, 1000, 0.7) == pytest.approx(0.0768973, abs=1e-7)


class TestBreakEven:
    def test_months_are_runs_one_after_the_other(self):
        """21.19 reference runs of 19.66 days are 416.67 days or 13.69 months, at half the use 27.38."""
        duration, rent = 1_698_685.541, 1_415_571.28
        for utilization, expected in ((1.0, 13.689), (0.5, 27.379)):
            per_month = runs_per_month(duration, utilization)
            months = break_even_months(30e6, PurchaseSaving(rent), per_month)
            assert months == pytest.approx(expected, abs=0.001)
            assert months * per_month == pytest.approx(break_even_runs(30e6, rent))

    def test_running_costs_and_electricity_lengthen_it(self):
        alone = break_even_months(1000.0, PurchaseSaving(10.0), 1.0)
        assert alone == 100.0
        assert break_even_months(1000.0, PurchaseSaving(10.0, electricity=2.0), 1.0) == 125.0
        assert break_even_months(1000.0, PurchaseSaving(10.0, running_per_year=60.0), 1.0) == 200.0

    def test_what_never_pays_back_is_infinite(self):
        assert math.isinf(break_even_months(1000.0, PurchaseSaving(10.0, electricity=10.0), 1.0))
        assert math.isinf(break_even_months(1000.0, PurchaseSaving(10.0, running_per_year=121.0), 1.0))
        assert math.isinf(break_even_months(1000.0, PurchaseSaving(10.0, interest_rate=0.2), 1.0))

    @given(st.floats(1.0, 100.0), st.floats(0.001, 0.1))
    def test_savings_are_worth_the_purchase_at_that_rate(self, saved, rate):
        months = break_even_months(1000.0, PurchaseSaving(saved, interest_rate=rate), 1.0)
        if math.isinf(months):
            return
        monthly = (1.0 + rate) ** (1 / 12) - 1.0
        present = saved * (1.0 - (1.0 + monthly) ** -months) / monthly
        assert present == pytest.approx(1000.0, rel=1e-6)
        assert months >= break_even_months(1000.0, PurchaseSaving(saved), 1.0)
