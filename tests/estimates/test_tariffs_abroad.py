"""Bills of the tariffs outside the US that ship, worked by hand from their prices."""

import json

import pytest

from service.estimates.tariff_bill import bill_tariff
from service.schemas.tariff_bills import TariffBillRequest
from tests.asking import shipped

CAPE_TOWN = "cape-town-mv-time-of-use-2025"
GENERAL_A = "kepco-general-b-high-voltage-a-3-2026"
GENERAL_B = "kepco-general-b-high-voltage-b-3-2026"
INDUSTRIAL_B = "kepco-industrial-b-high-voltage-b-3-2024"
JOHANNESBURG = "city-power-mv-time-of-use-2025"
PARIS = "enedis-turpe-7-hta-long-use-2025"
QUEBEC = "hydro-quebec-m-2025"
EXTRA_HIGH = "taipower-extra-high-voltage-three-stage-2025"
HIGH = "taipower-high-voltage-three-stage-2025"
ENDS = {
    "2025-07": "2025-08-01",
    "2026-01": "2026-02-01",
    "2026-02": "2026-03-01",
    "2026-05": "2026-06-01",
    "2026-07": "2026-08-01",
    "2026-10": "2026-11-01",
    "2026-12": "2027-01-01",
}


def bill(tariff, first, end, **load):
    """Lines of the bill of a load from one day to another."""
    span = {"starts_at": f"{first}T00:00", "ends_at": f"{end}T00:00", "interval_minutes": 15}
    question = {"tariff": {"source": "catalog", "id": tariff}, "load": {**span, **load}}
    answer = bill_tariff(TariffBillRequest.model_validate_json(json.dumps(question)), shipped())
    return answer["lines"]


def amounts(tariff, month, kw):
    """Amounts of a month at a constant load, in the order of the bill."""
    lines = bill(tariff, f"{month}-01", ENDS[month], kind="constant", kw=kw)
    return [line["amount"]["amount"] for line in lines]


def energy(tariff, month, *added):
    """The kWh of each price period of a month for a load in some hours."""
    lines = bill(tariff, f"{month}-01", ENDS[month], kind="rule", base_kw=0.0, add=list(added))
    return {
        line["price_period"]: line["quantity"]
        for line in lines
        if line["name"] == "energy" and line["quantity"]
    }


@pytest.mark.parametrize(
    "tariff", [CAPE_TOWN, GENERAL_A, GENERAL_B, INDUSTRIAL_B, JOHANNESBURG, PARIS, EXTRA_HIGH, HIGH]
)
def test_the_hours_of_a_year_have_one_price_each(tariff):
    """1 kW from November 2026 through October 2027: 8,760 kWh."""
    lines = bill(tariff, "2026-11-01", "2027-11-01", kind="constant", kw=1.0)
    assert sum(line["quantity"] for line in lines if line["name"] == "energy") == pytest.approx(8760)


def demands(tariff, first, end, **load):
    """The billed kW of each month."""
    lines = bill(tariff, first, end, kind="rule", **load)
    return [line["quantity"] for line in lines if line["unit"] == "kW"]


