"""The electricity of a run under a tariff: whose bill, by which clock, and what is refused."""

import csv
import io
import json
from decimal import Decimal

import pytest

from service.app.examples import EXAMPLES, REFERENCE_QUESTION
from service.estimates.focus import export_utility_bill
from service.planning.errors import PlanningError
from service.schemas.estimates import UtilityBillExportRequest
from tests.asking import ask, codes, gaps, refusal, shipped, usd

# 1,000 devices of 700 W and 125 hosts of 800 W at a PUE of 1 are 800 kW, for 471.8571 h 377,485.68 kWh.
RUN = {
    **{name: value for name, value in REFERENCE_QUESTION.items() if name not in ("rental", "purchase")},
    "cluster": {
        **REFERENCE_QUESTION["cluster"],
        "host_power_watts": 800.0,
    },
}
ENERGY = {"kind": "energy", "name": "energy", "periods": [{"name": "all", "tiers": [{"price": "0.10"}]}]}
TIMED = {
    "kind": "energy",
    "name": "energy",
    "periods": [
        {
            "name": "peak",
            "tiers": [{"price": "0.30"}],
            "windows": [{"from_time": "16:00", "to_time": "21:00"}],
        },
        {
            "name": "other",
            "tiers": [{"price": "0.10"}],
            "windows": [{"from_time": "21:00", "to_time": "16:00"}],
        },
    ],
}
DEMAND = {"kind": "demand", "name": "demand", "periods": [{"name": "all", "tiers": [{"price": "15"}]}]}
RATCHETED = {
    **DEMAND,
    "billing_demand": {"ratchets": [{"preceding_months": 2, "share_by_billing_month": [0.5] * 12}]},
}
FIXED = {"kind": "fixed", "name": "customer", "price": "400"}
TAX = {"kind": "percentage", "name": "tax", "percent": "10", "tax": True}
ZONE = "America/Los_Angeles"


def tariff(*charges, zone=ZONE, **members):
    revisions = [{"effective_from": "2020-01-01", "charges": list(charges)}]
    return {"currency_code": "USD", "time_zone": zone, "revisions": revisions, **members}


def question(*charges, starts_at="2026-03-05T12:00:00Z", electricity=None, **site):
    asked = {
        **RUN,
        "site": {
            "pue": 1.0,
            "fabric_power_watts_per_device": 0.0,
            "time_zone": ZONE,
            "electricity": {"tariff": tariff(*charges), **(electricity or {})},
            **site,
        },
    }
    return asked if starts_at is None else {**asked, "starts_at": starts_at}


BASELINE = {"kind": "constant", "kw": 2000.0}
KWH = 377_485.6758


def total(answer):
    return Decimal(answer["electricity"]["total"]["amount"])


def lines(answer, **members):
    return [
        line
        for line in answer["electricity"]["lines"]
        if all(line.get(name) == value for name, value in members.items())
    ]


@pytest.fixture(scope="module")
def answer(snapshot):
    return ask(snapshot, "utility-bill", question(ENERGY, DEMAND, FIXED, TAX, baseline_load=BASELINE))


