"""Rows of FOCUS 1.2: what the specification asks of every row, and that rows add up to their charges."""

import csv
import io
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.focus import strip_apostrophe
from service.kit.http.csv_tables import render_csv
from service.planning.cost.focus import (
    COLUMNS,
    BillingAccount,
    ChargeCategory,
    ChargeCommitment,
    ChargeFrequency,
    FocusCharge,
    PricingCategory,
    ServiceCategory,
    build_focus_rows,
    pricing_quantity,
)

MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart",
    "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "ProviderName", "PublisherName",
    "ServiceCategory", "ServiceName", "ServiceSubcategory", "ChargeFrequency",
}  # fmt: skip
"""Columns that may not be null."""
OF_PRICED = (
    "PricingQuantity",
    "PricingUnit",
    "PricingCategory",
    "ListUnitPrice",
    "ContractedUnitPrice",
    "SkuId",
)
COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
START = datetime(2026, 11, 20, 6, 30, tzinfo=UTC)
CHARGE = FocusCharge(
    name="rental",
    description="rental of devices",
    category=ChargeCategory.USAGE,
    service=ServiceCategory("Compute", "Virtual Machines", "Accelerators"),
    provider="example-cloud",
    currency_code="USD",
    billed=Decimal("100.00"),
    effective=Decimal("100.00"),
    start=START,
    end=START + timedelta(days=20),
    source="given with the question",
    quantity=Decimal("33.333333333"),
    unit="Device-Hours",
    unit_price=Decimal(3),
    sku="p5.48xlarge",
)
ACCOUNT = BillingAccount("research", "Research", {"estimate": "true"})


def rows(*charges):
    return list(csv.DictReader(io.StringIO(render_csv(COLUMNS, build_focus_rows(charges, ACCOUNT)))))


def assert_sound(row):
    """The rules of the specification for one row."""
    assert tuple(row) == COLUMNS
    assert all(row[name] for name in MANDATORY)
    for name in (*COSTS, "PricingQuantity", "ListUnitPrice", "ContractedUnitPrice"):
        assert re.fullmatch(r"(-?\d+(\.\d+)?)?", row[name]), name
    assert row["ContractedCost"] == row["ListCost"]
    if row["ChargeCategory"] in ("Usage", "Purchase"):
        assert all(row[name] for name in OF_PRICED)
        assert Decimal(row["ListUnitPrice"]) >= 0
        assert Decimal(row["PricingQuantity"]) * Decimal(row["ListUnitPrice"]) == Decimal(row["ListCost"])
    else:
        assert not any(row[name] for name in ("PricingQuantity", "PricingUnit", "ListUnitPrice", "SkuId"))
        assert row["ListCost"] == row["BilledCost"]
    assert (row["ChargeCategory"] == "Tax") <= (not row["PricingCategory"])
    assert (row["ChargeCategory"] == "Purchase") <= (row["ChargeFrequency"] != "Usage-Based")
    assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["BillingPeriodEnd"]
    assert row["ChargePeriodStart"] < row["ChargePeriodEnd"]
    if row["ChargeFrequency"] != "One-Time":
        assert row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
    assert bool(row["CommitmentDiscountId"]) == bool(row["CommitmentDiscountQuantity"])
    assert (row["PricingCategory"] == "Committed") == bool(row["CommitmentDiscountStatus"])


def test_there_are_all_columns_of_version_1_2():
    own = [name for name in COLUMNS if name.startswith("x_")]
    assert (len(COLUMNS), len(own)) == (59, 2)
    assert list(COLUMNS) == sorted(COLUMNS)


def test_a_charge_over_two_months_is_two_rows():
    """From 20 November 06:30 on, 10 days 17:30 of 20 days are in November: 53.65%."""
    november, december = rows(CHARGE)
    for row in (november, december):
        assert_sound(row)
    assert november["ChargePeriodStart"] == "2026-11-20T06:30:00Z"
    assert november["ChargePeriodEnd"] == december["ChargePeriodStart"] == "2026-12-01T00:00:00Z"
    assert (november["BillingPeriodStart"], november["BillingPeriodEnd"]) == (
        "2026-11-01T00:00:00Z",
        "2026-12-01T00:00:00Z",
    )
    assert (november["BilledCost"], december["BilledCost"]) == ("53.65", "46.35")
    assert november["Tags"] == '{"estimate": "true"}'


