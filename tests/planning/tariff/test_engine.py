"""Fixed, energy and demand charges against bills worked by hand."""

from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.charges import (
    BillingDemand,
    ChargeProration,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    LocalTimeWindow,
    MinimumCharge,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    Tariff,
    TariffRevision,
    TariffTierUnit,
    TierAccumulation,
)
from tests.planning.tariff.loads import WEEKDAYS, amounts, flat, load, tariff, timed, year


def approx(value, tolerance=1e-9):
    return pytest.approx(Decimal(value), abs=Decimal(str(tolerance)))


def test_fixed_charges_by_day_month_year_and_meter():
    """February 2024 has 29 days: 29 x 2 + 100 x 3 meters + 1200 / 12."""
    charges = (
        FixedCharge(name="day", price=Decimal(2), per=FixedChargePeriod.DAY),
        FixedCharge(name="month", price=Decimal(100), meters=3),
        FixedCharge(name="year", price=Decimal(1200), per=FixedChargePeriod.YEAR),
    )
    found = compute_bill(tariff(*charges), load(datetime(2024, 2, 10, tzinfo=UTC), [1.0]))
    assert [line.amount for line in found.periods[0].lines] == [58, 300, 100]
    assert [(line.quantity, line.unit) for line in found.periods[0].lines] == [
        (29.0, "day"), (3.0, "month"), (1 / 12, "year"),
    ]  # fmt: skip


def test_energy_by_time_of_use_reads_the_local_clock():
    """Monday 4 March 2024, 10 kW: 8 h at 0.30 from 09:00 to 17:00 in Berlin, the other 16 h at 0.10."""
    charge = EnergyCharge(
        name="energy",
        periods=(
            timed("peak", "0.30", 9, 17, weekdays=WEEKDAYS),
            PricePeriod(
                name="off",
                tiers=(PriceTier(price=Decimal("0.10")),),
                windows=(
                    LocalTimeWindow(from_minute=17 * 60, to_minute=9 * 60, weekdays=frozenset(range(1, 8))),
                    LocalTimeWindow(from_minute=540, to_minute=1020, weekdays=frozenset({6, 7})),
                ),
            ),
        ),
    )
    start = datetime(2024, 3, 4, tzinfo=ZoneInfo("Europe/Berlin"))
    found = compute_bill(tariff(charge, zone="Europe/Berlin"), load(start, [10.0] * 24))
    assert {line.period: line.quantity for line in found.periods[0].lines} == {"peak": 80.0, "off": 160.0}
    assert found.total == approx("40.00")


TIERS = (PriceTier(price=Decimal("0.10"), limit=100.0), PriceTier(price=Decimal("0.20")))


def test_tiers_count_the_energy_of_the_month():
    """FPL RS-1 as REopt tests it (bills.csv reopt-fpl-tier): 2000 kWh a month cost 2342.88 a year."""
    tiers = (PriceTier(price=Decimal("0.08721"), limit=1000.0), PriceTier(price=Decimal("0.10803")))
    charge = EnergyCharge(name="energy", periods=(PricePeriod(name="all", tiers=tiers),))
    kw = np.concatenate([np.full(days * 24, 2000.0 / (days * 24)) for days in MONTH_DAYS])
    found = compute_bill(tariff(charge), load(datetime(2022, 1, 1, tzinfo=UTC), kw))
    assert found.total == approx("2342.88")
    assert [(line.tier, round(line.quantity, 6)) for line in found.periods[3].lines] == [(1, 1000), (2, 1000)]


MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def test_tiers_of_all_periods_fill_in_order_of_time():
    """bills.csv eeco-tier-energy: 100 kW for a day, 100 kWh at 0.05, 18 h at 0.10, 5 h at 0.15: 260."""
    charge = EnergyCharge(
        name="energy",
        accumulation=TierAccumulation.ALL_PERIODS_IN_TIME_ORDER,
        periods=(
            PricePeriod(
                name="base",
                tiers=(PriceTier(price=Decimal("0.05"), limit=100.0), PriceTier(price=Decimal("0.10"))),
                windows=(LocalTimeWindow(from_minute=21 * 60, to_minute=16 * 60),),
            ),
            PricePeriod(
                name="peak",
                tiers=(PriceTier(price=Decimal("0.10"), limit=100.0), PriceTier(price=Decimal("0.15"))),
                windows=(LocalTimeWindow(from_minute=16 * 60, to_minute=21 * 60),),
            ),
        ),
    )
    found = compute_bill(tariff(charge), load(datetime(2024, 7, 10, tzinfo=UTC), [100.0] * 96, 15))
    assert found.total == approx("260")


