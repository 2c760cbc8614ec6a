"""What a bill takes: each figure of a load is read once, and what it takes is known before it is billed."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.planning.energy import load_profile
from service.planning.energy.load_profile import LoadProfile, PhaseName, PowerPhase, build_load_series
from service.planning.errors import PlanningError
from service.planning.scheduling import shift
from service.planning.scheduling.shift import build_starts, compute_overlap, compute_start_bills
from service.planning.tariff import calendar, checks
from service.planning.tariff.allocation import allocate_bill
from service.planning.tariff.bill import BillingDeterminants, MeteredLoad
from service.planning.tariff.billing import (
    compute_annual_bill,
    compute_bill,
    compute_determinants_bill,
    compute_metered_bill,
)
from service.planning.tariff.charges import (
    BillingDemand,
    CoincidentPeakCharge,
    CoincidentPeakSet,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    LocalTimeWindow,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    TariffRevision,
    TierAccumulation,
)
from service.planning.tariff.checks import MOST_WINDOWS, check_tariff
from service.planning.tariff.demand import EarlierPeaks, RatchetHistory
from service.planning.tariff.effort import (
    MOST_ORDINARY_STEPS,
    MOST_STEPS,
    BillingEffort,
    EffortShare,
    LoadExtent,
    estimate_bill_effort,
    estimate_ordinary_effort,
)
from service.planning.tariff.meter import SeriesMeter
from service.planning.tariff.metering_point import MeteringPoint
from tests.planning.tariff.loads import flat, tariff, timed

YEAR = MeteredLoad(
    datetime(2025, 1, 1, tzinfo=UTC), 15, np.random.default_rng(3).uniform(50.0, 90.0, 96 * 365)
)
FIVE_MINUTES = MeteredLoad(datetime(2025, 1, 1, tzinfo=UTC), 5, np.full(288 * 730, 70.0))


class CountingMeter(SeriesMeter):
    """A meter that counts how often its load is read."""

    def __init__(self, *given):
        super().__init__(*given)
        self.highest_read = self.coincident_read = 0

    def read_highest(self, charge, periods):
        self.highest_read += 1
        return super().read_highest(charge, periods)

    def find_coincident_demands(self, charge):
        self.coincident_read += 1
        return super().find_coincident_demands(charge)


def ratchets(count, months):
    return tuple(
        DemandRatchet(preceding_months=months, share_by_billing_month=(0.5 + 0.01 * place,) * 12)
        for place in range(count)
    )


def minute_windows(count, first=0):
    return tuple(
        PricePeriod(
            name=str(place),
            tiers=(PriceTier(price=Decimal(1)),),
            windows=(LocalTimeWindow(from_minute=place % 1440, to_minute=place % 1440 + 1),),
        )
        for place in range(first, first + count)
    )


def ladder(count):
    rising = tuple(PriceTier(price=Decimal(1), limit=0.001 * (place + 1)) for place in range(count - 1))
    return (*rising, PriceTier(price=Decimal(1)))


def refused(terms, load=FIVE_MINUTES):
    with pytest.raises(PlanningError) as caught:
        compute_bill(terms, load)
    return caught.value.code


def test_peaks_of_a_month_are_read_once_for_all_charges_and_ratchets():
    hours = [(flat("9"),), (timed("peak", "9", 12, 18), timed("rest", "1", 18, 12))]
    charges = [
        DemandCharge(
            name=str(n), periods=hours[n % 2], billing_demand=BillingDemand(ratchets=ratchets(3, 12))
        )
        for n in range(40)
    ]
    terms = tariff(*charges)
    meter = CountingMeter(terms, YEAR, None)
    compute_metered_bill(terms, meter)
    # By either hours, and of all hours for ratchets, which are those of the first.
    assert meter.highest_read == 3
    assert compute_metered_bill(terms, meter) == compute_bill(terms, YEAR)


def test_charges_of_the_same_hours_keep_their_own_names_and_prices():
    named = (PricePeriod(name="other", tiers=(PriceTier(price=Decimal(5)),)),)
    two = compute_bill(
        tariff(DemandCharge(name="a", periods=(flat("9"),)), DemandCharge(name="b", periods=named)), YEAR
    )
    alone = compute_bill(tariff(DemandCharge(name="b", periods=named)), YEAR)
    for both, one in zip(two.periods, alone.periods, strict=True):
        assert both.lines[1:] == one.lines


def test_ratchets_that_are_alike_look_back_once():
    charge = DemandCharge(name="d", periods=(flat("9"),))
    meter = SeriesMeter(tariff(charge), YEAR, None)
    back, peaks = (
        RatchetHistory(meter.months, EarlierPeaks({}, wraps_year=False, first_month=meter.first_month)),
        meter.find_peaks(charge),
    )
    one, *others = ratchets(3, 12)
    found = back.get_floors(one, peaks, None)
    assert back.get_floors(replace(one, raises=("all",)), peaks, None) is found
    assert back.get_floors(others[0], peaks, None).by_month != found.by_month


def test_peak_intervals_of_the_grid_are_read_once_for_each_charge():
    hours = CoincidentPeakSet(price=Decimal(3), hours_of_year=(17, 4000))
    terms = tariff(*(CoincidentPeakCharge(name=str(n), sets=(hours,)) for n in range(5)))
    meter = CountingMeter(terms, FIVE_MINUTES, None)
    compute_metered_bill(terms, meter)
    assert meter.coincident_read == 5


def test_loads_of_the_same_years_share_the_changes_of_the_clock():
    zone, first = ZoneInfo("America/Denver"), 55 * 365 * 1440
    calendar.build_clock(zone, first, first + 17 * 365 * 1440)
    before = calendar._list_offset_changes.cache_info().misses
    found = calendar.build_clock(zone, first + 61, first + 16 * 365 * 1440 + 7)
    assert calendar._list_offset_changes.cache_info().misses == before
    assert len(found.starts) in (32, 33)


@pytest.mark.parametrize("year", [1, 9999])
def test_the_clock_reaches_the_first_and_the_last_year(year):
    days = (date(year, 6, 1) - date(1970, 1, 1)).days
    assert calendar.build_clock(ZoneInfo("Europe/Berlin"), days * 1440, days * 1440 + 60).starts.tolist() == [
        days * 1440
    ]


def test_a_load_of_many_months_reads_each_month_by_its_own_effectiveness(monkeypatch):
    """One pass over the load, not one for each of 204 months."""
    read, real = [], load_profile._integrate_profile

    def integrate_counted(profile, edges):
        read.append(np.size(edges))
        return real(profile, edges)

    monkeypatch.setattr(load_profile, "_integrate_profile", integrate_counted)
    phases = (PowerPhase(PhaseName.STEADY, 17 * 365 * 86400.0, (1000.0,)),)
    profile = LoadProfile(("all",), phases, tuple(1.1 + place / 100 for place in range(12)))
    found = build_load_series(profile, datetime(2026, 1, 1, tzinfo=UTC), 15)
    assert found.kw[[0, 96 * 40]].tolist() == pytest.approx([1.1, 1.11])
    assert len(read) == 204
    assert sum(read) <= found.kw.size + 2 * 204


class CountedEnergy(dict):
    """Energy by month and period that counts how often it is looked up."""

    looked_up = 0

    def get(self, *given):
        self.looked_up += 1
        return super().get(*given)


def test_energy_of_a_year_is_looked_up_once_for_each_charge_and_month():
    def looked_up(count):
        charges = [EnergyCharge(name=str(n), periods=(flat("1"),)) for n in range(count)]
        given = CountedEnergy({(month, "all"): 10.0 for month in range(1, 13)})
        compute_determinants_bill(
            tariff(*charges), BillingDeterminants(2025, given, {}, dict.fromkeys(range(1, 13), 5.0))
        )
        return given.looked_up

    assert looked_up(40) < 3 * looked_up(20)


def test_a_run_of_years_is_read_once_for_each_start_and_group_of_hours(monkeypatch):
    """Of the run only what lies in a month is looked at for it, not all of it for each of 38 months."""
    compared, real = [], shift.compute_overlap

    def compute_counted(*given):
        found = real(*given)
        compared.append(found.kw.size)
        return found

    monkeypatch.setattr(shift, "compute_overlap", compute_counted)
    terms = tariff(
        EnergyCharge(name="e", periods=(timed("peak", "0.3", 12, 18), timed("rest", "0.1", 18, 12))),
        DemandCharge(name="d", periods=(timed("peak", "9", 12, 18), timed("rest", "2", 18, 12))),
    )
    point, begins = MeteringPoint(terms), datetime(2026, 1, 3, tzinfo=UTC)
    run = MeteredLoad(begins, 15, np.random.default_rng(5).uniform(50.0, 90.0, 96 * 365 * 3))
    starts = build_starts(begins, begins + timedelta(days=39), 1440, 15)
    costs = [bill.total for bill in compute_start_bills(point, run, starts)]
    whole = allocate_bill(point, [run]).allocations[0].total
    assert abs(costs[0] - whole) < Decimal("0.000001")
    assert len(costs) == 40
    # Six groups of hours: two of either charge, all hours for its peak and for the sum of a part.
    assert sum(compared) < 7 * len(costs) * run.kw.size


def test_of_a_run_only_starts_that_touch_a_stretch_have_a_row():
    kw = np.arange(1.0, 6.0)
    found = compute_overlap(kw, (2, 3, 10), 9, 14, 0.0)
    for start in range(10):
        placed = np.zeros(60)
        placed[2 + 3 * start : 7 + 3 * start] = kw
        inside = placed[9:14]
        if start < found.first or start >= found.first + len(found.kw):
            assert not inside.any()
        else:
            assert found.kw[start - found.first].tolist() == inside.tolist()


HOURS = [
    (
        PricePeriod(
            name="x",
            tiers=(PriceTier(price=Decimal(1)),),
            windows=(LocalTimeWindow(from_minute=n, to_minute=700 + n),),
        ),
    )
    for n in range(200)
]
DEAR = {
    "energy charges of 200 different hours": [
        EnergyCharge(name=str(n), periods=HOURS[n]) for n in range(200)
    ],
    "demand charges of 200 different hours": [
        DemandCharge(name=str(n), periods=HOURS[n]) for n in range(200)
    ],
    "means of 200 numbers of rolling peaks": [
        DemandCharge(name=str(n), periods=(flat("1"),), window_minutes=30, rolling=True, peaks=n + 2)
        for n in range(200)
    ],
    "ladders of 10,000 tiers": [
        EnergyCharge(name=str(n), periods=(PricePeriod(name="x", tiers=ladder(50)),)) for n in range(200)
    ],
    "tiers in order of time": [
        EnergyCharge(
            name=str(n),
            periods=(PricePeriod(name="x", tiers=ladder(50)),),
            accumulation=TierAccumulation.ALL_PERIODS_IN_TIME_ORDER,
        )
        for n in range(40)
    ],
    "riders on thousands of lines": [
        EnergyCharge(name="e", periods=(PricePeriod(name="x", tiers=ladder(5000)),)),
        *(PercentageCharge(name=str(n), percent=Decimal(1)) for n in range(199)),
    ],
    "peak intervals of the grid": [
        CoincidentPeakCharge(
            name=str(n), sets=(CoincidentPeakSet(price=Decimal(1), hours_of_year=tuple(range(1, 1001))),) * 24
        )
        for n in range(50)
    ],
}


@pytest.mark.parametrize("charges", DEAR.values(), ids=DEAR)
def test_what_a_bill_would_take_is_refused_before_it_is_worked_out(charges):
    assert refused(tariff(*charges)) == "BILL_TOO_COSTLY"


def test_a_load_that_windows_cut_into_too_many_pieces_is_refused():
    load = MeteredLoad(datetime(2025, 1, 1, tzinfo=UTC), 60, np.full(24 * 365 * 10, 70.0))
    assert refused(tariff(EnergyCharge(name="e", periods=minute_windows(600))), load) == "LOAD_TOO_LONG"


def test_billing_quantities_of_a_year_are_bounded_too():
    dear = tariff(
        *(EnergyCharge(name=str(n), periods=(PricePeriod(name="x", tiers=ladder(500)),)) for n in range(200))
    )
    for asked in (
        lambda: compute_determinants_bill(dear, BillingDeterminants(2025, {}, {}, {})),
        lambda: compute_annual_bill(dear, year=2025, energy_kwh=1.0, peak_kw=1.0),
    ):
        with pytest.raises(PlanningError) as caught:
            asked()
        assert caught.value.code == "BILL_TOO_COSTLY"


def test_more_windows_than_can_be_compared_are_refused(monkeypatch):
    assert MOST_WINDOWS >= 6 * 1440
    monkeypatch.setattr(checks, "MOST_WINDOWS", 1500)
    charges = [EnergyCharge(name=str(n), periods=minute_windows(700)) for n in range(3)]
    check_tariff(tariff(*charges[:2]))
    with pytest.raises(PlanningError) as caught:
        check_tariff(tariff(*charges))
    assert caught.value.code == "TARIFF_TOO_COSTLY"
    assert "2,100" in caught.value.detail
    assert "1,500" in caught.value.detail


def test_the_problem_names_the_members_that_take_the_most():
    effort = BillingEffort((EffortShare(10.0, "few"), EffortShare(90.0, "3 ratchets"))).scale(2, "sites")
    with pytest.raises(PlanningError) as caught:
        effort.check(150.0, "/sites")
    assert (caught.value.code, caught.value.pointer) == ("BILL_TOO_COSTLY", "/sites")
    assert "3 ratchets x 2 sites" in caught.value.detail


def test_only_revisions_in_force_count():
    charge = EnergyCharge(name="e", periods=(PricePeriod(name="x", tiers=ladder(50)),))
    days = [date(2000 + place, 1, 1) for place in range(40)]
    terms = replace(
        tariff(charge), revisions=tuple(TariffRevision(effective_from=day, charges=(charge,)) for day in days)
    )
    year = LoadExtent(96 * 365, 15, 12, date(2025, 1, 1))
    one = estimate_bill_effort(replace(terms, revisions=terms.revisions[:1]), year).total
    assert one < estimate_bill_effort(terms, year).total < 4 * one


def test_what_is_ordinary_may_be_stored():
    ordinary = tariff(
        EnergyCharge(name="e", periods=(timed("peak", "0.3", 12, 18), timed("rest", "0.1", 18, 12))),
        *(
            DemandCharge(
                name=str(n), periods=(flat("9"),), billing_demand=BillingDemand(ratchets=ratchets(2, 24))
            )
            for n in range(5)
        ),
    )
    assert estimate_ordinary_effort(ordinary).total < MOST_ORDINARY_STEPS / 3
    looking_far = [
        DemandCharge(
            name=str(n), periods=(flat("9"),), billing_demand=BillingDemand(ratchets=ratchets(6, 120))
        )
        for n in range(50)
    ]
    assert MOST_ORDINARY_STEPS < estimate_ordinary_effort(tariff(*looking_far)).total < MOST_STEPS