class TestKorea:
    """KEPCO's general and industrial rates B at option III: demand, and energy by season and hour."""

    @pytest.mark.parametrize(
        ("tariff", "month", "expected"),
        [
            (GENERAL_A, "2026-07", ["49050000", "164160000", "161936000", "138534000"]),
            (GENERAL_A, "2026-10", ["49050000", "176256000", "117180000", "79320000"]),
            (GENERAL_A, "2026-12", ["49050000", "178030000", "162168000", "123222000"]),
            (GENERAL_B, "2026-07", ["40950000", "171760000", "165532000", "147840000"]),
            (GENERAL_B, "2026-10", ["40950000", "184416000", "121824000", "85860000"]),
            (GENERAL_B, "2026-12", ["40950000", "185250000", "165532000", "131274000"]),
            (INDUSTRIAL_B, "2025-07", ["40950000", "221064000", "207720000", "175536000"]),
            (INDUSTRIAL_B, "2026-01", ["40950000", "243010000", "205989000", "144459000"]),
            (INDUSTRIAL_B, "2026-07", ["40950000", "239210000", "200796000", "156750000"]),
        ],
    )
    def test_a_constant_load_pays_demand_and_the_three_loads(self, tariff, month, expected):
        """5,000 kW at 9,810 (A) or 8,190 a kW; a working day has 6 h of peak, 8 of mid and 10 of light load.

        July 2026 has 22 working days and 4 Saturdays (14 h of mid load) without the 17th, a holiday: 132 h of
        peak, 232 of mid and 380 of light load. For general A: 5,000 x 9,810, 380 h x 5,000 x 86.4,
        232 h x 5,000 x 139.6 and 132 h x 5,000 x 209.9. October 2026 has 20 and 4, so 120, 216 and 408 h;
        December 2026 has 22 and 4; July 2025 has 23 and 4, so 138, 240 and 366 h; January 2026 has 21 and 5,
        so 126, 238 and 380 h.
        """
        assert amounts(tariff, month, 5000.0) == expected

    def test_industry_pays_half_at_noon_on_days_off_from_spring_on(self):
        """May 2026: 18 working days, 5 Saturdays, 5 Sundays, and holidays on the 1st, 5th and 25th."""
        assert amounts(INDUSTRIAL_B, "2026-05", 5000.0) == [
            "40950000",
            "250541000",  # (23 x 10 + 8 x 21) h x 5,000 x 125.9
            "142484000",  # (18 x 8 + 5 x 11) h x 5,000 x 143.2
            "86562000",  # 18 x 6 h x 5,000 x 160.3
            "5370000",  # 5 x 3 h x 5,000 x 143.2 / 2
            "7554000",  # 8 x 3 h x 5,000 x 125.9 / 2
        ]

    @pytest.mark.parametrize(
        ("month", "from_time", "to_time", "period"),
        [
            ("2025-07", "11:00", "12:00", "peak_summer"),
            ("2025-07", "12:00", "13:00", "mid_summer"),
            ("2025-07", "13:00", "18:00", "peak_summer"),
            ("2025-07", "18:00", "22:00", "mid_summer"),
            ("2026-07", "08:00", "15:00", "mid_summer"),
            ("2026-07", "15:00", "21:00", "peak_summer"),
            ("2026-07", "21:00", "22:00", "mid_summer"),
            ("2026-07", "22:00", "08:00", "light_summer"),
            ("2026-02", "08:00", "09:00", "mid_winter"),
            ("2026-02", "09:00", "12:00", "peak_winter"),
            ("2026-02", "12:00", "16:00", "mid_winter"),
            ("2026-02", "16:00", "19:00", "peak_winter"),
            ("2026-02", "19:00", "22:00", "mid_winter"),
        ],
    )
    def test_the_peak_of_summer_moved_to_the_evening(self, month, from_time, to_time, period):
        """On Thursdays, none of which is a holiday."""
        hours = {"kw": 60.0, "from_time": from_time, "to_time": to_time, "weekdays": [4]}
        assert list(energy(INDUSTRIAL_B, month, hours)) == [period]

    def test_a_night_sets_no_demand_and_a_summer_sets_that_of_autumn(self):
        """3,000 kW by day in July, 1,000 kW from August to October, and 9,000 kW at night in October."""
        day = {"kw": 3000.0, "months": [7], "from_time": "08:00", "to_time": "22:00"}
        autumn = {"kw": 1000.0, "months": [8, 9, 10], "from_time": "08:00", "to_time": "22:00"}
        night = {"kw": 9000.0, "months": [10], "from_time": "22:00", "to_time": "08:00"}
        load = {"base_kw": 0.0, "add": [day, autumn, night]}
        assert demands(GENERAL_B, "2026-07-01", "2026-11-01", **load) == [3000.0] * 4

    def test_a_peak_of_spring_sets_its_own_month_only(self):
        spring = {"kw": 3000.0, "months": [4]}
        load = {"base_kw": 1000.0, "add": [spring]}
        assert demands(INDUSTRIAL_B, "2025-03-01", "2025-06-01", **load) == [1000.0, 4000.0, 1000.0]


@pytest.mark.parametrize(
    ("tariff", "expected"),
    [
        ("tnb-high-voltage-general-2025", ["250.00", "1600716.00", "83400.00", "72650.00"]),
        ("tnb-medium-voltage-general-2025", ["200.00", "1109676.00", "147150.00", "299200.00"]),
    ],
)
def test_malaysia_charges_retail_energy_capacity_and_network(tariff, expected):
    """5,000 kW in July 2026, 3,720,000 kWh.

    At high voltage: 250, 3,720,000 x 0.4303, 5,000 x 16.68 and 5,000 x 14.53. At medium voltage: 200,
    3,720,000 x 0.2983, 5,000 x 29.43 and 5,000 x 59.84.
    """
    assert amounts(tariff, "2026-07", 5000.0) == expected


