"""What will the run draw, emit and cost? Energy, sites, grids, water, and where they are unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.app.examples import REFERENCE_QUESTION, REFERENCE_SITE
from tests.asking import ask, gaps, refusal, shipped, usd

GRID = "egrid-us-rfce"


def bill(snapshot, **members):
    return ask(snapshot, "utility-bill", {**REFERENCE_QUESTION, **members})


def on_site(snapshot, **site):
    return bill(snapshot, site=site)


@given(
    st.integers(1, 5000),
    st.floats(0.05, 1.0),
    st.floats(1.0, 3.0),
    st.decimals("0", "9", places=4),
    st.floats(0.0, 2.0),
)
def test_what_is_drawn_is_paid_and_emitted(count, utilization, pue, price, intensity):
    asked = {
        **REFERENCE_QUESTION,
        "cluster": {**REFERENCE_QUESTION["cluster"], "accelerator_count": count},
        "efficiency": {"source": "assumed", "utilization": utilization},
        "site": {
            "pue": pue,
            "electricity": {"price_per_kwh": usd(str(price))},
            "carbon_intensity_kg_co2e_per_kwh": intensity,
        },
    }
    answer = ask(shipped(), "utility-bill", asked)
    energy = answer["energy"]
    for part in ("it_kwh", "facility_kwh"):
        total = sum(line[part]["value"] for line in energy["lines"])
        assert energy[part]["value"] == pytest.approx(total)
    assert energy["facility_kwh"]["value"] == pytest.approx(energy["it_kwh"]["value"] * pue)
    hours = answer["duration_seconds"]["value"] / 3600
    assert energy["peak_kw"]["value"] * hours == pytest.approx(energy["facility_kwh"]["value"])
    accelerators = energy["lines"][0]["it_kwh"]["value"]
    assert accelerators == pytest.approx(answer["device_hours"]["value"] * 0.7)
    paid = float(answer["electricity"]["total"]["amount"])
    # Each line is rounded once.
    assert paid == pytest.approx(energy["facility_kwh"]["value"] * float(price), abs=0.026)
    emitted = answer["carbon"]["location_based_kg_co2e"]["value"]
    assert emitted == pytest.approx(energy["facility_kwh"]["value"] * intensity)
    runs = float(answer["purchase"]["total"]["amount"]) / float(answer["rent"]["total"]["amount"])
    assert answer["break_even_runs"]["value"] == pytest.approx(runs)


class TestSites:
    def test_a_site_of_the_catalog_brings_its_pue_and_grid(self, snapshot):
        answer = on_site(snapshot, site_id="google-cloud-us-east4")
        facility, it = (answer["energy"][name]["value"] for name in ("facility_kwh", "it_kwh"))
        assert facility / it == pytest.approx(1.08)
        intensity = snapshot.grids["gcp-us-east4"].carbon_intensity_kg_co2e_per_kwh
        emitted = answer["carbon"]["location_based_kg_co2e"]
        assert emitted["value"] == pytest.approx(facility * intensity)
        assert {"site", "grid"} <= {source["kind"] for source in answer["evidence"]["sources"]}

    def test_what_the_question_gives_comes_first(self, snapshot):
        answer = on_site(
            snapshot, site_id="google-cloud-us-east4", pue=1.5, carbon_intensity_kg_co2e_per_kwh=1.0
        )
        facility, it = (answer["energy"][name]["value"] for name in ("facility_kwh", "it_kwh"))
        assert facility / it == pytest.approx(1.5)
        assert answer["carbon"]["location_based_kg_co2e"]["value"] == pytest.approx(facility)

    def test_a_grid_without_a_pue_leaves_carbon_open(self, snapshot):
        answer = on_site(snapshot, grid_id=GRID)
        assert gaps(answer)["/carbon/location_based_kg_co2e"] == "ENERGY_UNKNOWN"
        assert gaps(answer)["/energy/facility_kwh"] == "PUE_REQUIRED"

    @pytest.mark.parametrize("member", ["site_id", "grid_id"])
    def test_unknown_names_are_refused(self, snapshot, member):
        asked = {**REFERENCE_QUESTION, "site": {member: "nothing"}}
        assert refusal(snapshot, "utility-bill", asked) == ("UNKNOWN_REFERENCE", f"/site/{member}")


class TestWater:
    def test_on_and_off_the_site(self, snapshot):
        answer = on_site(snapshot, pue=1.2, grid_id="ember-arg", water_usage_effectiveness_liters_per_kwh=1.8)
        energy = answer["energy"]
        expected = 1.8 * energy["it_kwh"]["value"] + 11.4558 * energy["facility_kwh"]["value"]
        assert answer["water_liters"]["value"] == pytest.approx(expected)

    def test_half_of_it_is_a_gap(self, snapshot):
        answer = on_site(snapshot, pue=1.2, grid_id="ember-arg")
        assert gaps(answer)["/water_liters"] == "WATER_UNKNOWN"
        assert "water_liters" not in answer


class TestPower:
    def test_an_unknown_power_limit_leaves_energy_open(self, snapshot):
        accelerator = {"source": "catalog", "id": "tpu-v5p"}
        answer = bill(
            snapshot, cluster={"accelerator": accelerator, "accelerator_count": 8}, site=REFERENCE_SITE
        )
        found = gaps(answer)
        assert {found[f"/energy/{name}"] for name in ("it_kwh", "facility_kwh", "peak_kw")} == {
            "POWER_UNKNOWN"
        }
        assert found["/electricity/total"] == "ENERGY_UNKNOWN"
        assert found["/carbon/location_based_kg_co2e"] == "ENERGY_UNKNOWN"
        assert answer["energy"] == {"lines": []}

    def test_hosts_as_given(self, snapshot):
        cluster = {**REFERENCE_QUESTION["cluster"], "host_power_watts": 3000.0}
        hosts = bill(snapshot, cluster=cluster)["energy"]["lines"][1]["it_kwh"]
        hours = 471_857.0947 / 1000
        assert hosts["value"] == pytest.approx(125 * 3.0 * hours)
        assert hosts["low"] == hosts["high"]

    def test_measured_loads_lie_below_the_limit(self, snapshot):
        accelerators = bill(snapshot)["energy"]["lines"][0]["it_kwh"]
        assert accelerators["low"] < accelerators["value"] == accelerators["high"]


class TestBreakEven:
    def test_another_currency_cannot_be_set_against_the_rent(self, snapshot):
        answer = bill(snapshot, purchase={"price_per_device": usd("30000", "EUR")})
        assert gaps(answer)["/break_even_runs"] == "CURRENCY_MISMATCH"
        assert answer["purchase"]["total"]["currency_code"] == "EUR"
        site = {**REFERENCE_SITE, "electricity": {"price_per_kwh": usd("0.12", "EUR")}}
        answer = bill(snapshot, site=site)
        assert gaps(answer)["/break_even_runs_with_electricity"] == "CURRENCY_MISMATCH"
        assert answer["break_even_runs"]["value"] == pytest.approx(21.19, abs=0.01)

    def test_electricity_dearer_than_the_rent_never_pays(self, snapshot):
        site = {**REFERENCE_SITE, "electricity": {"price_per_kwh": usd("50")}}
        answer = bill(snapshot, site=site)
        assert gaps(answer)["/break_even_runs_with_electricity"] == "NEVER"

    def test_a_free_rent_never_pays(self, snapshot):
        answer = bill(snapshot, rental={"price_per_device_hour": usd("0")})
        assert gaps(answer)["/break_even_runs"] == "RENT_ZERO"
        assert answer["rent"]["total"]["amount"] == "0.00"

    def test_without_prices_both_are_gaps(self, snapshot):
        asked = {k: v for k, v in REFERENCE_QUESTION.items() if k not in ("rental", "purchase")}
        found = gaps(ask(snapshot, "utility-bill", asked))
        assert found["/rent/total"] == found["/purchase/total"] == "PRICE_REQUIRED"
        assert found["/break_even_runs"] == found["/break_even_runs_with_electricity"] == "PRICE_REQUIRED"


def test_a_service_by_its_duration(snapshot):
    """Sixteen accelerators for a day, whatever they serve: 384 device-hours, of which one device works 24."""
    asked = {
        "model": {"source": "catalog", "id": "llama-3.1-8b"},
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 16},
        "workload": {"kind": "inference", "horizon": {"duration_seconds": 86_400.0}},
        "parallelism": {"data": 16},
    }
    answer = ask(snapshot, "utility-bill", asked)
    assert answer["device_hours"]["value"] == 384.0
    # One request at a time: one device of 16 works, the others draw the idle tenth of 700 W.
    asked["cluster"]["accelerator_count"] = asked["parallelism"]["data"] = 1
    alone = ask(snapshot, "utility-bill", asked)["energy"]["lines"][0]["it_kwh"]["value"]
    assert 24 * 0.2 < alone < 24 * 0.7
    whole = answer["energy"]["lines"][0]["it_kwh"]["value"]
    assert whole == pytest.approx(alone + 15 * 24 * 0.07)
    assert "total_flops" not in answer
