"""The bill of a given load: the published and worked ones to the cent, and what is refused where."""

import csv
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from service.app.examples import EXAMPLES
from service.estimates.tariff_bill import bill_tariff
from service.planning.errors import PlanningError
from service.schemas.tariff_bills import TariffBillRequest
from tests.asking import shipped

BILLS = Path(__file__).parents[1] / "data" / "tariffs" / "bills.csv"
EXAMPLE = EXAMPLES["bill_tariff"]
CENT = Decimal("0.01")
STORED = {
    "batavia-il-large-general-service-2015": "batavia-il-large-general-2015",
    "fpl-rs1-tiered-energy": "fpl-rs1-energy",
    "pge-e20-secondary-2017": "pge-e20-secondary-2017",
    "swm-online-ms-2024": "swm-de-medium-voltage-2024",
    "tronderenergi-nm3-1-hv-2018": "tronderenergi-no-nm3-1-2018",
}
"""Tariffs that ship, by the file of the worked bills that they were read from."""


def bill(question):
    return bill_tariff(TariffBillRequest.model_validate_json(json.dumps(question)), shipped())


def refusal(question):
    with pytest.raises(PlanningError) as caught:
        bill(question)
    assert caught.value.detail
    return caught.value.pointer, caught.value.code


def worked():
    """Totals of the worked bills of tariffs that ship, with the load as a question gives it."""
    with BILLS.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["role"] == "exact" and row["component"] == "total" and row["tariff_file"] in STORED:
                load = json.loads(row["load_json"])
                if load["kind"] != "determinants" and not row["excluded_keys"]:
                    yield pytest.param(row, load, id=row["bill_id"])


def asked(load):
    if load["kind"] == "annual":
        members = {name: load[name] for name in ("energy_kwh", "peak_kw")}
        return {"kind": "annual", "year": int(load["start"][:4]), **members}
    span = {"starts_at": load["start"], "ends_at": load["end"], "interval_minutes": load["interval_minutes"]}
    if load["kind"] == "constant":
        return {"kind": "constant", **span, "kw": load["kw"]}
    added = []
    for entry in load.get("add", []):
        first, end = entry.get("hours", [0, 24])
        times = {"from_time": f"{int(first):02}:00", "to_time": f"{int(end):02}:00"}
        days = {name: entry[name] for name in ("months", "weekdays") if name in entry}
        added.append({"kw": entry["kw"], **times, **days})
    fixed = [{"intervals": one["intervals_1based"], "kw": one["kw"]} for one in load.get("set", [])]
    figures = {name: load[name] for name in ("base_kw", "step_kw") if name in load}
    return {"kind": "rule", **span, **figures, "add": added, "set": fixed}


@pytest.mark.parametrize(("row", "load"), list(worked()))
def test_worked_bills_of_tariffs_that_ship(row, load):
    """On the fixed clock of the worked bills; each line of ours is rounded to the cent."""
    known = shipped().tariffs[STORED[row["tariff_file"]]]
    terms = {**known.terms, "time_zone": row["time_zone"]}
    terms["revisions"] = [{**revision, "effective_from": "0001-01-01"} for revision in terms["revisions"]]
    question = {"tariff": {"source": "terms", "terms": terms}, "load": asked(load)}
    question["metering_side"] = load.get("metering", "primary")
    question["power_factor"] = load.get("power_factor", 1.0)
    answer = bill(question)
    inside = [
        period
        for period in answer["periods"]
        if row["period_start"][:10] <= period["billing_period"]["start_date"] < row["period_end"][:10]
    ]
    lines = [
        line for line in answer["lines"] if line["billing_period"] in [p["billing_period"] for p in inside]
    ]
    total = sum(Decimal(period["total"]["amount"]) for period in inside)
    allowed = Decimal(row["abs_tolerance"]) + CENT / 2 * len(lines)
    assert lines
    assert abs(total - Decimal(row["expected"])) <= allowed


def test_the_bill_that_a_grid_operator_published():
    """25 GWh and 5,000 kW: 736,750.00 for the annual peak and 122,500.00 for energy (swm-online.de, 2024)."""
    load = {"kind": "annual", "year": 2024, "energy_kwh": 25e6, "peak_kw": 5000.0}
    answer = bill({"tariff": {"source": "catalog", "id": "swm-de-medium-voltage-2024"}, "load": load})
    amounts = {line["name"]: line["amount"]["amount"] for line in answer["lines"]}
    assert amounts == {"annual_demand": "736750.00", "energy_price": "122500.00"}
    assert answer["total"]["amount"] == "859250.00"
    assert answer["evidence"]["sources"][0]["id"] == "swm-de-medium-voltage-2024"
    assert {warning["code"] for warning in answer["warnings"]} == {"TARIFF_NOTE"}