class TestIncremental:
    def test_it_is_the_default_with_a_baseline(self, answer):
        assert answer["electricity"]["allocation"] == "incremental"

    def test_energy_and_demand_of_the_run_and_nothing_that_is_due_anyway(self, answer):
        """800 kW for 19.66 days from 5 March: 377,486 kWh at 0.10, one month of 800 kW at 15, tax of both."""
        energy, demand, tax = answer["electricity"]["lines"]
        assert energy["quantity"] == pytest.approx(KWH)
        assert energy["amount"] == usd("37748.57")
        assert (demand["quantity"], demand["amount"]) == (pytest.approx(800), usd("12000.00"))
        assert tax["amount"] == usd("4974.86")
        assert answer["electricity"]["total"]["amount"] == "54723.43"

    def test_every_line_says_what_when_and_why(self, answer):
        (demand,) = lines(answer, kind="demand")
        assert demand["name"] == "demand"
        assert demand["unit"] == "kW"
        assert demand["unit_price"] == usd("15")
        assert demand["price_period"] == "all"
        assert demand["tier"] == 1
        assert demand["billing_period"] == {"start_date": "2026-03-01", "end_date": "2026-04-01"}
        assert demand["peak_at"] == "2026-03-05T04:00:00-08:00"
        assert demand["source"] == "given with the question"
        (tax,) = lines(answer, kind="tax")
        assert tax["category"] == "tax"

    def test_periods_sum_to_the_total(self, answer):
        (period,) = answer["electricity"]["periods"]
        assert period["total"] == usd("54723.43")
        assert period["energy_kwh"] == pytest.approx(KWH)
        assert period["peak_kw"] == pytest.approx(2800)

    def test_the_ends_are_those_of_power(self, answer):
        """Less energy and less demand at the low end of power: the same share of the bill."""
        energy, money = answer["energy"]["facility_kwh"], answer["electricity"]["total"]
        share = float(money["low"]) / float(money["amount"])
        assert share == pytest.approx(energy["low"] / energy["value"], rel=1e-4)

    def test_a_series_is_the_same_as_the_constant_that_it_holds(self, snapshot, answer):
        series = {
            "kind": "series",
            "starts_at": "2026-03-01T08:00:00Z",
            "interval_minutes": 60,
            "kw": [2000.0] * (31 * 24),
        }
        again = ask(snapshot, "utility-bill", question(ENERGY, DEMAND, FIXED, TAX, baseline_load=series))
        assert again["electricity"] == answer["electricity"]

    def test_a_ratchet_bills_after_the_run(self, snapshot):
        """Half of 900 + 800 kW is below the 900 of others; half of 100 + 800 is 350 above 100 of others."""
        small = {"kind": "constant", "kw": 900.0}
        answer = ask(snapshot, "utility-bill", question(RATCHETED, baseline_load=small))
        assert not lines(answer, after_run=True)
        none = {"kind": "constant", "kw": 100.0}
        answer = ask(snapshot, "utility-bill", question(RATCHETED, baseline_load=none))
        after = lines(answer, after_run=True)
        assert [line["billing_period"]["start_date"] for line in after] == ["2026-04-01", "2026-05-01"]
        assert [line["quantity"] for line in after] == pytest.approx([350, 350])
        assert all("2026-03" in line["note"] for line in after)
        assert {line["peak_at"] for line in after} == {"2026-03-05T04:00:00-08:00"}
        assert total(answer) == 15 * (800 + 350 + 350)
        assert [period.get("after_run") for period in answer["electricity"]["periods"]] == [None, True, True]

    def test_a_series_that_ends_with_the_run_says_what_is_missing(self, snapshot):
        series = {
            "kind": "series",
            "starts_at": "2026-03-01T08:00:00Z",
            "interval_minutes": 60,
            "kw": [100.0] * (31 * 24),
        }
        answer = ask(snapshot, "utility-bill", question(RATCHETED, baseline_load=series))
        assert {"BASELINE_ENDS", "RATCHET_HISTORY"} <= codes(answer["warnings"])
        peaks = [{"month": month, "peak_kw": 100.0} for month in ("2026-01", "2026-02", "2026-04", "2026-05")]
        asked = question(RATCHETED, baseline_load=series, electricity={"monthly_peaks": peaks})
        assert "RATCHET_HISTORY" not in codes(ask(snapshot, "utility-bill", asked)["warnings"])


