"""Effective prices of devices under terms, and the age of a price."""

from datetime import date
from decimal import Decimal

import pytest

from service.planning.cost.prices import (
    STALE_DAYS,
    CommitmentTerm,
    age_days,
    compute_effective_price,
    device_price,
    format_price,
    is_early,
    is_expired,
    is_stale,
    parse_first_day,
    parse_last_day,
)
from service.planning.errors import PlanningError

TODAY = date(2026, 11, 22)


def test_a_price_is_per_instance_and_per_device():
    """p5.48xlarge: 98.32 USD for eight H100 is 12.29 each (gpu-prices.csv)."""
    assert device_price(Decimal("98.32"), 8) == Decimal("12.29")


@pytest.mark.parametrize(
    ("upfront", "hourly", "expected"),
    [
        ("161043.00", None, "18.38390411"),  # x2iedn.32xlarge eu-west-1, 1 year, all up front: 18.383904
        ("80000", "9.5", "18.632420091"),
        (None, "19.69698", "19.69698"),
    ],
)
def test_a_term_spreads_what_is_paid_up_front(upfront, hourly, expected):
    term = CommitmentTerm(365, upfront and Decimal(upfront), hourly and Decimal(hourly))
    assert term.hours == 8760
    assert format_price(compute_effective_price(None, term)) == expected


def test_a_stated_price_is_effective_where_the_split_is_not_published():
    assert compute_effective_price(Decimal("18.76"), CommitmentTerm(365)) == Decimal("18.76")


@pytest.mark.parametrize(
    ("stated", "term"),
    [
        (None, None),
        (None, CommitmentTerm(30)),
        (Decimal(5), CommitmentTerm(30, Decimal(1))),
        (Decimal(5), CommitmentTerm(30, None, Decimal(1))),
    ],
)
def test_a_price_is_stated_once(stated, term):
    with pytest.raises(PlanningError) as error:
        compute_effective_price(stated, term)
    assert error.value.code == "PRICE_PARTS"


@pytest.mark.parametrize(
    ("stated", "term"), [(Decimal(0), None), (None, CommitmentTerm(30, Decimal(0), Decimal(0)))]
)
def test_nothing_is_free(stated, term):
    with pytest.raises(PlanningError) as error:
        compute_effective_price(stated, term)
    assert error.value.code == "PRICE_ZERO"


@pytest.mark.parametrize(
    ("text", "day"),
    [("2024", (2024, 12, 31)), ("2024-02", (2024, 2, 29)), ("2023-11-16", (2023, 11, 16))],
)
def test_a_month_and_a_year_end_on_their_last_day(text, day):
    assert parse_last_day(text) == date(*day)


@pytest.mark.parametrize("text", ["2024-00", "2024-13", "2024-02-30", "2024-05-00", "0000"])
def test_what_is_no_day_is_refused(text):
    for end in (parse_first_day, parse_last_day):
        with pytest.raises(ValueError, match=r"month|day|year|out of range"):
            end(text)


def test_age_is_counted_from_the_last_day_that_may_be_meant():
    assert age_days("2024", TODAY) == (TODAY - date(2024, 12, 31)).days == 691
    assert age_days("2026", TODAY) == 0
    assert age_days("2026-11-21", TODAY) == 1


def test_a_price_is_stale_behind_the_limit_and_not_on_it():
    assert STALE_DAYS == 90
    assert not is_stale("2026-08-24", TODAY)
    assert is_stale("2026-08-23", TODAY)


def test_validity_includes_its_first_and_last_day():
    assert not is_expired("2026-11-22", TODAY)
    assert not is_expired("2026-11", TODAY)
    assert is_expired("2026-11-21", TODAY)
    assert not is_expired(None, TODAY)
    assert is_early("2026-11-23", TODAY)
    assert not is_early("2026-11", TODAY)
    assert not is_early(None, TODAY)
