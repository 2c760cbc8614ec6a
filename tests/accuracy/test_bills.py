"""Worked electricity bills: those that ship, and one of each kind that the layout describes besides."""

import csv
import json
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from accuracy.bills import (
    COLUMNS,
    BillComputer,
    all_exact_pass,
    check_folder,
    document,
    import_folder,
    passes,
)
from accuracy.cli import app

SHIPPED = Path(__file__).parents[1] / "data" / "tariffs"
ALL_HOURS = [[0] * 24 for _ in range(12)]
with (SHIPPED / "bills.csv").open(encoding="utf-8", newline="") as file:
    EXACT = [row["bill_id"] for row in csv.DictReader(file) if row["role"] == "exact"]


@cache
def checked_bills():
    """The bills that ship, worked out, by their id."""
    return {one.bill_id: one for one in check_folder(SHIPPED)}


@pytest.mark.parametrize("bill_id", EXACT)
def test_exact_rows_agree_within_their_tolerance(bill_id):
    checked = checked_bills()[bill_id]
    assert checked.skipped is None
    assert checked.passed, f"{checked.component}: {checked.computed}, expected {checked.expected}"


def test_sanity_rows_are_not_judged():
    sanity = [one for one in checked_bills().values() if one.role == "sanity"]
    assert len(sanity) == 14
    assert {(one.passed, one.skipped) for one in sanity} == {(None, "no tariff is known")}


def test_every_tariff_file_is_read_also_without_a_bill():
    imported = import_folder(SHIPPED)
    assert len(imported) == 17
    assert [one.stem for one in imported if one.problem] == []


def energy(*tiers, **fields):
    return {
        "energyratestructure": [list(tiers)],
        "energyweekdayschedule": ALL_HOURS,
        "energyweekendschedule": ALL_HOURS,
        **fields,
    }


def flat(*tiers, **fields):
    return {"flatdemandstructure": [list(tiers)], "flatdemandmonths": [0] * 12, **fields}


def constant(kw, start="2023-01-01T00:00", end="2024-01-01T00:00", minutes=60, **fields):
    return {"kind": "constant", "kw": kw, "start": start, "end": end, "interval_minutes": minutes, **fields}


def ruled(start="2023-01-01T00:00", end="2024-01-01T00:00", minutes=60, **fields):
    return {"kind": "series_rule", "start": start, "end": end, "interval_minutes": minutes, **fields}


def by_month(*kw):
    """A load that draws one constant demand in each month of 2023."""
    return ruled(base_kw=0, add=[{"kw": each, "months": [month]} for month, each in enumerate(kw, start=1)])


def quantities(*values, **fields):
    rows = [
        {
            "month": month,
            "kind": kind,
            "period_index_0based": place,
            "value": value,
            "unit": "kWh" if kind == "energy" else "kW",
        }
        for month, kind, place, value in values
    ]
    return {
        "kind": "determinants",
        "values": rows,
        "start": "2023-01-01T00:00",
        "end": "2024-01-01T00:00",
        **fields,
    }


def annual(energy_kwh, peak_kw):
    return {
        "kind": "annual",
        "energy_kwh": energy_kwh,
        "peak_kw": peak_kw,
        "start": "2023-01-01T00:00",
        "end": "2024-01-01T00:00",
    }


YEAR = ("2023-01-01T00:00", "2024-01-01T00:00")