class TestStandalone:
    def test_both_months_that_are_touched_are_billed_in_full(self, snapshot):
        """19.66 days from 20 March: two customer charges, two demands; the warning names them."""
        asked = question(ENERGY, DEMAND, FIXED, starts_at="2026-03-20T12:00:00Z")
        answer = ask(snapshot, "utility-bill", asked)
        assert answer["electricity"]["allocation"] == "standalone"
        assert total(answer) == Decimal("37748.57") + 2 * 12_000 + 2 * 400
        assert len(lines(answer, kind="energy")) == 2
        (warning,) = [one for one in answer["warnings"] if one["code"] == "STANDALONE_BILL"]
        assert "demand" in warning["detail"]
        assert "customer" in warning["detail"]

    def test_a_baseline_is_left_out_where_that_is_asked(self, snapshot):
        asked = question(ENERGY, FIXED, baseline_load=BASELINE, electricity={"allocation": "standalone"})
        answer = ask(snapshot, "utility-bill", asked)
        assert "BASELINE_NOT_USED" in codes(answer["warnings"])
        assert total(answer) == Decimal("38148.57")

    def test_cycles_that_are_not_months(self, snapshot):
        starts = ["2026-02-12", "2026-03-14", "2026-04-13"]
        asked = question(ENERGY, DEMAND, FIXED, electricity={"billing_period_starts": starts})
        answer = ask(snapshot, "utility-bill", asked)
        assert [one["billing_period"]["start_date"] for one in answer["electricity"]["periods"]] == starts[:2]
        assert total(answer) == Decimal("37748.57") + 2 * 12_000 + 2 * 400


class TestClock:
    def test_prices_are_those_of_the_local_hour(self, snapshot):
        """19 days and 15:51 hours from local midnight: 19 x 5 h of peak, which begins at 16:00."""
        answer = ask(snapshot, "utility-bill", question(TIMED, starts_at="2026-01-05T08:00:00Z"))
        (peak,) = lines(answer, price_period="peak")
        assert peak["quantity"] == pytest.approx(19 * 5 * 800)
        assert total(answer) == pytest.approx(Decimal(KWH * 0.10 + 19 * 5 * 800 * 0.20), abs=Decimal("0.02"))

    def test_a_change_of_the_clock_moves_no_energy(self, snapshot):
        answer = ask(snapshot, "utility-bill", question(TIMED, starts_at="2026-03-05T08:00:00Z"))
        metered = sum(line["quantity"] for line in answer["electricity"]["lines"])
        assert metered == pytest.approx(answer["energy"]["facility_kwh"]["value"])

    def test_a_tariff_of_another_zone_is_read_by_the_clock_of_the_site(self, snapshot):
        asked = question(TIMED, time_zone="America/New_York", starts_at="2026-01-05T05:00:00Z")
        answer = ask(snapshot, "utility-bill", asked)
        assert "TIME_ZONE_DIFFERS" in codes(answer["warnings"])
        (peak,) = lines(answer, price_period="peak")
        assert peak["quantity"] == pytest.approx(19 * 5 * 800)

    def test_flat_prices_need_no_start(self, snapshot):
        answer = ask(snapshot, "utility-bill", question(ENERGY, starts_at=None))
        assert total(answer) == Decimal("37748.57")
        assert "STARTS_AT_ASSUMED" not in codes(answer["warnings"])
        (line,) = answer["electricity"]["lines"]
        assert "billing_period" not in line
        assert "periods" not in answer["electricity"]

    def test_flat_prices_by_billing_period_are_those_of_one(self, snapshot):
        answer = ask(snapshot, "utility-bill", question(ENERGY, DEMAND, FIXED, starts_at=None))
        assert "STARTS_AT_ASSUMED" in codes(answer["warnings"])
        assert total(answer) == Decimal("37748.57") + 12_000 + 400


