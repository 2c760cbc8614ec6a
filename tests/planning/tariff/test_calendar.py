"""Holidays, days, windows past midnight, revisions, and what a load must be."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod, MeteredLoad
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.charges import (
    BillingDemand,
    ChargeProration,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    HolidayTreatment,
    LocalTimeWindow,
    PricePeriod,
    PriceTier,
    Tariff,
    TariffRevision,
    TariffTierUnit,
)
from tests.planning.tariff.loads import START, WEEKDAYS, amounts, flat, load, tariff, timed


def approx(value):
    return pytest.approx(Decimal(value), abs=Decimal("1e-9"))


def kwh(charge, series, **fields):
    found = compute_bill(tariff(charge, **fields), series).periods[0].lines
    return {line.period: line.quantity for line in found}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (HolidayTreatment.AS_WEEKDAY, 72.0),
        (HolidayTreatment.EXCLUDED, 48.0),
        (HolidayTreatment.INCLUDED, 96.0),
    ],
)
def test_a_holiday_is_to_each_window_what_the_window_says(rule, expected):
    """Monday 1 and Saturday 6 January 2024 are holidays: Monday to Wednesday has 3 days, 2 or 4."""
    window = LocalTimeWindow(weekdays=frozenset({1, 2, 3}), holidays=rule)
    period = PricePeriod(name="days", tiers=(PriceTier(price=Decimal(1)),), windows=(window,))
    days = frozenset({date(2024, 1, 1), date(2024, 1, 6)})
    charge = EnergyCharge(name="energy", periods=(period,))
    assert kwh(charge, load(START, [1.0] * 168), holidays=days) == {"days": expected}


def test_a_window_past_midnight_belongs_to_the_day_on_which_it_begins():
    """Friday night 22:00 to 06:00 in a load from Friday noon: 8 h; Thursday night's rest is before it."""
    charge = EnergyCharge(name="energy", periods=(timed("night", "1", 22, 6, weekdays=frozenset({5})),))
    friday = datetime(2024, 3, 1, tzinfo=UTC)
    assert kwh(charge, load(friday, [1.0] * 48)) == {"night": 8.0}
    assert kwh(charge, load(friday + timedelta(days=1), [1.0] * 24)) == {"night": 6.0}


def test_a_leap_day_is_a_day_of_its_week():
    """29 February 2024 was a Thursday: the four weekdays after Monday 26 February and Friday 1 March."""
    charge = EnergyCharge(name="energy", periods=(timed("week", "1", 0, 24, weekdays=WEEKDAYS),))
    assert compute_bill(tariff(charge), load(datetime(2024, 2, 26, tzinfo=UTC), [1.0] * 168)).total == 120
    daily = FixedCharge(name="day", price=Decimal(1), per=FixedChargePeriod.DAY)
    februaries = [load(datetime(year, 2, 1, tzinfo=UTC), [1.0]) for year in (2023, 2024)]
    assert [compute_bill(tariff(daily), series).total for series in februaries] == [28, 29]


def test_tiers_by_day_grow_with_the_days_of_the_billing_period():
    """20 kWh on each of 30 days, 10 a day or 12 h a day of the peak at 0.1: 300 at 0.1 and 300 at 0.2."""
    for unit, limit in ((TariffTierUnit.KWH_PER_DAY, 10.0), (TariffTierUnit.KWH_PER_KW_PER_DAY, 12.0)):
        tiers = (
            PriceTier(price=Decimal("0.1"), limit=limit, unit=unit),
            PriceTier(price=Decimal("0.2"), unit=unit),
        )
        charge = EnergyCharge(name="energy", periods=(PricePeriod(name="all", tiers=tiers),))
        kw = np.full(30 * 24, 20.0 / 24.0)
        found = compute_bill(tariff(charge), load(datetime(2024, 4, 1, tzinfo=UTC), kw))
        assert found.total == approx("90")


