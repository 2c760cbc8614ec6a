"""Bills under tariffs of American utilities of 2025 and 2026, worked by hand from published prices."""

from decimal import Decimal

import pytest

from tests.estimates.test_tariff_bill import bill

HOURS = 744
"""Hours of each month here: they have 31 days, and no clock is set in them."""


def amounts(tariff, month, kw):
    """Amounts of the lines of a month of a flat load, by charge."""
    year, number = map(int, month.split("-"))
    following = f"{year + number // 12}-{number % 12 + 1:02}-01T00:00"
    load = {"kind": "constant", "starts_at": f"{month}-01T00:00", "ends_at": following}
    known = {"source": "catalog", "id": tariff}
    answer = bill({"tariff": known, "load": {**load, "interval_minutes": 15, "kw": kw}})
    found = {line["name"]: line["amount"]["amount"] for line in answer["lines"]}
    assert sum(period["energy_kwh"] for period in answer["periods"]) == pytest.approx(kw * HOURS)
    assert Decimal(answer["total"]["amount"]) == sum(map(Decimal, found.values()))
    return found


@pytest.mark.parametrize(
    ("tariff", "month", "kw", "expected"),
    [
        # 5,000 kW x 0.331004, -0.182495, 0.010072, 0.005241 and 6.260839
        (
            "oncor-transmission-2026",
            "2026-12",
            5000.0,
            {
                "customer": "258.80",
                "metering": "321.63",
                "distribution_system": "1655.02",
                "interim_surcharge": "-912.48",  # 912.475, to the even cent
                "distribution_cost_recovery": "50.36",
                "rate_case_expense": "26.20",  # 26.205, to the even cent
                "transmission_cost_recovery": "31304.20",  # 31304.195, to the even cent
            },
        ),
        # 5,000 kW x 0.152919, 0.002295 and 5.956038
        (
            "aep-texas-transmission-2026",
            "2026-12",
            5000.0,
            {
                "customer": "2.39",
                "metering": "1288.84",
                "distribution_system": "764.60",  # 764.595
                "distribution_cost_recovery": "11.48",  # 11.475
                "transmission_cost_recovery": "29780.19",
            },
        ),
        # 31 days x 43.130; 20,000 kW x 13.274; 20,000 x 744 = 14,880,000 kWh x 0.0421
        (
            "aps-xhlf-transmission-2024",
            "2026-01",
            20000.0,
            {"basic_service": "1337.03", "demand": "265480.00", "energy": "626448.00"},
        ),
        # 31 days x 8.833 = 273.823; 20,000 kW x 17.290; the same energy
        (
            "aps-xhlf-primary-2024",
            "2026-01",
            20000.0,
            {"basic_service": "273.82", "demand": "345800.00", "energy": "626448.00"},
        ),
        # 12,000 kW x 0.51 and 2.65; 12,000 x 744 = 8,928,000 kWh x 0.00124
        (
            "comed-high-voltage-2026",
            "2026-01",
            12000.0,
            {
                "customer": "719.73",
                "standard_metering": "32.00",
                "distribution_facilities": "6120.00",
                "transformer": "31800.00",
                "electricity_distribution_tax": "11070.72",
            },
        ),
        # 12,000 kW x 17.99; 12,000 x 744 = 8,928,000 kWh x 0.04496
        ("oppd-245-2026", "2026-01", 12000.0, {"demand": "215880.00", "energy": "401402.88"}),
        # 5,000 kW x 10.37; 5,000 x 744 = 3,720,000 kWh x 0.058014
        (
            "tacoma-power-g-2025",
            "2026-01",
            5000.0,
            {"customer": "82.80", "demand": "51850.00", "energy": "215812.08"},
        ),
        # 5,000 kW x 6.45; 3,720,000 kWh x 0.045729
        ("tacoma-power-hvg-2025", "2025-07", 5000.0, {"demand": "32250.00", "energy": "170111.88"}),
    ],
)
def test_the_bill_of_a_flat_load_is_its_worked_one(tariff, month, kw, expected):
    assert amounts(tariff, month, kw) == expected


def test_the_credit_of_oncor_ends_with_2026():
    """From January 2027 on 912.48 a month more is due for 5,000 kW; all other charges stay."""
    before, after = (amounts("oncor-transmission-2026", month, 5000.0) for month in ("2026-12", "2027-01"))
    assert before.pop("interim_surcharge") == "-912.48"
    assert before == after


def test_the_transmission_factor_of_oncor_is_8_58_per_mwh_of_a_flat_year():
    """6.260839 x 12 / 8.76, as the transcription that the row cites works it out."""
    due = Decimal(amounts("oncor-transmission-2026", "2027-01", 1000.0)["transmission_cost_recovery"])
    assert round(due * 12 / Decimal(8760), 2) == Decimal("8.58")


def test_omaha_bills_at_least_10_000_kilowatts():
    """5,000 kW pay the demand of 10,000 kW: 179,900.00, and their own 3,720,000 kWh."""
    assert amounts("oppd-245-2026", "2026-07", 5000.0) == {"demand": "179900.00", "energy": "167251.20"}


