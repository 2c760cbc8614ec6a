"""Dated prices of hardware: what ships, what a row may not say, and purchases that name one."""

import pytest

from service.app.examples import EXAMPLES
from service.catalog.shipped import list_shipped_documents
from service.resolve.catalog import CatalogView
from tests.asking import ask, codes, question, refusal, shipped, usd
from tests.prepared import ON_SQLITE

MODEL = {"source": "parameter_count", "parameter_count": 7_000_000_000}


def bought(purchase, devices=16, accelerator="h100-sxm"):
    asked = question(MODEL, accelerator, devices, total_tokens=10**9)
    return {**asked, "efficiency": {"source": "assumed", "utilization": 0.5}, "purchase": purchase}


def test_what_ships_says_whose_figure_it_is():
    rows = list_shipped_documents()["hardware_prices"]
    assert {row["accelerator_id"] for row in rows} >= {"h100-sxm", "h200-sxm", "b200-sxm", "gb200"}
    assert all(row["doubt"] and row["sources"][0]["url"] for row in rows)
    assert all("host" in row["includes"] for row in rows if row["id"].startswith(("dgx", "gb200")))


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"price": usd("0")}, "/price", "PRICE_ZERO"),
        ({"price": usd("400000")}, "/price_range", "PRICE_RANGE"),
        ({"price": usd("280000", "EUR")}, "/price_range", "CURRENCY_MISMATCH"),
        ({"price_range": {"low": usd("9"), "high": usd("8")}}, "/price_range", "PRICE_RANGE"),
        ({"as_of": "2026-13"}, "/as_of", "DATE_INVALID"),
        ({"accelerator_id": "nothing"}, "/accelerator_id", "UNKNOWN_REFERENCE"),
    ],
)
@ON_SQLITE
def test_what_contradicts_itself_is_refused(reader, members, pointer, code):
    answer = reader.post("/v1/hardware-prices", {**EXAMPLES["create_hardware_price"], **members})
    assert answer.status_code == 422
    assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [(pointer, code)]


@ON_SQLITE
def test_a_row_needs_a_price_or_a_range(reader):
    row = {name: value for name, value in EXAMPLES["create_hardware_price"].items() if "price" not in name}
    answer = reader.post("/v1/hardware-prices", row)
    assert [error["code"] for error in answer.json()["errors"]] == ["PRICE_PARTS"]


def test_the_middle_of_a_range_is_shared_by_the_devices(reader):
    row = reader.get("/v1/hardware-prices/dgx-h100").json()
    assert row["price_per_device"] == usd("47500")


class TestPurchase:
    def test_a_purchase_is_answered_from_a_dated_price_with_its_range(self, snapshot):
        answer = ask(snapshot, "cost", bought({"hardware_price_id": "hgx-h100-8"}))
        total = answer["purchase"]["total"]
        assert (total["amount"], total["low"], total["high"]) == ("570000.00", "500000.00", "640000.00")
        assert "PRICE_DOUBTFUL" in codes(answer["warnings"])
        assert ("hardware_price", "hgx-h100-8") in {
            (source["kind"], source["id"]) for source in answer["evidence"]["sources"]
        }

    def test_products_are_bought_whole(self, snapshot):
        answer = ask(snapshot, "cost", bought({"hardware_price_id": "hgx-h100-8"}, devices=4))
        assert answer["purchase"]["total"]["amount"] == "285000.00"

    def test_a_factor_and_a_range_of_the_question_count(self, snapshot):
        given = {"hardware_price_id": "hgx-h100-8", "price_factor": 2.0}
        assert ask(snapshot, "cost", bought(given))["purchase"]["total"]["amount"] == "1140000.00"
        given = {"hardware_price_id": "hgx-h100-8", "price_range": {"low": "35000", "high": "36000"}}
        assert ask(snapshot, "cost", bought(given))["purchase"]["total"]["high"] == "576000.00"

    @pytest.mark.parametrize(
        ("purchase", "accelerator", "code", "pointer"),
        [
            ({}, "h100-sxm", "PURCHASE_PRICE", "/purchase"),
            (
                {"hardware_price_id": "dgx-h100", "price_per_device": usd("1")},
                "h100-sxm",
                "PURCHASE_PRICE",
                "/purchase",
            ),
            (
                {"hardware_price_id": "nothing"},
                "h100-sxm",
                "UNKNOWN_REFERENCE",
                "/purchase/hardware_price_id",
            ),
            (
                {"hardware_price_id": "dgx-h100"},
                "h200-sxm",
                "HARDWARE_PRICE_MISMATCH",
                "/purchase/hardware_price_id",
            ),
            (
                {"hardware_price_id": "dgx-h100", "hosts": {"price_per_host": usd("1")}},
                "h100-sxm",
                "HOSTS_INCLUDED",
                "/purchase/hosts",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused(self, snapshot, purchase, accelerator, code, pointer):
        assert refusal(snapshot, "cost", bought(purchase, accelerator=accelerator)) == (code, pointer)


def test_the_view_has_them_by_id():
    view: CatalogView = shipped()
    assert view.hardware_prices["dgx-b200"].low is None
