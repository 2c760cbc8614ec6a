"""What a request and its tokens cost at a load, and the same work in two ways."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.estimates.comparison import compare_costs
from service.planning.errors import PlanningError
from service.schemas.estimates import CostComparisonRequest
from tests.asking import ask, gaps, question, refusal, shipped, usd
from tests.catalog_rows import with_rows

RENTED = {"price_per_device_hour": usd("3")}


def served(rate=None, horizon=None, **members):
    return {
        **question("llama-3.1-8b", "h100-sxm"),
        "workload": {
            "kind": "inference",
            "input_tokens": 1024,
            "output_tokens": 256,
            "horizon": horizon or {"duration_seconds": 86_400.0},
            **({"concurrency": 32} if rate is None else {"request_rate_per_second": rate}),
        },
        "rental": RENTED,
        **members,
    }


def amount(answer, name):
    return float(answer[name]["amount"])


class TestShares:
    def test_input_and_output_bear_the_whole(self, snapshot):
        """1,024 input tokens and 256 output tokens are what a request is."""
        answer = ask(snapshot, "cost", served(horizon={"total_requests": 10**9}))
        inputs = amount(answer, "cost_per_million_input_tokens") * 1024e-6
        outputs = amount(answer, "cost_per_million_output_tokens") * 256e-6
        assert inputs + outputs == pytest.approx(amount(answer, "cost_per_request"), rel=0.01)
        assert amount(answer, "cost_per_request") * 1e9 == pytest.approx(amount(answer, "total"), rel=0.01)
        assert amount(answer, "cost_per_million_output_tokens") < amount(answer, "cost_per_million_tokens")

    def test_prompts_bear_the_time_that_they_take(self, snapshot):
        """Ten times the prompt takes a larger share; the share is the model's own of busy time."""
        short, long = (
            ask(snapshot, "cost", {**asked, "workload": {**asked["workload"], "input_tokens": tokens}})
            for asked, tokens in ((served(), 512), (served(), 5120))
        )
        shares = [
            amount(answer, "cost_per_million_input_tokens") * tokens
            / (amount(answer, "cost_per_million_input_tokens") * tokens
               + amount(answer, "cost_per_million_output_tokens") * 256)
            for answer, tokens in ((short, 512), (long, 5120))
        ]  # fmt: skip
        assert 0.0 < shares[0] < shares[1] < 1.0

    def test_a_request_costs_more_where_few_arrive(self, snapshot):
        """Half the requests share the same rent."""
        one, two = (ask(snapshot, "cost", served(rate=rate)) for rate in (1.0, 2.0))
        assert amount(one, "cost_per_request") == pytest.approx(72 / 86_400, rel=1e-4)
        assert amount(two, "cost_per_request") == pytest.approx(36 / 86_400, rel=1e-4)

    def test_at_assumed_shares_too(self, snapshot):
        asked = served(efficiency={"source": "assumed", "utilization": 0.5, "bandwidth_utilization": 0.8})
        answer = ask(snapshot, "cost", asked)
        inputs = amount(answer, "cost_per_million_input_tokens") * 1024e-6
        outputs = amount(answer, "cost_per_million_output_tokens") * 256e-6
        assert inputs + outputs == pytest.approx(amount(answer, "cost_per_request"), rel=0.01)

    def test_an_encoder_has_requests_only(self, snapshot):
        asked = {
            **question("bert-base", "h100-sxm"),
            "workload": {"kind": "inference", "input_tokens": 128, "horizon": {"total_requests": 10**6}},
            "rental": RENTED,
        }
        answer = ask(snapshot, "cost", asked)
        assert amount(answer, "cost_per_request") == pytest.approx(amount(answer, "total") / 1e6, abs=1e-6)
        assert "cost_per_million_output_tokens" not in answer
        assert gaps(answer)["/cost_per_million_tokens"] == "NO_TOKENS"

    def test_training_has_no_requests(self, snapshot):
        asked = {**question("llama-3.1-8b", "h100-sxm", 8, total_tokens=10**10), "rental": RENTED}
        assert "cost_per_request" not in ask(snapshot, "cost", asked)


