"""What is said of an old, expired, doubted or contradicted price."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from service.planning.notes import AnswerNotes
from service.resolve.catalog import KnownOffer
from service.resolve.offer_warnings import warn_of_age, warn_of_offer
from tests.asking import ask, codes, question, shipped

TODAY = date(2026, 11, 22)
OFFER = KnownOffer(
    accelerator_id="h100-sxm",
    purchase_option="spot",
    price_per_device_hour=Decimal("6.88"),
    currency_code="USD",
    as_of="2026-11-20",
    source={},
    provider="aws",
    region="us-east-1",
    instance_type="p5.48xlarge",
    accelerator_count=8,
    price_per_instance_hour=Decimal("55.04"),
)
DEARER = replace(OFFER, purchase_option="on_demand", price_per_instance_hour=Decimal(60))
CHEAPER = replace(OFFER, purchase_option="on_demand", price_per_instance_hour=Decimal(50))


def warned(offer, *others, newest=date(2024, 11, 15)):
    notes = AnswerNotes()
    offers = {str(index): other for index, other in enumerate((offer, *others))}
    warn_of_offer(notes, offer, "/rental/offer_id", offers=offers, newest=newest, on=TODAY)
    assert {warning["pointer"] for warning in notes.warnings} <= {"/rental/offer_id"}
    return {warning["code"]: warning["detail"] for warning in notes.warnings}


def test_a_new_price_is_trusted():
    assert warned(OFFER, DEARER) == {}


def test_an_old_price_says_how_old_it_is():
    said = warned(replace(OFFER, as_of="2023-11-16"))
    assert said == {
        "PRICE_STALE": "the price of 2023-11-16 is more than 90 days old",
    }


@pytest.mark.parametrize(
    ("as_of", "newest", "is_old"),
    [
        ("2025-11-09", date(2026, 11, 9), False),
        ("2025-11-08", date(2026, 11, 9), True),
        ("2025-12", date(2026, 11, 9), False),
        ("2025", date(2026, 11, 9), True),
        ("2026", date(2026, 11, 9), False),
    ],
)
def test_a_price_is_old_beside_the_newest_of_the_catalog_and_not_beside_today(as_of, newest, is_old):
    """A month or a year counts from its first day: what may be older than a year is old."""
    said = warned(replace(OFFER, as_of=as_of), newest=newest)
    assert ("OFFER_OLD" in said) == is_old
    assert not is_old or (as_of in said["OFFER_OLD"] and newest.isoformat() in said["OFFER_OLD"])


def test_an_expired_price_is_warned_of_as_that():
    """An expired price is not merely old: it cannot be had."""
    assert warned(replace(OFFER, as_of="2020", valid_until="2024-12")).keys() == {"OFFER_EXPIRED"}


def test_a_price_of_the_future_says_so():
    assert warned(replace(OFFER, valid_from="2027-01-01")).keys() == {"OFFER_NOT_YET_VALID"}


def test_a_doubt_is_passed_on():
    assert warned(replace(OFFER, doubt="read from a mirror")) == {"OFFER_DOUBTFUL": "read from a mirror"}


def test_spot_above_on_demand_of_the_same_instance_is_suspicious():
    assert warned(OFFER, CHEAPER).keys() == {"SPOT_ABOVE_ON_DEMAND"}


@pytest.mark.parametrize(
    "other",
    [
        {"region": "us-east-2"},
        {"provider": "gcp"},
        {"instance_type": "p5.4xlarge"},
        {"currency_code": "EUR"},
        {"purchase_option": "reserved"},
    ],
)
def test_another_instance_says_nothing_about_it(other):
    assert warned(OFFER, replace(CHEAPER, **other)) == {}


@pytest.mark.parametrize(
    ("devices", "per_node", "size", "is_warned"),
    [
        (4, 8, 1, True),
        (16, 8, 4, True),
        (4, 8, 4, False),
        (4, 8, 8, False),
        (1, 8, 1, False),
        (64, 1, 1, False),
    ],
)
def test_small_instances_are_not_joined_as_a_node_is(devices, per_node, size, is_warned):
    offer = next(
        offer
        for offer in shipped().offers.values()
        if (offer.accelerator_id, offer.purchase_option) == ("h100-sxm", "on_demand")
        and offer.accelerator_count == size
    )
    asked = question("llama-3.1-8b", "h100-sxm", devices, sequence_length=4096, total_tokens=10**9)
    asked["cluster"]["accelerators_per_node"] = per_node
    answer = ask(shipped(), "cost", asked | {"rental": {"offer_id": offer.source["id"]}})
    assert ("OFFER_INSTANCE_SMALLER" in codes(answer["warnings"])) == is_warned


def test_a_date_that_is_no_day_has_no_age():
    assert warned(replace(OFFER, as_of="2024-99")).keys() == {"PRICE_UNDATED"}


def test_the_age_of_any_price():
    notes = AnswerNotes()
    warn_of_age(notes, "2026-08-01", "/token_price_id", on=TODAY)
    assert [warning["code"] for warning in notes.warnings] == ["PRICE_STALE"]