def test_a_payment_is_one_row_of_the_month_in_which_it_is_made():
    (row,) = rows(CHARGE._replace(category=ChargeCategory.PURCHASE, frequency=ChargeFrequency.ONCE))
    assert_sound(row)
    assert row["ChargePeriodEnd"] == "2026-12-10T06:30:00Z"
    assert row["BillingPeriodEnd"] == "2026-12-01T00:00:00Z"
    assert row["ConsumedQuantity"] == ""


def test_times_of_other_zones_are_utc():
    zone = timezone(timedelta(hours=9))
    (row,) = rows(
        CHARGE._replace(start=datetime(2027, 1, 1, tzinfo=zone), end=datetime(2027, 1, 1, 1, tzinfo=zone))
    )
    assert row["ChargePeriodStart"] == "2026-12-31T15:00:00Z"
    assert row["BillingPeriodStart"] == "2026-12-01T00:00:00Z"


@pytest.mark.parametrize("category", [ChargeCategory.TAX, ChargeCategory.CREDIT])
def test_taxes_and_credits_have_no_quantity(category):
    amount = Decimal(-5) if category is ChargeCategory.CREDIT else Decimal(5)
    charge = CHARGE._replace(
        category=category,
        billed=amount,
        effective=amount,
        quantity=None,
        unit=None,
        unit_price=None,
        sku=None,
        end=START + timedelta(hours=1),
    )
    (row,) = rows(charge)
    assert_sound(row)
    assert row["ListCost"] == str(amount)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "\uff1d1", "\uff201"])
def test_text_is_no_formula_and_numbers_stay_numbers(text):
    back = CHARGE._replace(billed=Decimal(-5), effective=Decimal(-5), description=text, sku=text)
    (row,) = rows(back._replace(end=START + timedelta(hours=1)))
    assert row["ChargeDescription"] == row["SkuId"] == f"'{text}"
    assert strip_apostrophe(row["SkuId"]) == text
    assert (row["BilledCost"], row["EffectiveCost"]) == ("-5", "-5")


def test_a_commitment_says_what_of_it_was_used():
    committed = CHARGE._replace(
        pricing=PricingCategory.COMMITTED, commitment=ChargeCommitment("year", used=True)
    )
    idle = CHARGE._replace(pricing=PricingCategory.COMMITTED, commitment=ChargeCommitment("year", used=False))
    used, *_ = rows(committed)
    unused, *_ = rows(idle)
    for row in (used, unused):
        assert_sound(row)
        assert row["CommitmentDiscountQuantity"] == row["PricingQuantity"]
    assert (used["CommitmentDiscountStatus"], unused["CommitmentDiscountStatus"]) == ("Used", "Unused")
    assert used["ConsumedQuantity"]
    assert not unused["ConsumedQuantity"]


@given(
    st.decimals("0.01", "1e9", places=2),
    st.floats(1e-6, 1e12),
    st.decimals("0", "1e5", places=9),
    st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1)),  # noqa: DTZ001
    st.integers(1, 3 * 366 * 86_400),
)
def test_rows_add_up_to_their_charge(billed, quantity, price, start, seconds):
    start = start.replace(microsecond=0, tzinfo=UTC)
    charge = CHARGE._replace(
        billed=billed,
        effective=billed,
        quantity=pricing_quantity(quantity),
        unit_price=price,
        start=start,
        end=start + timedelta(seconds=seconds),
    )
    found = rows(charge)
    for row in found:
        assert_sound(row)
    for name, whole in (
        ("BilledCost", billed),
        ("EffectiveCost", billed),
        ("PricingQuantity", charge.quantity),
    ):
        assert sum(Decimal(row[name]) for row in found) == whole
    ends = [row["ChargePeriodEnd"] for row in found[:-1]]
    assert ends == [row["ChargePeriodStart"] for row in found[1:]]