def trained(devices, utilization=0.5, price="16", tokens=10**10):
    model = {"source": "parameter_count", "parameter_count": 1_500_000_000}
    return {
        **question(model, "v100-sxm2-32gb", devices, total_tokens=tokens),
        "efficiency": {"source": "assumed", "utilization": utilization},
        "rental": {"price_per_device_hour": usd(price)},
    }


def compare(snapshot, baseline, *alternatives):
    asked = {"baseline": baseline, "alternatives": list(alternatives)}
    return compare_costs(CostComparisonRequest.model_validate(asked), snapshot)


class TestEqualWork:
    def test_a_quarter_of_the_devices_is_no_quarter_of_the_cost(self, snapshot):
        """8 GPUs at 1 / 1.08 of the utilization against 32: 4.32 times as long, 1.08 times the cost."""
        (found,) = compare(snapshot, trained(32), trained(8, 0.5 / 1.08))["alternatives"]
        assert found["time_ratio"]["value"] == pytest.approx(4.32)
        assert found["device_hours_ratio"]["value"] == pytest.approx(1.08)
        assert found["cost_ratio"]["value"] == pytest.approx(1.08, abs=1e-4)

    def test_other_work_is_refused(self, snapshot):
        for other, pointer in (
            (trained(8, tokens=10**9), "/alternatives/0/workload"),
            ({**trained(8), "model": {"source": "catalog", "id": "gpt2-xl"}}, "/alternatives/0/model"),
            (served(), "/alternatives/0/model"),
        ):
            with pytest.raises(PlanningError) as caught:
                compare(snapshot, trained(32), other)
            assert (caught.value.code, caught.value.pointer) == ("UNEQUAL_WORK", pointer)

    def test_serving_as_many_requests_compares(self, snapshot):
        """A day at one request a second on one device or two."""
        two = {**served(rate=1.0)["cluster"], "accelerator_count": 2}
        answer = compare(snapshot, served(rate=1.0), served(rate=1.0, cluster=two))
        assert answer["alternatives"][0]["cost_ratio"]["value"] == pytest.approx(2.0)
        with pytest.raises(PlanningError):
            compare(snapshot, served(rate=1.0), served(rate=2.0))

    def test_a_missing_price_is_a_gap(self, snapshot):
        unpriced = {name: value for name, value in trained(8).items() if name != "rental"}
        answer = compare(snapshot, trained(32), unpriced)
        assert gaps(answer) == {"/alternatives/0/cost_ratio": "TOTAL_UNKNOWN"}
        assert "cost_ratio" not in answer["alternatives"][0]

    def test_a_refusal_names_the_alternative(self, snapshot):
        wrong = {**trained(8), "rental": {}}
        with pytest.raises(PlanningError) as caught:
            compare(snapshot, trained(32), wrong)
        assert (caught.value.code, caught.value.pointer) == ("RENTAL_PRICE", "/alternatives/0/rental")


def modelled(accelerator="h100-sxm", devices=8, price="2", **workload):
    asked = question(
        "llama-3.1-8b", accelerator, devices, sequence_length=4096, global_batch_size=64, **workload
    )
    asked["workload"].setdefault("total_tokens", 2_000_000_000)
    return {**asked, "rental": {"price_per_device_hour": usd(price)}}


def reach(quantity):
    """Logarithm of the high over the low end."""
    return math.log(quantity["high"] / quantity["low"])