class TestRefusals:
    def test_prices_in_time_need_a_start(self, snapshot):
        asked = question(TIMED, starts_at=None)
        assert refusal(snapshot, "utility-bill", asked) == ("STARTS_AT_REQUIRED", "/starts_at")

    def test_a_tariff_without_the_clock_of_the_site_is_read_by_its_own(self, snapshot):
        asked = question(TIMED)
        by_its_own = {
            **asked,
            "site": {key: asked["site"][key] for key in asked["site"] if key != "time_zone"},
        }
        answer = ask(snapshot, "utility-bill", by_its_own)
        assert total(answer) == total(ask(snapshot, "utility-bill", asked))
        assert {"/site/time_zone"} <= {default["pointer"] for default in answer["defaults"]}
        asked["site"]["time_zone"] = "Mars/Olympus"
        assert refusal(snapshot, "utility-bill", asked) == ("TIME_ZONE_UNKNOWN", "/site/time_zone")

    @pytest.mark.parametrize(
        ("electricity", "code", "pointer"),
        [
            ({"tariff_id": "nothing"}, "UNKNOWN_REFERENCE", "/site/electricity/tariff_id"),
            ({}, "ELECTRICITY_PRICE", "/site/electricity"),
            ({"tariff": tariff(ENERGY), "tariff_id": "x"}, "ELECTRICITY_PRICE", "/site/electricity"),
            ({"tariff": tariff(ENERGY), "price_per_kwh": usd("1")}, "ELECTRICITY_PRICE", "/site/electricity"),
            (
                {"tariff": tariff(ENERGY), "allocation": "incremental"},
                "BASELINE_REQUIRED",
                "/site/baseline_load",
            ),
            (
                {"tariff": tariff(ENERGY, zone="Nowhere/Town")},
                "TIME_ZONE_UNKNOWN",
                "/site/electricity/tariff/time_zone",
            ),
            (
                {"tariff": tariff(ENERGY), "billing_period_starts": ["2026-02-30", "2026-03-30"]},
                "DATE_UNKNOWN",
                "/site/electricity/billing_period_starts",
            ),
            (
                {
                    "tariff": tariff(ENERGY),
                    "monthly_peaks": [
                        {"month": "2026-01", "peak_kw": 1.0},
                        {"month": "2026-01", "peak_kw": 2.0},
                    ],
                },
                "MONTH_TWICE",
                "/site/electricity/monthly_peaks",
            ),
        ],
    )
    def test_what_contradicts_itself(self, snapshot, electricity, code, pointer):
        asked = question()
        asked["site"]["electricity"] = electricity
        assert refusal(snapshot, "utility-bill", asked) == (code, pointer)

    def test_a_run_before_the_tariff(self, snapshot):
        asked = question(ENERGY, starts_at="2019-03-05T12:00:00Z")
        code, pointer = refusal(snapshot, "utility-bill", asked)
        assert (code, pointer.startswith("/site/electricity/tariff")) == ("TARIFF_NOT_IN_FORCE", True)

    def test_a_series_that_is_too_short(self, snapshot):
        series = {
            "kind": "series",
            "starts_at": "2026-03-05T08:00:00Z",
            "interval_minutes": 60,
            "kw": [1.0] * 800,
        }
        asked = question(ENERGY, baseline_load=series)
        assert refusal(snapshot, "utility-bill", asked) == ("BASELINE_TOO_SHORT", "/site/baseline_load")


def test_without_energy_it_is_a_gap(snapshot):
    asked = question(ENERGY)
    del asked["site"]["pue"]
    answer = ask(snapshot, "utility-bill", asked)
    assert gaps(answer)["/electricity/total"] == "ENERGY_UNKNOWN"
    assert answer["electricity"] == {"lines": []}


def test_notes_of_the_tariff_are_warnings(snapshot):
    asked = question(ENERGY)
    asked["site"]["electricity"]["tariff"]["notes"] = ["Only above 10 kV."]
    warnings = ask(snapshot, "utility-bill", asked)["warnings"]
    assert {
        "code": "TARIFF_NOTE",
        "pointer": "/site/electricity/tariff",
        "detail": "Only above 10 kV.",
    } in warnings


def test_electricity_of_the_tariff_is_set_against_the_rent(snapshot):
    rent = {name: REFERENCE_QUESTION[name] for name in ("rental", "purchase")}
    answer = ask(snapshot, "utility-bill", {**question(ENERGY), **rent})
    paid = total(answer)
    expected = 30e6 / (1_415_571.28 - float(paid))
    assert answer["break_even_runs_with_electricity"]["value"] == pytest.approx(expected)