def test_demand_of_a_period_with_two_revisions_counts_by_days():
    """100 kW in April 2024; 3 a kW until the 10th, 6 from the 11th: 100 x (10 x 3 + 20 x 6) / 30."""
    revisions = tuple(
        TariffRevision(effective_from=start, charges=(DemandCharge(name="demand", periods=(flat(price),)),))
        for start, price in ((date(2024, 1, 1), 3), (date(2024, 4, 11), 6))
    )
    terms = Tariff(currency_code="EUR", time_zone="Etc/UTC", revisions=revisions)
    kw = np.full(720, 50.0)
    kw[600] = 100.0
    found = compute_bill(terms, load(datetime(2024, 4, 1, tzinfo=UTC), kw))
    assert found.total == approx("500")
    assert {line.peak_at.day for line in found.periods[0].lines} == {26}


def test_the_season_of_a_prorated_demand_counts_its_days():
    """21 May to 19 June 2023, summer from June: 11 / 31 of a month in winter, 19 / 30 in summer."""
    summer = frozenset({6, 7, 8, 9})
    periods = (
        timed("summer", "10", 0, 24, months=summer),
        timed("winter", "1", 0, 24, months=frozenset(range(1, 13)) - summer),
    )
    charge = DemandCharge(name="demand", periods=periods, proration=ChargeProration.DAYS_OF_MONTH)
    period = [BillingPeriod(date(2023, 5, 21), date(2023, 6, 20))]
    series = load(datetime(2023, 5, 21, tzinfo=UTC), [100.0] * 30 * 24)
    lines = compute_bill(tariff(charge), series, periods=period).periods[0].lines
    assert {line.period: line.quantity for line in lines} == {
        "summer": pytest.approx(100 * 19 / 30),
        "winter": pytest.approx(100 * 11 / 31),
    }


def test_a_ratchet_may_raise_one_price_period_and_wrap_the_year():
    rule = BillingDemand(
        ratchets=(
            DemandRatchet(
                preceding_months=11, share_by_peak_month=(0.5,) * 12, raises=("day",), wraps_year=True
            ),
        )
    )
    periods = (timed("day", "1", 8, 20), timed("night", "1", 20, 8))
    charge = DemandCharge(name="demand", periods=periods, billing_demand=rule)
    kw = np.full(60 * 24, 10.0)
    kw[50 * 24] = 80.0
    found = compute_bill(tariff(charge), load(START, kw))
    assert not found.findings
    assert {line.period: line.quantity for line in found.periods[0].lines} == {"day": 40.0, "night": 10.0}


def test_energy_before_the_billing_periods_is_not_billed_and_counts_for_ratchets():
    rule = BillingDemand(ratchets=(DemandRatchet(preceding_months=1),))
    charges = (
        EnergyCharge(name="energy", periods=(flat("1"),)),
        DemandCharge(name="demand", periods=(flat("1"),), billing_demand=rule),
    )
    kw = np.full(60 * 24, 1.0)
    kw[5] = 70.0
    february = [BillingPeriod(date(2024, 2, 1), date(2024, 3, 1))]
    found = compute_bill(tariff(*charges), load(START, kw), periods=february)
    assert (amounts(found, "energy"), amounts(found, "demand")) == (29 * 24, 70)


