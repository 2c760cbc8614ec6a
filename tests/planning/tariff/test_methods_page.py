"""docs/methods/tariff.md: every charge kind has an example, and the engine says the same amount."""

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.planning.tariff.bill import BillingPeriod
from service.planning.tariff.billing import compute_annual_bill, compute_bill
from service.planning.tariff.charges import (
    BillingDemand,
    CoincidentPeakCharge,
    CoincidentPeakSet,
    DemandCharge,
    DemandPricing,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    IntervalPrices,
    LocalTimeWindow,
    MinimumCharge,
    OverrunCharge,
    PeakSpan,
    PeakStatistic,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    RealTimeCharge,
    TariffTierUnit,
    TierAccumulation,
)
from tests.planning.tariff.loads import START, WEEKDAYS, flat, load, tariff, timed, year

PAGE = (Path(__file__).parents[3] / "docs/methods/tariff.md").read_text(encoding="utf-8")
CHARGES = PAGE.partition("\n## Charges\n")[2].partition("\n## ")[0]
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", CHARGES, re.MULTILINE | re.DOTALL))
HOURS = TariffTierUnit.KWH_PER_KW


def tiers(*priced, unit=TariffTierUnit.KWH):
    return tuple(PriceTier(price=Decimal(price), limit=limit, unit=unit) for price, limit in priced)


def ladder(*priced):
    return (PricePeriod(name="all", tiers=tiers(*priced)),)


def demand(price="1", **fields):
    return DemandCharge(name="demand", periods=(flat(price),), **fields)


def total(*charges, of, zone="Etc/UTC", **fields):
    return compute_bill(tariff(*charges, zone=zone), of, **fields).total


def fixed():
    charges = (
        FixedCharge(name="day", price=Decimal(2), per=FixedChargePeriod.DAY),
        FixedCharge(name="month", price=Decimal(100), meters=3),
        FixedCharge(name="year", price=Decimal(1200), per=FixedChargePeriod.YEAR),
    )
    yield total(*charges, of=load(START.replace(month=2), [0.0]))


def energy():
    night = (LocalTimeWindow(from_minute=1020, to_minute=540),)
    off = PricePeriod(name="off", tiers=tiers(("0.10", None)), windows=night)
    charge = EnergyCharge(name="energy", periods=(timed("peak", "0.30", 9, 17, weekdays=WEEKDAYS), off))
    start = datetime(2024, 3, 4, tzinfo=ZoneInfo("Europe/Berlin"))
    yield total(charge, of=load(start, [10.0] * 24), zone="Europe/Berlin")


def energy_tiers():
    periods = ladder(("0.08721", 1000.0), ("0.10803", None))
    yield total(EnergyCharge(name="energy", periods=periods), of=load(START, [100.0] * 20))


def energy_in_time_order():
    base = (LocalTimeWindow(from_minute=1260, to_minute=960),)
    peak = (LocalTimeWindow(from_minute=960, to_minute=1260),)
    periods = (
        PricePeriod(name="base", tiers=tiers(("0.05", 100.0), ("0.10", None)), windows=base),
        PricePeriod(name="peak", tiers=tiers(("0.10", 100.0), ("0.15", None)), windows=peak),
    )
    order = TierAccumulation.ALL_PERIODS_IN_TIME_ORDER
    yield total(
        EnergyCharge(name="energy", periods=periods, accumulation=order), of=load(START, [100.0] * 24)
    )


def hours_of_use():
    nested = (
        *tiers(("9", 200.0), unit=HOURS),
        *tiers(("0.20", 3000.0), ("0.15", None)),
        *tiers(("0.05", 600.0), ("0.01", None), unit=HOURS),
    )
    charge = EnergyCharge(name="energy", periods=(PricePeriod(name="all", tiers=nested),))
    weeks = [BillingPeriod(date(2024, 1, 1), date(2024, 2, 8))]
    yield total(charge, of=load(START, [50.0] * 800), periods=weeks)


def market():
    prices = IntervalPrices(START, 30, np.array([0.05, 0.15, -0.02, -0.02]))
    charge = RealTimeCharge(name="market", prices=prices, adder=Decimal("0.01"), factor=Decimal("1.1"))
    yield total(charge, of=load(START, [10.0, 10.0]))


def demand_by_window():
    kw = np.zeros(96)
    kw[41:43] = 40.0, 80.0
    found = compute_bill(tariff(demand("10", window_minutes=30)), load(START, kw, 15))
    assert found.periods[0].lines[0].peak_at == START.replace(hour=10, minute=30)
    yield found.total


def demand_ladders():
    periods = ladder(("45", 500.0), ("42", 1000.0), ("38", None))
    for pricing in DemandPricing:
        yield total(DemandCharge(name="demand", periods=periods, pricing=pricing), of=load(START, [700.0]))