class TestNamedTariff:
    """PG&E E-20 secondary of 2017, in June: on weekdays peak 12 to 18, part-peak 8 to 12 and 18 to 21."""

    @pytest.fixture(scope="class")
    @classmethod
    def answer(cls):
        electricity = {"tariff_id": "pge-e20-secondary-2017"}
        asked = question(starts_at="2026-06-08T07:00:00Z", baseline_load=BASELINE)
        return ask(
            shipped(), "utility-bill", {**asked, "site": {**asked["site"], "electricity": electricity}}
        )

    def test_by_hand(self, answer):
        """From Monday 8 to Saturday 27 June: 15 weekdays of 6 and 7 hours, the rest off-peak."""
        paid = {
            (line["kind"], line["price_period"], line["unit_price"]["amount"]): line["amount"]["amount"]
            for line in answer["electricity"]["lines"]
        }
        assert paid == {
            ("demand", "period_0", "0"): "0.00",
            ("demand", "period_2", "5.01"): "4008.00",
            ("demand", "period_3", "18.05"): "14440.00",
            ("demand", "period_0", "17.44"): "13952.00",
            ("energy", "period_2", "0.08029"): "17783.08",
            ("energy", "period_3", "0.10559"): "8869.56",
            ("energy", "period_4", "0.14244"): "10255.68",
        }
        assert total(answer) == Decimal("69308.32")

    def test_it_is_cited_and_its_age_is_said(self, answer):
        assert "tariff" in {source["kind"] for source in answer["evidence"]["sources"]}
        assert {"TARIFF_STALE", "TARIFF_NOTE"} <= codes(answer["warnings"])
        assert {line["source"] for line in answer["electricity"]["lines"]} == {
            "tariff pge-e20-secondary-2017"
        }
        assert answer["electricity"]["total"]["basis"] == answer["energy"]["facility_kwh"]["basis"]


class TestHoursOfUse:
    """Six days of 64 B200 under German grid fees, whose prices change at 2,500 hours of use."""

    BOTH = "stadtwerke-malchow-de-medium-voltage-2025"

    def ask(self, tariff_id, **site):
        place = {"pue": 1.2, "time_zone": "Europe/Berlin", "electricity": {"tariff_id": tariff_id}}
        return {
            "model": {"source": "catalog", "id": "llama-2-70b"},
            "cluster": {
                "accelerator": {"source": "catalog", "id": "b200-sxm"},
                "accelerator_count": 64,
            },
            "workload": {"kind": "training", "total_tokens": 100_000_000_000},
            "starts_at": "2026-06-01T00:00:00+02:00",
            "site": {**place, **site},
        }

    def test_a_meter_of_its_own_has_few(self):
        answer = ask(shipped(), "utility-bill", self.ask(self.BOTH))
        names = [line["name"] for line in answer["electricity"]["lines"]]
        assert names == ["energy_price_below_2500_hours", "annual_demand_below_2500_hours"]

    def test_beside_a_steady_load_it_has_many(self):
        answer = ask(shipped(), "utility-bill", self.ask(self.BOTH, baseline_load=BASELINE))
        names = [line["name"] for line in answer["electricity"]["lines"]]
        assert names == ["energy_price_from_2500_hours", "annual_demand_from_2500_hours"]

    def test_prices_for_many_alone_refuse_it(self):
        asked = self.ask("swm-de-medium-voltage-2024")
        assert refusal(shipped(), "utility-bill", asked) == ("HOURS_OF_USE", "/site/electricity/tariff_id")