@pytest.mark.parametrize("tariff", ["aep-texas-transmission-2026", "oncor-transmission-2026"])
def test_a_delivery_tariff_says_that_the_electricity_itself_is_not_in_it(tariff):
    load = {"kind": "constant", "starts_at": "2026-12-01T00:00", "ends_at": "2027-01-01T00:00"}
    known = {"source": "catalog", "id": tariff}
    answer = bill({"tariff": known, "load": {**load, "interval_minutes": 15, "kw": 1000.0}})
    said = [warning["detail"] for warning in answer["warnings"] if warning["code"] == "TARIFF_NOTE"]
    assert any(text.startswith("Delivery only: ") for text in said)


def lines(tariff, month, load):
    """Lines of the bill of a load through a month."""
    year, number = map(int, month.split("-"))
    following = f"{year + number // 12}-{number % 12 + 1:02}-01T00:00"
    span = {"starts_at": f"{month}-01T00:00", "ends_at": following, "interval_minutes": 15}
    return bill({"tariff": {"source": "catalog", "id": tariff}, "load": {**span, **load}})["lines"]


@pytest.mark.parametrize(
    ("tariff", "month", "kw", "expected"),
    [
        # 5,000 kW x 3.275 and 3,000 x 2.634; 8,000 x 0.268, 11.249 and 8.8; 22 days of 15 h on-peak, 330 h x
        # 8,000 x 0.004805 and 414 h x 8,000 x 0.003456; 5,952,000 kWh x 0.02968 and 0.010079
        (
            "dominion-virginia-gs-4-2026",
            "2026-01",
            8000.0,
            [
                "343.54",
                "16375.00",
                "7902.00",
                "2144.00",
                "89992.00",
                "70400.00",
                "12685.20",
                "11446.27",
                "176655.36",
                "59990.21",
            ],
        ),
        # 23 days of 12 h: 276 h x 8,000 x 0.004805 and 468 h x 8,000 x 0.003456; 5,952,000 kWh x 0.037648
        (
            "dominion-virginia-gs-4-2026",
            "2026-07",
            8000.0,
            [
                "343.54",
                "16375.00",
                "7902.00",
                "2144.00",
                "89992.00",
                "70400.00",
                "10609.44",
                "12939.26",
                "224080.90",
                "59990.21",
            ],
        ),
        # 31 days x 8.833; 5,000 kW x 18.437 and 2.843; 23 days of 10 h: 230 h x 5,000 x 0.04893 and 514 h x
        # 5,000 x 0.03901
        (
            "aps-e-35-primary-2026",
            "2026-07",
            5000.0,
            ["273.82", "92185.00", "14215.00", "56269.50", "100255.70"],
        ),
        # 31 days x 107.36636; 5,000 kW x 39.08, 41.35 and 9.27; 155 h x 5,000 x 0.17702, 124 h x 5,000 x
        # 0.14227 and 465 h x 5,000 x 0.11482
        (
            "pge-b-20-secondary-2026",
            "2026-07",
            5000.0,
            ["3328.36", "195400.00", "206750.00", "46350.00", "137190.50", "88207.40", "266956.50"],
        ),
        # 5,000 kW x 2.32; 155 h x 5,000 x 0.15632, 434 h x 5,000 x 0.1146 and 155 h x 5,000 x 0.05872
        (
            "pge-b-20-secondary-2026",
            "2026-05",
            5000.0,
            ["3328.36", "195400.00", "11600.00", "121148.00", "248682.00", "45508.00"],
        ),
        # 25,000 kW x 15.47 and 3.65; 25,000 x 744 = 18,600,000 kWh x 0.00158 and 0.0473
        (
            "austin-energy-primary-above-20-mw-2025",
            "2026-01",
            25000.0,
            ["2861.10", "386750.00", "91250.00", "29388.00", "879780.00"],
        ),
        # 30,000 kW x 9.05 and 0.95598; 22,320,000 kWh: 2,000 x 0.0084777, 13,000 x 0.0080177, 818,000 x
        # 0.0074577 and 21,487,000 x 0.0021118
        (
            "aep-ohio-data-center-primary-2026",
            "2026-07",
            30000.0,
            ["211.01", "271500.00", "28679.40", "16.96", "104.23", "6100.40", "45376.25"],
        ),
    ],
)
def test_the_lines_of_a_flat_load_are_the_worked_ones(tariff, month, kw, expected):
    found = lines(tariff, month, {"kind": "constant", "kw": kw})
    assert [line["amount"]["amount"] for line in found if line["quantity"]] == expected


def test_a_weekend_sets_no_supply_demand_in_virginia():
    """1,000 kW, and 3,000 kW on Saturdays."""
    load = {"kind": "rule", "base_kw": 1000.0, "add": [{"kw": 2000.0, "weekdays": [6]}]}
    found = lines("dominion-virginia-gs-4-2026", "2026-01", load)
    billed = {line["name"]: line["quantity"] for line in found if line["unit"] == "kW"}
    assert billed["distribution"] == billed["distribution_riders"] == 3000.0
    assert billed["on_peak_supply"] == billed["on_peak_riders"] == 1000.0