def test_hours_use_tiers_nest_a_ladder_of_kwh():
    """200 h x 50 kW = 10,000 kWh at nested prices, 20,000 at the second tier, 10,000 at the third.

    10,000 = 3000 x 0.20 + 7000 x 0.15; then 20,000 x 0.05 up to 600 h and 10,000 x 0.01 beyond.
    """
    unit = TariffTierUnit.KWH_PER_KW
    tiers = (
        PriceTier(price=Decimal(9), limit=200.0, unit=unit),
        PriceTier(price=Decimal("0.20"), limit=3000.0),
        PriceTier(price=Decimal("0.15"), limit=20000.0),
        PriceTier(price=Decimal(7)),
        PriceTier(price=Decimal("0.05"), limit=600.0, unit=unit),
        PriceTier(price=Decimal("0.01"), unit=unit),
    )
    charge = EnergyCharge(name="energy", periods=(PricePeriod(name="all", tiers=tiers),))
    kw = np.full(800, 50.0)
    found = compute_bill(
        tariff(charge), load(datetime(2024, 7, 1, tzinfo=UTC), kw), periods=[JULY_AND_A_WEEK]
    )
    assert [(line.tier, line.quantity) for line in found.periods[0].lines] == [
        (2, 3000.0), (3, 7000.0), (5, 20000.0), (6, 10000.0),
    ]  # fmt: skip
    assert found.total == approx("2750")


JULY_AND_A_WEEK = BillingPeriod(date(2024, 7, 1), date(2024, 8, 8))


def test_a_demand_charge_names_the_interval_that_set_the_peak():
    kw = np.full(31 * 96, 80.0)
    kw[1234] = 100.0
    charge = DemandCharge(name="demand", periods=(flat("10"),))
    start = datetime(2024, 1, 1, tzinfo=ZoneInfo("America/Los_Angeles"))
    (line,) = compute_bill(tariff(charge, zone="America/Los_Angeles"), load(start, kw, 15)).periods[0].lines
    assert (line.quantity, line.amount, line.unit) == (100.0, 1000, "kW")
    assert line.peak_at == datetime(2024, 1, 13, 20, 30, tzinfo=start.tzinfo)


def test_demand_windows_average_intervals():
    """Quarter hours of 0, 40, 80 and 0 kW: 60 kW in the half hour from :15 rolling, 40 kW by the clock."""
    kw = np.zeros(96)
    kw[41:43] = 40.0, 80.0
    day = load(datetime(2024, 1, 1, tzinfo=UTC), kw, 15)

    def peak(**fields):
        charge = DemandCharge(name="demand", periods=(flat("1"),), **fields)
        line = compute_bill(tariff(charge), day).periods[0].lines[0]
        return line.quantity, line.peak_at.hour, line.peak_at.minute

    assert peak() == (80.0, 10, 30)
    assert peak(window_minutes=30) == (40.0, 10, 30)
    assert peak(window_minutes=60) == (30.0, 10, 0)
    assert peak(window_minutes=30, rolling=True) == (60.0, 10, 15)


