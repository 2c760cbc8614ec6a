"""The charges of an estimate as FOCUS rows: they are the lines of the answer, and sum to its total."""

import csv
import io
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.app.examples import EXAMPLES
from service.estimates.focus import export_cost
from service.planning.errors import PlanningError
from service.schemas.estimates import CostExportRequest
from tests.asking import ask, shipped, usd
from tests.planning.cost.test_focus import assert_sound

CHECKPOINTED = {"checkpointing": {"interval_seconds": 3600.0, "stall_seconds": 5.0}}
ASKED = {
    **EXAMPLES["estimate_cost_export"],
    "workload": {**EXAMPLES["estimate_cost_export"]["workload"], **CHECKPOINTED},
}


def export(**members):
    asked = {**ASKED, **members}
    question = CostExportRequest.model_validate_json(
        json.dumps({k: v for k, v in asked.items() if v is not None})
    )
    rows = list(csv.DictReader(io.StringIO(export_cost(question, shipped(), "acme"))))
    for row in rows:
        assert_sound(row)
    return rows


def answered(**members):
    asked = {**ASKED, **members}
    own = ("billing_account_id", "billing_account_name")
    return ask(shipped(), "cost", {name: value for name, value in asked.items() if name not in own})


def total(rows, name="BilledCost"):
    return sum(Decimal(row[name]) for row in rows)


RENTALS = {
    "on_demand": {"price_per_device_hour": usd("3"), "devices_per_instance": 8},
    "spot": {"price_per_device_hour": usd("1.6"), "spot": {"interruptions_per_hour": 0.001}},
    "committed": {
        "price_per_device_hour": usd("2"),
        "commitment": {"term_hours": 8766.0, "upfront_per_device": usd("1000"), "idle_share": 0.2},
    },
    "whole terms": {
        "price_per_device_hour": usd("2"),
        "commitment": {"term_hours": 730.0, "upfront_per_device": usd("1000")},
    },
    "block": {"price_per_device_hour": usd("2"), "capacity_block": {"block_hours": 24.0}},
    "offer": {"offer_id": "aws-p5-48xlarge-us-east-1-on-demand"},
}


@pytest.mark.parametrize("terms", RENTALS)
def test_rows_are_the_lines_of_the_answer(terms):
    changed = {"rental": RENTALS[terms], "starts_at": "2026-12-20T12:00:00Z"}
    rows, answer = export(**changed), answered(**changed)
    whole = Decimal(answer["total"]["amount"])
    assert total(rows) == total(rows, "EffectiveCost") == whole
    names = {row["x_LineName"] for row in rows} - {"capacity_block"}
    assert names == {line["name"] for line in answer["lines"]}
    if terms != "block":
        for line in answer["lines"]:
            billed = total([row for row in rows if row["x_LineName"] == line["name"]])
            assert billed == Decimal(line["amount"]["amount"])


def test_who_and_whose():
    (row, *_) = export(rental=RENTALS["offer"])
    assert (row["ProviderName"], row["RegionId"]) == ("aws", "us-east-1")
    assert row["SkuPriceId"] == "aws-p5-48xlarge-us-east-1-on-demand"
    assert (row["BillingAccountId"], row["BillingAccountName"]) == ("research", "research")
    assert json.loads(row["Tags"])["estimate"] == "true"
    (row, *_) = export(billing_account_id=None)
    assert row["BillingAccountId"] == "acme"


def test_kinds_of_pricing():
    assert {
        row["PricingCategory"] for row in export(rental=RENTALS["spot"]) if "rental" in row["x_LineName"]
    } == {"Dynamic"}
    committed = export(rental=RENTALS["committed"])
    kinds = {row["x_LineName"]: (row["ChargeCategory"], row["CommitmentDiscountStatus"]) for row in committed}
    assert kinds["rental"] == ("Usage", "Used")
    assert kinds["idle_commitment"] == ("Usage", "Unused")
    assert kinds["upfront"] == ("Purchase", "")
    assert [row["EffectiveCost"] for row in committed if row["x_LineName"] == "upfront"] == ["0"]


def test_a_block_is_paid_once_and_used_for_nothing_more():
    rows = export(rental=RENTALS["block"])
    block, *hours = [row for row in rows if row["ServiceName"] == "Accelerators"]
    assert (block["ChargeCategory"], block["EffectiveCost"]) == ("Purchase", "0")
    assert {Decimal(row["BilledCost"]) for row in hours} == {0}
    assert total(hours, "EffectiveCost") == Decimal(block["BilledCost"])


@pytest.mark.parametrize(
    ("changed", "code", "pointer"),
    [
        ({"starts_at": None}, "STARTS_AT_REQUIRED", "/starts_at"),
        ({"rental": None, "purchase": None}, "PRICE_REQUIRED", ""),
        ({"workload": {**ASKED["workload"], "total_tokens": 10**15}}, "TOO_LONG", "/workload"),
    ],
)
def test_what_makes_no_rows_is_refused(changed, code, pointer):
    with pytest.raises(PlanningError) as caught:
        export(**changed)
    assert (caught.value.code, caught.value.pointer) == (code, pointer)


@given(st.sampled_from(sorted(RENTALS)), st.integers(10**3, 10**10), st.integers(1, 2000))
def test_rows_sum_to_the_total(terms, tokens_each, devices):
    changed = {
        "rental": RENTALS[terms],
        "workload": {**ASKED["workload"], "total_tokens": tokens_each * devices},
        "cluster": {**ASKED["cluster"], "accelerator_count": devices},
    }
    rows = export(**changed)
    assert total(rows) == total(rows, "EffectiveCost") == Decimal(answered(**changed)["total"]["amount"])


def test_over_http(reader):
    response = reader.post("/v1/estimates/cost:export", json=ASKED)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="cost.csv"'
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert str(total(rows)) == answered()["total"]["amount"]
    unstarted = {name: value for name, value in ASKED.items() if name != "starts_at"}
    refused = reader.post("/v1/estimates/cost:export", json=unstarted)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["code"] == "STARTS_AT_REQUIRED"
    assert refused.json()["errors"][0]["pointer"] == "/starts_at"


def test_comparison_over_http(reader):
    response = reader.post("/v1/estimates/cost:compare", json=EXAMPLES["estimate_cost_comparison"])
    assert response.status_code == 200, response.text
    assert response.json()["alternatives"][0]["cost_ratio"]["value"] < 1