class TestQuebec:
    """Hydro-Québec's rate M: prices for 30 days, and a demand that winters set."""

    def test_demand_and_the_first_energy_are_for_30_days(self):
        """4,000 kW through January: 2,976,000 kWh, of which 210,000 x 31 / 30 at the first price."""
        assert amounts(QUEBEC, "2026-01", 4000.0) == [
            "72635.07",  # 4,000 x 17.573 x 31 / 30 = 72,635.0667
            "13152.37",  # 217,000 x 0.06061
            "124017.05",  # 2,759,000 x 0.04495
        ]

    def test_prices_rise_in_april_2026(self):
        assert amounts(QUEBEC, "2026-07", 4000.0) == [
            "75400.27",  # 4,000 x 18.242 x 31 / 30 = 75,400.2667
            "13653.64",  # 217,000 x 0.06292
            "128734.94",  # 2,759,000 x 0.04666
        ]

    def test_a_summer_pays_65_percent_of_the_peak_of_winter(self):
        """4,000 kW in March, 3,000 kW in April and 1,000 kW later, over 31, 30, 31 and 30 days.

        Prices rise in April, and the peak of March stays.
        """
        load = {"base_kw": 1000.0, "add": [{"kw": 3000.0, "months": [3]}, {"kw": 2000.0, "months": [4]}]}
        lines = bill(QUEBEC, "2026-03-01", "2026-07-01", kind="rule", **load)
        power = [line["amount"]["amount"] for line in lines if line["name"] == "power"]
        assert power == [
            "72635.07",  # 4,000 x 17.573 x 31 / 30
            "54726.00",  # 3,000 x 18.242
            "49010.17",  # 4,000 x 0.65 x 18.242 x 31 / 30 = 49,010.1733
            "47429.20",  # 4,000 x 0.65 x 18.242
        ]


def test_toronto_charges_delivery_for_30_days():
    """5,000 kW at a power factor of 1 through January: 31 / 30 of each price, and 3,720,000 kWh."""
    assert amounts("toronto-hydro-large-use-2026", "2026-01", 5000.0) == [
        "5004.97",  # 4,843.52 x 31 / 30 = 5,004.9707
        "48781.60",  # 5,000 x 9.4416 x 31 / 30
        "-1496.78",  # 5,000 x -0.2897 x 31 / 30 = -1,496.7833
        "1901.85",  # 5,000 x 0.3681 x 31 / 30
        "25212.82",  # 5,000 x 4.8799 x 31 / 30 = 25,212.8167
        "16593.78",  # 5,000 x 3.2117 x 31 / 30 = 16,593.7833
        "15252.00",  # 3,720,000 x 0.0041
        "2232.00",  # 3,720,000 x 0.0006
    ]


def test_vancouver_charges_demand_and_energy_less_its_rider():
    """5,000 kW in July: 31 x 0.2999 = 9.2969, 5,000 x 13.83, 3,720,000 x 0.0679, and -1.5% of 321,747.30."""
    found = amounts("bc-hydro-1600-2026", "2026-07", 5000.0)
    assert found == ["9.30", "69150.00", "252588.00", "-4826.21"]


class TestFrance:
    """The grid use tariff TURPE 7 at medium voltage, for long use, with a fixed peak."""

    @pytest.mark.parametrize(
        ("month", "expected"),
        [
            # 108 h x 5,000 x 0.0265, 324 h x 5,000 x 0.021 and 312 h x 5,000 x 0.0147
            ("2026-01", ["14310.00", "34020.00", "22932.00"]),
            # 432 h x 5,000 x 0.0092 and 312 h x 5,000 x 0.0068
            ("2026-07", ["19872.00", "10608.00"]),
        ],
    )
    def test_a_constant_load_pays_for_power_and_for_its_periods(self, month, expected):
        """5,000 kW: a twelfth of 435.72, of 376.39 and of 5,000 x 35.33.

        27 days but Sundays, with 4 h of peak each in January, 16 h of peak and full hours in all, and 8 h off
        peak, and 4 Sundays off peak.
        """
        assert amounts(PARIS, month, 5000.0) == ["36.31", "31.37", "14720.83", *expected]

    def test_power_is_that_of_the_highest_month(self):
        load = {"base_kw": 1000.0, "add": [{"kw": 3000.0, "months": [11]}]}
        assert demands(PARIS, "2025-10-01", "2026-01-01", **load) == [1000.0, 4000.0, 4000.0]


