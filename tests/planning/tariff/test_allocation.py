"""Whose bill: what a run adds to the bill of others, and what it pays alone."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.errors import PlanningError
from service.planning.tariff.allocation import allocate_bill, compute_difference
from service.planning.tariff.bill import BillingPeriod, MeteredLoad
from service.planning.tariff.billing import compute_bill
from service.planning.tariff.calendar import compute_local_midnight
from service.planning.tariff.charges import (
    BillingDemand,
    DemandCharge,
    DemandPricing,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    MinimumCharge,
    PeakSpan,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    TariffRevision,
)
from service.planning.tariff.loads import add_loads, build_blank_load, resample_load
from service.planning.tariff.metering_point import MeteringPoint
from service.planning.tariff.reach import list_touched_periods
from service.planning.tariff.time_dependence import TimeDependence, find_time_dependence
from tests.planning.tariff.loads import WEEKDAYS, flat, tariff, timed

ENERGY = EnergyCharge(name="energy", periods=(flat("0.10"),))
DEMAND = DemandCharge(name="demand", periods=(flat("12"),))
FIXED = FixedCharge(name="customer", price=Decimal(250))
MARCH = datetime(2025, 3, 1, tzinfo=UTC)


def run(kw, days=10, start=MARCH, minutes=60):
    return MeteredLoad(start, minutes, np.full(round(days * 1440 / minutes), float(kw)))


def added(terms, baseline, *loads, **fields):
    """What each load adds to the bill of the baseline."""
    point = MeteringPoint(terms, interval_minutes=60, baseline=baseline, **fields)
    return allocate_bill(point, loads).allocations


def lines_of(allocation, **members):
    return [
        line
        for share in allocation.periods
        for line in share.lines
        if all(getattr(line, name) == value for name, value in members.items())
    ]


def amount(allocation, charge):
    return sum((line.amount for line in lines_of(allocation, charge=charge)), Decimal(0))


class TestIncremental:
    def test_energy_and_demand_by_hand(self):
        """500 kW for 240 h on top of 1,000 kW: 120,000 kWh at 0.10 and 500 kW at 12; no fixed charge."""
        (share,) = added(tariff(ENERGY, DEMAND, FIXED), 1000.0, run(500))[0].periods
        energy, demand = share.lines
        assert (energy.quantity, energy.amount) == (120_000.0, Decimal(12_000))
        assert (demand.quantity, demand.price, demand.amount) == (500.0, 12, 6000)
        assert demand.peak_at == MARCH
        assert share.energy_kwh == 120_000.0
        assert share.peak_kw == 1500.0
        assert not share.after_run

    def test_below_the_peak_of_others_demand_costs_nothing(self):
        """1,000 kW by day and 200 by night: 600 kW at night are 800, below what the day has set."""
        hours = np.arange(31 * 24) % 24
        others = MeteredLoad(MARCH, 60, np.where((hours >= 8) & (hours < 20), 1000.0, 200.0))
        nights = MeteredLoad(MARCH, 60, np.where((hours >= 8) & (hours < 20), 0.0, 600.0))
        (allocation,) = added(tariff(ENERGY, DEMAND), others, nights)
        assert [line.charge for line in lines_of(allocation)] == ["energy"]

    def test_the_first_pays_the_peak_and_the_second_what_it_adds(self):
        """Order matters: 400 kW by day and 900 kW by night at a meter of 500 kW. By day first, 400 kW of
        demand are the day's and 500 more the night's; by night first, 900 are the night's and none the day's.
        """
        hours = np.arange(31 * 24) % 24
        day = MeteredLoad(MARCH, 60, np.where((hours >= 8) & (hours < 20), 400.0, 0.0))
        night = MeteredLoad(MARCH, 60, np.where((hours >= 8) & (hours < 20), 0.0, 900.0))
        terms = tariff(DEMAND)
        base = build_blank_load(
            list_touched_periods(MARCH, MARCH + timedelta(hours=1), "Etc/UTC"), "Etc/UTC", 60
        )
        base = base._replace(kw=base.kw + 500.0)
        first = {name: added(terms, base, one)[0].total for name, one in (("day", day), ("night", night))}
        after_day = added(terms, add_loads(base, day), night)[0].total
        after_night = added(terms, add_loads(base, night), day)[0].total
        assert (first["day"], after_day) == (400 * 12, 500 * 12)
        assert (first["night"], after_night) == (900 * 12, 0)

    def test_tiers_are_those_that_are_left(self):
        tiers = (PriceTier(price=Decimal("0.20"), limit=100_000.0), PriceTier(price=Decimal("0.05")))
        terms = tariff(EnergyCharge(name="energy", periods=(PricePeriod(name="all", tiers=tiers),)))
        (line,) = lines_of(added(terms, 1000.0, run(500))[0])
        assert (line.tier, line.quantity, line.amount) == (2, 120_000.0, 6000)

    def test_a_bracket_that_is_left_is_taken_back(self):
        """100 kW at 10 become 300 kW at 8: 2,400 less 1,000."""
        tiers = (PriceTier(price=Decimal(10), limit=200.0), PriceTier(price=Decimal(8)))
        ladder = (PricePeriod(name="all", tiers=tiers),)
        terms = tariff(DemandCharge(name="demand", periods=ladder, pricing=DemandPricing.BRACKET))
        (allocation,) = added(terms, 100.0, run(200))
        assert [(line.tier, line.quantity, line.amount) for line in lines_of(allocation)] == [
            (2, 300.0, 2400),
            (1, -100.0, -1000),
        ]

    def test_a_minimum_bill_is_filled_first(self):
        """Others use 1 kW: 74.40 of energy, raised to 500. The 2,400 of the run fill the missing 425.60."""
        terms = tariff(ENERGY, MinimumCharge(name="minimum", amount=Decimal(500)))
        (allocation,) = added(terms, 1.0, run(100))
        assert amount(allocation, "energy") == pytest.approx(Decimal(2400))
        assert amount(allocation, "minimum") == pytest.approx(Decimal("-425.6"))
        assert allocation.total == pytest.approx(Decimal("1974.4"))

    def test_percentages_follow_what_the_run_adds(self):
        tax = PercentageCharge(name="tax", percent=Decimal(10), tax=True)
        (allocation,) = added(tariff(ENERGY, FIXED, tax), 100.0, run(100))
        (line,) = lines_of(allocation, kind="tax")
        assert line.quantity == pytest.approx(2400.0)
        assert line.amount == pytest.approx(Decimal(240))

    def test_a_run_of_nothing_adds_nothing(self):
        (allocation,) = added(tariff(ENERGY, DEMAND, FIXED), 1000.0, run(0))
        assert allocation.total == 0
        assert not lines_of(allocation)


class TestAfterTheRun:
    RATCHETED = DemandCharge(
        name="demand",
        periods=(flat("12"),),
        billing_demand=BillingDemand(
            ratchets=(DemandRatchet(preceding_months=11, share_by_billing_month=(0.8,) * 12),)
        ),
    )

    def test_a_ratchet_bills_the_peak_for_eleven_months(self):
        """500 kW for ten days of March, above 100: 400 kW more in March; then 0.8 x 500 - 100 = 300 kW more
        in each of the eleven months that look back on it."""
        (allocation,) = added(tariff(self.RATCHETED), 100.0, run(400))
        during, *after = allocation.periods
        assert during.total == 400 * 12
        assert not during.after_run
        assert [share.period.start for share in after] == [
            *(date(2025, month, 1) for month in range(4, 13)),
            date(2026, 1, 1),
            date(2026, 2, 1),
        ]
        for share in after:
            (line,) = share.lines
            assert share.after_run
            assert line.quantity == pytest.approx(300.0)
            assert line.peak_at == MARCH
            assert "2025-03" in line.note
        assert allocation.total == pytest.approx(Decimal(12 * (400 + 11 * 300)))

    def test_months_before_the_run_are_those_of_the_same_baseline(self):
        """A constant baseline was there before: its own ratchet is in both bills."""
        high = DemandCharge(
            name="demand",
            periods=(flat("1"),),
            billing_demand=BillingDemand(
                ratchets=(DemandRatchet(preceding_months=11, share_by_billing_month=(1.5,) * 12),)
            ),
        )
        (allocation,) = added(tariff(high), 100.0, run(40))
        assert not allocation.periods[0].lines
        assert allocation.periods[1].total == pytest.approx(Decimal(60))

    def test_an_annual_peak_is_billed_with_december(self):
        annual = DemandCharge(name="annual", periods=(flat("60"),), span=PeakSpan.CALENDAR_YEAR)
        (allocation,) = added(tariff(ENERGY, annual), 1000.0, run(500))
        last = allocation.periods[-1]
        assert last.period == BillingPeriod(date(2025, 12, 1), date(2026, 1, 1))
        assert (last.after_run, last.total) == (True, 500 * 60)
        assert last.lines[0].peak_at == MARCH

    def test_a_series_that_ends_leaves_months_unknown(self):
        known = MeteredLoad(MARCH, 60, np.full(61 * 24, 100.0))
        point = MeteringPoint(tariff(self.RATCHETED), interval_minutes=60, baseline=known)
        allocated = allocate_bill(point, [run(400)])
        assert [share.period.start.month for share in allocated.allocations[0].periods] == [3, 4]
        assert [period.start.month for period in allocated.unknown] == [5, 6, 7, 8, 9, 10, 11, 12, 1, 2]

    def test_a_series_must_cover_the_periods_of_the_run(self):
        known = MeteredLoad(MARCH, 60, np.full(30 * 24, 100.0))
        with pytest.raises(PlanningError) as caught:
            added(tariff(ENERGY), known, run(400))
        assert (caught.value.code, caught.value.pointer) == ("BASELINE_TOO_SHORT", "/site/baseline_load")


class TestStandalone:
    def test_every_period_that_is_touched_is_billed_in_full(self):
        """Ten days from 26 March touch two months: two fixed charges, two demands."""
        point = MeteringPoint(tariff(ENERGY, DEMAND, FIXED), interval_minutes=60)
        start = datetime(2025, 3, 26, tzinfo=UTC)
        (allocation,) = allocate_bill(point, [run(500, start=start)]).allocations
        assert amount(allocation, "energy") == 12_000
        assert amount(allocation, "demand") == 2 * 500 * 12
        assert amount(allocation, "customer") == 500
        assert [share.peak_kw for share in allocation.periods] == [500.0, 500.0]

    def test_an_annual_demand_is_that_of_the_year_of_the_run(self):
        annual = DemandCharge(name="annual", periods=(flat("60"),), span=PeakSpan.CALENDAR_YEAR)
        (allocation,) = allocate_bill(
            MeteringPoint(tariff(annual), interval_minutes=60), [run(500)]
        ).allocations
        assert allocation.total == 30_000
        assert [share.period.start.month for share in allocation.periods] == [3]

    def test_with_nothing_else_at_the_meter_both_differ_by_what_is_due_anyway(self):
        terms = tariff(ENERGY, DEMAND, FIXED)
        (alone,) = allocate_bill(MeteringPoint(terms, interval_minutes=60), [run(500)]).allocations
        (more,) = added(terms, 0.0, run(500))
        assert alone.total - more.total == 250


TIMED = EnergyCharge(
    name="energy",
    periods=(
        timed("peak", "0.31", 12, 18, weekdays=WEEKDAYS),
        timed("night", "0.04", 22, 6),
    ),
)
loads = st.lists(st.integers(0, 900), min_size=1, max_size=60).map(
    lambda kw: MeteredLoad(MARCH + timedelta(hours=5), 60, np.repeat(np.array(kw, float), 7))
)
baselines = st.lists(st.integers(0, 900), min_size=1, max_size=31).map(
    lambda kw: MeteredLoad(MARCH, 60, np.resize(np.repeat(np.array(kw, float), 24), 31 * 24))
)
TIED = tariff(
    TIMED,
    EnergyCharge(
        name="blocks",
        periods=(
            PricePeriod(
                name="all",
                tiers=(PriceTier(price=Decimal("0.2"), limit=90_000.0), PriceTier(price=Decimal("0.01"))),
            ),
        ),
    ),
    DEMAND,
    FIXED,
    MinimumCharge(name="minimum", amount=Decimal(9000)),
    PercentageCharge(name="tax", percent=Decimal("7.5"), tax=True),
)


@settings(max_examples=40)
@given(baselines, loads)
def test_the_lines_sum_to_the_difference_of_the_two_bills(baseline, load):
    whole, without = compute_bill(TIED, add_loads(baseline, load)), compute_bill(TIED, baseline)
    allocation = compute_difference(whole, without, [])
    assert allocation.total == pytest.approx(whole.total - without.total, abs=Decimal("1e-6"))
    assert not lines_of(allocation, kind="fixed")
    for line in lines_of(allocation):
        assert Decimal(line.quantity) * line.price == pytest.approx(line.amount, abs=Decimal("1e-6"))


@settings(max_examples=40)
@given(baselines, loads, loads)
def test_one_after_the_other_is_both_at_once(baseline, first, second):
    """Whoever comes first: what it adds, and what the other adds to that, is what both add together."""
    both = added(TIED, baseline, add_loads(blank_like(baseline), first, second))[0].total
    for one, other in ((first, second), (second, first)):
        alone = added(TIED, baseline, one)[0].total
        after = added(TIED, add_loads(baseline, one), other)[0].total
        assert alone + after == pytest.approx(both, abs=Decimal("1e-6"))


@settings(max_examples=40)
@given(baselines, loads, loads)
def test_where_nothing_ties_loads_they_add_up(baseline, first, second):
    terms = tariff(TIMED, FIXED)
    both = added(terms, baseline, add_loads(blank_like(baseline), first, second))[0].total
    each = added(terms, baseline, first, second)
    assert each[0].total + each[1].total == pytest.approx(both, abs=Decimal("1e-6"))


def blank_like(load):
    return load._replace(kw=np.zeros_like(load.kw))


@given(
    st.lists(st.floats(0, 1e4), min_size=1, max_size=50),
    st.sampled_from([5, 15, 30, 60]),
    st.sampled_from([5, 15, 30, 60]),
    st.integers(0, 3000),
)
def test_a_load_keeps_its_energy_wherever_it_is_placed(kw, own, onto, minute):
    load = MeteredLoad(MARCH + timedelta(minutes=minute), own, np.array(kw))
    count = (3000 + 60 * 60) // onto + 2
    onto_kw = resample_load(load, MARCH, onto, count)
    assert onto_kw.sum() * onto / 60 == pytest.approx(load.kw.sum() * own / 60)
    assert onto_kw.max() <= max(kw) * (1 + 1e-9)


class TestBillingPeriods:
    STARTS = (date(2025, 2, 14), date(2025, 3, 16), date(2025, 4, 15))

    def test_a_run_is_billed_in_the_cycles_that_it_touches(self):
        point = MeteringPoint(tariff(ENERGY, DEMAND), interval_minutes=60, starts=self.STARTS)
        (allocation,) = allocate_bill(point, [run(500, days=20)]).allocations
        assert [share.period.start for share in allocation.periods] == [*self.STARTS[:2]]
        assert [share.energy_kwh for share in allocation.periods] == [15 * 24 * 500, 5 * 24 * 500]
        assert amount(allocation, "demand") == 2 * 500 * 12

    @pytest.mark.parametrize("starts", [STARTS[:2], STARTS[1:], STARTS[::-1]])
    def test_cycles_must_cover_the_run_in_order(self, starts):
        point = MeteringPoint(tariff(ENERGY), interval_minutes=60, starts=starts)
        with pytest.raises(PlanningError) as caught:
            allocate_bill(point, [run(500, days=20)])
        assert caught.value.code == "BILLING_PERIODS"
        assert caught.value.pointer == "/site/electricity/billing_period_starts"

    def test_months_begin_at_local_midnight(self):
        """An hour before midnight UTC it is already April in Oslo."""
        late = datetime(2025, 3, 31, 22, 30, tzinfo=UTC)
        (period,) = list_touched_periods(late, late + timedelta(minutes=30), "Europe/Oslo")
        assert period.start == date(2025, 4, 1)
        assert compute_local_midnight(period.start, "Europe/Oslo") == datetime(2025, 3, 31, 22, tzinfo=UTC)

    @pytest.mark.parametrize("zone", ["Europe/Oslo", "America/Los_Angeles", "Asia/Kathmandu"])
    def test_a_change_of_the_clock_moves_no_energy(self, zone):
        start = datetime(2025, 3, 1, tzinfo=ZoneInfo(zone)).astimezone(UTC)
        point = MeteringPoint(tariff(ENERGY, zone=zone), interval_minutes=15)
        (allocation,) = allocate_bill(point, [run(500, days=45, start=start)]).allocations
        assert sum(share.energy_kwh for share in allocation.periods) == pytest.approx(45 * 24 * 500)


SUMMER = EnergyCharge(name="summer", periods=(flat("1"),), months=frozenset({7}))


class TestTimeDependence:
    @pytest.mark.parametrize(
        ("charges", "alone", "expected"),
        [
            ((ENERGY,), True, TimeDependence.NOTHING),
            ((ENERGY, FIXED), False, TimeDependence.NOTHING),
            ((ENERGY, FIXED), True, TimeDependence.PERIODS),
            ((ENERGY, DEMAND), False, TimeDependence.PERIODS),
            ((TIMED,), False, TimeDependence.PRICES),
            ((ENERGY, TestAfterTheRun.RATCHETED), False, TimeDependence.PRICES),
            ((SUMMER,), False, TimeDependence.PRICES),
        ],
    )
    def test_by_charge(self, charges, alone, expected):
        assert find_time_dependence(tariff(*charges), alone=alone) is expected

    def test_revisions_are_prices_in_time(self):
        terms = tariff(ENERGY)
        later = TariffRevision(effective_from=date(2026, 1, 1), charges=(ENERGY,))
        both = terms.__class__(currency_code="USD", time_zone="Etc/UTC", revisions=(*terms.revisions, later))
        assert find_time_dependence(both, alone=False) is TimeDependence.PRICES
