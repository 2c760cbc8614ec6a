"""What if: other starts, other buildings, less power; each against bills asked one by one."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from service.app.examples import EXAMPLES
from service.estimates.power_cap import estimate_power_cap
from service.estimates.shift import estimate_shift
from service.estimates.site_comparison import compare_sites
from service.planning.errors import PlanningError
from service.schemas.what_if import PowerCapEstimateRequest, SiteComparisonRequest, StartShiftEstimateRequest
from tests.asking import ask, codes, gaps, shipped, usd

SHIFT = EXAMPLES["estimate_utility_bill_shift"]
COMPARISON = EXAMPLES["estimate_utility_bill_comparison"]
CAP = EXAMPLES["estimate_utility_bill_power_cap"]


def shift(question):
    return dict(
        estimate_shift(StartShiftEstimateRequest.model_validate_json(json.dumps(question)), shipped())
    )


def compare(question):
    return dict(compare_sites(SiteComparisonRequest.model_validate_json(json.dumps(question)), shipped()))


def cap(question):
    return dict(
        estimate_power_cap(PowerCapEstimateRequest.model_validate_json(json.dumps(question)), shipped())
    )


def refused(estimate, question):
    with pytest.raises(PlanningError) as caught:
        estimate(question)
    return caught.value.code, caught.value.pointer


def without(question, *names):
    return {name: value for name, value in question.items() if name not in names}


def site(question, **members):
    return {**question, "site": {**question["site"], **members}}


class TestShift:
    @pytest.fixture(scope="class")
    @classmethod
    def answer(cls):
        return shift(SHIFT)

    def test_every_figure_is_that_of_a_bill_asked_for_that_start(self, answer):
        for start in (answer["first"], answer["cheapest"], answer["cleanest"], *answer["best"]):
            asked = {**without(SHIFT, "window"), "starts_at": start["starts_at"]}
            bill = ask(shipped(), "utility-bill", asked)
            assert bill["electricity"]["total"]["amount"] == start["electricity"]["amount"]
            emitted = bill["carbon"]["location_based_kg_co2e"]["value"]
            assert start["location_based_kg_co2e"] == pytest.approx(emitted, rel=1e-6)

    def test_no_start_of_the_window_is_cheaper_or_cleaner(self, answer):
        first = datetime(2026, 11, 20, 8, tzinfo=UTC)
        assert answer["starts_compared"] == 49
        for hours in range(0, 49, 6):
            moment = first + timedelta(hours=hours)
            asked = {**without(SHIFT, "window"), "starts_at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
            bill = ask(shipped(), "utility-bill", asked)
            paid, emitted = bill["electricity"]["total"]["amount"], bill["carbon"]["location_based_kg_co2e"]
            assert Decimal(paid) >= Decimal(answer["cheapest"]["electricity"]["amount"])
            assert Decimal(paid) <= Decimal(answer["highest_electricity"]["amount"])
            assert emitted["value"] >= answer["cleanest"]["location_based_kg_co2e"] * (1 - 1e-6)

    def test_the_cleanest_hours_are_those_of_the_sun(self, answer):
        """0.14 kg from 9:00 to 17:00 in Los Angeles: five hours from 9:00, 17:00 UTC."""
        assert answer["cleanest"]["starts_at"] == "2026-11-20T17:00:00Z"
        expected = answer["facility_kwh"]["value"] * 0.14
        assert answer["cleanest"]["location_based_kg_co2e"] == pytest.approx(expected, rel=1e-6)

    def test_what_does_not_vary_is_a_gap(self):
        flat = shift(site(SHIFT, electricity={"price_per_kwh": usd("0.1")}))
        assert gaps(flat)["/cheapest"] == "PRICE_NOT_IN_TIME"
        assert "cheapest" not in flat
        mean = {**SHIFT["site"], "carbon_intensity_kg_co2e_per_kwh": 0.4}
        steady = shift({**SHIFT, "site": without(mean, "carbon_intensity_series")})
        assert gaps(steady)["/cleanest"] == "GRID_NOT_IN_TIME"
        assert [start["starts_at"] for start in steady["best"]] == [steady["cheapest"]["starts_at"]]

    def test_a_load_that_follows_the_clock_cannot_be_moved(self):
        asked = site(without(SHIFT, "pue"), pue_by_month=[1.1] * 6 + [1.3] * 6)
        assert refused(shift, asked) == ("SHAPE_OF_THE_CLOCK", "/load_profile")

    def test_a_window_that_runs_back(self):
        window = {**SHIFT["window"], "latest_start_at": "2026-11-19T08:00:00Z"}
        assert refused(shift, {**SHIFT, "window": window}) == ("SHIFT_WINDOW", "/window/latest_start_at")

    def test_without_a_building_nothing_can_be_moved(self):
        assert refused(shift, without(SHIFT, "site")) == ("ENERGY_UNKNOWN", "/site")


class TestSites:
    def test_each_is_the_bill_of_that_building(self):
        answer = compare(COMPARISON)
        for figures, choice in zip(answer["sites"], COMPARISON["sites"], strict=True):
            bill = ask(shipped(), "utility-bill", {**without(COMPARISON, "sites"), "site": choice["site"]})
            assert figures["electricity"] == bill["electricity"]["total"]
            assert figures["facility_kwh"] == bill["energy"]["facility_kwh"]
            assert figures["location_based_kg_co2e"] == bill["carbon"]["location_based_kg_co2e"]
        assert answer["cheapest"] == answer["cleanest"] == "Virginia"
        assert gaps(answer)["/least_water"] == "WATER_UNKNOWN"

    def test_money_is_compared_in_one_currency_only(self):
        california, virginia = COMPARISON["sites"]
        price = {"price_per_kwh": usd("0.09", "EUR")}
        abroad = {"name": "Bavaria", "site": {**virginia["site"], "electricity": price}}
        asked = {**COMPARISON, "sites": [california, abroad]}
        assert gaps(compare(asked))["/cheapest"] == "CURRENCY_MISMATCH"
        converted = compare({**asked, "currency_code": "USD"})
        assert converted["cheapest"] == "Bavaria"
        bavaria = converted["sites"][1]
        rate = shipped().exchange_rates.convert(
            Decimal(1), "EUR", "USD", datetime(2026, 11, 20, tzinfo=UTC).date()
        )
        expected = Decimal(bavaria["electricity"]["amount"]) * rate.rate
        assert Decimal(bavaria["converted"]["amount"]) == pytest.approx(expected, abs=Decimal("0.01"))

    def test_what_is_refused_names_the_site(self):
        sites = [COMPARISON["sites"][0], {"name": "nowhere", "site": {"site_id": "nothing"}}]
        assert refused(compare, {**COMPARISON, "sites": sites}) == (
            "UNKNOWN_REFERENCE",
            "/sites/1/site/site_id",
        )


class TestCaps:
    @pytest.fixture(scope="class")
    @classmethod
    def answer(cls):
        return cap(CAP)

    def test_less_power_is_slower_and_takes_less_energy(self, answer):
        runs = [answer["uncapped"], *answer["caps"]]
        for before, after in pairwise(runs):
            assert after["duration_seconds"]["value"] > before["duration_seconds"]["value"]
            assert after["power_per_device_watts"]["value"] < before["power_per_device_watts"]["value"]
            assert after["it_kwh"]["value"] < before["it_kwh"]["value"]
            assert Decimal(after["rent"]["amount"]) > Decimal(before["rent"]["amount"])
            assert after["clock_share"] < before["clock_share"]
        for held in answer["caps"]:
            assert held["power_per_device_watts"]["high"] <= held["power_cap_watts"]
        assert answer["least_energy_watts"] == 400.0

    def test_uncapped_it_is_the_bill_that_is_asked_otherwise(self, answer):
        bill = ask(shipped(), "utility-bill", without(CAP, "power_caps_watts"))
        uncapped = answer["uncapped"]
        assert uncapped["electricity"] == bill["electricity"]["total"]
        assert uncapped["rent"] == bill["rent"]["total"]
        assert uncapped["it_kwh"] == bill["energy"]["it_kwh"]

    def test_the_time_is_that_of_the_slowdown(self, answer):
        for held in answer["caps"]:
            expected = answer["uncapped"]["duration_seconds"]["value"] * held["slowdown"]["value"]
            assert held["duration_seconds"]["value"] == pytest.approx(expected)
            assert held["slowdown"]["low"] <= held["slowdown"]["value"] <= held["slowdown"]["high"]

    @pytest.mark.parametrize(("watts", "code"), [(800.0, "POWER_CAP_TOO_HIGH"), (80.0, "POWER_CAP_TOO_LOW")])
    def test_caps_that_no_device_keeps(self, watts, code):
        assert refused(cap, {**CAP, "power_caps_watts": [600.0, watts]}) == (code, "/power_caps_watts/1")

    def test_an_assumed_efficiency_says_nothing_of_power(self):
        asked = {**CAP, "efficiency": {"source": "assumed", "utilization": 0.5}}
        assert refused(cap, asked) == ("WORK_NOT_MODELLED", "/workload")

    def test_failures_and_checkpoints_are_counted_anew(self):
        workload = {
            **CAP["workload"],
            "checkpointing": {"storage_bandwidth_bytes_per_second": 20e9, "interval_seconds": 3600.0},
        }
        answer = cap({**CAP, "workload": workload, "power_caps_watts": [400.0]})
        (held,) = answer["caps"]
        ratio = held["duration_seconds"]["value"] / answer["uncapped"]["duration_seconds"]["value"]
        assert ratio == pytest.approx(held["slowdown"]["value"], rel=1e-3)
        assert not codes(answer["gaps"]) & {"RATE_UNKNOWN"}