def test_an_interval_that_a_boundary_cuts_splits_energy_and_counts_on_both_sides():
    """10 kW from 08:00 to 09:00 across 08:30: 5 kWh each, 10 kW each, and a finding."""
    periods = (timed("night", "0.1", 0, 8.5), timed("day", "0.2", 8.5, 24))
    charges = (EnergyCharge(name="energy", periods=periods), DemandCharge(name="demand", periods=periods))
    found = compute_bill(tariff(*charges), load(datetime(2024, 1, 1, 8, tzinfo=UTC), [10.0]))
    quantities = [(line.charge, line.period, line.quantity) for line in found.periods[0].lines]
    assert quantities == [
        ("energy", "night", 5.0), ("energy", "day", 5.0), ("demand", "night", 10.0), ("demand", "day", 10.0),
    ]  # fmt: skip
    assert [finding.code for finding in found.findings] == ["INTERVAL_CUT"]
    at = {line.peak_at for line in found.periods[0].lines if line.charge == "demand"}
    assert at == {datetime(2024, 1, 1, 8, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("ratchet", "wraps", "expected"),
    [
        (
            DemandRatchet(share_by_billing_month=(0.75,) * 12, peak_months=frozenset({1, 4, 12})),
            False,
            "74500",
        ),
        (DemandRatchet(share_by_billing_month=(0.75,) * 12, preceding_months=6), True, "79375"),
    ],
)
def test_ratchets_of_months_and_of_a_range(ratchet, wraps, expected):
    """REopt.jl's lookback tests (bills.csv reopt-lookback-months, -range): 74,500 and 79,375 USD."""
    rates = (10, 10, 20, 50, 20, 10, 20, 20, 20, 20, 20, 5)
    periods = tuple(
        PricePeriod(
            name=str(month),
            tiers=(PriceTier(price=Decimal(rate)),),
            windows=(LocalTimeWindow(months=frozenset({month})),),
        )
        for month, rate in enumerate(rates, 1)
    )
    charge = DemandCharge(name="demand", periods=periods, billing_demand=BillingDemand(ratchets=(ratchet,)))
    series = year(2022, 100.0)
    series.kw[[21, 2402, 4087, 8332]] = 200.0, 400.0, 500.0, 300.0
    found = compute_bill(tariff(charge), series, wraps_year=wraps)
    assert found.total == approx(expected)


def test_months_before_the_load_come_from_the_history_or_count_nothing_and_are_named():
    rule = BillingDemand(ratchets=(DemandRatchet(preceding_months=2, share_by_peak_month=(0.5,) * 12),))
    terms = tariff(DemandCharge(name="demand", periods=(flat("1"),), billing_demand=rule))
    series = load(datetime(2024, 3, 1, tzinfo=UTC), [10.0] * 48)
    unknown = compute_bill(terms, series)
    assert unknown.total == 10
    assert "2024-01, 2024-02" in unknown.findings[0].detail
    known = compute_bill(terms, series, history={(2024, 1): 60.0, (2024, 2): -90.0})
    assert known.total == 30
    assert not known.findings
    assert known.periods[0].billing_demand_kw == {"demand": 30.0}
    assert known.periods[0].lines[0].note == "0.5 of the 60 kW of 2024-01"
    april = load(datetime(2024, 3, 20, tzinfo=UTC), [10.0] * 24 * 20)
    part = compute_bill(terms, april, history={(2024, 1): 0.0, (2024, 2): 0.0, (2024, 3): 40.0})
    assert [period.billing_demand_kw["demand"] for period in part.periods] == [10.0, 20.0]


def test_a_period_after_the_load_carries_its_ratchet():
    rule = BillingDemand(ratchets=(DemandRatchet(preceding_months=11, share_by_peak_month=(0.8,) * 12),))
    terms = tariff(
        FixedCharge(name="meter", price=Decimal(5)),
        DemandCharge(name="demand", periods=(flat("1"),), billing_demand=rule),
    )
    series = load(datetime(2024, 1, 1, tzinfo=UTC), [100.0] * 24)
    after = [BillingPeriod(date(2024, month, 1), date(2024, month + 1, 1)) for month in (1, 2, 3)]
    found = compute_bill(terms, series, periods=after)
    assert [amounts(found, "demand", place) for place in range(3)] == [100, 80, 80]
    assert found.periods[2].lines[1].peak_at == datetime(2024, 1, 1, tzinfo=UTC)


def test_minimum_bill_and_percentages():
    """1 kWh at 0.10 is lifted to 25; 10% rider on that, 20% tax on all of it: 25 x 1.1 x 1.2 = 33."""
    terms = tariff(
        EnergyCharge(name="energy", periods=(flat("0.10"),)),
        MinimumCharge(name="minimum", amount=Decimal(25)),
        PercentageCharge(name="rider", percent=Decimal(10)),
        PercentageCharge(name="tax", percent=Decimal(20), tax=True),
    )
    found = compute_bill(terms, load(datetime(2024, 1, 1, tzinfo=UTC), [1.0]))
    assert found.total == approx("33")
    assert [line.kind for line in found.periods[0].lines] == ["energy", "minimum", "percentage", "tax"]


def test_a_revision_comes_into_force_within_a_billing_period():
    """January 2024, 1 kW: 10 days at 0.1 and 21 at 0.2; the monthly 31 counts by days: 10 x 1 + 21 x 2."""

    def revision(start, energy, monthly):
        return TariffRevision(
            effective_from=start,
            charges=(
                EnergyCharge(name="energy", periods=(flat(energy),)),
                FixedCharge(name="meter", price=Decimal(monthly)),
            ),
        )

    terms = Tariff(
        currency_code="EUR",
        time_zone="Etc/UTC",
        revisions=(revision(date(2020, 1, 1), "0.1", 31), revision(date(2024, 1, 11), "0.2", 62)),
    )
    found = compute_bill(terms, load(datetime(2024, 1, 1, tzinfo=UTC), [1.0] * 744))
    assert amounts(found, "energy") == approx("124.8")
    assert amounts(found, "meter") == approx("52", 1e-12)
    with pytest.raises(PlanningError) as problem:
        compute_bill(terms, load(datetime(2019, 12, 1, tzinfo=UTC), [1.0]))
    assert problem.value.code == "TARIFF_NOT_IN_FORCE"


def test_demand_of_a_period_that_is_not_a_month_is_prorated_as_the_charge_says():
    """15 January to 10 March 2023, 100 kW: 17/31 + 28/28 + 9/31 months, 54 days / 30, or once."""
    series = load(datetime(2023, 1, 15, tzinfo=UTC), [100.0] * 54 * 24)
    period = [BillingPeriod(date(2023, 1, 15), date(2023, 3, 10))]
    for proration, months in (
        (ChargeProration.NONE, 1.0),
        (ChargeProration.THIRTY_DAYS, 54 / 30),
        (ChargeProration.DAYS_OF_MONTH, 17 / 31 + 1 + 9 / 31),
    ):
        charge = DemandCharge(name="demand", periods=(flat("1"),), proration=proration)
        assert compute_bill(tariff(charge), series, periods=period).total == approx(100 * months)


@pytest.mark.parametrize(("day", "hours"), [(date(2024, 3, 31), 23), (date(2024, 10, 27), 25)])
def test_days_on_which_the_clock_changes_keep_their_energy(day, hours):
    charge = EnergyCharge(name="energy", periods=(timed("night", "1", 0, 6), timed("day", "1", 6, 24)))
    start = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo("Europe/Berlin"))
    terms = tariff(charge, zone="Europe/Berlin")
    period = [BillingPeriod(day, date.fromordinal(day.toordinal() + 1))]
    lines = compute_bill(terms, load(start, [1.0] * 30), periods=period).periods[0].lines
    assert {line.period: line.quantity for line in lines} == {"night": hours - 18, "day": 18}


@pytest.mark.parametrize("others", [(), (FixedCharge(name="meter", price=Decimal(1)),)])
def test_energy_in_hours_without_a_price_is_named(others):
    """A day at 1 kW of which 04:00 to 06:00 has no price; a rider on top does not hide it."""
    timed_charge = EnergyCharge(name="use", periods=(timed("a", "1", 0, 4), timed("b", "1", 6, 24)))
    rider = EnergyCharge(name="rider", periods=(flat("0.1"),))
    evening = EnergyCharge(name="evening", periods=(timed("evening", "1", 18, 24),))
    day = load(datetime(2024, 1, 1, tzinfo=UTC), [1.0] * 24)

    def named(*charges):
        return [(one.code, one.detail) for one in compute_bill(tariff(*charges, *others), day).findings]

    assert named(timed_charge) == [("ENERGY_UNPRICED", "use has no price for 2 kWh")]
    assert named(timed_charge, rider) == [("ENERGY_UNPRICED", "use has no price for 2 kWh")]
    assert named(evening) == [("ENERGY_UNPRICED", "no charge has a price for 18 kWh")]
    assert not named(rider, evening)
    assert not named()
