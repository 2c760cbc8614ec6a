"""Cheaper ways to the work of a quote: each is computed as its own question is."""

from decimal import Decimal

import pytest

from service.estimates.service import ESTIMATES, answer_question
from tests.asking import shipped, usd
from tests.quotes.reading import TRAINED, quoted

WIDE = {
    "model": {"source": "catalog", "id": "llama-3.1-70b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h200-sxm"}, "accelerator_count": 16},
    "workload": {
        "kind": "inference",
        "request_rate_per_second": 3.0,
        "input_tokens": 1000,
        "output_tokens": 300,
        "service_levels": {"time_to_first_token_seconds": 2.0, "time_per_output_token_seconds": 0.05},
        "horizon": {"duration_seconds": 365 * 86400.0},
    },
    "rental": {"offer_id": "crusoe-nvidia-h200-141gb-hgx-on-demand"},
}
"""A service with far more devices than its load needs."""


def alternatives(request, operation="cost"):
    return {one["kind"]: one for one in quoted(request, operation)["alternatives"]}


def asked(operation, request):
    question = ESTIMATES[operation].question.model_validate(request)
    return answer_question(ESTIMATES[operation].estimator, question, shipped())


def with_load(**members):
    return {**WIDE, "workload": {**WIDE["workload"], **members}}


def sized(count):
    layout = {"tensor": 2, "data": count // 2}
    return {**WIDE, "cluster": {**WIDE["cluster"], "accelerator_count": count}, "parallelism": layout}


class TestFewerDevices:
    def test_the_fewest_that_serve_the_load_are_named_with_their_own_total(self):
        found = alternatives(WIDE)["fewer_devices"]
        count = found["accelerator_count"]
        assert 2 <= count <= 8
        assert found["total"] == asked("cost", sized(count))["total"]
        speed = asked("throughput", {name: sized(count)[name] for name in sized(count) if name != "rental"})
        assert speed["saturation"]["most_requests_per_second"]["low"] >= 3.0
        assert speed["service_level_goodput"]["attained"]

    def test_a_busy_service_needs_what_it_has(self):
        most = quoted(WIDE, "cost")["answers"]["throughput"]["saturation"]["most_requests_per_second"]
        assert "fewer_devices" not in alternatives(with_load(request_rate_per_second=0.9 * most["low"]))

    def test_a_load_that_is_not_served_is_not_served_by_fewer(self):
        levels = {"time_to_first_token_seconds": 0.0001}
        assert "fewer_devices" not in alternatives(with_load(service_levels=levels))

    def test_training_takes_longer_on_fewer_and_is_left_alone(self):
        assert alternatives(TRAINED, "utility-bill") == {}


class TestOtherOffers:
    def test_a_cheaper_offer_on_the_same_terms_is_named_with_its_total(self):
        found = alternatives(WIDE)["other_offer"]
        offers = shipped().offers
        quoted_offer, other = offers[WIDE["rental"]["offer_id"]], offers[found["offer_id"]]
        for member in ("accelerator_id", "purchase_option", "currency_code"):
            assert getattr(other, member) == getattr(quoted_offer, member)
        assert found["total"] == asked("cost", {**WIDE, "rental": {"offer_id": found["offer_id"]}})["total"]

    def test_the_cheapest_offer_has_no_other(self):
        cheapest = alternatives(WIDE)["other_offer"]["offer_id"]
        assert "other_offer" not in alternatives({**WIDE, "rental": {"offer_id": cheapest}})

    def test_a_price_that_was_given_is_not_compared(self):
        given = {**WIDE, "rental": {"price_per_device_hour": usd("50")}}
        assert "other_offer" not in alternatives(given)


def test_tokens_at_a_list_price_are_compared():
    found, cost = alternatives(WIDE)["token_price"], quoted(WIDE, "cost")["answers"]["cost"]
    cheapest = min(cost["list_prices"], key=lambda each: Decimal(each["total"]["amount"]))
    assert (found["token_price_id"], found["total"]) == (cheapest["id"], cheapest["total"])
    assert (found["provider"], found["detail"].split(" sells ")[0]) == ("amazon-bedrock", "Amazon Bedrock")


@pytest.mark.parametrize("operation", ["cost", "utility-bill"])
def test_alternatives_cost_less_and_the_cheapest_comes_first(operation):
    quote = quoted(WIDE, operation)
    amounts = [Decimal(one["total"]["amount"]) for one in quote["alternatives"]]
    assert amounts == sorted(amounts)
    assert amounts[-1] < Decimal(quote["headlines"]["total"]["amount"])


def test_a_quote_without_an_amount_has_none():
    assert (
        quoted({name: WIDE[name] for name in ("model", "cluster", "workload")}, "memory")["alternatives"]
        == []
    )
