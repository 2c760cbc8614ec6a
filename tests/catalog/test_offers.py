"""Offers on terms, over HTTP, on both databases."""

import pytest

from service.examples import EXAMPLES


def usd(amount):
    return {"amount": amount, "currency_code": "USD"}


def offer(**members):
    sent = {**EXAMPLES["create_offer"], **members}
    return {name: value for name, value in sent.items() if value is not None}


TERM = {"term_days": 365, "upfront_per_instance": usd("87600"), "hourly_per_instance": usd("6")}


def test_parts_of_a_term_make_an_effective_price(client):
    """87,600 USD over 8,760 hours and 6 an hour are 16 for eight devices, 2 for one."""
    row = client.post("/v1/offers", offer(price_per_instance_hour=None, commitment=TERM)).json()
    assert row["effective_price_per_instance_hour"] == usd("16")
    assert row["price_per_device_hour"] == usd("2")
    assert "price_per_instance_hour" not in row
    assert client.get(f"/v1/offers/{row['id']}").json() == row


def test_a_price_and_a_term_of_unknown_parts(client):
    row = client.post("/v1/offers", offer(commitment={"term_days": 1095, "minimum_instances": 4})).json()
    assert row["effective_price_per_instance_hour"] == row["price_per_instance_hour"] == usd("19.92")
    assert row["price_per_device_hour"] == usd("2.49")


def test_everything_else_is_kept(client):
    more = {
        "zone": "eu-north-1a",
        "billing_increment_seconds": 1,
        "minimum_billed_seconds": 60,
        "includes": ["host", "local_storage"],
        "valid_from": "2026-11",
        "valid_until": "2026-12-31",
        "doubt": "read from a mirror",
    }
    row = client.post("/v1/offers", offer(**more)).json()
    assert {name: row[name] for name in more} == more


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"price_per_instance_hour": None}, "/price_per_instance_hour", "PRICE_PARTS"),
        ({"commitment": TERM}, "/price_per_instance_hour", "PRICE_PARTS"),
        ({"price_per_instance_hour": usd("0")}, "/price_per_instance_hour", "PRICE_ZERO"),
        (
            {"purchase_option": "spot", "commitment": {"term_days": 7}},
            "/commitment",
            "TERM_NOT_EXPECTED",
        ),
        (
            {
                "price_per_instance_hour": None,
                "commitment": {**TERM, "hourly_per_instance": {"amount": "6", "currency_code": "EUR"}},
            },
            "/commitment/hourly_per_instance/currency_code",
            "CURRENCY_MISMATCH",
        ),
        ({"as_of": "2026-02-30"}, "/as_of", "DATE_INVALID"),
        ({"valid_from": "2026-13"}, "/valid_from", "DATE_INVALID"),
        ({"valid_from": "2026-12", "valid_until": "2026-11-30"}, "/valid_until", "VALIDITY_REVERSED"),
    ],
)
def test_what_contradicts_itself_is_refused(reader, members, pointer, code):
    answer = reader.post("/v1/offers", offer(**members))
    assert answer.status_code == 422
    assert [(error["pointer"], error["code"]) for error in answer.json()["errors"]] == [(pointer, code)]


def test_a_change_may_go_from_a_price_to_its_parts(client):
    made = client.post("/v1/offers", offer())
    patch = {"price_per_instance_hour": None, "commitment": TERM}
    changed = client.patch(made.headers["location"], patch, headers={"If-Match": made.headers["etag"]})
    assert changed.json()["price_per_device_hour"] == usd("2")
