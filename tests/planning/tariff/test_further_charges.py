"""Real-time prices, coincident peaks, reactive power, overruns, brackets, annual demand, hours of use."""

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from service.planning.errors import PlanningError
from service.planning.tariff.bill import BillingDeterminants, BillingPeriod
from service.planning.tariff.billing import compute_annual_bill, compute_bill, compute_determinants_bill
from service.planning.tariff.charges import (
    BillingDemand,
    CoincidentPeakCharge,
    CoincidentPeakSet,
    DemandCharge,
    DemandPricing,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    IntervalPrices,
    LocalTimeWindow,
    MinimumCharge,
    OverrunCharge,
    PeakSpan,
    PeakStatistic,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    RealTimeCharge,
    TariffRevision,
    TariffTierUnit,
)
from tests.planning.tariff.loads import START, amounts, flat, load, tariff, timed, year


def approx(value, tolerance=1e-9):
    return pytest.approx(Decimal(value), abs=Decimal(str(tolerance)))


def lines(charge, series, **fields):
    return compute_bill(tariff(charge), series, **fields).periods[0].lines


def ladder(*tiers):
    return (
        PricePeriod(
            name="all", tiers=tuple(PriceTier(price=Decimal(price), limit=limit) for price, limit in tiers)
        ),
    )


def test_real_time_prices_and_an_adder():
    """10 kW: an hour at (0.05 + 0.15) / 2, one at -0.02, times 1.1, and 2 x 10 kWh x 0.01."""
    prices = IntervalPrices(START, 30, np.array([0.05, 0.15, -0.02, -0.02]))
    charge = RealTimeCharge(name="market", prices=prices, adder=Decimal("0.01"), factor=Decimal("1.1"))
    market, adder = lines(charge, load(START, [10.0, 10.0]))
    assert market.quantity == 20.0
    assert market.amount == approx((1.0 - 0.2) * 1.1)
    assert market.amount == approx(Decimal(market.quantity) * market.price)
    assert adder.amount == approx("0.2")


@pytest.mark.parametrize("values", [[0.05], [0.05, np.nan]])
def test_a_missing_price_is_refused_where_energy_is_used(values):
    charge = RealTimeCharge(name="market", prices=IntervalPrices(START, 60, np.array(values)))
    assert lines(charge, load(START, [10.0, 0.0]))
    with pytest.raises(PlanningError) as problem:
        lines(charge, load(START, [10.0, 10.0]))
    assert problem.value.code == "PRICES_MISSING"


def test_coincident_peaks_of_named_hours():
    """bills.csv reopt-coincident-peak: 1 kW, 10 USD/kW over hours 1, 2, 100 and 5 over 6000, 7000: 15."""
    sets = (
        CoincidentPeakSet(price=Decimal(10), hours_of_year=(1, 2, 100)),
        CoincidentPeakSet(price=Decimal(5), hours_of_year=(6000, 7000)),
    )
    found = compute_bill(tariff(CoincidentPeakCharge(name="grid", sets=sets)), year(2022, 1.0))
    assert found.total == approx(15)
    assert [len(period.lines) for period in found.periods] == [0] * 11 + [2]
    assert found.periods[11].lines[0].peak_at == START.replace(year=2022)