def annual_demand():
    charges = (
        demand("147.35", span=PeakSpan.CALENDAR_YEAR),
        EnergyCharge(name="x", periods=(flat("0.0049"),)),
    )
    yield compute_annual_bill(tariff(*charges), year=2024, energy_kwh=25e6, peak_kw=5000.0).total


def mean_of_peaks():
    kw = np.full(31 * 24, 10.0)
    kw[[10, 11, 12, 40, 70]] = 90.0, 80.0, 70.0, 60.0, 50.0
    yield total(demand("3", peaks=3, on_distinct_days=True), of=load(START, kw))


def ratchets():
    rates = (10, 10, 20, 50, 20, 10, 20, 20, 20, 20, 20, 5)
    periods = tuple(
        PricePeriod(
            name=str(month), tiers=tiers((rate, None)), windows=(LocalTimeWindow(months=frozenset({month})),)
        )
        for month, rate in enumerate(rates, 1)
    )
    series, shares = year(2022, 100.0), (0.75,) * 12
    series.kw[[21, 2402, 4087, 8332]] = 200.0, 400.0, 500.0, 300.0
    for ratchet in (
        DemandRatchet(share_by_billing_month=shares, peak_months=frozenset({1, 4, 12})),
        DemandRatchet(share_by_billing_month=shares, preceding_months=6),
    ):
        rule = BillingDemand(ratchets=(ratchet,))
        charge = DemandCharge(name="demand", periods=periods, billing_demand=rule)
        yield total(charge, of=series, wraps_year=True)


def power_factor():
    series = load(START, [100.0])._replace(power_factor=0.8)
    yield total(demand("10", billing_demand=BillingDemand(power_factor_threshold=0.9)), of=series)
    yield total(demand("10", apparent=True), of=series)


def overrun():
    contract = demand(billing_demand=BillingDemand(contract_kw=80.0))
    beyond = OverrunCharge(name="overrun", contract_kw=80.0, tolerance=1.1, price=Decimal(3))
    yield total(contract, beyond, of=load(START, [100.0]))


def coincident_peak():
    starts = tuple(datetime(2017, month, 20, 16, 45, tzinfo=START.tzinfo) for month in (6, 7, 8, 9))
    series = load(START.replace(year=2017), np.full(365 * 96, 600.0), 15)
    for start, kw in zip(starts, (510.0, 510.0, 520.0, 500.0), strict=True):
        series.kw[int((start - series.start).total_seconds() // 900)] = kw
    charge = CoincidentPeakCharge(
        name="4CP",
        sets=(CoincidentPeakSet(price=Decimal(12), starts=starts),),
        statistic=PeakStatistic.MEAN,
        in_following_year=True,
    )
    yield total(charge, of=series, periods=[BillingPeriod(date(2018, 1, 1), date(2019, 1, 1))])


def reactive():
    charge = ReactiveCharge(name="kvar", price=Decimal(2), free_share_of_active=0.5)
    yield total(charge, of=load(START, [100.0])._replace(power_factor=0.8))


def minimum():
    use = EnergyCharge(name="energy", periods=(flat("0.10"),))
    yield total(use, MinimumCharge(name="minimum", amount=Decimal(25)), of=load(START, [1.0]))


def percentages():
    charges = (
        FixedCharge(name="meter", price=Decimal(25)),
        PercentageCharge(name="rider", percent=Decimal(10)),
        PercentageCharge(name="tax", percent=Decimal(20), tax=True),
    )
    yield total(*charges, of=load(START, [1.0]))


def annual_hours():
    below = EnergyCharge(name="below", periods=(flat("0.05"),), hours_of_use_below=2500.0)
    above = EnergyCharge(name="above", periods=(flat("0.01"),), hours_of_use_from=2500.0)
    series = year(2024, 1.0)
    series.kw[100] = 4.0
    yield total(below, above, of=series)


EXAMPLES: dict[str, Callable] = {
    "Fixed": fixed,
    "Energy": energy,
    "Tiers of energy": energy_tiers,
    "Tiers of all periods in order of time": energy_in_time_order,
    "Hours of use": hours_of_use,
    "Prices of the market": market,
    "Demand": demand_by_window,
    "Tiers and brackets of demand": demand_ladders,
    "Annual demand": annual_demand,
    "Mean of the highest peaks": mean_of_peaks,
    "Ratchets and floors": ratchets,
    "Apparent power and power factor": power_factor,
    "Contract capacity and overrun": overrun,
    "Coincident peak": coincident_peak,
    "Reactive power": reactive,
    "Minimum": minimum,
    "Percentages: riders, taxes, credits": percentages,
    "Prices that switch on annual hours of use": annual_hours,
}


def test_every_charge_kind_has_its_example():
    assert list(SECTIONS) == list(EXAMPLES)


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_engine_says_what_the_page_says(title):
    printed = re.findall(r"\*\*([\d.]+)\*\*", SECTIONS[title])
    assert [f"{amount:.2f}" for amount in EXAMPLES[title]()] == printed
