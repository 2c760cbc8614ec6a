"""The energy of a run by equipment and in time, and what was measured in its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.app.examples import REFERENCE_QUESTION, REFERENCE_SITE
from tests.asking import ask, codes, gaps, question, refusal, shipped

STARTS_AT = "2026-03-01T06:30:00Z"
SEASONS = [1.1, 1.1, 1.12, 1.14, 1.18, 1.25, 1.3, 1.3, 1.22, 1.15, 1.12, 1.1]
SAVED = {
    "checkpointing": {"storage_bandwidth_bytes_per_second": 2e9, "interval_seconds": 3600.0},
    "reliability": {"device_mtbf_hours": 20_000.0, "restart_seconds": 900.0},
}


def bill(**members):
    return ask(shipped(), "utility-bill", {**REFERENCE_QUESTION, "site": REFERENCE_SITE, **members})


def lines(answer, part="it_kwh"):
    return {line["name"]: line[part]["value"] for line in answer["energy"]["lines"]}


def phases(answer):
    return {phase["name"]: phase for phase in answer["energy"]["load_profile"]["phases"]}


def site(**members):
    return {**REFERENCE_SITE, **members}


def workload(**members):
    return {**REFERENCE_QUESTION["workload"], "sequence_length": 4096, **members}


class TestEquipment:
    def test_every_line_says_where_it_comes_from(self):
        assert all(line["source"] for line in bill()["energy"]["lines"])

    def test_a_bath_has_no_fans_and_loses_less_in_supplies(self):
        air, bath = lines(bill()), lines(bill(site=site(cooling="immersion")))
        assert "fans" not in bath
        assert bath["accelerators"] == air["accelerators"]
        assert bath["power_supplies"] < air["power_supplies"]
        cold_plates = lines(bill(site=site(cooling="liquid")))
        assert 0.0 < cold_plates["fans"] < air["fans"]

    def test_what_is_given_beside_accelerators_is_all_of_it(self):
        cluster = {**REFERENCE_QUESTION["cluster"], "host_power_watts": 200.0}
        found = lines(bill(cluster=cluster))
        assert set(found) == {"accelerators", "hosts"}
        assert found["hosts"] == pytest.approx(125 * 0.2 * 471.857, rel=1e-5)

    def test_the_fabric_as_given(self):
        found = lines(bill(site=site(fabric_power_watts_per_device=40.0)))
        assert found["fabric"] == pytest.approx(0.04 * 471_857.0947)
        assert "fabric" not in lines(bill(site=site(fabric_power_watts_per_device=0.0)))

    def test_one_node_has_no_fabric(self):
        cluster = {**REFERENCE_QUESTION["cluster"], "accelerator_count": 8}
        assert "fabric" not in lines(bill(cluster=cluster))


def test_the_worked_numbers_of_the_page():
    """docs/methods/power.md: the reference question with its site."""
    energy = bill()["energy"]
    rounded = {name: round(kwh, 2) for name, kwh in lines(bill()).items()}
    assert rounded == {
        "accelerators": 330_299.97,
        "hosts": 72_170.54,
        "fans": 68_419.99,
        "power_supplies": 22_931.19,
        "fabric": 35_389.28,
    }
    found = [energy[name] for name in ("it_kwh", "facility_kwh", "peak_kw")]
    assert [[round(each[end], 2) for end in ("value", "low", "high")] for each in found] == [
        [529_210.97, 239_181.68, 626_442.84],
        [592_716.29, 267_883.48, 701_615.99],
        [1_256.14, 567.72, 1_486.92],
    ]


class TestSeasons:
    def test_each_month_counts_at_its_own(self):
        """From 1 March 06:30 on 19.66 days: all of it in March."""
        answer = bill(site=site(pue_by_month=SEASONS), starts_at=STARTS_AT)
        energy = answer["energy"]
        assert energy["facility_kwh"]["value"] == pytest.approx(1.12 * energy["it_kwh"]["value"])
        summer = bill(site=site(pue_by_month=SEASONS), starts_at="2026-07-01T00:00:00Z")["energy"]
        assert summer["facility_kwh"]["value"] == pytest.approx(1.3 * energy["it_kwh"]["value"])
        assert sum(lines(answer, "facility_kwh").values()) == pytest.approx(energy["facility_kwh"]["value"])

    def test_they_need_a_start(self):
        asked = {**REFERENCE_QUESTION, "site": site(pue_by_month=SEASONS)}
        assert refusal(shipped(), "utility-bill", asked) == ("STARTS_AT_REQUIRED", "/starts_at")


class TestInTime:
    def test_a_run_without_checkpoints_is_steady(self):
        answer = bill()
        assert set(phases(answer)) == {"steady"}
        assert answer["energy"]["load_profile"]["elapsed_seconds"] == answer["duration_seconds"]["value"]

    def test_checkpoints_and_restarts_are_phases_of_less_power(self):
        answer = bill(workload=workload(**SAVED))
        found = phases(answer)
        assert set(found) == {"steady", "checkpoint", "restart"}
        watts = {name: phase["it_kwh"] / phase["seconds"] for name, phase in found.items()}
        assert watts["checkpoint"] == pytest.approx(watts["restart"])
        assert watts["checkpoint"] < 0.4 * watts["steady"]
        total = sum(phase["seconds"] for phase in found.values())
        assert total == pytest.approx(answer["duration_seconds"]["value"])
        assert sum(phase["it_kwh"] for phase in found.values()) == pytest.approx(
            answer["energy"]["it_kwh"]["value"]
        )
        energy = answer["energy"]["it_kwh"]
        assert energy["low"] < energy["value"] < energy["high"]

    def test_the_intervals_hold_the_energy_at_the_meter(self):
        answer = bill(
            workload=workload(**SAVED),
            starts_at=STARTS_AT,
            load_profile={"include_intervals": True, "interval_minutes": 60, "ramp_seconds": 1800.0},
        )
        profile, energy = answer["energy"]["load_profile"], answer["energy"]
        assert profile["first_interval_at"] == "2026-03-01T06:00:00Z"
        assert sum(profile["intervals_kw"]) == pytest.approx(energy["facility_kwh"]["value"], rel=1e-9)
        assert (
            max(profile["intervals_kw"])
            == profile["highest_interval_kw"]
            <= energy["peak_kw"]["value"] + 1e-6
        )
        # Half of the first hour the machines are off, in the other half they ramp up.
        assert profile["intervals_kw"][0] < 0.5 * profile["intervals_kw"][1]

    def test_intervals_that_are_too_many_are_a_gap(self):
        cluster = {**REFERENCE_QUESTION["cluster"], "accelerator_count": 20}
        answer = bill(
            cluster=cluster,
            starts_at=STARTS_AT,
            load_profile={"include_intervals": True, "interval_minutes": 5},
        )
        assert gaps(answer)["/energy/load_profile/intervals_kw"] == "SERIES_TOO_LONG"
        assert "intervals_kw" not in answer["energy"]["load_profile"]

    def test_a_run_of_decades_has_energy_and_no_intervals(self):
        """The whole run on one device: 53.8 years."""
        cluster = {**REFERENCE_QUESTION["cluster"], "accelerator_count": 1}
        profile = bill(cluster=cluster, starts_at=STARTS_AT)["energy"]["load_profile"]
        assert profile["elapsed_seconds"] == pytest.approx(53.83 * 365.25 * 86_400, rel=1e-3)
        assert "highest_interval_kw" not in profile

    def test_intervals_without_a_start_are_a_gap(self):
        answer = bill(load_profile={"include_intervals": True})
        assert gaps(answer)["/energy/load_profile/intervals_kw"] == "STARTS_AT_REQUIRED"

    def test_maintenance_stops_the_run(self):
        window = {"every_seconds": 7 * 86_400.0, "duration_seconds": 14_400.0}
        idle, off = (
            bill(load_profile={"maintenance": {**window, "power": power}}) for power in ("idle", "off")
        )
        plain = bill()
        for answer in (idle, off):
            assert phases(answer)["maintenance"]["seconds"] == 2 * 14_400.0
            profile = answer["energy"]["load_profile"]
            assert profile["elapsed_seconds"] == pytest.approx(plain["duration_seconds"]["value"] + 28_800.0)
        assert off["energy"]["it_kwh"]["value"] == pytest.approx(plain["energy"]["it_kwh"]["value"])
        assert idle["energy"]["it_kwh"]["value"] > plain["energy"]["it_kwh"]["value"]

    @pytest.mark.parametrize(
        ("every", "lasts", "member"),
        [(3600.0, 3600.0, "duration_seconds"), (100.0, 1.0, "every_seconds")],
    )
    def test_maintenance_that_never_ends_is_refused(self, every, lasts, member):
        window = {"every_seconds": every, "duration_seconds": lasts}
        asked = {**REFERENCE_QUESTION, "load_profile": {"maintenance": window}}
        pointer = f"/load_profile/maintenance/{member}"
        assert refusal(shipped(), "utility-bill", asked) == ("MAINTENANCE", pointer)

    def test_machines_stay_on_after_the_run(self):
        found = phases(bill(load_profile={"idle_seconds": 7_200.0}))["idle"]
        assert found["seconds"] == 7_200.0
        assert 0.0 < found["it_kwh"] < 2 * 0.5 * 1_200.0


class TestService:
    LOAD = {"kind": "inference", "input_tokens": 512, "output_tokens": 128, "concurrency": 8}

    def ask(self, **load):
        asked = question("llama-3.1-8b", "h100-sxm", 2)
        asked["workload"] = {**self.LOAD, "horizon": {"duration_seconds": 2 * 86_400.0}}
        return ask(shipped(), "utility-bill", {**asked, "site": REFERENCE_SITE, "load_profile": load})

    def test_the_hours_of_the_day_move_power_and_no_mean(self):
        shape = [0.5] * 12 + [1.5] * 12
        flat, daily = self.ask(), self.ask(daily_shape=shape)
        assert lines(daily)["accelerators"] == pytest.approx(lines(flat)["accelerators"], rel=1e-6)
        assert daily["energy"]["peak_kw"]["value"] > flat["energy"]["peak_kw"]["value"]

    def test_a_shape_has_a_mean_of_one_and_stays_below_the_limit(self):
        asked = question("llama-3.1-8b", "h100-sxm", 2)
        asked["workload"] = {**self.LOAD, "horizon": {"duration_seconds": 86_400.0}}
        for shape in ([0.5] * 24, [24.0] + [0.0] * 23):
            refused = refusal(shipped(), "utility-bill", {**asked, "load_profile": {"daily_shape": shape}})
            assert refused == ("LOAD_SHAPE", "/load_profile/daily_shape")

    def test_training_has_none(self):
        answer = bill(load_profile={"daily_shape": [1.0] * 24})
        assert "NOT_USED" in codes(answer["warnings"])


class TestMeasured:
    RUN = {"duration_seconds": 1_700_000.0, "device_count": 1000}

    def test_it_takes_the_place_of_the_estimate(self):
        answer = bill(measured={**self.RUN, "energy_kwh": 480_000.0})
        energy = answer["energy"]
        assert energy["facility_kwh"] == {
            "value": 480_000.0,
            "low": 480_000.0,
            "high": 480_000.0,
            "basis": "assumed",
        }
        assert energy["it_kwh"]["value"] == pytest.approx(480_000.0 / 1.12)
        assert [line["name"] for line in energy["lines"]] == ["measured"]
        assert energy["lines"][0]["source"].startswith("measured")
        assert answer["electricity"]["total"]["amount"] == "57600.00"
        assert answer["carbon"]["location_based_kg_co2e"]["value"] == pytest.approx(480_000.0 * 0.429)
        assert energy["peak_kw"]["value"] == pytest.approx(480_000.0 / (1_700_000.0 / 3600))

    def test_inside_the_building(self):
        measured = {**self.RUN, "energy_kwh": 480_000.0, "boundary": "it"}
        energy = bill(measured=measured)["energy"]
        assert energy["it_kwh"]["value"] == 480_000.0
        assert energy["facility_kwh"]["value"] == pytest.approx(480_000.0 * 1.12)

    def test_more_than_the_machines_can_draw_is_refused_with_the_bound(self):
        """1,000 devices at 700 W with 0.61 kW each around them, PUE 1.12: about 700 MWh."""
        asked = {**REFERENCE_QUESTION, "site": REFERENCE_SITE}
        above = {**asked, "measured": {**self.RUN, "energy_kwh": 710_000.0}}
        assert refusal(shipped(), "utility-bill", above) == ("MEASURED_ABOVE_BOUND", "/measured/energy_kwh")
        devices_alone = 1000 * 0.7 * 1_700_000.0 / 3600 * 1.12
        assert bill(measured={**self.RUN, "energy_kwh": devices_alone})

    @given(st.floats(0.1, 0.999), st.floats(1.001, 10.0))
    def test_the_bound_is_where_it_says(self, below, above):
        most = self.bound()
        bill(measured={**self.RUN, "energy_kwh": most * below})
        asked = {**REFERENCE_QUESTION, "site": REFERENCE_SITE}
        refused = refusal(
            shipped(), "utility-bill", {**asked, "measured": {**self.RUN, "energy_kwh": most * above}}
        )
        assert refused[0] == "MEASURED_ABOVE_BOUND"

    @staticmethod
    def bound():
        """The high end of the modelled energy, over the measured time."""
        answer = bill()
        hours = answer["duration_seconds"]["value"]
        return answer["energy"]["facility_kwh"]["high"] * 1_700_000.0 / hours

    def test_less_than_idle_machines_draw_is_warned_about(self):
        answer = bill(measured={**self.RUN, "energy_kwh": 20_000.0})
        assert "MEASURED_BELOW_IDLE" in codes(answer["warnings"])

    def test_another_run_is_warned_about(self):
        other = {"energy_kwh": 10_000.0, "duration_seconds": 100_000.0, "device_count": 500}
        warned = [
            note["pointer"]
            for note in bill(measured=other)["warnings"]
            if note["code"] == "MEASURED_ELSEWHERE"
        ]
        assert warned == ["/measured/device_count", "/measured/duration_seconds"]

    def test_without_a_building_the_bound_is_that_of_the_worst(self):
        asked = {**REFERENCE_QUESTION, "measured": {**self.RUN, "energy_kwh": 1_300_000.0}}
        assert refusal(shipped(), "utility-bill", asked)[0] == "MEASURED_ABOVE_BOUND"
        asked["measured"] = {**self.RUN, "energy_kwh": 600_000.0}
        answer = ask(shipped(), "utility-bill", asked)
        assert gaps(answer)["/energy/it_kwh"] == "PUE_REQUIRED"
        assert answer["energy"]["facility_kwh"]["value"] == 600_000.0

    def test_nothing_bounds_an_accelerator_of_unknown_power(self):
        cluster = {"accelerator": {"source": "catalog", "id": "tpu-v5p"}, "accelerator_count": 8}
        answer = bill(cluster=cluster, measured={**self.RUN, "energy_kwh": 1_000.0})
        assert "MEASURED_UNCHECKED" in codes(answer["warnings"])
        assert answer["energy"]["facility_kwh"]["value"] == 1_000.0