def test_four_coincident_peaks_are_billed_in_the_following_year():
    """Oncor's 4CP (bills.csv oncor-4cp): the mean of 510, 510, 520 and 500 kW, at 12 USD/kW in 2018."""
    zone = ZoneInfo("America/Chicago")
    starts = tuple(datetime(2017, month, 20, 16, 45, tzinfo=zone) for month in (6, 7, 8, 9))
    series = load(datetime(2017, 1, 1, tzinfo=zone), np.full(365 * 96, 600.0), 15)
    for start, kw in zip(starts, (510.0, 510.0, 520.0, 500.0), strict=True):
        series.kw[int((start - series.start.astimezone(UTC)).total_seconds() // 900)] = kw
    charge = CoincidentPeakCharge(
        name="4CP",
        sets=(CoincidentPeakSet(price=Decimal(12), starts=starts),),
        statistic=PeakStatistic.MEAN,
        in_following_year=True,
    )
    periods = [BillingPeriod(date(first, 1, 1), date(first + 1, 1, 1)) for first in (2017, 2018)]
    found = compute_bill(tariff(charge, zone="America/Chicago"), series, periods=periods)
    assert found.periods[0].billing_demand_kw == {"4CP": 510.0}
    assert not found.periods[0].lines
    assert [(line.quantity, line.amount) for line in found.periods[1].lines] == [(510.0, 6120)]
    assert [finding.code for finding in found.findings] == ["COINCIDENT_PEAK_HISTORY"]


def test_peaks_of_the_grid_outside_the_load_count_nothing_and_are_named():
    sets = (CoincidentPeakSet(price=Decimal(1), starts=(START, START.replace(month=7))),)
    charge = CoincidentPeakCharge(name="grid", sets=sets, statistic=PeakStatistic.MEAN)
    found = compute_bill(tariff(charge), load(START, [50.0]))
    assert found.total == 25
    assert [finding.code for finding in found.findings] == ["COINCIDENT_PEAK_OUTSIDE"]


def test_amounts_of_a_year_count_by_days_where_a_revision_cuts_its_last_period():
    """December 2023, 100 kW and a peak of the grid at 100: 10 days at 1 a kW each, 21 at 2: 2 x 5200 / 31."""
    start = START.replace(year=2023, month=12)

    def revision(day, price):
        annual = DemandCharge(name="annual", periods=(flat(price),), span=PeakSpan.CALENDAR_YEAR)
        sets = (CoincidentPeakSet(price=Decimal(price), starts=(start,)),)
        return TariffRevision(
            effective_from=date(2023, 12, day), charges=(annual, CoincidentPeakCharge(name="grid", sets=sets))
        )

    terms = replace(tariff(), revisions=(revision(1, 1), revision(11, 2)))
    assert compute_bill(terms, load(start, [100.0] * 24)).total == approx(2 * 5200 / 31)


def test_reactive_power_above_the_free_share():
    """100 kW at 0.8: 75 kvar; above half of the active power 25 kvar, or 25 kvarh an hour."""
    series = load(START, [100.0, 50.0])._replace(power_factor=0.8)
    kvar = ReactiveCharge(name="kvar", price=Decimal(2), free_share_of_active=0.5)
    (line,) = lines(kvar, series)
    assert (line.quantity, line.unit, line.peak_at) == (pytest.approx(25.0), "kvar", START)
    kvarh = ReactiveCharge(name="kvarh", price=Decimal("0.1"), free_share_of_active=0.5, by_energy=True)
    (line,) = lines(kvarh, series)
    assert (line.quantity, line.unit) == (pytest.approx(37.5), "kvarh")
    assert not lines(kvar, series._replace(power_factor=0.9))


def test_apparent_power_and_power_factor():
    """Batavia: below 90% demand counts 1 + 0.90 - pf; in kVA it is kW / pf; a share of kVA is a floor."""
    series = load(START, [100.0])._replace(power_factor=0.8)

    def quantity(**fields):
        return lines(DemandCharge(name="demand", periods=(flat("1"),), **fields), series)[0].quantity

    assert quantity(billing_demand=BillingDemand(power_factor_threshold=0.9)) == pytest.approx(110.0)
    assert quantity(apparent=True) == pytest.approx(125.0)
    assert quantity(billing_demand=BillingDemand(apparent_power_share=0.9)) == pytest.approx(112.5)
    assert quantity(billing_demand=BillingDemand(apparent_power_share=0.7)) == 100.0


def test_the_power_factor_does_not_lengthen_hours_of_use():
    """A floor of 40 kW at 0.8 is billed as 44, and an hour of use is 40 kWh: 40 x 1 + 10 x 2 of 50 kWh."""
    rule = BillingDemand(minimum_kw=40.0, power_factor_threshold=0.9)
    unit = TariffTierUnit.KWH_PER_KW
    tiers = (PriceTier(price=Decimal(1), limit=1.0, unit=unit), PriceTier(price=Decimal(2), unit=unit))
    periods = (PricePeriod(name="all", tiers=tiers),)
    charges = (
        DemandCharge(name="demand", periods=(flat("1"),), billing_demand=rule),
        EnergyCharge(name="energy", periods=periods, billing_demand_of="demand"),
    )
    found = compute_bill(tariff(*charges), load(START, [25.0, 25.0])._replace(power_factor=0.8))
    assert found.periods[0].billing_demand_kw == {"demand": pytest.approx(44.0)}
    assert amounts(found, "energy") == approx(60)


def test_contract_capacity_and_overrun():
    """Contract 80 kW, peak 100: billed 100, and 100 - 80 x 1.1 = 12 kW beyond at 3; below it 80 is billed."""
    charges = (
        DemandCharge(name="demand", periods=(flat("1"),), billing_demand=BillingDemand(contract_kw=80.0)),
        OverrunCharge(name="overrun", contract_kw=80.0, tolerance=1.1, price=Decimal(3)),
    )
    found = compute_bill(tariff(*charges), load(START, [60.0, 100.0]))
    assert amounts(found, "demand") == 100
    assert amounts(found, "overrun") == approx(36)
    assert found.periods[0].lines[1].peak_at == START.replace(hour=1)
    small = compute_bill(tariff(*charges), load(START, [60.0]))
    assert [line.amount for line in small.periods[0].lines] == [80]
    assert small.periods[0].lines[0].note == "contract"


@pytest.mark.parametrize(
    ("pricing", "kw", "expected"),
    [
        (DemandPricing.MARGINAL, 700.0, 500 * 45 + 200 * 42),
        (DemandPricing.BRACKET, 700.0, 700 * 42),
        (DemandPricing.BRACKET, 500.0, 500 * 45),
        (DemandPricing.BRACKET_AMOUNT, 700.0, 42),
        (DemandPricing.BRACKET_AMOUNT, 2000.0, 38),
    ],
)
def test_demand_by_tier_and_by_bracket(pricing, kw, expected):
    """TronderEnergi NM3-1 2018 in winter: 45 NOK/kW to 500, 42 to 1000, 38 beyond."""
    periods = ladder((45, 500.0), (42, 1000.0), (38, None))
    found = lines(DemandCharge(name="demand", periods=periods, pricing=pricing), load(START, [kw]))
    assert sum(line.amount for line in found) == expected


def test_the_mean_of_the_highest_peaks_of_different_days():
    """Three highest hours: 90, 80, 70 on any day; 90, 60, 50 on days of their own (Norwegian grid rent)."""
    kw = np.full(31 * 24, 10.0)
    kw[[10, 11, 12]] = 90.0, 80.0, 70.0
    kw[[40, 70]] = 60.0, 50.0
    charge = {"name": "demand", "periods": (flat("1"),), "peaks": 3}
    assert lines(DemandCharge(**charge), load(START, kw))[0].quantity == pytest.approx(80.0)
    (line,) = lines(DemandCharge(**charge, on_distinct_days=True), load(START, kw))
    assert line.quantity == pytest.approx(200 / 3)
    assert line.peak_at == START.replace(hour=10)


def test_an_annual_demand_is_charged_once_with_the_last_period_of_its_year():
    charge = DemandCharge(
        name="annual", periods=(flat("147.35"),), span=PeakSpan.CALENDAR_YEAR, window_minutes=15
    )
    series = load(START.replace(year=2023, month=12), np.arange(91 * 96.0), 15)
    found = compute_bill(tariff(charge), series)
    assert [[line.quantity for line in period.lines] for period in found.periods] == [
        [31 * 96 - 1.0], [], [91 * 96 - 1.0],
    ]  # fmt: skip
    assert [period.billing_demand_kw for period in found.periods] == [
        {"annual": 31 * 96 - 1.0}, {}, {"annual": 91 * 96 - 1.0},
    ]  # fmt: skip
    known = compute_bill(tariff(charge), load(START.replace(month=3), [10.0]), history={(2024, 1): 50.0})
    assert known.total == approx("7367.50")


def test_the_year_of_a_german_grid_operator():
    """swm-online (bills.csv swm-1 to 4): 25 GWh at 5 MW are 5000 h; 736,750 + 122,500 = 859,250 EUR."""
    terms = tariff(
        DemandCharge(name="demand", periods=(flat("147.35"),), span=PeakSpan.CALENDAR_YEAR),
        EnergyCharge(name="energy", periods=(flat("0.0049"),)),
        zone="Etc/GMT-1",
        currency="EUR",
        hours_of_use_minimum=2500.0,
    )
    found = compute_annual_bill(terms, year=2024, energy_kwh=25e6, peak_kw=5000.0)
    assert (amounts(found, "demand"), found.total) == (approx("736750"), approx("859250", 1e-6))
    with pytest.raises(PlanningError) as problem:
        compute_annual_bill(terms, year=2024, energy_kwh=12.4e6, peak_kw=5000.0)
    assert problem.value.code == "HOURS_OF_USE"


def test_prices_switch_on_annual_hours_of_use():
    """1 kW flat but for one hour at 4 kW: 8787 / 4 = 2196.75 h choose the set below 2500 h."""
    below = EnergyCharge(name="below", periods=(flat("0.05"),), hours_of_use_below=2500.0)
    above = EnergyCharge(name="above", periods=(flat("0.01"),), hours_of_use_from=2500.0)
    steady, peaky = year(2024, 1.0), year(2024, 1.0)
    peaky.kw[100] = 4.0
    assert compute_bill(tariff(below, above), steady).total == approx("87.84")
    assert compute_bill(tariff(below, above), peaky).total == approx("439.35")
    part = compute_bill(tariff(below, above), load(START, [1.0] * 24))
    assert amounts(part, "below") == approx("1.2")
    assert [finding.code for finding in part.findings] == ["HOURS_OF_USE_PART"]


def test_a_year_of_known_quantities_needs_no_series():
    terms = tariff(
        FixedCharge(name="meter", price=Decimal(100)),
        EnergyCharge(name="energy", periods=(timed("peak", "0.2", 8, 20), timed("night", "0.1", 20, 8))),
        DemandCharge(name="peak", periods=(timed("on", "5", 8, 20),)),
        DemandCharge(
            name="flat",
            periods=(flat("2", "month"),),
            billing_demand=BillingDemand(
                ratchets=(DemandRatchet(preceding_months=1, share_by_peak_month=(0.5,) * 12),)
            ),
        ),
        secondary_loss_factor=0.01,
    )
    known = BillingDeterminants(
        year=2018,
        energy_kwh={(7, "peak"): 1000.0, (7, "night"): 500.0},
        period_peak_kw={(7, "on"): 40.0},
        month_peak_kw={7: 50.0},
    )
    found = compute_determinants_bill(terms, known)
    assert amounts(found, month=5) == 100
    assert [line.amount for line in found.periods[6].lines] == [100, 200, 50, 200, 100]
    assert amounts(found, month=7) == 150
    assert found.periods[6].energy_kwh == 1500.0
    assert amounts(compute_determinants_bill(terms, known._replace(secondary=True)), month=6) == approx(
        "655.5"
    )


def test_quantities_that_do_not_tell_enough_are_refused():
    demand = DemandCharge(name="demand", periods=(flat("1"),))
    market = RealTimeCharge(name="market", prices=IntervalPrices(START, 60, np.ones(1)))
    energy = EnergyCharge(name="energy", periods=(flat("1"),))
    seasonal = EnergyCharge(name="energy", periods=ladder((1, 10.0), (2, None)))
    given = BillingDeterminants(2018, {(1, "all"): 1.0}, {}, {})
    for charges, known, code in (
        ((energy, demand), given, "DETERMINANT_MISSING"),
        ((energy, market), given, "SERIES_REQUIRED"),
        ((energy,), given._replace(energy_kwh={(1, "other"): 1.0}), "DETERMINANT_UNKNOWN"),
        ((demand,), BillingDeterminants(2018, {}, {}, {13: 1.0}), "DETERMINANT_UNKNOWN"),
    ):
        with pytest.raises(PlanningError) as problem:
            compute_determinants_bill(tariff(*charges), known)
        assert problem.value.code == code
    for charge in (demand, seasonal, MinimumCharge(name="minimum", amount=Decimal(1))):
        with pytest.raises(PlanningError) as problem:
            compute_annual_bill(tariff(charge), year=2024, energy_kwh=1.0, peak_kw=1.0)
        assert problem.value.code == "SERIES_REQUIRED"


def test_peaks_of_winter_months_within_the_year_with_shares_by_peak_month():
    """Billing month June: 70% of February's 200 kW, 40% of April's 300 and all of May's 100: 140 kW."""
    shares = (0.7, 0.7, 0.7, 0.4, 1.0, 1.0) + (0.0,) * 6
    rule = BillingDemand(ratchets=(DemandRatchet(preceding_months=11, share_by_peak_month=shares),))
    charge = DemandCharge(name="demand", periods=(flat("1"),), billing_demand=rule)
    series = year(2023, 10.0)
    for day, kw in ((date(2023, 2, 3), 200.0), (date(2023, 4, 3), 300.0), (date(2023, 5, 3), 100.0)):
        series.kw[(day - date(2023, 1, 1)).days * 24 + 7] = kw
    found = compute_bill(tariff(charge), series, wraps_year=True)
    assert found.periods[5].billing_demand_kw["demand"] == pytest.approx(140.0)
    assert found.periods[5].lines[0].peak_at == datetime(2023, 2, 3, 7, tzinfo=UTC)


def test_a_ratchet_on_peaks_of_one_price_period():
    """Night peaks of January do not count in February: 80% of the 50 kW by day, not of the 90 by night."""
    periods = (
        PricePeriod(
            name="day",
            tiers=(PriceTier(price=Decimal(1)),),
            windows=(LocalTimeWindow(from_minute=480, to_minute=1200),),
        ),
    )
    ratchet = DemandRatchet(preceding_months=1, share_by_peak_month=(0.8,) * 12, period="day")
    charge = DemandCharge(name="day", periods=periods, billing_demand=BillingDemand(ratchets=(ratchet,)))
    kw = np.full(60 * 24, 10.0)
    kw[[2, 10]] = 90.0, 50.0
    found = compute_bill(tariff(charge), load(START, kw))
    assert [period.billing_demand_kw["day"] for period in found.periods] == [50.0, 40.0]
