"""What holds for every tariff and load: sums, additivity, monotony, and energy on the local clock."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.tariff.bill import BillingPeriod, MeteredLoad
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.charges import (
    MONTHS,
    BillingDemand,
    DemandCharge,
    DemandPricing,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    LocalTimeWindow,
    MinimumCharge,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    TariffTierUnit,
    TierAccumulation,
)
from service.planning.tariff.checks import check_tariff
from tests.planning.tariff.loads import START, flat, tariff

ZONES = (
    "Etc/UTC",
    "Europe/Berlin",
    "America/Los_Angeles",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Etc/GMT+8",
)
PRICES = st.decimals(0, 50, places=4)
LIMITS = st.lists(st.integers(1, 5000), min_size=0, max_size=3, unique=True).map(sorted)


@st.composite
def ladders(draw):
    limits = draw(LIMITS)
    return tuple(
        PriceTier(price=draw(PRICES), limit=None if limit is None else float(limit))
        for limit in [*limits, None]
    )


@st.composite
def price_periods(draw):
    """One price, or a day and its night on all days, with boundaries at any minute."""
    if draw(st.booleans()):
        return (PricePeriod(name="all", tiers=draw(ladders())),)
    begin, end = draw(st.lists(st.integers(0, 1439), min_size=2, max_size=2, unique=True))
    return (
        PricePeriod(
            name="a", tiers=draw(ladders()), windows=(LocalTimeWindow(from_minute=begin, to_minute=end),)
        ),
        PricePeriod(
            name="b", tiers=draw(ladders()), windows=(LocalTimeWindow(from_minute=end, to_minute=begin),)
        ),
    )


@st.composite
def tariffs(draw, *, ratchets=True, accumulations=tuple(TierAccumulation)):
    ratchet = DemandRatchet(preceding_months=draw(st.integers(1, 11)), share_by_peak_month=(0.8,) * 12)
    rule = BillingDemand(ratchets=(ratchet,) if ratchets and draw(st.booleans()) else ())
    charges = (
        FixedCharge(name="fixed", price=draw(PRICES), per=draw(st.sampled_from(FixedChargePeriod))),
        EnergyCharge(
            name="energy", periods=draw(price_periods()), accumulation=draw(st.sampled_from(accumulations))
        ),
        DemandCharge(name="demand", periods=draw(price_periods()), billing_demand=rule),
        MinimumCharge(name="minimum", amount=draw(PRICES)),
        PercentageCharge(name="tax", percent=draw(PRICES), tax=True),
    )
    return tariff(*charges, zone=draw(st.sampled_from(ZONES)))


@st.composite
def loads(draw):
    """Some weeks of 2024, around a change of the clock or not, in intervals of any usual length."""
    minutes = draw(st.sampled_from((5, 15, 20, 30, 60)))
    start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=draw(st.integers(0, 300 * 96)) * 15)
    count = draw(st.integers(1, 40 * 24 * 60 // minutes))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return MeteredLoad(start, minutes, random.integers(0, 200, count).astype(float))


def close(value):
    return pytest.approx(value, rel=1e-12, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(tariffs(), loads())
def test_lines_sum_to_the_total_and_energy_is_neither_lost_nor_doubled(terms, load):
    check_tariff(terms)
    found = compute_bill(terms, load)
    lines = [line for period in found.periods for line in period.lines]
    assert found.total == sum((line.amount for line in lines), Decimal(0))
    used = load.kw.sum() * load.interval_minutes / 60
    assert sum(line.quantity for line in lines if line.charge == "energy") == close(used)
    assert sum(period.energy_kwh for period in found.periods) == close(used)


@settings(max_examples=40, deadline=None)
@given(tariffs(ratchets=False), loads(), st.data())
def test_bills_add_up_over_billing_periods_where_no_ratchet_ties_them(terms, load, data):
    first, days = date(2024, 1, 1), 460
    cuts = sorted(data.draw(st.sets(st.integers(1, days - 1), min_size=1, max_size=4)))
    edges = [first + timedelta(days=each) for each in (0, *cuts, days)]
    periods = [BillingPeriod(*pair) for pair in pairwise(edges)]
    whole = compute_bill(terms, load, periods=periods)
    parts = [compute_bill(terms, load, periods=[period]) for period in periods]
    assert float(whole.total) == close(float(sum(part.total for part in parts)))


@settings(max_examples=40, deadline=None)
@given(tariffs(accumulations=(TierAccumulation.PER_PERIOD,)), loads(), st.integers(0, 2**32))
def test_more_load_never_lowers_a_bill(terms, load, seed):
    more = load.kw + np.random.default_rng(seed).integers(0, 3, len(load.kw))
    higher = compute_bill(terms, load._replace(kw=more)).total
    assert higher >= compute_bill(terms, load).total - Decimal("1e-9")


def test_more_load_lowers_a_bill_only_where_the_tariff_says_so():
    """A price below 0, a cheaper bracket, a higher demand that moves kWh into cheaper hours of use, free
    energy that fills the tier before a dear hour, more annual hours of use.
    """
    tiers = (PriceTier(price=Decimal(42), limit=1000.0), PriceTier(price=Decimal(38)))
    falling = (PricePeriod(name="all", tiers=tiers),)
    hours = TariffTierUnit.KWH_PER_KW
    use = (PriceTier(price=Decimal(1), limit=2.0, unit=hours), PriceTier(price=Decimal(9), unit=hours))
    free = PricePeriod(
        name="free", tiers=(PriceTier(price=Decimal(0)),), windows=(LocalTimeWindow(to_minute=60),)
    )
    dear = PricePeriod(name="dear", tiers=tiers, windows=(LocalTimeWindow(from_minute=60),))
    cases = (
        (EnergyCharge(name="x", periods=(flat("-1"),)), [1000.0, 1.0], [1001.0, 1.0]),
        (
            DemandCharge(name="x", periods=falling, pricing=DemandPricing.BRACKET),
            [1000.0, 1.0],
            [1001.0, 1.0],
        ),
        (EnergyCharge(name="x", periods=(PricePeriod(name="all", tiers=use),)), [5.0] * 9, [9.0] + [5.0] * 8),
        (
            EnergyCharge(
                name="x", periods=(free, dear), accumulation=TierAccumulation.ALL_PERIODS_IN_TIME_ORDER
            ),
            [0.0, 10.0],
            [1000.0, 10.0],
        ),
        (EnergyCharge(name="x", periods=(flat("1"),), hours_of_use_below=1.6), [5.0, 10.0], [9.0, 10.0]),
    )
    for charge, less, more in cases:
        low, high = (
            compute_bill(tariff(charge), MeteredLoad(START, 60, np.array(kw))) for kw in (less, more)
        )
        assert high.total < low.total, charge


@settings(max_examples=40, deadline=None)
@given(loads(), st.sampled_from(ZONES))
def test_a_zone_or_a_change_of_the_clock_moves_no_energy(load, zone):
    """The energy of each local day is what a walk over its minutes finds."""
    hours = tuple(
        PricePeriod(
            name=str(hour),
            tiers=(PriceTier(price=Decimal(1)),),
            windows=(LocalTimeWindow(from_minute=hour * 60, to_minute=hour * 60 + 60),),
        )
        for hour in range(24)
    )
    terms = tariff(EnergyCharge(name="energy", periods=hours), zone=zone)
    found: dict[str, float] = {}
    for line in (line for period in compute_bill(terms, load).periods for line in period.lines):
        found[line.period] = found.get(line.period, 0.0) + line.quantity
    expected: dict[str, float] = {}
    local, step = ZoneInfo(zone), 5
    for place, kw in enumerate(load.kw):
        for minute in range(0, load.interval_minutes, step):
            at = load.start + timedelta(minutes=place * load.interval_minutes + minute)
            hour = str(at.astimezone(local).hour)
            expected[hour] = expected.get(hour, 0.0) + kw * step / 60
    assert found == {hour: close(kwh) for hour, kwh in expected.items() if kwh}


def test_every_month_of_a_year_is_billed_on_the_local_clock():
    """A year of Los Angeles at 1 kW: March has an hour less than its days, November one more."""
    zone = ZoneInfo("America/Los_Angeles")
    start, end = datetime(2024, 1, 1, tzinfo=zone), datetime(2025, 1, 1, tzinfo=zone)
    hours = round((end.timestamp() - start.timestamp()) / 3600)
    charge = EnergyCharge(
        name="energy", periods=(PricePeriod(name="all", tiers=(PriceTier(price=Decimal(1)),)),)
    )
    found = compute_bill(tariff(charge, zone=zone.key), MeteredLoad(start, 60, np.ones(hours)))
    days = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    moved = {3: -1, 11: 1}
    expected = [24 * count + moved.get(month, 0) for month, count in zip(sorted(MONTHS), days, strict=True)]
    assert [period.energy_kwh for period in found.periods] == expected
