"""A run at other times: every start costs what a bill of it says."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.errors import PlanningError
from service.planning.scheduling.shift import (
    build_starts,
    compute_sliding_sums,
    compute_start_bills,
    shift_load,
)
from service.planning.tariff.allocation import allocate_bill
from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.charges import (
    BillingDemand,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    PeakSpan,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    TariffTierUnit,
)
from service.planning.tariff.metering_point import MeteringPoint
from tests.planning.tariff.loads import WEEKDAYS, flat, tariff, timed

START = datetime(2025, 6, 26, 3, tzinfo=UTC)
TIMED = EnergyCharge(
    name="energy", periods=(timed("peak", "0.31", 12, 18, weekdays=WEEKDAYS), timed("night", "0.04", 22, 6))
)
BLOCKS = EnergyCharge(
    name="blocks",
    periods=(
        PricePeriod(
            name="all",
            tiers=(
                PriceTier(price=Decimal("0.2"), limit=120.0, unit=TariffTierUnit.KWH_PER_KW),
                PriceTier(price=Decimal("0.01")),
            ),
        ),
    ),
    billing_demand_of="demand",
)
DEMAND = DemandCharge(
    name="demand", periods=(timed("peak", "9", 12, 18, weekdays=WEEKDAYS), timed("other", "3", 18, 12))
)
RATCHETED = DemandCharge(
    name="ratcheted",
    periods=(flat("5"),),
    billing_demand=BillingDemand(
        ratchets=(DemandRatchet(preceding_months=3, share_by_billing_month=(0.9,) * 12),)
    ),
)
TWO_PEAKS = DemandCharge(name="two", periods=(flat("4"),), peaks=2, on_distinct_days=True)
HALF_HOURS = DemandCharge(name="half", periods=(flat("4"),), window_minutes=60)
ANNUAL = DemandCharge(name="annual", periods=(flat("70"),), span=PeakSpan.CALENDAR_YEAR)
REST = (
    FixedCharge(name="customer", price=Decimal(99)),
    MinimumCharge(name="minimum", amount=Decimal(4000)),
    PercentageCharge(name="tax", percent=Decimal(7), tax=True),
)
TARIFFS = [
    tariff(TIMED, zone="America/Los_Angeles"),
    tariff(TIMED, DEMAND, *REST, zone="America/Los_Angeles"),
    tariff(BLOCKS, DEMAND, *REST, zone="Europe/Oslo"),
    tariff(TIMED, RATCHETED, zone="Europe/Oslo"),
    tariff(TIMED, TWO_PEAKS, HALF_HOURS),
    tariff(TIMED, ANNUAL, secondary_loss_factor=0.02),
]


def series(kw):
    """Hours from January to December."""
    start = datetime(2025, 1, 1, tzinfo=UTC) - timedelta(days=1)
    return MeteredLoad(start, 60, np.resize(np.array(kw, float), 400 * 24))


runs = st.lists(st.integers(1, 900), min_size=1, max_size=8).map(
    lambda kw: MeteredLoad(START, 60, np.repeat(np.array(kw, float), 9))
)
baselines = st.one_of(
    st.none(),
    st.floats(0, 500),
    st.lists(st.integers(0, 900), min_size=20, max_size=60).map(series),
)


def one_by_one(point, run, starts):
    loads = [shift_load(run, place * starts.step_minutes) for place in range(starts.number)]
    return [float(allocate_bill(point, [load]).allocations[0].total) for load in loads]


@pytest.mark.parametrize("terms", TARIFFS)
@settings(max_examples=4)
@given(runs, baselines, st.booleans())
def test_every_start_costs_what_a_bill_of_it_says(terms, run, baseline, secondary):
    """Ten days of starts, nine hours apart, over the end of a month."""
    point = MeteringPoint(terms, interval_minutes=60, baseline=baseline, secondary=secondary)
    starts = build_starts(START, START + timedelta(days=10), 540, 60)
    found = [float(bill.total) for bill in compute_start_bills(point, run, starts)]
    assert found == pytest.approx(one_by_one(point, run, starts), rel=1e-9, abs=1e-6)


def test_the_cheapest_start_is_the_first_of_the_night():
    """0.04 from 22:00 to 6:00 and 0.31 by day: eight hours cost the least at 22:00."""
    day_and_night = EnergyCharge(
        name="energy", periods=(timed("night", "0.04", 22, 6), timed("day", "0.31", 6, 22))
    )
    zone = ZoneInfo("Europe/Oslo")
    morning = datetime(2025, 6, 2, 8, tzinfo=zone)
    run = MeteredLoad(morning.astimezone(UTC), 60, np.full(8, 1000.0))
    point = MeteringPoint(tariff(day_and_night, zone="Europe/Oslo"), interval_minutes=60, baseline=0.0)
    starts = build_starts(morning, morning + timedelta(days=1), 60, 60)
    costs = [bill.total for bill in compute_start_bills(point, run, starts)]
    cheapest = min(range(starts.number), key=costs.__getitem__)
    assert starts.get_start(cheapest).astimezone(zone).hour == 22
    assert float(costs[cheapest]) == pytest.approx(8000 * 0.04)
    assert float(costs[0]) == pytest.approx(8000 * 0.31)


@given(
    st.lists(st.floats(0, 2), min_size=40, max_size=60), st.lists(st.floats(0, 1e3), min_size=1, max_size=9)
)
def test_sliding_sums(weights, kw):
    values, load = np.array(weights), np.array(kw)
    expected = [load @ values[4 + 3 * place : 4 + 3 * place + load.size] for place in range(8)]
    assert compute_sliding_sums(values, load, 4, 3, 8).tolist() == pytest.approx(expected, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    ("days", "step", "pointer"),
    [(-1, 60, "/window/latest_start_at"), (1, 20, "/window/step_minutes"), (400, 60, "/window/step_minutes")],
)
def test_windows_that_cannot_be_compared_are_refused(days, step, pointer):
    with pytest.raises(PlanningError) as caught:
        build_starts(START, START + timedelta(days=days), step, 60)
    assert (caught.value.code, caught.value.pointer) == ("SHIFT_WINDOW", pointer)
