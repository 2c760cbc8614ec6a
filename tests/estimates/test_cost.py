"""What will it cost? Lines that add up, prices from the question or from an offer."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asking import ask, codes, gaps, question, refusal, shipped, usd

ASSUMED = {"source": "assumed", "utilization": 0.5}
MODEL = {"source": "parameter_count", "parameter_count": 7_000_000_000}


def run(rental=None, **members):
    asked = {**question(MODEL, "h100-sxm", 64, total_tokens=10**11), "efficiency": ASSUMED, **members}
    return asked if rental is None else {**asked, "rental": rental}


@given(
    st.integers(1, 4096),
    st.integers(10**6, 10**14),
    st.decimals("0.000001", "99999", places=6),
    st.sampled_from(["USD", "JPY", "KWD", "EUR"]),
)
def test_the_total_is_the_sum_of_its_lines(count, tokens, price, currency):
    asked = {
        **question(MODEL, "h100-sxm", count, total_tokens=tokens),
        "efficiency": ASSUMED,
        "rental": {"price_per_device_hour": usd(str(price), currency)},
    }
    answer = ask(shipped(), "cost", asked)
    total = answer["total"]
    assert sum(Decimal(line["amount"]["amount"]) for line in answer["lines"]) == Decimal(total["amount"])
    assert total["currency_code"] == currency
    (line,) = answer["lines"]
    digits = {"JPY": 0, "KWD": 3}.get(currency, 2)
    exact = Decimal(line["quantity"]) * price
    assert abs(Decimal(total["amount"]) - exact) <= Decimal(1).scaleb(-digits) / 2
    assert -Decimal(total["amount"]).as_tuple().exponent == digits
    expected = answer["duration_seconds"]["value"] * count / 3600
    assert answer["device_hours"]["value"] == pytest.approx(expected)
    per_million = Decimal(answer["cost_per_million_tokens"]["amount"])
    assert float(per_million) == pytest.approx(float(total["amount"]) / tokens * 1e6, abs=1e-6)


class TestOffers:
    def offer(self, offer_id, **rental):
        return run({"offer_id": offer_id, **rental})

    def test_an_offer_is_priced_per_device(self, snapshot):
        answer = ask(snapshot, "cost", self.offer("crusoe-h100-sxm-80gb-on-demand"))
        (line,) = answer["lines"]
        assert line["unit_price"] == usd("3.9")
        assert "crusoe-nvidia-h100-80gb-hgx-on-demand of 2026-09-20" in line["source"]
        assert answer["total"]["basis"] == "assumed"
        assert {"offer", "accelerator"} <= {source["kind"] for source in answer["evidence"]["sources"]}

    def test_a_price_of_an_instance_is_shared_by_its_devices(self, snapshot):
        answer = ask(snapshot, "cost", self.offer("aws-p5-48xlarge-us-east-1-on-demand"))
        assert answer["lines"][0]["unit_price"] == usd("6.88")

    @pytest.mark.parametrize(
        ("rental", "code", "pointer"),
        [
            ({"offer_id": "nothing"}, "UNKNOWN_REFERENCE", "/rental/offer_id"),
            ({"offer_id": "crusoe-a40-48gb-spot"}, "OFFER_MISMATCH", "/rental/offer_id"),
            (
                {"offer_id": "crusoe-h100-sxm-80gb-spot", "purchase_option": "on_demand"},
                "OFFER_MISMATCH",
                "/rental/purchase_option",
            ),
            ({}, "RENTAL_PRICE", "/rental"),
            (
                {"offer_id": "crusoe-h100-sxm-80gb-spot", "price_per_device_hour": usd("3")},
                "RENTAL_PRICE",
                "/rental",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused(self, snapshot, rental, code, pointer):
        assert refusal(snapshot, "cost", run(rental)) == (code, pointer)

    def test_the_right_purchase_option_passes(self, snapshot):
        asked = self.offer("crusoe-h100-sxm-80gb-spot", purchase_option="spot")
        assert ask(snapshot, "cost", asked)["lines"][0]["unit_price"] == usd("1.6")


class TestWhatIsMissing:
    def test_no_price_is_a_gap_and_never_zero(self, snapshot):
        answer = ask(snapshot, "cost", run())
        assert gaps(answer) == {"/total": "PRICE_REQUIRED", "/cost_per_million_tokens": "PRICE_REQUIRED"}
        assert answer["lines"] == []
        assert answer["device_hours"]["value"] > 0

    def test_no_length_is_refused(self, snapshot):
        asked = {**question(MODEL, "h100-sxm"), "rental": {"price_per_device_hour": usd("3")}}
        assert refusal(snapshot, "cost", asked) == ("TOTAL_REQUIRED", "/workload/total_tokens")
        served = {**asked, "workload": {"kind": "inference"}}
        assert refusal(snapshot, "cost", served) == ("HORIZON_REQUIRED", "/workload/horizon")

    def test_an_unknown_rate_is_a_gap(self, snapshot):
        served = run(
            {"price_per_device_hour": usd("3")},
            workload={"kind": "inference", "horizon": {"total_requests": 10}},
        )
        answer = ask(snapshot, "cost", served)
        assert gaps(answer)["/total"] == "RATE_UNKNOWN"
        assert gaps(answer)["/device_hours"] == "RATE_UNKNOWN"
        assert "total" not in answer

    def test_a_known_duration_is_charged_whatever_the_rate(self, snapshot):
        served = run(
            {"price_per_device_hour": usd("3")},
            workload={"kind": "inference", "horizon": {"duration_seconds": 3600.0}},
        )
        answer = ask(snapshot, "cost", served)
        assert answer["total"]["amount"] == "192.00"
        assert gaps(answer)["/cost_per_million_tokens"] == "NO_TOKENS"

    def test_an_encoder_makes_no_tokens(self, snapshot):
        asked = {
            **question("bert-base", "h100-sxm"),
            "workload": {"kind": "inference", "input_tokens": 128, "horizon": {"total_requests": 10**6}},
            "rental": {"price_per_device_hour": usd("3")},
        }
        answer = ask(snapshot, "cost", asked)
        assert gaps(answer)["/cost_per_million_tokens"] == "NO_TOKENS"
        assert float(answer["total"]["amount"]) > 0


class TestPurchase:
    PURCHASE = {"price_per_device": usd("30000")}

    def test_what_is_only_bought_costs_its_price(self, snapshot):
        answer = ask(snapshot, "cost", run(purchase=self.PURCHASE))
        assert answer["total"]["amount"] == "1920000.00"
        assert answer["lines"][0]["unit"] == "device"

    def test_rent_comes_first_and_says_so(self, snapshot):
        asked = run({"price_per_device_hour": usd("3")}, purchase=self.PURCHASE)
        answer = ask(snapshot, "cost", asked)
        assert "PURCHASE_NOT_IN_TOTAL" in codes(answer["warnings"])
        assert [line["name"] for line in answer["lines"]] == ["rental"]


def test_the_interval_of_the_time_becomes_that_of_the_money(snapshot):
    asked = {
        **question("llama-2-7b", "h100-sxm", 8, total_tokens=10**10),
        "rental": {"price_per_device_hour": usd("3")},
    }
    answer = ask(snapshot, "cost", asked)
    for end in ("low", "high"):
        expected = answer["duration_seconds"][end] * 8 / 3600 * 3
        assert float(answer["total"][end]) == pytest.approx(expected, abs=0.01)
    assert answer["total"]["basis"] == answer["duration_seconds"]["basis"] == "reference"