@pytest.mark.parametrize(
    ("energy_kwh", "amounts"),
    [
        (12.5e6, {"annual_demand_from_2500_hours": "595400.00", "energy_price_from_2500_hours": "136250.00"}),
        (12e6, {"annual_demand_below_2500_hours": "107450.00", "energy_price_below_2500_hours": "600000.00"}),
    ],
)
def test_the_hours_of_use_choose_the_price(energy_kwh, amounts):
    """5,000 kW at 119.08 and 0.0109 from 2,500 hours on, at 21.49 and 0.05 below (Malchow, 2025)."""
    load = {"kind": "annual", "year": 2025, "energy_kwh": energy_kwh, "peak_kw": 5000.0}
    known = {"source": "catalog", "id": "stadtwerke-malchow-de-medium-voltage-2025"}
    answer = bill({"tariff": known, "load": load})
    assert {line["name"]: line["amount"]["amount"] for line in answer["lines"]} == amounts


def test_a_demand_a_customer_and_an_energy_price():
    """130 kW through June: 100.45, 130 x 12.14 and 93,600 x 0.16139 (Silicon Valley Power CB-1, 2026)."""
    load = {"kind": "constant", "starts_at": "2026-06-01T00:00", "ends_at": "2026-07-01T00:00"}
    known = {"source": "catalog", "id": "silicon-valley-power-cb1-2026"}
    answer = bill({"tariff": known, "load": {**load, "interval_minutes": 15, "kw": 130.0}})
    amounts = [line["amount"]["amount"] for line in answer["lines"]]
    assert amounts == ["100.45", "1578.20", "15106.10"]


class TestDemandThatSummersSet:
    """Georgia Power PLL-18 of 2025: energy by hours of use of a demand that summers set for winters too."""

    def ask(self, month):
        """Amounts of a month; 2,000 kW from July to September, 1,000 kW in October."""
        load = {"starts_at": "2025-07-01T00:00", "ends_at": "2025-11-01T00:00", "interval_minutes": 30}
        added = [{"kw": 1000.0, "months": [7, 8, 9]}]
        known = {"source": "catalog", "id": "georgia-power-pll-18-2025"}
        answer = bill({"tariff": known, "load": {"kind": "rule", **load, "base_kw": 1000.0, "add": added}})
        lines = [line for line in answer["lines"] if line["billing_period"]["start_date"] == month]
        return [line["amount"]["amount"] for line in lines]

    def test_a_summer_pays_its_own_peak(self):
        """744 h x 2,000 kW: 400,000 kWh for each 200 hours of use, the first of them in blocks."""
        assert self.ask("2025-07-01") == [
            "256.00",
            "0.00",
            "568.29",  # 3,000 x 0.189430
            "1202.56",  # 7,000 x 0.171794 = 1202.558
            "27839.94",  # 190,000 x 0.146526
            "22593.60",  # 200,000 x 0.112968
            "7783.20",  # 400,000 x 0.019458
            "5868.40",  # 400,000 x 0.014671
            "3170.88",  # 288,000 x 0.011010
        ]

    def test_a_winter_pays_95_percent_of_it(self):
        """744 h x 1,000 kW on 1,900 kW: 380,000 kWh in the first 200 hours of use, 364,000 above."""
        october = ["256.00", "0.00", "568.29", "1202.56", "27839.94", "20334.24", "7082.71"]
        assert self.ask("2025-10-01") == october


def test_lines_sum_to_the_totals():
    answer = bill(EXAMPLE)
    by_period = defaultdict(Decimal)
    for line in answer["lines"]:
        by_period[line["billing_period"]["start_date"]] += Decimal(line["amount"]["amount"])
    shown = {p["billing_period"]["start_date"]: Decimal(p["total"]["amount"]) for p in answer["periods"]}
    assert by_period == shown
    assert sum(shown.values()) == Decimal(answer["total"]["amount"])


def test_the_energy_of_a_rule_on_a_clock_that_is_set_back():
    """721 hours of November at 400 kW, and 600 kW on 29 nights and the evening before the last day's end."""
    answer = bill(EXAMPLE)
    assert answer["periods"][0]["energy_kwh"] == pytest.approx(721 * 400 + 600 * (29 * 12 + 6))
    assert answer["periods"][1]["energy_kwh"] == pytest.approx(744 * 400 + 600 * 6)