class TestNetherlands:
    """Grid use of Liander and Stedin: a standing charge, contracted power, the peak of the month, and kWh."""

    @pytest.mark.parametrize(
        ("tariff", "month", "kw", "expected"),
        [
            # 5,000 x 3.80 and 5.94
            ("liander-above-2-mw-2025", "2025-07", 5000.0, ["230.00", "19000.00", "29700.00"]),
            # 5,000 x 3.99 and 6.24
            ("liander-above-2-mw-2025", "2026-01", 5000.0, ["230.00", "19950.00", "31200.00"]),
            # 1,000 x 2.2233 and 3.46; 744,000 kWh x 0.022
            (
                "liander-medium-voltage-2025",
                "2025-07",
                1000.0,
                ["36.75", "2223.30", "3460.00", "16368.00"],
            ),
            # 1,000 x 2.29 and 3.57; 744,000 kWh x 0.0226
            (
                "liander-medium-voltage-2025",
                "2026-01",
                1000.0,
                ["36.75", "2290.00", "3570.00", "16814.40"],
            ),
            # 5,000 x 45.50 / 12 = 18,958.3333 and 5,000 x 5.30
            ("stedin-above-1500-kw-2025", "2025-07", 5000.0, ["230.00", "18958.33", "26500.00"]),
            # 5,000 x 45.4508 / 12 = 18,937.8333 and 5,000 x 5.2943
            ("stedin-above-1500-kw-2025", "2026-01", 5000.0, ["230.00", "18937.83", "26471.50"]),
        ],
    )
    def test_a_constant_load_pays_for_its_power_twice(self, tariff, month, kw, expected):
        assert amounts(tariff, month, kw) == expected

    def test_a_month_pays_the_peak_of_the_year_and_its_own(self):
        """4,000 kW in January and 3,000 kW in February."""
        load = {"base_kw": 3000.0, "add": [{"kw": 1000.0, "months": [1]}]}
        found = demands("liander-above-2-mw-2025", "2026-01-01", "2026-03-01", **load)
        assert found == [4000.0, 4000.0, 4000.0, 3000.0]


class TestSouthAfrica:
    """Johannesburg and Cape Town at medium voltage, at a power factor of 1."""

    @pytest.mark.parametrize(
        ("month", "expected"),
        [
            ("2026-01", ["1681.71", "9081.42", "1977400.00", "9077544.00", "223200.00"]),
            ("2026-07", ["1833.23", "9899.66", "2155550.00", "11712420.00", "223200.00"]),
        ],
    )
    def test_johannesburg_charges_demand_and_energy_by_season(self, month, expected):
        """5,000 kW x 395.48 and 431.11; 3,720,000 kWh x 2.4402 in summer, 3.1485 in winter, and x 0.06."""
        assert amounts("city-power-mv-2025", month, 5000.0) == expected

    @pytest.mark.parametrize(
        ("month", "expected"),
        [
            # 105 h x 5,000 x 2.9539, 281 h x 5,000 x 2.2239 and 358 h x 5,000 x 1.7095
            (
                "2026-01",
                ["11658.08", "1977400.00", "1550797.50", "3124579.50", "3060005.00", "223200.00"],
            ),
            # 115 h x 5,000 x 7.6624, 289 h x 5,000 x 2.9256 and 340 h x 5,000 x 2.0044
            (
                "2026-07",
                ["12708.47", "2155550.00", "4405880.00", "4227492.00", "3407480.00", "223200.00"],
            ),
        ],
    )
    def test_johannesburg_charges_by_the_hour(self, month, expected):
        """A working day has 5 h of peak and 11 of standard, a Saturday 7 of standard and a Sunday 2.

        January has 21 working days, 5 Saturdays, the 1st as another, and 4 Sundays; July has 23, 4 and 4.
        """
        assert amounts(JOHANNESBURG, month, 5000.0) == expected

    @pytest.mark.parametrize(
        ("month", "expected"),
        [
            # 110 h x 5,000 x 3.3396, 285 h x 5,000 x 2.1708 and 349 h x 5,000 x 1.7563
            (
                "2026-01",
                ["2404.57", "87350.00", "379450.00", "1836780.00", "3093390.00", "3064743.50"],
            ),
            # 115 h x 5,000 x 7.5574, 289 h x 5,000 x 2.3822 and 340 h x 5,000 x 1.807
            (
                "2026-07",
                ["2610.22", "95750.00", "411900.00", "4345505.00", "3442279.00", "3071900.00"],
            ),
        ],
    )
    def test_cape_town_charges_capacity_demand_and_energy_by_the_hour(self, month, expected):
        """5,000 kW x 17.47 and 75.89, then x 19.15 and 82.38.

        Days have as many hours of each period as in Johannesburg. The 1st of January is a working day here:
        22, with 5 Saturdays and 4 Sundays.
        """
        assert amounts(CAPE_TOWN, month, 5000.0) == expected

    @pytest.mark.parametrize(
        ("tariff", "from_time", "to_time", "period"),
        [
            (JOHANNESBURG, "09:00", "10:00", "peak_winter"),
            (JOHANNESBURG, "20:00", "21:00", "standard_winter"),
            (CAPE_TOWN, "09:00", "10:00", "standard_winter"),
            (CAPE_TOWN, "20:00", "21:00", "peak_winter"),
        ],
    )
    def test_each_city_has_its_own_peak(self, tariff, from_time, to_time, period):
        hours = {"kw": 60.0, "from_time": from_time, "to_time": to_time, "weekdays": [4]}
        assert list(energy(tariff, "2026-07", hours)) == [period]

    def test_a_holiday_in_johannesburg_is_a_saturday(self):
        """Thursday the 1st of January from 09:00 to 10:00 is standard, the four other Thursdays are peak."""
        hours = {"kw": 60.0, "from_time": "09:00", "to_time": "10:00", "weekdays": [4]}
        assert energy(JOHANNESBURG, "2026-01", hours) == {"peak_summer": 240.0, "standard_summer": 60.0}