class TestSharedErrors:
    """One draw of an error moves both sides, as far as both have it."""

    @settings(max_examples=20)
    @given(st.decimals("0.5", "20", places=2), st.sampled_from([8, 16, 64]))
    def test_sides_that_differ_in_price_only_differ_for_certain(self, price, devices):
        baseline = modelled(devices=devices)
        (found,) = compare(shipped(), baseline, modelled(devices=devices, price=str(price)))["alternatives"]
        assert reach(ask(shipped(), "cost", baseline)["duration_seconds"]) > 0.1
        assert found["time_ratio"]["low"] == found["time_ratio"]["high"] == 1.0
        # Amounts are rounded to a cent.
        for end in ("low", "value", "high"):
            assert found["cost_ratio"][end] == pytest.approx(float(price) / 2.0, rel=1e-3)

    def test_a_way_compared_with_itself_is_the_same(self, snapshot):
        for asked in (modelled(), trained(8), served(rate=1.0)):
            (found,) = compare(snapshot, asked, asked)["alternatives"]
            for name in ("time_ratio", "device_hours_ratio", "cost_ratio"):
                assert [found[name][end] for end in ("low", "value", "high")] == [1.0] * 3

    def test_errors_of_different_devices_are_independent(self, snapshot):
        other = modelled("a100-sxm-80gb")
        (found,) = compare(snapshot, modelled(), other)["alternatives"]
        sides = [ask(snapshot, "cost", each)["duration_seconds"] for each in (modelled(), other)]
        ups = [math.log(each["high"] / each["value"]) for each in sides]
        downs = [math.log(each["value"] / each["low"]) for each in sides]
        ratio = found["time_ratio"]
        assert math.log(ratio["high"] / ratio["value"]) == pytest.approx(math.hypot(ups[1], downs[0]))
        assert math.log(ratio["value"] / ratio["low"]) == pytest.approx(math.hypot(downs[1], ups[0]))

    def test_other_numbers_of_the_same_devices_share_a_part(self, snapshot):
        found = compare(snapshot, modelled(), modelled(devices=16), modelled("a100-sxm-80gb"))["alternatives"]
        same, different = (reach(each["time_ratio"]) for each in found)
        assert 0.0 < same < different

    def test_interruptions_by_the_provider_lengthen_their_side(self, snapshot):
        asked = modelled(devices=8)
        spot = {**asked, "rental": {**asked["rental"], "spot": {"interruptions_per_hour": 0.2}}}
        (found,) = compare(snapshot, asked, spot)["alternatives"]
        lasting = [
            each["duration_seconds"]["value"] for each in (found["cost"], ask(snapshot, "cost", asked))
        ]
        assert found["time_ratio"]["value"] == pytest.approx(lasting[0] / lasting[1])
        assert found["time_ratio"]["value"] > 1.0


GROQ = "groq-llama-3-1-8b-instant"


def list_price(answer, name=GROQ):
    return next(listed for listed in answer["list_prices"] if listed["id"] == name)


def age_price(catalog, name, as_of):
    """The catalog with another date of one token price."""
    prices = catalog.token_prices
    changed = with_rows(prices, {name: replace(prices[name], as_of=as_of)})
    return replace(catalog, token_prices=changed)


def said_of_age(answer):
    return [warning for warning in answer["warnings"] if warning["code"] == "TOKEN_PRICE_OLD"]