def test_a_peak_before_the_load_is_looked_back_on():
    without = {name: value for name, value in EXAMPLE.items() if name != "monthly_peaks"}
    load = {**EXAMPLE["load"], "add": []}
    assert demand({**without, "load": load}) == [400.0, 400.0]
    assert demand({**EXAMPLE, "load": load}) == [600.0, 600.0]


def demand(question):
    return [period["billing_demand"][0]["kw"] for period in bill(question)["periods"]]


class TestTheLoad:
    SERIES = {"kind": "series", "starts_at": "2026-12-01T00:00", "interval_minutes": 60, "kw": [10.0] * 24}

    def ask(self, **load):
        return {**EXAMPLE, "load": {**self.SERIES, **load}}

    def test_local_and_utc_starts_are_one_instant(self):
        local, utc = bill(self.ask()), bill(self.ask(starts_at="2026-12-01T08:00:00Z"))
        assert local["lines"] == utc["lines"]
        assert bill(self.ask(starts_at="2026-12-01T00:00Z"))["lines"] != local["lines"]

    def test_a_time_that_the_clock_skips(self):
        assert refusal(self.ask(starts_at="2027-03-14T02:30")) == ("/load/starts_at", "TIME_UNKNOWN")
        assert refusal(self.ask(starts_at="2026-02-30T02:30")) == ("/load/starts_at", "TIME_UNKNOWN")

    def test_a_time_that_the_clock_shows_twice_is_the_first(self):
        question = self.ask(starts_at="2026-11-01T01:00", kw=[10.0, 20.0, 30.0])
        answer = bill({**question, "monthly_peaks": []})
        peak = next(line["peak_at"] for line in answer["lines"] if line["name"] == "demand")
        assert peak == "2026-11-01T02:00:00-08:00"  # the third hour: 01:00 -07:00, 01:00 -08:00, 02:00

    def test_billing_periods_that_are_not_months(self):
        question = self.ask(starts_at="2026-12-01T00:00", kw=[10.0] * 24 * 60)
        starts = ["2026-12-01", "2026-12-18", "2027-01-18"]
        periods = bill({**question, "billing_period_starts": starts})["periods"]
        assert [period["billing_period"]["end_date"] for period in periods] == starts[1:]
        assert [period["energy_kwh"] for period in periods] == pytest.approx([17 * 240, 31 * 240])

    @pytest.mark.parametrize(
        ("starts", "place"), [(["2026-12-01", "2026-11-01"], 1), (["2026-12-01", "2027-02-30"], 1)]
    )
    def test_billing_periods_that_are_none(self, starts, place):
        pointer, _ = refusal({**self.ask(), "billing_period_starts": starts})
        assert pointer == f"/billing_period_starts/{place}"

    def test_a_rule_sets_single_intervals(self):
        rule = {
            "kind": "rule",
            "starts_at": "2026-12-01T00:00",
            "ends_at": "2026-12-01T04:00",
            "interval_minutes": 60,
            "base_kw": 1.0,
            "step_kw": 2.0,
            "set": [{"intervals": [2], "kw": 50.0}],
        }
        answer = bill({**EXAMPLE, "load": rule})
        assert answer["energy_kwh"]["value"] == pytest.approx(1 + 50 + 5 + 7)
        assert answer["peak_kw"]["value"] == 50.0

    def test_weekdays_and_nights_of_a_rule(self):
        """Friday 18:00 to 06:00 belongs to Friday: six hours of it fall on Saturday."""
        rule = {
            "kind": "rule",
            "starts_at": "2026-12-01T00:00",
            "ends_at": "2026-12-08T00:00",
            "interval_minutes": 60,
            "add": [{"kw": 5.0, "weekdays": [5], "from_time": "18:00", "to_time": "06:00"}],
        }
        assert bill({**EXAMPLE, "load": rule})["energy_kwh"]["value"] == pytest.approx(60)

    @pytest.mark.parametrize(
        ("changes", "fault"),
        [
            ({"ends_at": "2026-11-01T00:00"}, ("/load/ends_at", "LOAD_END")),
            ({"ends_at": "2026-11-01T00:10"}, ("/load/ends_at", "LOAD_END")),
            ({"ends_at": "2036-11-01T00:00"}, ("/load/ends_at", "LOAD_TOO_LONG")),
            ({"set": [{"intervals": [9999], "kw": 1.0}]}, ("/load/set/0/intervals", "INTERVAL_UNKNOWN")),
            ({"step_kw": -1.0}, ("/load/step_kw", "LOAD_KW")),
        ],
    )
    def test_rules_that_are_none(self, changes, fault):
        assert refusal({**EXAMPLE, "load": {**EXAMPLE["load"], **changes}}) == fault


