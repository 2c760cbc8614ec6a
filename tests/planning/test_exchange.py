"""Amounts in other currencies: by the newest rate that is known on the day, or not at all."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.planning.cost.exchange import ExchangeRate, ExchangeRates


def rate(from_code, to_code, value, on, source="bank"):
    return ExchangeRate(from_code, to_code, Decimal(value), date.fromisoformat(on), source)


RATES = ExchangeRates(
    [
        rate("EUR", "USD", "1.0389", "2024-12-31"),
        rate("EUR", "USD", "1.175", "2025-12-31"),
        rate("EUR", "SEK", "10.8215", "2025-12-31"),
        rate("EUR", "SEK", "11.459", "2024-12-31"),
        rate("GBP", "JPY", "211", "2025-12-31"),
    ]
)


def converted(amount, from_code, to_code, on):
    return RATES.convert(Decimal(amount), from_code, to_code, date.fromisoformat(on))


def test_the_newest_rate_not_after_the_day():
    assert converted("100", "EUR", "USD", "2025-12-30").amount == Decimal("103.89")
    assert converted("100", "EUR", "USD", "2025-12-31").amount == Decimal("117.5")
    assert converted("100", "EUR", "USD", "2030-01-01").amount == Decimal("117.5")


def test_none_is_known_before_the_first():
    assert converted("100", "EUR", "USD", "2024-12-30") is None


def test_the_inverse_says_which_rate_was_turned_round():
    found = converted("117.5", "USD", "EUR", "2026-01-02")
    assert found.amount == 100
    assert [step.to_code for step in found.rates] == ["USD"]


def test_crossed_through_the_currency_that_both_know():
    """SEK in USD: 1.175 / 10.8215 of 2025-12-31."""
    found = converted("1082150", "SEK", "USD", "2026-01-10")
    assert round(found.amount, 6) == Decimal(117500)
    assert [(step.from_code, step.to_code) for step in found.rates] == [("EUR", "SEK"), ("EUR", "USD")]
    assert {step.source for step in found.rates} == {"bank"}


def test_no_longer_ways_are_taken():
    assert converted("1", "USD", "JPY", "2026-01-01") is None


def test_how_old_the_oldest_rate_is():
    assert converted("1", "SEK", "USD", "2026-01-10").age_days == 10
    assert converted("1", "USD", "USD", "2026-01-10").age_days == 0


def test_one_currency_needs_no_rate():
    assert converted("7", "CHF", "CHF", "1999-01-01") == (7, 1, (), date(1999, 1, 1))


def test_a_stated_rate_goes_before_an_older_inverse_and_a_crossed_one():
    both = ExchangeRates(
        [
            rate("EUR", "USD", "2", "2025-01-01"),
            rate("USD", "EUR", "0.8", "2025-06-01"),
            rate("EUR", "GBP", "1", "2025-07-01"),
            rate("GBP", "USD", "9", "2025-07-01"),
        ]
    )
    assert both.convert(Decimal(8), "EUR", "USD", date(2025, 3, 1)).amount == 16
    assert both.convert(Decimal(8), "EUR", "USD", date(2025, 8, 1)).amount == 10


def test_of_two_for_one_day_the_later_given_counts():
    twice = ExchangeRates([rate("EUR", "USD", "1", "2025-01-01"), rate("EUR", "USD", "3", "2025-01-01")])
    assert twice.convert(Decimal(1), "EUR", "USD", date(2025, 1, 1)).amount == 3


def test_a_rate_is_above_zero():
    with pytest.raises(ValueError, match="above zero"):
        ExchangeRates([rate("EUR", "USD", "0", "2025-01-01")])


@given(
    st.decimals("0.01", 1000, places=4), st.decimals("0.01", 1000, places=4), st.decimals(0, 10**9, places=2)
)
def test_there_and_back_is_the_same_amount(first, second, amount):
    rates = ExchangeRates(
        [
            ExchangeRate("EUR", "AAA", first, date(2025, 1, 1), ""),
            ExchangeRate("EUR", "BBB", second, date(2025, 1, 1), ""),
        ]
    )
    there = rates.convert(amount, "AAA", "BBB", date(2025, 1, 1))
    exact = Fraction(amount) * Fraction(second) / Fraction(first)
    assert abs(Fraction(there.amount) - exact) <= abs(exact) / 10**24
    back = rates.convert(there.amount, "BBB", "AAA", date(2025, 1, 1))
    assert round(back.amount, 6) == amount
