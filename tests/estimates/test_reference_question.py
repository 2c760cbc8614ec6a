"""The reference question, asked three times. Every figure here can be recomputed with a pocket calculator.

6 x 70e9 x 2e12 = 8.4e23 FLOP over 1000 x 989e12 x 0.5 FLOP/s is 1,698,686 s or 19.66 days; times 1000
devices 471,857.09 device-hours, at 3 USD each 1,415,571.28 USD. 700 W over those hours is 330,300 kWh,
369,936 kWh at a PUE of 1.12, 44,392.32 USD at 0.12 USD/kWh and 158,702.5 kg at 0.429 kg/kWh.
"""

import pytest

from service.app.examples import REFERENCE_QUESTION, REFERENCE_SITE
from tests.asking import ask, codes, gaps

LLAMA = {
    **REFERENCE_QUESTION,
    "model": {"source": "catalog", "id": "llama-2-70b"},
    "efficiency": {"source": "modelled"},
}


@pytest.fixture(scope="module")
def without_site(snapshot):
    return ask(snapshot, "utility-bill", REFERENCE_QUESTION)


@pytest.fixture(scope="module")
def with_site(snapshot):
    return ask(snapshot, "utility-bill", {**REFERENCE_QUESTION, "site": REFERENCE_SITE})


@pytest.fixture(scope="module")
def llama(snapshot):
    return ask(snapshot, "utility-bill", {**LLAMA, "site": REFERENCE_SITE})


def money(total):
    return total["amount"], total["currency_code"]


def test_the_run(without_site):
    assert without_site["total_flops"] == 8.4e23
    assert without_site["peak_flops_per_second_per_device"] == 989e12
    assert without_site["duration_seconds"]["basis"] == "assumed"
    assert round(without_site["duration_seconds"]["value"] / 86_400, 2) == 19.66
    assert round(without_site["device_hours"]["value"], 2) == 471_857.09


def test_rent_against_purchase(without_site):
    assert money(without_site["rent"]["total"]) == ("1415571.28", "USD")
    assert money(without_site["purchase"]["total"]) == ("30000000.00", "USD")
    assert round(without_site["break_even_runs"]["value"], 2) == 21.19


def test_what_needs_a_site_is_a_gap(without_site):
    assert gaps(without_site) == {
        "/electricity/total": "PRICE_REQUIRED",
        "/energy/facility_kwh": "PUE_REQUIRED",
        "/energy/peak_kw": "PUE_REQUIRED",
        "/carbon/location_based_kg_co2e": "GRID_REQUIRED",
        "/carbon/market_based_kg_co2e": "CONTRACT_UNKNOWN",
        "/carbon/software_carbon_intensity": "CARBON_UNKNOWN",
        "/water_liters": "WATER_UNKNOWN",
        "/water/onsite_liters": "WATER_UNKNOWN",
        "/water/offsite_liters": "WATER_UNKNOWN",
        "/break_even_runs_with_electricity": "ELECTRICITY_UNKNOWN",
    }
    assert without_site["electricity"] == {"lines": []}
    assert set(without_site["carbon"]) == {"embodied_kg_co2e", "embodied_lines"}


def test_energy_without_a_site(without_site):
    lines = {line["name"]: line["it_kwh"]["value"] for line in without_site["energy"]["lines"]}
    assert list(lines) == ["accelerators", "hosts", "fans", "power_supplies", "fabric"]
    assert round(lines["accelerators"]) == 330_300
    assert without_site["energy"]["it_kwh"]["value"] == pytest.approx(sum(lines.values()))


def test_energy_with_a_site(with_site):
    energy = with_site["energy"]
    lines = {line["name"]: line["facility_kwh"]["value"] for line in energy["lines"]}
    assert round(lines["accelerators"]) == 369_936
    assert energy["facility_kwh"]["value"] == pytest.approx(sum(lines.values()))
    assert energy["peak_kw"]["value"] == pytest.approx(sum(lines.values()) / (1_698_685.541 / 3600))
    assert energy["overhead_kwh"]["value"] == pytest.approx(0.12 * energy["it_kwh"]["value"])


def test_electricity_and_carbon_with_a_site(with_site):
    lines = {line["name"]: line["amount"]["amount"] for line in with_site["electricity"]["lines"]}
    assert lines["accelerators"] == "44392.32"
    total = with_site["electricity"]["total"]["amount"]
    assert float(total) == pytest.approx(sum(map(float, lines.values())))
    emitted = with_site["carbon"]["location_based_kg_co2e"]["value"]
    assert emitted == pytest.approx(with_site["energy"]["facility_kwh"]["value"] * 0.429)


def test_break_even_is_rent_against_purchase_with_or_without_a_site(with_site, without_site):
    assert with_site["break_even_runs"] == without_site["break_even_runs"]
    rent, electricity = 1_415_571.28, float(with_site["electricity"]["total"]["amount"])
    expected = 30e6 / (rent - electricity)
    assert with_site["break_even_runs_with_electricity"]["value"] == pytest.approx(expected)


def test_the_assumed_run_is_warned_about_attention(without_site):
    assert codes(without_site["warnings"]) == {"ATTENTION_NOT_COUNTED"}


class TestThirdTime:
    """Llama 2 70B from the catalog: fewer parameters, attention counted, measured efficiency."""

    def test_flops_of_the_architecture(self, llama):
        """6 FLOPs for each of the 68,976,648,192 parameters but the 262,144,000 of the input table, and
        the whole score matrix, by convention: 12 x 4096 x 8192 x 80 per token."""
        weights = 68_976_648_192 - 262_144_000
        norms = (2 * 80 + 1) * 8192
        attention = 12 * 4096 * 8192 * 80
        expected = (6 * (weights - norms) + attention) * 2e12
        assert llama["total_flops"] == pytest.approx(expected, rel=1e-4)

    def test_efficiency_is_measured(self, llama):
        assert llama["duration_seconds"]["basis"] == "reference"
        assert llama["duration_seconds"]["low"] < llama["duration_seconds"]["high"]
        assert "reference_curve" in {source["kind"] for source in llama["evidence"]["sources"]}
        assert codes(llama["warnings"]) == set()

    def test_the_answer_differs_for_three_reasons(self, llama, without_site):
        share_of_peak = llama["total_flops"] / (1000 * 989e12 * llama["duration_seconds"]["value"])
        expected = without_site["duration_seconds"]["value"]
        expected *= llama["total_flops"] / without_site["total_flops"] * 0.5 / share_of_peak
        assert llama["duration_seconds"]["value"] == pytest.approx(expected)
        assert 0.3 < share_of_peak < 0.5
