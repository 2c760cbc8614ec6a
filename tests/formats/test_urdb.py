"""Rates of OpenEI's utility rate database: what is read, what is refused by name, and what comes back."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.formats.urdb import tariff_from_urdb
from service.planning.errors import PlanningError
from service.planning.tariff.charges import (
    MONTHS,
    WEEKDAYS,
    BillingDemand,
    ChargeProration,
    CoincidentPeakCharge,
    CoincidentPeakSet,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    LocalTimeWindow,
    MinimumCharge,
    PeakSpan,
    PeakStatistic,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    TariffTierUnit,
    TierAccumulation,
)

DATA = Path(__file__).parents[1] / "data"
ALL_HOURS = [[0] * 24 for _ in range(12)]
FLAT = {"flatdemandstructure": [[{"rate": 10}]], "flatdemandmonths": [0] * 12}


def read(fields, **options):
    return tariff_from_urdb(fields, time_zone="Etc/UTC", only_listed=True, **options)


def charges(fields, **options):
    found = read(fields, **options)
    assert found.refused == ()
    return {charge.name: charge for charge in found.tariff.revisions[0].charges}


def refused(fields, **options):
    return [finding.pointer for finding in read(fields, **options).refused]


def energy(*tiers, **fields):
    return {
        "energyratestructure": [list(tiers)],
        "energyweekdayschedule": ALL_HOURS,
        "energyweekendschedule": ALL_HOURS,
        **fields,
    }


@pytest.mark.parametrize("path", sorted(DATA.glob("tariffs/*.json")), ids=lambda path: path.stem)
def test_every_rate_of_the_worked_bills_is_read_whole(path):
    found = read(json.loads(path.read_text()))
    assert found.refused == ()
    assert found.tariff.revisions[0].charges


@pytest.mark.parametrize("path", sorted(DATA.glob("urdb/*.json")), ids=lambda path: path.stem)
def test_answers_of_the_database_are_read_whole(path):
    document = json.loads(path.read_text())
    found = tariff_from_urdb({"items": [document]}, time_zone="America/Los_Angeles")
    assert found.refused == ()
    assert found.label == document["label"]
    assert found.starts_on == date.fromisoformat(document["startdate"][:10])
    customer = found.tariff.revisions[0].charges[0]
    assert customer.price == Decimal(str(document["fixedchargefirstmeter"]))


def test_attributes_that_no_rule_bills_are_told():
    document = json.loads((DATA / "urdb" / "pge-e20-primary.json").read_text())
    found = tariff_from_urdb(document, time_zone="America/Los_Angeles")
    assert "demandattrs" in {warning.name for warning in found.warnings}


def test_keys_of_the_database_alone_are_refused_where_only_the_listed_are_read():
    document = json.loads((DATA / "urdb" / "pge-e20-primary.json").read_text())
    assert set(refused(document)) == {
        "/approved",
        "/country",
        "/demandattrs",
        "/demandunits",
        "/is_default",
        "/supersedes",
    }


def test_schedules_become_windows():
    weekday = [[0] * 9 + [1] * 8 + [0] * 7 for _ in range(12)]
    fields = {
        "energyratestructure": [[{"rate": 0.1}], [{"rate": 0.2, "adj": 0.01}]],
        "energyweekdayschedule": weekday,
        "energyweekendschedule": ALL_HOURS,
    }
    working_days = frozenset(range(1, 6))
    assert charges(fields)["energy"].periods == (
        PricePeriod(
            name="period_0",
            tiers=(PriceTier(price=Decimal("0.1")),),
            windows=(
                LocalTimeWindow(weekdays=working_days, to_minute=9 * 60),
                LocalTimeWindow(weekdays=WEEKDAYS - working_days),
                LocalTimeWindow(weekdays=working_days, from_minute=17 * 60),
            ),
        ),
        PricePeriod(
            name="period_1",
            tiers=(PriceTier(price=Decimal("0.21")),),
            windows=(LocalTimeWindow(weekdays=working_days, from_minute=9 * 60, to_minute=17 * 60),),
        ),
    )


@pytest.mark.parametrize("limit", [{}, {"max": None}, {"max": 0}, {"max": 1e38}, {"max": 9999999999}])
def test_no_limit_is_written_in_many_ways(limit):
    fields = energy({"rate": 0.1, "max": 100}, {"rate": 0.2, **limit})
    assert charges(fields)["energy"].periods[0].tiers == (
        PriceTier(price=Decimal("0.1"), limit=100.0),
        PriceTier(price=Decimal("0.2")),
    )


def test_tiers_above_one_without_a_limit_and_a_limit_on_the_last_are_told():
    found = read(energy({"rate": 0.1, "max": 0}, {"rate": 0.2}))
    assert [one.pointer for one in found.approximated] == ["/energyratestructure/0/1"]
    assert found.tariff.revisions[0].charges[0].periods[0].tiers == (PriceTier(price=Decimal("0.1")),)
    found = read(energy({"rate": 0.1, "max": 500}))
    assert [one.pointer for one in found.approximated] == ["/energyratestructure/0/0/max"]


@pytest.mark.parametrize(
    ("fields", "pointers"),
    [
        ({"x_windfall": 1, "fixedmonthlycharge": 5}, ["/x_windfall"]),
        ({"coincidentratestructure": [], "fixedmonthlycharge": 5}, ["/coincidentratestructure"]),
        ({"a/b~c": 1, "fixedmonthlycharge": 5}, ["/a~1b~0c"]),
        ({"_meta": {"currency": "USD", "mood": 1}, "fixedmonthlycharge": 5}, ["/_meta/mood"]),
        ({"_meta": {"currency": "dollars"}, "fixedmonthlycharge": 5}, ["/_meta/currency"]),
        (energy({"rate": 0.1, "unit": "kWh daily"}), ["/energyratestructure/0/0/unit"]),
        (energy({"rate": 0.1, "unit": "MWh"}), ["/energyratestructure/0/0/unit"]),
        (energy({"rate": 0.1, "unit": "kW"}), ["/energyratestructure/0/0/unit"]),
        (energy({"rate": 0.1, "sell": 0.1}), ["/energyratestructure/0/0/sell"]),
        (energy({"max": 5}), ["/energyratestructure/0/0/rate"]),
        (energy({"rate": "0.1"}), ["/energyratestructure/0/0/rate"]),
        (energy({"rate": True}), ["/energyratestructure/0/0/rate"]),
        (energy({"rate": float("nan")}), ["/energyratestructure/0/0/rate"]),
        (energy({"rate": 0.1, "max": -1}), ["/energyratestructure/0/0/max"]),
        (energy({"rate": 0.1, "max": 9}, {"rate": 0.2, "max": 9}), ["/energyratestructure/0/1/max"]),
        (energy({"rate": 0.1}, energyweekdayschedule=[[1] * 24] * 12), ["/energyweekdayschedule/0/0"]),
        (energy({"rate": 0.1}, energyweekdayschedule=[[True] * 24] * 12), ["/energyweekdayschedule/0/0"]),
        (energy({"rate": 0.1}, energyweekdayschedule=[[0] * 23] * 12), ["/energyweekdayschedule/0"]),
        (energy({"rate": 0.1}, energyweekendschedule=[[0] * 24] * 11), ["/energyweekendschedule"]),
        ({**FLAT, "flatdemandunit": "hp"}, ["/flatdemandunit"]),
        ({**FLAT, "flatdemandmonths": [1] * 12}, ["/flatdemandmonths/0"]),
        ({**FLAT, "flatdemandstructure": [[{"rate": 1, "unit": "kWh"}]]}, ["/flatdemandstructure/0/0/unit"]),
        (
            {"demandratestructure": [[{"rate": 1}], [{"rate": 2}]]},
            ["/demandweekdayschedule", "/demandweekendschedule"],
        ),
        ({"fixedchargefirstmeter": 1, "fixedchargeunits": "$/week"}, ["/fixedchargeunits"]),
        ({"fixedchargefirstmeter": 1, "fixedchargeunits": "EUR/month"}, ["/fixedchargeunits"]),
        (
            {"fixedchargefirstmeter": 1, "fixedchargeunits": "$/day", "fixedmonthlycharge": 1},
            ["/fixedmonthlycharge"],
        ),
        ({"fixedmonthlycharge": 1, "mincharge": 5, "minchargeunits": "$/day"}, ["/minchargeunits"]),
        ({**FLAT, "lookbackpercent": 0.5}, ["/lookbackpercent"]),
        ({**FLAT, "lookbackpercent": 250, "lookbackrange": 3}, ["/lookbackpercent"]),
        ({**FLAT, "lookbackpercent": 0.5, "lookbackmonths": [2] * 12}, ["/lookbackmonths"]),
        (
            {**FLAT, "lookbackpercent": 0.5, "lookbackmonths": [1] * 12, "lookbackrange": 3},
            ["/lookbackmonths"],
        ),
        ({**FLAT, "demandratchetpercentage": [0.5] * 11}, ["/demandratchetpercentage"]),
        ({"x_fixed_nok_per_year": 5}, ["/x_fixed_nok_per_year"]),
        ({"x_energy_tax_sek_per_kwh": 5}, ["/x_energy_tax_sek_per_kwh"]),
        ({"x_energy_tax_eur_per_kwh": 5}, ["/x_energy_tax_eur_per_kwh"]),
        ({**FLAT, "x_power_factor": {"threshold": 0.9, "rule": "demand / pf"}}, ["/x_power_factor/rule"]),
        ({**FLAT, "x_power_factor": {"threshold": 0.9}}, ["/x_power_factor/rule"]),
        ({**FLAT, "x_billing_demand": {"minimum_kva": 5}}, ["/x_billing_demand/minimum_kva"]),
        ({**FLAT, "x_billing_demand": {"proration": "daily"}}, ["/x_billing_demand/proration"]),
        (
            {**FLAT, "x_billing_demand": {"percent_by_month": [50] * 12}},
            ["/x_billing_demand/include_actual_peak_by_month"],
        ),
        (
            {
                **FLAT,
                "lookbackpercent": 0.5,
                "lookbackrange": 3,
                "x_billing_demand": {
                    "percent_by_month": [50] * 12,
                    "include_actual_peak_by_month": [1] * 12,
                    "year_zero_peaks_kw": [5] * 12,
                },
            },
            ["/x_billing_demand/year_zero_peaks_kw"],
        ),
        (energy({"rate": 1}, x_tier_accumulation="per_day"), ["/x_tier_accumulation"]),
        (
            {"x_coincident_peak": {"statistic": "median", "sets": [{"intervals_in_load": 4}]}},
            ["/x_coincident_peak/statistic"],
        ),
        ({"x_coincident_peak": {"statistic": "max", "sets": [{"rate": 1}]}}, ["/x_coincident_peak/sets/0"]),
        (
            {
                "x_coincident_peak": {
                    "statistic": "max",
                    "applies": "never",
                    "sets": [{"intervals_in_load": 4}],
                }
            },
            ["/x_coincident_peak/applies"],
        ),
        (
            {"x_annual_peak_demand_price": {"price_eur_per_kw_year": 5}},
            ["/x_annual_peak_demand_price/price_eur_per_kw_year"],
        ),
        (
            {"x_condition": {"hours_of_use_max": 5}, "fixedmonthlycharge": 1},
            ["/x_condition/hours_of_use_max", "/x_condition/hours_of_use_min"],
        ),
        ({"x_demandattrs": [{"a": 1, "b": 2}], "fixedmonthlycharge": 1}, ["/x_demandattrs/0"]),
        ({"x_charges": [{"type": "rider", "rate": 1, "unit": "$/kWh"}]}, ["/x_charges/0/type"]),
        ({"x_charges": [{"type": "energy", "rate": 1, "unit": "$/kW"}]}, ["/x_charges/0/unit"]),
        ({"x_charges": [{"type": "energy", "rate": 1, "unit": "$/kWh", "when": 1}]}, ["/x_charges/0/when"]),
        (
            {"x_charges": [{"type": "energy", "rate": 1, "unit": "$/kWh", "hours": [0, 24.5]}]},
            ["/x_charges/0/hours/1"],
        ),
        ({"name": "A rate of nothing"}, [""]),
    ],
)
def test_what_cannot_be_taken_over_is_refused_by_name(fields, pointers):
    assert refused(fields) == pointers


def test_a_refused_key_names_itself():
    (finding,) = read({"fixedmonthlycharge": 5, "x_windfall": 1}).refused
    assert finding.name == "x_windfall"
    (finding,) = read(energy({"rate": 0.1, "unit": "MWh"})).refused
    assert finding.name == "unit"


def test_excluded_keys_are_not_read():
    fields = {"fixedmonthlycharge": 5, "x_windfall": 1, "x_fixed_nok_per_year": 3}
    found = charges(fields, excluded_keys=("x_windfall", "x_fixed_nok_per_year"))
    assert list(found) == ["monthly_customer"]


def test_an_answer_of_several_rates_or_of_none_is_no_rate():
    for items in ([], [{}, {}], 5, [5]):
        with pytest.raises(PlanningError) as error:
            read({"items": items})
        assert error.value.pointer == "/items"


def test_an_end_on_the_day_of_the_start_is_no_end():
    found = read({"fixedmonthlycharge": 1, "startdate": 1508716800, "enddate": 1508716800})
    assert (found.starts_on, found.ends_on) == (date(2017, 10, 23), None)
    assert [warning.name for warning in found.warnings] == ["enddate"]
    assert found.tariff.revisions[0].effective_from == date(2017, 10, 23)
    found = read({"fixedmonthlycharge": 1, "startdate_iso": "2017-10-23", "enddate_iso": "2018-10-22"})
    assert (found.starts_on, found.ends_on) == (date(2017, 10, 23), date(2018, 10, 22))


def test_customer_charges():
    fields = {
        "_meta": {"currency": "NOK"},
        "fixedchargefirstmeter": 24.878,
        "fixedchargeunits": "NOK/day",
        "x_fixed_nok_per_year": 20800,
        "x_annual_fees": {"metering": 800},
    }
    assert charges(fields) == {
        "customer": FixedCharge(name="customer", price=Decimal("24.878"), per=FixedChargePeriod.DAY),
        "yearly_customer": FixedCharge(
            name="yearly_customer", price=Decimal(20800), per=FixedChargePeriod.YEAR
        ),
        "fee metering": FixedCharge(name="fee metering", price=Decimal(800), per=FixedChargePeriod.YEAR),
    }


def test_minimum_bill_and_reactive_power():
    fields = {
        "_meta": {"currency": "SEK"},
        "mincharge": 50,
        "minchargeunits": "$/month",
        "demandreactivepowercharge": 0.51,
        "x_reactive": {"rate_sek_per_kvar_month": 30, "free_fraction_of_active": 0.5},
    }
    assert charges(fields) == {
        "reactive_demand": ReactiveCharge(name="reactive_demand", price=Decimal("0.51")),
        "excess_reactive_demand": ReactiveCharge(
            name="excess_reactive_demand", price=Decimal(30), free_share_of_active=0.5
        ),
        "minimum": MinimumCharge(name="minimum", amount=Decimal(50)),
    }


@pytest.mark.parametrize("share", [0.75, 75])
def test_ratchet_of_named_months(share):
    fields = {**FLAT, "lookbackpercent": share, "lookbackmonths": [True, 0, 0, 1, *[False] * 8]}
    found = read(fields)
    assert found.refused == ()
    assert [one.name for one in found.approximated] == (["lookbackpercent"] if share > 1 else [])
    assert found.tariff.revisions[0].charges[0].billing_demand == BillingDemand(
        ratchets=(DemandRatchet(share_by_billing_month=(0.75,) * 12, peak_months=frozenset({1, 4})),)
    )


def test_ratchet_of_preceding_months_wraps_the_year():
    found = read({**FLAT, "lookbackpercent": 0.75, "lookbackrange": 6, "lookbackmonths": [0] * 12})
    assert found.tariff.revisions[0].charges[0].billing_demand.ratchets == (
        DemandRatchet(share_by_billing_month=(0.75,) * 12, preceding_months=6, wraps_year=True),
    )


def test_no_ratchet_without_a_share_or_a_month():
    for lookback in (
        {"lookbackpercent": 0.0, "lookbackmonths": [0] * 12},
        {"lookbackpercent": 0.5, "lookbackmonths": [0] * 12},
        {"lookbackpercent": 0, "lookbackrange": 6},
    ):
        assert charges({**FLAT, **lookback})["flat_demand"].billing_demand == BillingDemand()


def test_older_ratchet():
    percentages = [0.9, *[0.5] * 11]
    rule = charges({**FLAT, "demandratchetpercentage": percentages})["flat_demand"].billing_demand
    assert rule.ratchets == (DemandRatchet(share_by_billing_month=tuple(percentages), peak_months=MONTHS),)
    whole = charges({**FLAT, "demandratchetpercentage": [90, *[50] * 11]})["flat_demand"].billing_demand
    assert whole == rule


def test_floors_and_the_rules_of_the_billing_demand():
    fields = {
        **FLAT,
        "flatdemandunit": "kVA",
        "x_min_demand_charge_usd_month": 750,
        "x_min_billing_kw": 40,
        "x_power_factor": {"threshold": 0.9, "rule": "demand * (1 + threshold - pf)"},
        "x_billing_demand": {
            "percent_by_month": [60, *[95] * 11],
            "include_actual_peak_by_month": [0, *[1] * 11],
            "lookback_months": 11,
            "year_zero_peaks_kw": [-1, *[100] * 11],
            "apparent_power_factor": 0.95,
            "winter_ratchet_percent": 65,
            "minimum_kw": 50,
            "proration": "30-day month",
            "note": "as the utility bills",
        },
    }
    found = read(fields)
    assert found.refused == ()
    assert found.year_zero_peaks_kw == (-1.0, *[100.0] * 11)
    assert found.tariff.revisions[0].charges == (
        DemandCharge(
            name="flat_demand",
            periods=(
                PricePeriod(name="period_0", tiers=(PriceTier(price=Decimal(10), unit=TariffTierUnit.KW),)),
            ),
            apparent=True,
            minimum=Decimal(750),
            proration=ChargeProration.THIRTY_DAYS,
            billing_demand=BillingDemand(
                minimum_kw=50,
                apparent_power_share=0.95,
                power_factor_threshold=0.9,
                own_peak_months=MONTHS - {1},
                ratchets=(
                    DemandRatchet(share_by_billing_month=(0.65,) * 12, peak_months=frozenset({12, 1, 2, 3})),
                    DemandRatchet(
                        share_by_peak_month=(0.6, *[0.95] * 11),
                        preceding_months=11,
                        within_billing_month=True,
                    ),
                ),
            ),
        ),
    )


def test_floors_without_a_price_still_raise_tiers_by_hours_of_use():
    fields = energy({"rate": 0.1, "unit": "kWh/kW", "max": 200}, {"rate": 0.05, "unit": "kWh/kW"})
    assert charges(fields)["energy"].billing_demand_of is None
    found = charges({**fields, "x_min_billing_kw": 100})
    assert found["energy"].billing_demand_of == "flat_demand"
    assert found["flat_demand"].billing_demand == BillingDemand(minimum_kw=100)
    assert found["flat_demand"].periods[0].tiers[0].price == 0


def test_a_second_list_of_months_adds_both_entries_up():
    fields = {
        "flatdemandstructure": [
            [{"rate": 10, "max": 50}, {"rate": 4}],
            [{"rate": 3, "max": 20}, {"rate": 1}],
        ],
        "flatdemandmonths": [0] * 12,
        "x_extraflatdemandmonths": [1] * 6 + [0] * 6,
    }
    prices = [
        (period.name, [(tier.price, tier.limit) for tier in period.tiers])
        for period in charges(fields)["flat_demand"].periods
    ]
    assert prices == [("period_0", [(13, 20), (11, 50), (5, None)]), ("period_1", [(20, 50), (8, None)])]


def test_energy_besides_the_structure():
    fields = energy(
        {"rate": 1},
        _meta={"currency": "SEK"},
        x_energy_price_ct_per_kwh=0.49,
        x_energy_tax_sek_per_kwh=0.347,
        x_tier_accumulation="all_periods_in_time_order",
    )
    found = charges(fields)
    assert found["energy"].accumulation is TierAccumulation.ALL_PERIODS_IN_TIME_ORDER
    assert found["energy_price"].periods[0].tiers == (PriceTier(price=Decimal("0.0049")),)
    assert found["energy_tax"].periods[0].tiers == (PriceTier(price=Decimal("0.347")),)


def test_annual_demand_losses_and_conditions():
    fields = {
        "_meta": {"currency": "EUR"},
        "x_annual_peak_demand_price": {
            "price_eur_per_kw_year": 147.35,
            "window_minutes": 15,
            "basis": "calendar-year maximum",
        },
        "x_condition": {"hours_of_use_min": 2500},
        "x_secondary_metering_loss_factor": 0.01,
        "x_adj_is": "taxes",
        "x_demandattrs": [{"TOU-1": "Peak"}, {"Facilities": 3}],
    }
    found = read(fields)
    assert found.refused == ()
    assert found.tariff.hours_of_use_minimum == 2500
    assert found.tariff.secondary_loss_factor == 0.01
    (charge,) = found.tariff.revisions[0].charges
    assert (charge.span, charge.window_minutes) == (PeakSpan.CALENDAR_YEAR, 15)


def test_coincident_peaks():
    sets = [{"rate": 10, "hours_of_year_1based": [1, 2, 100]}, {"rate": None, "intervals_in_load": 4}]
    fields = {"x_coincident_peak": {"statistic": "mean", "applies": "following calendar year", "sets": sets}}
    assert charges(fields)["coincident_peak"] == CoincidentPeakCharge(
        name="coincident_peak",
        sets=(
            CoincidentPeakSet(price=Decimal(10), hours_of_year=(1, 2, 100)),
            CoincidentPeakSet(price=None, given=4),
        ),
        statistic=PeakStatistic.MEAN,
        in_following_year=True,
    )


def test_rows_of_any_minute():
    def row(kind, name, rate, hours=(0, 24), months=(1, 12), **fields):
        units = {"demand": "$/kW", "energy": "$/KWH", "customer": "$/month", "export": "$/kWh"}
        return {
            "type": kind,
            "name": name,
            "rate": rate,
            "unit": units[kind],
            "hours": hours,
            "months": months,
            **fields,
        }

    fields = {
        "x_charges": [
            row("customer", None, 100),
            row("energy", "peak", 0.2, hours=[8.5, 21.5], weekdays_0mon=[0, 4]),
            row("energy", "peak", 0.1, hours=[0.0, 8.5]),
            row("demand", "part", 5, hours=[8.5, 12]),
            row("demand", "part", 5, hours=[18, 21.5]),
            row("demand", "part", 6, months=[11, 12]),
            row("export", None, 1),
        ]
    }
    found = charges(fields)
    assert list(found) == ["customer", "energy peak", "energy peak 2", "demand part", "demand part 2"]
    assert found["energy peak"].periods[0].windows == (
        LocalTimeWindow(weekdays=frozenset(range(1, 6)), from_minute=510, to_minute=1290),
    )
    assert [(one.from_minute, one.to_minute) for one in found["demand part"].periods[0].windows] == [
        (510, 720),
        (1080, 1290),
    ]
    assert isinstance(found["demand part"], DemandCharge)
    assert isinstance(found["energy peak"], EnergyCharge)
    assert found["demand part 2"].periods[0].windows == (LocalTimeWindow(months=frozenset({11, 12})),)


def test_what_the_file_says_of_itself_is_shown():
    fields = {
        "fixedmonthlycharge": 1,
        "_meta": {
            "currency": "USD",
            "urdb_representable": "no: half hours",
            "note": "Net of tax.",
            "open": "x",
        },
    }
    found = read(fields)
    assert found.tariff.notes == ("no: half hours", "Net of tax.")
    assert [warning.pointer for warning in found.warnings] == ["/_meta/urdb_representable", "/_meta/note"]
    assert read({"fixedmonthlycharge": 1, "_meta": {"urdb_representable": True}}).warnings == ()


SEEDS = [json.loads(path.read_text()) for path in sorted(DATA.glob("tariffs/*.json"))]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([0, 1, 1e38, -1]),
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(node, at=()):
    """Every place of a document, but for most cells of its schedules."""
    yield at
    if isinstance(node, dict):
        for name, value in node.items():
            yield from places(value, (*at, name))
    elif isinstance(node, list):
        for place, value in enumerate(node[:2]):
            yield from places(value, (*at, place))


def replaced(node, at, value):
    if not at:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[at[0]] = replaced(node[at[0]], at[1:], value)
    return copy


@settings(max_examples=60)
@given(st.data())
def test_a_member_of_any_other_shape_is_read_or_named(data):
    seed = data.draw(st.sampled_from(SEEDS))
    at = data.draw(st.sampled_from([place for place in places(seed) if place]))
    document = replaced(seed, at, data.draw(JUNK))
    for only_listed in (False, True):
        found = tariff_from_urdb(document, time_zone="Etc/UTC", only_listed=only_listed)
        assert found.tariff.revisions[0].charges or found.refused