def test_a_load_behind_the_transformer_bears_its_losses():
    """Batavia: secondary metering adds 1% to kWh and kW."""
    charges = (
        EnergyCharge(name="energy", periods=(flat("1"),)),
        DemandCharge(name="demand", periods=(flat("1"),)),
    )
    terms = tariff(*charges, secondary_loss_factor=0.01)
    series = load(START, [100.0])
    assert compute_bill(terms, series).total == 200
    assert compute_bill(terms, series._replace(secondary=True)).total == approx("202")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"kw": np.zeros(0)}, "LOAD_EMPTY"),
        ({"kw": np.array([-1.0])}, "LOAD_KW"),
        ({"kw": np.array([np.nan])}, "LOAD_KW"),
        ({"interval_minutes": 0}, "LOAD_INTERVAL"),
        ({"interval_minutes": 10**9}, "LOAD_RANGE"),
        ({"start": datetime(9999, 12, 31, tzinfo=UTC)}, "LOAD_RANGE"),
        ({"start": datetime(1, 1, 1, tzinfo=UTC)}, "LOAD_RANGE"),
        ({"power_factor": 0.0}, "POWER_FACTOR"),
        ({"start": datetime(2024, 1, 1)}, "INTERVAL_START"),  # noqa: DTZ001
        ({"start": START + timedelta(seconds=1)}, "INTERVAL_START"),
    ],
)
def test_a_load_that_cannot_be_billed_is_refused(fields, code):
    terms = tariff(EnergyCharge(name="energy", periods=(flat("1"),)))
    with pytest.raises(PlanningError) as problem:
        compute_bill(terms, MeteredLoad(START, 60, np.array([1.0]))._replace(**fields))
    assert problem.value.code == code


@pytest.mark.parametrize(
    "periods",
    [
        [],
        [(date(2024, 1, 2), date(2024, 1, 2))],
        [(date(2024, 1, 2), date(9999, 12, 31))],
        [(date(2024, 2, 1), date(2024, 3, 1)), (date(2024, 1, 1), date(2024, 2, 1))],
        [(date(2024, 1, 1), date(2024, 2, 2)), (date(2024, 2, 1), date(2024, 3, 1))],
    ],
)
def test_billing_periods_are_in_order(periods):
    with pytest.raises(PlanningError) as problem:
        compute_bill(tariff(), load(START, [1.0]), periods=[BillingPeriod(*each) for each in periods])
    assert problem.value.code == "BILLING_PERIODS"


def test_a_rolling_window_is_whole_intervals():
    charge = DemandCharge(name="demand", periods=(flat("1"),), window_minutes=30, rolling=True)
    with pytest.raises(PlanningError) as problem:
        compute_bill(tariff(charge), load(START, [1.0] * 6, 20))
    assert problem.value.code == "DEMAND_WINDOW"


def test_hourly_means_hide_peaks_of_quarter_hours():
    charge = DemandCharge(name="demand", periods=(flat("1"),), window_minutes=15)
    found = compute_bill(tariff(charge), load(START, [1.0]))
    assert [finding.code for finding in found.findings] == ["DEMAND_WINDOW"]
    assert not compute_bill(tariff(charge), load(START, [1.0] * 4, 15)).findings


def test_the_hour_that_comes_twice_is_two_demand_windows():
    """Berlin, 27 October 2024, 02:00 to 03:00 twice: 40 and 80 kW are two hours, not one of 60."""
    start = datetime(2024, 10, 27, tzinfo=ZoneInfo("Europe/Berlin"))
    kw = np.zeros(25 * 4)
    kw[8:12], kw[12:16] = 40.0, 80.0
    charge = DemandCharge(name="demand", periods=(flat("1"),), window_minutes=60)
    (line,) = compute_bill(tariff(charge, zone="Europe/Berlin"), load(start, kw, 15)).periods[0].lines
    assert line.quantity == 80.0
    assert line.peak_at.astimezone(UTC) == datetime(2024, 10, 27, 1, tzinfo=UTC)


def test_a_calendar_that_was_compiled_for_one_tariff_is_not_taken_for_another():
    charge = EnergyCharge(name="energy", periods=(timed("a", "1", 0, 12),))
    terms = tariff(charge)
    other = replace(terms, time_zone="Etc/GMT-6")
    day = load(START, np.arange(24.0))
    assert [compute_bill(each, day).total for each in (terms, other, terms)] == [
        66,
        15 + 18 + 19 + 20 + 21 + 22 + 23,
        66,
    ]