class TestListPrices:
    """Groq lists Llama 3.1 8B at 0.05 USD a million input and 0.08 a million output tokens."""

    def test_the_tokens_of_the_run_at_the_list(self, snapshot):
        answer = ask(snapshot, "cost", served(horizon={"total_requests": 10**6}))
        ids = [listed["id"] for listed in answer["list_prices"]]
        assert ids == sorted(ids)
        assert len(ids) > 1
        listed = list_price(answer)
        assert listed["as_of"].startswith("2026")
        assert listed["price_per_million_output_tokens"] == usd("0.08")
        assert listed["total"]["amount"] == f"{1024 * 0.05 + 256 * 0.08:.2f}"
        assert listed["ratio"]["value"] == pytest.approx(amount(answer, "total") / 71.68)
        assert "token_price" in {source["kind"] for source in answer["evidence"]["sources"]}

    def test_those_that_are_asked_for(self, snapshot):
        """Half of the prompts, found in a cache, cost a tenth: 512 x 0.25 + 512 x 0.025 + 256 x 2."""
        asked = served(horizon={"total_requests": 10**6}, token_price_ids=["openai-gpt-5-mini"])
        asked["workload"]["prefix_cache_hit_rate"] = 0.5
        (listed,) = ask(snapshot, "cost", asked)["list_prices"]
        assert listed["total"]["amount"] == f"{512 * 0.25 + 512 * 0.025 + 256 * 2:.2f}"
        assert listed["price_per_million_cached_input_tokens"] == usd("0.025")

    def test_in_the_currency_asked_for(self, snapshot):
        asked = served(
            horizon={"total_requests": 10**6}, currency_code="EUR", starts_at="2026-03-06T00:00:00Z"
        )
        listed = list_price(ask(snapshot, "cost", asked))
        assert listed["total"]["currency_code"] == "EUR"
        assert float(listed["total"]["amount"]) == pytest.approx(71.68 / 1.1618, abs=0.01)
        listed = list_price(ask(snapshot, "cost", {**asked, "currency_code": "KWD"}))
        assert "total" not in listed

    def test_less_than_a_cent_has_no_ratio(self, snapshot):
        listed = list_price(ask(snapshot, "cost", served(horizon={"total_requests": 10})))
        assert listed["total"]["amount"] == "0.00"
        assert "ratio" not in listed

    def test_an_unknown_one_is_refused(self, snapshot):
        where = ("UNKNOWN_REFERENCE", "/token_price_ids/0")
        assert refusal(snapshot, "cost", served(token_price_ids=["nothing"])) == where

    def test_what_is_a_year_older_than_the_newest_price_is_left_out_by_name(self, snapshot):
        asked = served(horizon={"total_requests": 10**6})
        answer = ask(age_price(snapshot, GROQ, "2025-10-06"), "cost", asked)
        assert GROQ not in {listed["id"] for listed in answer["list_prices"]}
        (said,) = said_of_age(answer)
        assert said["pointer"] == "/token_price_ids"
        assert GROQ in said["detail"]
        assert "2026-10-07" in said["detail"]

    @pytest.mark.parametrize("as_of", ["2025-10-07", "2025-11"])
    def test_a_price_of_the_year_is_compared(self, snapshot, as_of):
        asked = served(horizon={"total_requests": 10**6})
        answer = ask(age_price(snapshot, GROQ, as_of), "cost", asked)
        assert list_price(answer)["as_of"] == as_of
        assert said_of_age(answer) == []

    def test_an_old_one_is_compared_by_its_id_and_the_answer_says_its_date(self, snapshot):
        asked = served(horizon={"total_requests": 10**6}, token_price_ids=[GROQ])
        answer = ask(age_price(snapshot, GROQ, "2024"), "cost", asked)
        assert list_price(answer)["as_of"] == "2024"
        (said,) = said_of_age(answer)
        assert said["pointer"] == "/token_price_ids/0"
        assert "2024" in said["detail"]

    def test_age_counts_from_the_newest_token_price_and_not_from_today(self, snapshot):
        """A catalog whose token prices stop in 2023 compares with them, whatever day it is."""
        old = {name: replace(price, as_of="2023-05") for name, price in snapshot.token_prices.items()}
        asked = served(horizon={"total_requests": 10**6})
        changed = replace(snapshot, token_prices=with_rows(snapshot.token_prices, old))
        answer = ask(changed, "cost", asked)
        assert list_price(answer)["as_of"] == "2023-05"
        assert said_of_age(answer) == []

    def test_models_without_one_have_none(self, snapshot):
        assert "list_prices" not in ask(snapshot, "cost", {**trained(8)})