class TestTaiwan:
    """Taipower's three stages with fixed peak hours, at high and at extra-high voltage."""

    @pytest.mark.parametrize(
        ("tariff", "month", "expected"),
        [
            (EXTRA_HIGH, "2026-01", ["803000.00", "7922250.00", "866250.00", "3858600.00"]),
            (EXTRA_HIGH, "2026-07", ["1086500.00", "5996100.00", "5568300.00", "750000.00", "4068000.00"]),
            (HIGH, "2026-01", ["834500.00", "8615250.00", "903750.00", "4106400.00"]),
            (HIGH, "2026-07", ["1118000.00", "6479100.00", "6054750.00", "780000.00", "4288350.00"]),
        ],
    )
    def test_a_constant_load_pays_its_contract_and_the_stages(self, tariff, month, expected):
        """5,000 kW. January: 21 working days without the 1st and 5 Saturdays, of 15 h of half peak each.

        At extra-high voltage: 5,000 x 160.60, 315 h x 5,000 x 5.03, 75 h x 5,000 x 2.31 and 354 h x 5,000 x
        2.18. July has 23 working days of 6 h of peak and 9 of half peak and 4 Saturdays of 15 h of half peak:
        5,000 x 217.30, 138 h x 5,000 x 8.69, 207 h x 5,000 x 5.38, 60 h x 5,000 x 2.50 and 339 h x 5,000 x
        2.40. At high voltage the hours are the same, at 166.90, 5.47, 2.41 and 2.32 in January and at 223.60,
        9.39, 5.85, 2.60 and 2.53 in July.
        """
        assert amounts(tariff, month, 5000.0) == expected

    def test_summer_begins_and_ends_in_the_middle_of_a_month(self):
        """31 days of May: 15 at 160.60, 16 at 217.30; 31 of October: 15 at 217.30, 16 at 160.60."""
        may, october = (amounts(EXTRA_HIGH, month, 5000.0) for month in ("2026-05", "2026-10"))
        assert {"388548.39", "560774.19"} <= set(may)
        assert {"525725.81", "414451.61"} <= set(october)

    def test_days_of_the_lunar_new_year_are_off_peak(self):
        """February 2026: 6 Mondays and Tuesdays of 15 h of half peak and 9 h off peak, 2 all off peak."""
        found = energy(EXTRA_HIGH, "2026-02", {"kw": 100.0, "weekdays": [1, 2]})
        assert found == {"half_peak": 6 * 1500.0, "off_peak": 6 * 900.0 + 2 * 2400.0}
