"""Emissions and water of an answer, each under its own name and never mixed."""

from dataclasses import replace
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.app.examples import REFERENCE_QUESTION, REFERENCE_SITE
from service.planning.energy.carbon import HoursOfYearIntensity
from tests.asking import ask, codes, gaps, question, refusal, shipped

STARTS_AT = "2026-03-01T00:00:00Z"
LOCATION, MARKET = "location_based_kg_co2e", "market_based_kg_co2e"
PPA = {
    "kind": "power_purchase_agreement",
    "share": 0.6,
    "carbon_intensity_kg_co2e_per_kwh": 0.0,
    "source": "contract of 2026",
}
RESIDUAL = {"carbon_intensity_kg_co2e_per_kwh": 0.5, "source": "residual mix of 2025"}


def bill(catalog=None, site=None, **members):
    asked = {**REFERENCE_QUESTION, "site": {**REFERENCE_SITE, **(site or {})}, **members}
    return ask(catalog or shipped(), "utility-bill", asked)


def facility(answer):
    return answer["energy"]["facility_kwh"]["value"]


def refused(site=None, **members):
    asked = {**REFERENCE_QUESTION, "site": {**REFERENCE_SITE, **(site or {})}, **members}
    return refusal(shipped(), "utility-bill", asked)


def without_rate(**site):
    return {
        **REFERENCE_QUESTION,
        "site": {"pue": 1.12, **site},
    }


def marginal_catalog(values, rate="marginal"):
    """A grid whose hours of the year are known."""
    series = HoursOfYearIntensity(ZoneInfo("UTC"), np.asarray(values, dtype=float))
    known = shipped().grids["egrid-us"]
    grid = replace(
        known, series=series, emission_rate=rate, carbon_intensity_kg_co2e_per_kwh=float(np.mean(values))
    )
    return replace(shipped(), grids={**shipped().grids, "in-time": grid})


class TestLocation:
    def test_a_grid_says_what_it_counts(self):
        answer = ask(shipped(), "utility-bill", without_rate(grid_id="egrid-us"))
        method = answer["carbon"]["location_based_method"]
        assert method == {"emission_rate": "average", "accounting": "generation", "in_time": False}
        life_cycle = ask(shipped(), "utility-bill", without_rate(grid_id="ember-usa"))
        assert life_cycle["carbon"]["location_based_method"]["accounting"] == "life_cycle"
        assert "CARBON_ACCOUNTING" in codes(life_cycle["warnings"])

    def test_a_series_is_summed_over_the_hours_of_the_run(self):
        """Ten days at 0.2 and the rest at 0.6, of a run of 19.66 days at one power."""
        series = {
            "kind": "intervals",
            "starts_at": STARTS_AT,
            "kg_co2e_per_kwh": [0.2] * 240 + [0.6] * 480,
        }
        asked = {**without_rate(carbon_intensity_series=series), "starts_at": STARTS_AT}
        answer = ask(shipped(), "utility-bill", asked)
        days = answer["duration_seconds"]["value"] / 86_400
        mean = (10 * 0.2 + (days - 10) * 0.6) / days
        found = answer["carbon"][LOCATION]
        assert found["value"] == pytest.approx(facility(answer) * mean, rel=1e-6)
        assert found["low"] < found["value"] < found["high"]
        assert answer["carbon"]["location_based_method"]["in_time"] is True

    def test_a_series_needs_a_start_and_no_mean_beside_it(self):
        series = {"kind": "intervals", "starts_at": STARTS_AT, "kg_co2e_per_kwh": [0.2]}
        asked = without_rate(carbon_intensity_series=series)
        assert refusal(shipped(), "utility-bill", asked) == ("STARTS_AT_REQUIRED", "/starts_at")
        both = refused({"carbon_intensity_series": series}, starts_at=STARTS_AT)
        assert both == ("INTENSITY_TWICE", "/site/carbon_intensity_series")

    def test_a_series_that_ends_before_the_run_is_a_gap(self):
        series = {"kind": "intervals", "starts_at": STARTS_AT, "kg_co2e_per_kwh": [0.2] * 24}
        asked = {**without_rate(carbon_intensity_series=series), "starts_at": STARTS_AT}
        answer = ask(shipped(), "utility-bill", asked)
        assert gaps(answer)[f"/carbon/{LOCATION}"] == "SERIES_TOO_SHORT"

    def test_the_grid_of_the_catalog_in_time(self):
        catalog = marginal_catalog([0.3] * 8760, rate="average")
        asked = without_rate(grid_id="in-time")
        mean = ask(catalog, "utility-bill", asked)
        assert "STARTS_AT_UNKNOWN" in codes(mean["warnings"])
        in_time = ask(catalog, "utility-bill", {**asked, "starts_at": STARTS_AT})
        assert in_time["carbon"][LOCATION]["value"] == pytest.approx(mean["carbon"][LOCATION]["value"])

    def test_what_a_series_leaves_is_taken_at_the_mean_and_said(self):
        catalog = marginal_catalog([0.3] * 240, rate="average")
        answer = ask(
            catalog, "utility-bill", {**without_rate(grid_id="in-time"), "starts_at": "2026-01-01T00:00:00Z"}
        )
        assert "SERIES_TOO_SHORT" in codes(answer["warnings"])
        assert answer["carbon"][LOCATION]["value"] == pytest.approx(0.3 * facility(answer))