class TestDeterminants:
    def test_a_year_of_billing_quantities(self):
        """December: 100 MWh at 0.09 and 20 MWh at 0.16, 500 kW at 21.5, the customer, and 2.9% of it all."""
        load = {
            "kind": "determinants",
            "year": 2026,
            "energy_kwh": [
                {"month": 12, "period": "off_peak", "value": 100e3},
                {"month": 12, "period": "peak", "value": 20e3},
            ],
            "peak_kw": [{"month": 12, "value": 500.0}],
        }
        question = {**EXAMPLE, "load": load, "monthly_peaks": []}
        december = bill(question)["periods"][-1]
        before_tax = Decimal(9000 + 3200 + 10750 + 1200)
        assert Decimal(december["total"]["amount"]) == (before_tax * Decimal("1.029")).quantize(CENT)

    @pytest.mark.parametrize(
        ("load", "fault"),
        [
            (
                {"energy_kwh": [{"month": 1, "period": "noon", "value": 1.0}]},
                ("/load", "DETERMINANT_UNKNOWN"),
            ),
            (
                {"peak_kw": [{"month": 1, "value": 1.0}, {"month": 1, "value": 2.0}]},
                ("/load/peak_kw/1", "DETERMINANT_TWICE"),
            ),
        ],
    )
    def test_what_does_not_fit(self, load, fault):
        assert refusal({**EXAMPLE, "load": {"kind": "determinants", "year": 2026, **load}}) == fault

    def test_a_year_says_nothing_of_months(self):
        load = {"kind": "annual", "year": 2026, "energy_kwh": 1e6, "peak_kw": 500.0}
        assert refusal({**EXAMPLE, "load": load})[0] == "/load/kind"


class TestTheTariff:
    def test_an_unknown_one(self):
        question = {**EXAMPLE, "tariff": {"source": "catalog", "id": "nothing"}}
        assert refusal(question) == ("/tariff/id", "UNKNOWN_REFERENCE")

    def test_one_that_is_not_in_force_yet(self):
        load = {**EXAMPLE["load"], "starts_at": "2020-11-01T00:00", "ends_at": "2020-12-01T00:00"}
        assert refusal({**EXAMPLE, "load": load}) == ("/tariff/terms/revisions", "TARIFF_NOT_IN_FORCE")
        question = {"tariff": {"source": "catalog", "id": "swm-de-medium-voltage-2024"}, "load": load}
        assert refusal(question) == ("/tariff/id", "TARIFF_NOT_IN_FORCE")

    def test_a_given_one_that_contradicts_itself(self):
        terms = {**EXAMPLE["tariff"]["terms"], "time_zone": "Mars/Olympus"}
        question = {**EXAMPLE, "tariff": {"source": "terms", "terms": terms}}
        assert refusal(question) == ("/tariff/terms/time_zone", "TIME_ZONE_UNKNOWN")

    def test_one_for_other_loads(self):
        """500 hours of use, where the prices hold from 2,500 on."""
        load = {"kind": "annual", "year": 2024, "energy_kwh": 2.5e6, "peak_kw": 5000.0}
        question = {"tariff": {"source": "catalog", "id": "swm-de-medium-voltage-2024"}, "load": load}
        assert refusal(question) == ("/tariff/id", "HOURS_OF_USE")


def test_over_http(client):
    """What was just written is billed by the revision that the write answered with."""
    made = client.post("/v1/tariffs", EXAMPLES["create_tariff"])
    question = {**EXAMPLE, "tariff": {"source": "catalog", "id": made.json()["id"]}}
    headers = {"Catalog-Revision": made.headers["catalog-revision"]}
    answer = client.post("/v1/tariffs:bill", question, headers=headers)
    assert answer.status_code == 200
    given = client.post("/v1/tariffs:bill", EXAMPLE).json()
    assert answer.json()["total"] == given["total"]
    assert answer.json()["evidence"]["sources"][0]["origin"] == "tenant"
    refused = client.post(
        "/v1/tariffs:bill", {**question, "billing_period_starts": ["2026-12-01", "2026-11-01"]}
    )
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/billing_period_starts/1")