class TestExport:
    def rows(self, asked):
        question = UtilityBillExportRequest.model_validate_json(json.dumps(asked))
        return list(csv.DictReader(io.StringIO(export_utility_bill(question, shipped(), "acme"))))

    def test_a_row_for_each_charge_of_each_billing_period(self):
        asked = question(ENERGY, DEMAND, FIXED, TAX, starts_at="2026-03-20T12:00:00Z")
        rows = self.rows({**asked, "billing_account_id": "research"})
        assert [(row["x_LineName"], row["ChargePeriodStart"]) for row in rows] == [
            (name, f"2026-{month}-01T00:00:00Z")
            for month in ("03", "04")
            for name in ("energy", "demand", "customer", "tax")
        ]
        paid = sum(Decimal(row["BilledCost"]) for row in rows)
        assert paid == total(ask(shipped(), "utility-bill", asked))
        assert {row["BillingAccountId"] for row in rows} == {"research"}
        assert {row["ServiceName"] for row in rows} == {"Electricity"}
        (demand,) = [row for row in rows[:4] if row["PricingUnit"] == "kW"]
        assert Decimal(demand["ListUnitPrice"]) * Decimal(demand["PricingQuantity"]) == Decimal(
            demand["ListCost"]
        )
        assert [row["ChargeCategory"] for row in rows[:4]] == ["Usage", "Usage", "Usage", "Tax"]

    def test_a_flat_price_is_charged_while_the_run_lasts(self):
        asked = question(electricity={"price_per_kwh": usd("0.10")})
        del asked["site"]["electricity"]["tariff"]
        (row, *_) = self.rows(asked)
        assert row["ChargePeriodStart"] == "2026-03-05T12:00:00Z"
        assert row["PricingUnit"] == "kWh"

    def test_an_unknown_total_makes_no_rows(self):
        asked = question(ENERGY)
        del asked["site"]["pue"]
        with pytest.raises(PlanningError) as caught:
            self.rows(asked)
        assert caught.value.code == "ENERGY_UNKNOWN"


@pytest.mark.parametrize(
    "operation",
    ["estimate_utility_bill_shift", "estimate_utility_bill_comparison", "estimate_utility_bill_power_cap"],
)
def test_over_http(reader, operation):
    path = {"shift": "shift", "comparison": "compare", "cap": "cap"}[operation.rpartition("_")[2]]
    response = reader.post(f"/v1/estimates/utility-bill:{path}", json=EXAMPLES[operation])
    assert response.status_code == 200, response.text


def test_export_over_http(reader):
    response = reader.post("/v1/estimates/utility-bill:export", json=EXAMPLES["estimate_utility_bill_export"])
    assert response.status_code == 200, response.text
    assert response.headers["content-disposition"] == 'attachment; filename="electricity.csv"'


class TestThirtyTwoV100:
    """The summary of the source prints 275,000 kWh: 25.6 kW for each device of 300 W (worked examples)."""

    ASKED = {
        "model": {"source": "parameter_count", "parameter_count": 1_500_000_000},
        "cluster": {
            "accelerator": {"source": "catalog", "id": "v100-sxm2-32gb"},
            "accelerator_count": 32,
            "accelerators_per_node": 8,
            "host_power_watts": 200.0,
        },
        "workload": {
            "kind": "inference",
            "weight_precision": "fp16",
            "horizon": {"duration_seconds": 336 * 3600.0},
        },
        "site": {
            "pue": 1.12,
            "fabric_power_watts_per_device": 0.0,
            "electricity": {"price_per_kwh": usd("0.10")},
            "carbon_intensity_kg_co2e_per_kwh": 0.429,
        },
    }

    def test_two_weeks_take_3914_kwh(self, snapshot):
        """(32 x 300 + 4 x 200) W x 336 h x 1.12, at 0.10 USD and 0.429 kg."""
        answer = ask(snapshot, "utility-bill", self.ASKED)
        assert answer["energy"]["facility_kwh"]["value"] == pytest.approx(3913.728)
        assert total(answer) == pytest.approx(Decimal("391.37"), abs=Decimal("0.01"))
        emitted = answer["carbon"]["location_based_kg_co2e"]["value"]
        assert emitted == pytest.approx(1678.989, abs=0.001)

    def test_the_printed_energy_is_refused(self, snapshot):
        measured = {"energy_kwh": 275_000.0, "duration_seconds": 336 * 3600.0, "device_count": 32}
        asked = {**self.ASKED, "measured": measured}
        assert refusal(snapshot, "utility-bill", asked) == ("MEASURED_ABOVE_BOUND", "/measured/energy_kwh")