class TestMarginal:
    def test_it_is_a_figure_of_its_own(self):
        catalog = marginal_catalog([0.8] * 8760)
        answer = bill(catalog, {"marginal_grid_id": "in-time"}, starts_at=STARTS_AT)
        assert answer["carbon"][LOCATION]["value"] == pytest.approx(0.429 * facility(answer))
        assert answer["carbon"]["marginal_kg_co2e"]["value"] == pytest.approx(0.8 * facility(answer))
        assert answer["carbon"]["marginal_method"]["emission_rate"] == "marginal"

    def test_it_does_not_stand_for_the_average(self):
        answer = ask(marginal_catalog([0.8] * 8760), "utility-bill", without_rate(grid_id="in-time"))
        assert gaps(answer)[f"/carbon/{LOCATION}"] == "AVERAGE_REQUIRED"
        assert answer["carbon"]["marginal_kg_co2e"]["value"] == pytest.approx(0.8 * facility(answer))

    def test_an_average_does_not_stand_for_it(self):
        assert refused({"marginal_grid_id": "egrid-us"}) == ("EMISSION_RATE", "/site/marginal_grid_id")


class TestMarket:
    def test_contracts_and_residual_mix(self):
        answer = bill(site={"contracts": [PPA], "residual_mix": RESIDUAL})
        assert answer["carbon"][MARKET]["value"] == pytest.approx(0.2 * facility(answer))
        assert answer["carbon"][LOCATION]["value"] == pytest.approx(0.429 * facility(answer))
        lines = answer["carbon"]["market_based_lines"]
        assert [line["name"] for line in lines] == ["power_purchase_agreement", "residual_mix"]
        assert sum(line["kwh"] for line in lines) == pytest.approx(facility(answer))
        assert sum(line["kg_co2e"] for line in lines) == pytest.approx(answer["carbon"][MARKET]["value"])
        assert lines[0]["source"] == "contract of 2026"

    def test_what_has_no_contract_needs_a_residual_mix(self):
        assert gaps(bill(site={"contracts": [PPA]}))[f"/carbon/{MARKET}"] == "RESIDUAL_MIX_REQUIRED"
        whole = bill(site={"contracts": [{**PPA, "share": 1.0}]})
        assert whole["carbon"][MARKET]["value"] == 0.0

    def test_without_either_it_is_a_gap(self):
        assert gaps(bill())[f"/carbon/{MARKET}"] == "CONTRACT_UNKNOWN"

    def test_more_than_all_is_refused(self):
        assert refused({"contracts": [PPA, PPA]}) == ("CONTRACT_SHARES", "/site/contracts")

    def test_generation_and_life_cycle_are_never_added_up(self):
        mixed = {"contracts": [{**PPA, "accounting": "life_cycle"}], "residual_mix": RESIDUAL}
        assert refused(mixed) == ("ACCOUNTING_MIXED", "/site/contracts")
        alike = {**mixed, "residual_mix": {**RESIDUAL, "accounting": "life_cycle"}}
        assert bill(site=alike)["carbon"]["market_based_method"]["accounting"] == "life_cycle"