def month(number, year=2023):
    following = (year + number // 12, number % 12 + 1)
    return (f"{year}-{number:02d}-01T00:00", f"{following[0]}-{following[1]:02d}-01T00:00")


def checked(tmp_path, tariff, load, component, period=YEAR, **cells):
    """The row as a folder of the layout would have it."""
    (tmp_path / "rate.json").write_text(json.dumps(tariff))
    row = {
        "bill_id": "row",
        "component": component,
        "expected": "0",
        "currency": tariff.get("_meta", {}).get("currency", "USD"),
        "abs_tolerance": "0",
        "role": "exact",
        "tariff_file": "rate",
        "load_json": json.dumps(load),
        "period_start": period[0],
        "period_end": period[1],
        "calendar_year": load.get("start", "2023")[:4],
        "time_zone": "Etc/GMT+6",
        "excluded_keys": "",
        **cells,
    }
    return BillComputer(tmp_path).check(row)


def computed(*arguments, **cells):
    found = checked(*arguments, **cells)
    assert found.skipped is None
    return pytest.approx(found.computed, abs=1e-9)


DAY_FEE = {"fixedchargefirstmeter": 2, "fixedchargeunits": "$/day"}
ONE_DAY = constant(10, "2024-02-29T00:00", "2024-03-01T00:00", 15)
LEAP_DAY = ("2024-02-29T00:00", "2024-03-01T00:00")
SEK = {"_meta": {"currency": "SEK"}}
EUR = {"_meta": {"currency": "EUR"}}
PEAKS = (100, 20, 20, 20, 20, 20, 400, 20, 20, 20, 20, 200)
WORKING_HOURS = [[1 if 9 <= hour < 17 else 0 for hour in range(24)]] * 12
TWO_PERIODS = {
    "energyratestructure": [[{"rate": 0.1}], [{"rate": 0.3}]],
    "energyweekdayschedule": WORKING_HOURS,
    "energyweekendschedule": ALL_HOURS,
}
TIMED_DEMAND = {
    "demandratestructure": [[{"rate": 2}], [{"rate": 7}]],
    "demandweekdayschedule": WORKING_HOURS,
    "demandweekendschedule": ALL_HOURS,
    "demandrateunit": "kW",
}
HOURS_USE = energy(
    {"rate": 9, "unit": "kWh/kW", "max": 100},
    {"rate": 3, "unit": "kWh", "max": 500},
    {"rate": 2, "unit": "kWh"},
    {"rate": 1, "unit": "kWh/kW"},
)
PERCENT = {
    "percent_by_month": [50] * 12,
    "include_actual_peak_by_month": [1] * 12,
    "lookback_months": 2,
}
ROWS = {
    "type": "energy",
    "unit": "$/kWh",
    "rate": 0.5,
    "months": [1, 1],
    "weekdays_0mon": [5, 6],
    "hours": [8.5, 9.25],
}


@pytest.mark.parametrize(
    ("tariff", "load", "component", "period", "expected"),
    [
        # A day charge counts the days of a month that the load only touches; 2024 has 29 February.
        (DAY_FEE, ONE_DAY, "fixed_charge", LEAP_DAY, 58),
        (DAY_FEE, constant(1), "fixed_charge", YEAR, 730),
        (
            {"fixedchargefirstmeter": 120, "fixedchargeunits": "USD/year"},
            ONE_DAY,
            "fixed_charge",
            LEAP_DAY,
            10,
        ),
        ({"fixedmonthlycharge": 7}, constant(1), "fixed_charge", YEAR, 84),
        (
            {
                **SEK,
                "x_fixed_sek_per_year": 600,
                "x_annual_fees": {"a": 120, "b": 12},
                "fixedmonthlycharge": 1,
            },
            constant(1),
            "fixed_charge",
            month(2),
            62,
        ),
        # The month's total is at least 50: 24 kWh of 1.00 in February do not reach it, 744 in January do.
        (
            energy({"rate": 1}, mincharge=50, minchargeunits="$/month"),
            constant(1, "2023-01-01T00:00", "2023-02-02T00:00"),
            "total",
            YEAR,
            744 + 50,
        ),
        # adj is part of the price; tiers count the kWh of the month.
        (
            energy({"rate": 0.1, "adj": 0.02, "max": 100}, {"rate": 1}),
            constant(1),
            "energy_charge",
            month(4),
            632,
        ),
        (energy({"rate": 1, "max": 100}, {"rate": 2}), constant(1), "energy_kwh_tier_2", month(4), 620),
        # 2023-05-01 was a Monday: 23 working days and 8 days of weekends.
        (TWO_PERIODS, constant(1), "energy_charge", month(5), 23 * 8 * 0.3 + (744 - 23 * 8) * 0.1),
        (
            TWO_PERIODS,
            quantities((5, "energy", 0, 100), (5, "energy", 1, 10), (6, "energy", 1, 999)),
            "energy_charge",
            month(5),
            13,
        ),
        # Demand: marginal tiers, kVA, and the ladder that a second list of months adds.
        (flat({"rate": 10, "max": 15}, {"rate": 1}), constant(20), "flat_demand_charge", month(1), 155),
        (
            flat({"rate": 10}, flatdemandunit="kVA"),
            constant(80, power_factor=0.8),
            "flat_demand_charge",
            month(1),
            1000,
        ),
        (
            {
                "flatdemandstructure": [[{"rate": 10}], [{"rate": 1}]],
                "flatdemandmonths": [0] * 12,
                "x_extraflatdemandmonths": [1] * 12,
            },
            constant(20),
            "flat_demand_charge",
            month(1),
            220,
        ),
        # Peaks of demand periods, each by itself; a ratchet does not act on them.
        (
            {**TIMED_DEMAND, **flat({"rate": 1}, lookbackpercent=1, lookbackmonths=[1] * 12)},
            ruled(
                base_kw=10, add=[{"kw": 5, "weekdays": [1], "hours": [12, 13]}, {"kw": 985, "months": [7]}]
            ),
            "tou_demand_charge",
            month(5),
            10 * 2 + 15 * 7,
        ),
        (
            {**TIMED_DEMAND, **flat({"rate": 1}, lookbackpercent=1, lookbackmonths=[1] * 12)},
            ruled(
                base_kw=10, add=[{"kw": 5, "weekdays": [1], "hours": [12, 13]}, {"kw": 985, "months": [7]}]
            ),
            "demand_charge",
            month(5),
            20 + 105 + 1000,
        ),
        # A period of which no hour occurs costs nothing: here all is a Saturday.
        (
            TIMED_DEMAND,
            constant(10, "2023-05-06T00:00", "2023-05-07T00:00"),
            "tou_demand_charge",
            month(5),
            20,
        ),
        (
            TIMED_DEMAND,
            quantities((5, "tou_peak", 0, 4), (5, "tou_peak", 1, 3)),
            "demand_charge",
            month(5),
            29,
        ),
        (flat({"rate": 2}), quantities((5, "month_peak", None, 4)), "flat_demand_charge", YEAR, 8),
        # Ratchets: named months later than the billing month, the older one, and months before that wrap.
        (
            flat({"rate": 1}, demandratchetpercentage=[0.5] * 12),
            by_month(*PEAKS),
            "flat_demand_charge",
            month(2),
            200,
        ),
        (
            flat({"rate": 1}, lookbackpercent=0.5, lookbackmonths=[0] * 11 + [1]),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(2),
            100,
        ),
        (
            flat({"rate": 1}, lookbackpercent=0.9, lookbackrange=1),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(1),
            180,
        ),
        (
            flat({"rate": 1}, lookbackpercent=0.9, lookbackrange=1),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(3),
            20,
        ),
        # Hours of use: 100 h of 10 kW are 1000 kWh in two steps by kWh, the other 6440 kWh of January at 1.
        (HOURS_USE, constant(10), "energy_charge", month(1), 500 * 3 + 500 * 2 + 6440),
        (HOURS_USE, constant(10), "energy_kwh_tier_1", month(1), 0),
        (HOURS_USE, constant(10), "energy_kwh_tier_3", month(1), 500),
        (HOURS_USE, constant(10), "energy_kwh_tier_4", month(1), 6440),
        # A floor of 40 kW raises the reach to 4000 kWh.
        (
            {**HOURS_USE, "x_min_billing_kw": 40},
            constant(10),
            "energy_charge",
            month(1),
            500 * 3 + 3500 * 2 + 3440,
        ),
        (
            {**HOURS_USE, "x_min_billing_kw": 40},
            quantities((1, "energy", 0, 7440), (1, "month_peak", None, 10)),
            "total",
            month(1),
            500 * 3 + 3500 * 2 + 3440,
        ),
        ({**HOURS_USE, "x_min_billing_kw": 40}, constant(10), "billing_demand_kw", month(1), 40),
        (HOURS_USE, constant(10), "billing_demand_kw", month(1), 10),
        # Power factor: the multiplier, reactive power at the peak, and what of it is free.
        (
            flat({"rate": 1}, x_power_factor={"threshold": 0.9, "rule": "demand * (1 + threshold - pf)"}),
            constant(100, power_factor=0.8),
            "flat_demand_charge",
            month(1),
            110,
        ),
        (
            flat({"rate": 1}, x_power_factor={"threshold": 0.9, "rule": "demand * (1 + threshold - pf)"}),
            constant(100, power_factor=0.95),
            "flat_demand_charge",
            month(1),
            100,
        ),
        ({"demandreactivepowercharge": 2}, constant(100, power_factor=0.8), "total", month(1), 150),
        ({"demandreactivepowercharge": 2}, constant(100), "total", month(1), 0),
        (
            {**SEK, "x_reactive": {"rate_sek_per_kvar_month": 30, "free_fraction_of_active": 0.5}},
            constant(100, power_factor=0.8),
            "total",
            month(1),
            750,
        ),
        # Floors of the charge and of the demand; losses of secondary metering.
        (flat({"rate": 1}, x_min_demand_charge_usd_month=30), constant(10), "flat_demand_charge", YEAR, 360),
        (
            {**flat({"rate": 1}), **energy({"rate": 1}), "x_secondary_metering_loss_factor": 0.5},
            constant(10, metering="secondary"),
            "total",
            month(1),
            15 + 15 * 744,
        ),
        (
            {**flat({"rate": 1}), **energy({"rate": 1}), "x_secondary_metering_loss_factor": 0.5},
            constant(10),
            "total",
            month(1),
            10 + 7440,
        ),
        # Half of July's 400 kW counts in July, August and September; December's half in no month of 2024.
        (flat({"rate": 1}, x_billing_demand=PERCENT), by_month(*PEAKS), "billing_demand_kw", month(9), 200),
        (flat({"rate": 1}, x_billing_demand=PERCENT), by_month(*PEAKS), "billing_demand_kw", month(10), 20),
        # January is the first month: earlier ones count 0, unless their peaks are given.
        (flat({"rate": 1}, x_billing_demand=PERCENT), by_month(*PEAKS), "billing_demand_kw", month(1), 100),
        (
            flat({"rate": 1}, x_billing_demand={**PERCENT, "year_zero_peaks_kw": [9000] * 10 + [600, -900]}),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(1),
            300,
        ),
        # The percentage is that of the month of the peak; July's own peak counts only by it.
        (
            flat(
                {"rate": 1},
                x_billing_demand={
                    "percent_by_month": [100] * 6 + [60] + [100] * 5,
                    "include_actual_peak_by_month": [1] * 6 + [0] + [1] * 5,
                    "lookback_months": 1,
                },
            ),
            by_month(*PEAKS),
            "flat_demand_charge",
            ("2023-07-01T00:00", "2023-09-01T00:00"),
            240 + 240,
        ),
        # A look-back range wraps the year, percentages do not, and neither disturbs the other.
        (
            flat({"rate": 1}, lookbackpercent=0.9, lookbackrange=1, x_billing_demand=PERCENT),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(1),
            180,
        ),
        (
            flat({"rate": 1}, lookbackpercent=0.1, lookbackrange=1, x_billing_demand=PERCENT),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(1),
            100,
        ),
        (
            flat(
                {"rate": 1},
                x_billing_demand={
                    **PERCENT,
                    "year_zero_peaks_kw": [0] * 11 + [900],
                    "winter_ratchet_percent": 80,
                },
            ),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(6),
            160,
        ),
        (
            flat({"rate": 1}, x_billing_demand={"apparent_power_factor": 0.9}),
            constant(80, power_factor=0.8),
            "billing_demand_kw",
            month(1),
            90,
        ),
        # December's 200 kW is the highest peak of the winter within twelve months of June; July's is none.
        (
            flat({"rate": 1}, x_billing_demand={"winter_ratchet_percent": 65}),
            by_month(*PEAKS),
            "billing_demand_kw",
            month(6),
            130,
        ),
        (
            flat({"rate": 1}, x_billing_demand={"minimum_kw": 50}),
            constant(10),
            "billing_demand_kw",
            month(6),
            50,
        ),
        (
            flat({"rate": 1}, x_billing_demand={"proration": "30-day month"}),
            constant(30),
            "demand_charge",
            month(1),
            31,
        ),
        # Prices of all energy.
        ({**SEK, "x_energy_tax_sek_per_kwh": 0.25}, constant(1), "energy_charge", month(1), 186),
        (
            {**SEK, **TWO_PERIODS, "x_energy_tax_sek_per_kwh": 0.5},
            quantities((5, "energy", 0, 100), (5, "energy", 1, 10)),
            "energy_charge",
            month(5),
            13 + 55,
        ),
        (
            {**EUR, "x_energy_price_ct_per_kwh": 50},
            quantities((5, "energy", 3, 100)),
            "energy_charge",
            month(5),
            50,
        ),
        ({**EUR, "x_energy_price_ct_per_kwh": 50}, annual(1000, 1), "total", YEAR, 500),
        # The year's highest demand, from a series: charged once.
        (
            {**EUR, "x_annual_peak_demand_price": {"price_eur_per_kw_year": 2, "window_minutes": 15}},
            by_month(*PEAKS),
            "annual_demand_charge",
            YEAR,
            800,
        ),
        (
            {"fixedmonthlycharge": 5},
            constant(10, end="2023-01-02T00:00"),
            "hours_of_use_h",
            (YEAR[0], "2023-01-02T00:00"),
            24,
        ),
        # Peak intervals of the grid, by the hour of the year and as stated by the load.
        (
            {
                "x_coincident_peak": {
                    "statistic": "mean",
                    "sets": [{"rate": 10, "hours_of_year_1based": [1, 745]}],
                }
            },
            by_month(*PEAKS),
            "coincident_peak_charge",
            YEAR,
            600,
        ),
        (
            {"x_coincident_peak": {"statistic": "mean", "sets": [{"hours_of_year_1based": [1, 745]}]}},
            by_month(*PEAKS),
            "coincident_peak_kw",
            YEAR,
            60,
        ),
        (
            {
                "x_coincident_peak": {
                    "statistic": "max",
                    "applies": "load year",
                    "sets": [{"rate": 10, "intervals_in_load": 2}, {"rate": 1, "intervals_in_load": 1}],
                }
            },
            quantities(
                (6, "coincident_peak", 0, 3), (7, "coincident_peak", 0, 5), (8, "coincident_peak", 1, 7)
            ),
            "total",
            YEAR,
            57,
        ),
        (
            {
                "x_coincident_peak": {
                    "statistic": "max",
                    "applies": "following calendar year",
                    "sets": [{"rate": 10, "intervals_in_load": 1}],
                }
            },
            quantities((6, "coincident_peak", 0, 3)),
            "coincident_peak_charge",
            ("2024-01-01T00:00", "2025-01-01T00:00"),
            30,
        ),
        (
            {
                "fixedmonthlycharge": 1,
                "x_coincident_peak": {
                    "statistic": "max",
                    "applies": "following calendar year",
                    "sets": [{"rate": 10, "hours_of_year_1based": [1]}],
                },
            },
            constant(1),
            "total",
            YEAR,
            12,
        ),
        # Rows with windows of any minute: 9 Saturdays and Sundays of January, three quarters of an hour each.
        ({"x_charges": [ROWS]}, constant(1, minutes=15), "energy_charge", month(1), 9 * 0.75 * 0.5),
        ({"x_charges": [ROWS]}, constant(1, minutes=15), "energy_charge", month(2), 0),
        # A part of a month is billed from its own intervals; monthly prices are due in full.
        (
            {**energy({"rate": 1}), **flat({"rate": 1}), "fixedmonthlycharge": 5},
            ruled(base_kw=0, step_kw=1, end="2023-01-03T00:00"),
            "total",
            ("2023-01-01T00:00", "2023-01-02T00:00"),
            276 + 23 + 5,
        ),
    ],
)
def test_rows_that_the_layout_describes(tmp_path, *, tariff, load, component, period, expected):
    unit = {"billing_demand_kw": "kW", "coincident_peak_kw": "kW", "hours_of_use_h": "h"}.get(component)
    unit = unit or ("kWh" if component.startswith("energy_kwh") else None)
    cells = {"currency": unit} if unit else {}
    assert expected == computed(tmp_path, tariff, load, component, period, **cells)


@pytest.mark.parametrize(
    ("component", "unit", "expected"), [("billing_demand_kw", "kW", 709.26), ("total", "USD", 17_755.29)]
)
def test_billing_demand_of_last_june(tmp_path, component, unit, expected):
    """SSC's own figures for July where 95% of the peaks of June to September count for eleven months."""
    tariff = json.loads((SHIPPED / "ssc-hours-use-of-demand.json").read_text())
    tariff["x_billing_demand"] = {
        "percent_by_month": [60] * 5 + [95] * 4 + [60] * 3,
        "include_actual_peak_by_month": [1] * 12,
        "lookback_months": 11,
    }
    with (SHIPPED / "ssc-billing-determinants.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["load"] == "load_commercial_large"]
    load = quantities(
        *(
            (int(row["month"]), row["kind"], int(row["period_index_0based"] or 0), float(row["value"]))
            for row in rows
        )
    )
    found = checked(tmp_path, tariff, load, component, month(7), currency=unit)
    assert found.computed == pytest.approx(expected, abs=0.02)


def test_a_clock_with_daylight_saving_is_read_as_one_of_24_hours_a_day(tmp_path):
    tariff = energy({"rate": 1})
    load = constant(1, "2023-03-01T00:00", "2023-04-01T00:00")
    assert computed(tmp_path, tariff, load, "energy_charge", month(3), time_zone="America/Chicago") == 744


def test_a_load_of_a_rule_adds_and_then_sets(tmp_path):
    load = ruled(
        base_kw=1,
        step_kw=1,
        end="2023-01-02T00:00",
        add=[
            {"kw": 100, "hours": [3, 4.5]},
            {"kw": 1000, "months": [2]},
            {"kw": 10, "weekdays": [7], "hours": [0, 1], "months": [1]},
        ],
        set=[{"intervals_1based": [2, 24], "kw": 0}],
    )
    # 1 to 24 kW, without the second and the last; 200 kWh at 3 and 4 o'clock; 1 January 2023 was a Sunday.
    expected = sum(range(1, 25)) - 2 - 24 + 200 + 10
    assert computed(tmp_path, energy({"rate": 1}), load, "energy_charge", month(1)) == expected


@pytest.mark.parametrize(
    ("tariff", "load", "component", "period", "cells", "reason"),
    [
        ({"fixedmonthlycharge": 1, "x_windfall": 1}, constant(1), "total", YEAR, {}, "x_windfall"),
        ({"fixedmonthlycharge": 1, "approved": True}, constant(1), "total", YEAR, {}, "approved"),
        ({"fixedmonthlycharge": 1}, constant(1), "total", YEAR, {"tariff_file": ""}, "no tariff"),
        (
            {"fixedmonthlycharge": 1},
            constant(1),
            "total",
            YEAR,
            {"tariff_file": "../rate"},
            "not in the folder",
        ),
        ({"fixedmonthlycharge": 1}, constant(1), "subtotal", YEAR, {}, "component"),
        ({"fixedmonthlycharge": 1}, constant(1), "total", YEAR, {"currency": "EUR"}, "currency"),
        ({"fixedmonthlycharge": 1}, constant(1), "total", YEAR, {"role": "guess"}, "role"),
        ({"fixedmonthlycharge": 1}, constant(1), "total", YEAR, {"expected": "many"}, "expected"),
        ({"fixedmonthlycharge": 1}, constant(1), "total", YEAR, {"time_zone": "Mars/Olympus"}, "time zone"),
        ({"fixedmonthlycharge": 1}, constant(1), "total", YEAR, {"calendar_year": "2022"}, "calendar_year"),
        ({"fixedmonthlycharge": 1}, constant(1), "total", month(1, 2025), {}, "no month"),
        ({"fixedmonthlycharge": 1}, {"kind": "profile"}, "total", YEAR, {}, "kind"),
        ({"fixedmonthlycharge": 1}, constant(1, season="dry"), "total", YEAR, {}, "season"),
        ({"fixedmonthlycharge": 1}, constant(1, metering="none"), "total", YEAR, {}, "metering"),
        ({"fixedmonthlycharge": 1}, constant(1, power_factor=2), "total", YEAR, {}, "power_factor"),
        (
            {"fixedmonthlycharge": 1},
            ruled(base_kw=1, add=[{"kw": 1, "days": [1]}]),
            "total",
            YEAR,
            {},
            "days",
        ),
        (
            {"fixedmonthlycharge": 1},
            ruled(base_kw=1, set=[{"intervals_1based": [0], "kw": 1}]),
            "total",
            YEAR,
            {},
            "outside",
        ),
        (flat({"rate": 1}), annual(5, 5), "total", YEAR, {}, "SERIES_REQUIRED"),
        (
            {**EUR, "x_energy_price_ct_per_kwh": 1, "x_condition": {"hours_of_use_min": 2500}},
            annual(2499, 1),
            "total",
            YEAR,
            {},
            "HOURS_OF_USE",
        ),
        (energy({"rate": 1}), quantities((1, "energy", 4, 1)), "total", YEAR, {}, "period 4"),
        (
            energy({"rate": 1}),
            quantities((1, "energy", 0, 1), (1, "energy", 0, 1)),
            "total",
            YEAR,
            {},
            "twice",
        ),
        (
            energy({"rate": 1}, x_tier_accumulation="all_periods_in_time_order"),
            quantities((1, "energy", 0, 1)),
            "energy_charge",
            YEAR,
            {},
            "SERIES_REQUIRED",
        ),
        ({"x_charges": [ROWS]}, quantities((1, "energy", 0, 1)), "energy_charge", YEAR, {}, "x_charges"),
        (
            {"x_coincident_peak": {"statistic": "max", "sets": [{"rate": 1, "intervals_in_load": 4}]}},
            quantities((6, "coincident_peak", 0, 3)),
            "total",
            YEAR,
            {},
            "intervals_in_load",
        ),
        (
            {
                "x_coincident_peak": {
                    "statistic": "max",
                    "sets": [{"rate": 1, "hours_of_year_1based": [8760]}],
                }
            },
            constant(1, end="2023-12-31T00:00"),
            "total",
            YEAR,
            {},
            "hours_of_year_1based",
        ),
        (
            {"x_coincident_peak": {"statistic": "max", "sets": [{"rate": None, "intervals_in_load": 1}]}},
            quantities((6, "coincident_peak", 0, 3)),
            "coincident_peak_charge",
            YEAR,
            {},
            "no price",
        ),
        (
            {"fixedmonthlycharge": 1, "mincharge": 5, "minchargeunits": "$/month"},
            annual(5, 5),
            "total",
            YEAR,
            {},
            "mincharge",
        ),
        (
            {"x_charges": [{**ROWS, "type": "demand", "unit": "$/kW"}]},
            constant(1),
            "flat_demand_charge",
            YEAR,
            {},
            "x_charges",
        ),
        (
            flat({"rate": 1}, lookbackpercent=0.5, lookbackrange=2),
            constant(1),
            "total",
            ("2023-01-01T00:00", "2023-01-02T00:00"),
            {},
            "whole months",
        ),
    ],
)
def test_rows_that_cannot_be_computed_say_why_and_never_pass(
    tmp_path, *, tariff, load, component, period, cells, reason
):
    found = checked(tmp_path, tariff, load, component, period, **cells)
    assert found.skipped is not None
    assert reason in found.skipped
    assert (found.computed, found.passed) == (None, None)
    assert not all_exact_pass([found])


def test_a_sanity_row_with_a_tariff_is_computed_and_not_judged(tmp_path):
    tariff = energy({"rate": 0.5}, fixedmonthlycharge=744)
    found = checked(
        tmp_path, tariff, constant(2), "average_price", month(1), role="sanity", currency="USD cents/kWh"
    )
    assert (found.computed, found.passed, found.skipped) == (100.0, None, None)
    assert all_exact_pass([found])


def test_excluded_keys_are_left_out(tmp_path):
    tariff = {"fixedmonthlycharge": 1, "x_fixed_nok_per_year": 24, "x_windfall": 3}
    found = computed(
        tmp_path, tariff, constant(1), "total", month(1), excluded_keys="x_fixed_nok_per_year;x_windfall"
    )
    assert found == 1


def test_a_charge_that_the_component_does_not_need_does_not_stop_it(tmp_path):
    tariff = {**energy({"rate": 2}), **TIMED_DEMAND}
    assert computed(tmp_path, tariff, quantities((1, "energy", 0, 5)), "energy_charge") == 10


def test_the_slack_of_a_tolerance_of_nothing():
    assert passes(1e6 + 9e-4, 1e6, 0)
    assert not passes(1e6 + 2e-3, 1e6, 0)
    assert passes(1e-9, 0, 0)


def folder(tmp_path, **cells):
    (tmp_path / "rate.json").write_text(json.dumps({"fixedmonthlycharge": 1}))
    row = {
        **dict.fromkeys(COLUMNS, ""),
        "bill_id": "one",
        "component": "total",
        "expected": "12",
        "currency": "USD",
        "abs_tolerance": "0",
        "role": "exact",
        "tariff_file": "rate",
        "load_json": json.dumps(constant(1)),
        "period_start": YEAR[0],
        "period_end": YEAR[1],
        "calendar_year": "2023",
        "time_zone": "Etc/UTC",
        **cells,
    }
    with (tmp_path / "bills.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerow(row)
    return tmp_path


@pytest.mark.parametrize(
    ("cells", "code", "passed"),
    [({}, 0, True), ({"expected": "13"}, 1, False), ({"tariff_file": "no"}, 1, None)],
)
def test_the_command_says_whether_all_exact_rows_passed(tmp_path, cells, code, passed):
    answer = tmp_path / "answer.json"
    arguments = ["bills", str(folder(tmp_path, **cells)), "--json", str(answer)]
    assert CliRunner().invoke(app, arguments).exit_code == code
    (row,) = json.loads(answer.read_text())
    assert list(row) == ["bill_id", "role", "expected", "computed", "passed", "skipped"]
    assert (row["bill_id"], row["passed"]) == ("one", passed)
    assert (row["skipped"] is None) == (passed is not None)


def test_a_folder_without_rows_cannot_be_read(tmp_path):
    assert CliRunner().invoke(app, ["bills", str(tmp_path)]).exit_code == 2
    (tmp_path / "bills.csv").write_text("bill_id,role\n")
    assert CliRunner().invoke(app, ["bills", str(tmp_path)]).exit_code == 2


def test_a_tariff_that_is_refused_is_named_also_without_a_bill(tmp_path):
    (folder(tmp_path) / "odd.json").write_text(json.dumps({"fixedmonthlycharge": 1, "x_windfall": 1}))
    result = CliRunner().invoke(app, ["bills", str(tmp_path)])
    assert result.exit_code == 0
    assert "odd.json: x_windfall" in result.output


def test_json_has_every_row():
    rows = document(list(checked_bills().values()))
    assert len(rows) == 145
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