class TestEmbodied:
    def test_the_reference_question(self):
        """471,857 hours of an H100 of 164 kg and an eighth of a server of 2,500 kg, five years at 85%."""
        answer = bill()
        expected = 471_857.0947 * (164.0 + 2_500.0 / 8) / (5 * 8_760 * 0.85)
        found = answer["carbon"]["embodied_kg_co2e"]
        assert found["value"] == pytest.approx(expected)
        assert expected == pytest.approx(6_039.0, abs=1.0)
        assert found["low"] < expected < found["high"]
        assert [line["name"] for line in answer["carbon"]["embodied_lines"]] == ["accelerators", "servers"]
        assert all(line["source"] for line in answer["carbon"]["embodied_lines"])

    def test_what_the_question_gives_goes_first(self):
        given = {
            "kg_co2e_per_device": 100.0,
            "kg_co2e_per_server": 800.0,
            "lifetime_years": 4.0,
            "utilization": 1.0,
        }
        found = bill(embodied=given)["carbon"]["embodied_kg_co2e"]
        assert found["value"] == pytest.approx(471_857.0947 * 200.0 / (4 * 8_760))
        assert found["low"] == found["high"]

    def test_an_accelerator_without_an_assessment_is_a_gap(self):
        cluster = {
            **REFERENCE_QUESTION["cluster"],
            "accelerator": {"source": "catalog", "id": "v100-sxm2-32gb"},
        }
        assert shipped().accelerators["v100-sxm2-32gb"].accelerator.embodied_kg_co2e is None
        answer = bill(cluster=cluster)
        assert gaps(answer)["/carbon/embodied_kg_co2e"] == "ASSESSMENT_UNKNOWN"
        assert gaps(answer)["/carbon/software_carbon_intensity"] == "CARBON_UNKNOWN"


class TestRates:
    def test_a_training_run(self):
        answer = bill()
        rates = {
            rate["per"]: rate["kg_co2e"]["value"] for rate in answer["carbon"]["software_carbon_intensity"]
        }
        whole = answer["carbon"][LOCATION]["value"] + answer["carbon"]["embodied_kg_co2e"]["value"]
        assert rates == {"run": pytest.approx(whole), "million_tokens": pytest.approx(whole / 2e6)}

    def test_a_service(self):
        asked = question("llama-3.1-8b", "h100-sxm", 1)
        load = {"kind": "inference", "input_tokens": 512, "output_tokens": 128, "concurrency": 8}
        asked["workload"] = {**load, "horizon": {"total_requests": 1_000_000}}
        answer = ask(shipped(), "utility-bill", {**asked, "site": REFERENCE_SITE})
        rates = {
            rate["per"]: rate["kg_co2e"]["value"] for rate in answer["carbon"]["software_carbon_intensity"]
        }
        assert rates["request"] == pytest.approx(rates["run"] / 1e6)
        assert rates["million_tokens"] == pytest.approx(rates["run"] / 128)

    def test_a_picture_is_called_one(self):
        (months,) = bill()["equivalents"]
        assert months["name"] == "household_months"
        assert months["value"] == pytest.approx(facility(bill()) / 900)
        assert "illustration" in months["detail"]


class TestWater:
    def test_on_and_off_the_site_apart_and_together(self):
        answer = ask(
            shipped(),
            "utility-bill",
            without_rate(grid_id="ember-arg", water_usage_effectiveness_liters_per_kwh=1.8),
        )
        water = answer["water"]
        assert water["onsite_liters"]["value"] == pytest.approx(1.8 * answer["energy"]["it_kwh"]["value"])
        assert water["offsite_liters"]["value"] == pytest.approx(11.4558 * facility(answer))
        both = water["onsite_liters"]["value"] + water["offsite_liters"]["value"]
        assert answer["water_liters"]["value"] == pytest.approx(both)

    def test_half_of_it_is_answered_and_the_sum_is_a_gap(self):
        answer = ask(shipped(), "utility-bill", without_rate(grid_id="ember-arg"))
        assert set(answer["water"]) == {"offsite_liters"}
        assert gaps(answer)["/water/onsite_liters"] == gaps(answer)["/water_liters"] == "WATER_UNKNOWN"


def test_the_worked_numbers_of_the_page():
    """docs/methods/carbon-and-water.md."""
    carbon = bill(site={"contracts": [PPA], "residual_mix": RESIDUAL})["carbon"]
    assert carbon[LOCATION]["value"] == pytest.approx(254_275.29, abs=0.005)
    assert carbon[MARKET]["value"] == pytest.approx(118_543.26, abs=0.005)
    assert carbon["embodied_kg_co2e"]["value"] == pytest.approx(6_039.2, abs=0.05)
    rates = {rate["per"]: rate["kg_co2e"]["value"] for rate in carbon["software_carbon_intensity"]}
    assert rates["million_tokens"] == pytest.approx(0.1302, abs=5e-5)
    site = {"grid_id": "ember-usa", "water_usage_effectiveness_liters_per_kwh": 0.5}
    other = ask(shipped(), "utility-bill", without_rate(**site))
    assert other["carbon"][LOCATION]["value"] == pytest.approx(227_336.3, abs=0.05)
    assert other["water_liters"]["value"] == pytest.approx(2_121_052, abs=0.5)
