"""A tariff written as a rate and read again is the same tariff, and what a rate cannot say is listed."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.urdb import tariff_from_urdb, urdb_from_tariff
from service.formats.urdb.hours import build_month_windows, build_windows, list_cells
from service.planning.tariff.charges import (
    MONTHS,
    WEEKDAYS,
    BillingDemand,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    HolidayTreatment,
    LocalTimeWindow,
    MinimumCharge,
    OverrunCharge,
    PeakSpan,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    Tariff,
    TariffCharge,
    TariffRevision,
    TariffTierUnit,
    TierAccumulation,
)

prices = st.decimals(-1000, 1000, places=5).map(lambda price: price.normalize() + 0)
shares = st.integers(1, 100).map(lambda percent: percent / 100)
limits = st.integers(1, 100_000)


@st.composite
def ladders(draw, unit):
    """Tiers of rising limits, the last without one."""
    tops = sorted(draw(st.sets(limits, max_size=3)))
    return tuple(PriceTier(price=draw(prices), limit=top, unit=unit) for top in [*map(float, tops), None])


@st.composite
def hours_use_ladders(draw):
    """Tiers by hours of use, of which some are divided by kWh."""
    tiers = []
    for top in [*map(float, sorted(draw(st.sets(limits, max_size=2)))), None]:
        tiers.append(PriceTier(price=draw(prices), limit=top, unit=TariffTierUnit.KWH_PER_KW))
        if draw(st.booleans()):
            tiers.extend(draw(ladders(TariffTierUnit.KWH)))
    return tuple(tiers)


@st.composite
def scheduled(draw, ladder):
    """Periods on schedules of hours; places that no hour has are left out."""
    row = st.lists(st.integers(0, 3), min_size=24, max_size=24)
    kinds = draw(st.lists(row, min_size=1, max_size=3))
    schedule = st.lists(st.sampled_from(kinds), min_size=12, max_size=12)
    found = build_windows(draw(schedule), draw(schedule))
    return tuple(
        PricePeriod(name=f"period_{place}", tiers=draw(ladder), windows=windows)
        for place, windows in found.items()
    )


@st.composite
def flat_periods(draw):
    months = draw(st.lists(st.integers(0, 11), min_size=12, max_size=12))
    return tuple(
        PricePeriod(name=f"period_{place}", tiers=draw(ladders(TariffTierUnit.KW)), windows=windows)
        for place, windows in build_month_windows(months).items()
    )


@st.composite
def rules(draw):
    """At most one look-back, and at most one ratchet by month."""
    ratchets = []
    share = (draw(shares),) * 12
    lookback = draw(st.sampled_from(["none", "range", "months"]))
    if lookback == "range":
        ratchets.append(
            DemandRatchet(
                share_by_billing_month=share, preceding_months=draw(st.integers(1, 12)), wraps_year=True
            )
        )
    elif lookback == "months":
        months = draw(st.frozensets(st.integers(1, 12), min_size=1))
        ratchets.append(DemandRatchet(share_by_billing_month=share, peak_months=months))
    by_month = tuple(draw(st.lists(shares, min_size=12, max_size=12)))
    if len(set(by_month)) > 1 and draw(st.booleans()):
        ratchets.append(DemandRatchet(share_by_billing_month=by_month, peak_months=MONTHS))
    return BillingDemand(ratchets=tuple(ratchets))


@st.composite
def tariffs(draw):
    """Tariffs that a rate can state, with the names that an import gives."""
    charges: list[TariffCharge] = [
        FixedCharge(name="customer", price=draw(prices), per=draw(st.sampled_from(FixedChargePeriod)))
    ]
    window = draw(st.sampled_from([None, 5, 15, 30, 60]))
    kinds = draw(st.sets(st.sampled_from(["timed", "flat", "energy", "reactive", "minimum", "yearly"])))
    rule = BillingDemand()
    if "timed" in kinds:
        periods = draw(scheduled(ladders(TariffTierUnit.KW)))
        timed = DemandCharge(name="time_of_use_demand", periods=periods, window_minutes=window)
        charges.append(replace(timed, apparent=draw(st.booleans())))
    if "flat" in kinds:
        rule = draw(rules())
        flat = DemandCharge(name="flat_demand", periods=draw(flat_periods()), window_minutes=window)
        charges.append(replace(flat, apparent=draw(st.booleans()), billing_demand=rule))
    if "energy" in kinds:
        by_hours = draw(st.booleans())
        periods = draw(scheduled(hours_use_ladders() if by_hours else ladders(TariffTierUnit.KWH)))
        scaled = "flat_demand" if by_hours and rule != BillingDemand() else None
        charges.append(EnergyCharge(name="energy", periods=periods, billing_demand_of=scaled))
    if "reactive" in kinds:
        charges.append(ReactiveCharge(name="reactive_demand", price=draw(prices)))
    if "minimum" in kinds:
        charges.append(
            MinimumCharge(name="minimum", amount=draw(prices), per=draw(st.sampled_from(FixedChargePeriod)))
        )
    if "yearly" in kinds:
        charges.append(MinimumCharge(name="yearly_minimum", amount=draw(prices), per=FixedChargePeriod.YEAR))
    start = draw(st.one_of(st.just(date.min), st.dates(date(1970, 1, 1), date(2100, 1, 1))))
    return Tariff(
        currency_code=draw(st.sampled_from(["USD", "EUR"])),
        time_zone="America/Chicago",
        revisions=(TariffRevision(effective_from=start, charges=tuple(charges)),),
    )


@given(tariffs())
def test_what_a_rate_states_comes_back(tariff):
    written = urdb_from_tariff(tariff)
    assert [finding.name for finding in written.left_out] == ["time_zone"]
    found = tariff_from_urdb(written.document, time_zone=tariff.time_zone)
    assert found.tariff == tariff
    assert (found.refused, found.approximated) == ((), ())


@st.composite
def windows(draw):
    start, end = draw(
        st.tuples(st.integers(0, 23), st.integers(1, 24)).filter(lambda pair: pair[0] < pair[1])
    )
    days = draw(st.sampled_from([WEEKDAYS, frozenset(range(1, 6)), frozenset({6, 7})]))
    months = draw(st.frozensets(st.integers(1, 12), min_size=1))
    return LocalTimeWindow(months=months, weekdays=days, from_minute=start * 60, to_minute=end * 60)


@given(st.lists(windows(), min_size=1, max_size=4))
def test_windows_of_whole_hours_keep_their_hours(given_windows):
    period = PricePeriod(
        name="period_0", tiers=(PriceTier(price=Decimal("0.25")),), windows=tuple(given_windows)
    )
    written = urdb_from_tariff(tariff_of(EnergyCharge(name="energy", periods=(period,))))
    (energy,) = tariff_from_urdb(written.document, time_zone="Etc/UTC").tariff.revisions[0].charges
    assert list_cells(energy.periods[0].windows) == list_cells(given_windows)
    assert [tier.price for other in energy.periods[1:] for tier in other.tiers] == [0] * len(
        energy.periods[1:]
    )


def tariff_of(*charges, **fields):
    return Tariff(
        currency_code="USD",
        time_zone="Etc/UTC",
        revisions=(TariffRevision(effective_from=date(2024, 1, 1), charges=charges),),
        **fields,
    )


def always(price, unit=TariffTierUnit.KW, **window):
    return (
        PricePeriod(
            name="period_0",
            tiers=(PriceTier(price=Decimal(price), unit=unit),),
            windows=(LocalTimeWindow(**window),),
        ),
    )


FLAT = DemandCharge(name="flat_demand", periods=always(10))
ENERGY = EnergyCharge(name="energy", periods=always("0.1", TariffTierUnit.KWH))


@pytest.mark.parametrize(
    "charge",
    [
        replace(FLAT, months=frozenset({1})),
        replace(FLAT, hours_of_use_from=2500.0),
        replace(FLAT, span=PeakSpan.CALENDAR_YEAR),
        replace(FLAT, peaks=3),
        replace(FLAT, minimum=Decimal(5)),
        replace(FLAT, billing_demand=BillingDemand(minimum_kw=5)),
        replace(
            FLAT,
            billing_demand=BillingDemand(ratchets=(DemandRatchet(preceding_months=5, period="period_0"),)),
        ),
        replace(
            FLAT,
            billing_demand=BillingDemand(
                ratchets=(DemandRatchet(preceding_months=5), DemandRatchet(preceding_months=3))
            ),
        ),
        replace(FLAT, periods=always(10, from_minute=30)),
        replace(FLAT, periods=always(10, weekdays=frozenset({1}))),
        replace(FLAT, periods=always("0.12345678901234567891")),
        replace(ENERGY, periods=always("0.1", TariffTierUnit.KWH, holidays=HolidayTreatment.EXCLUDED)),
        OverrunCharge(name="overrun", contract_kw=5.0, price=Decimal(1)),
        PercentageCharge(name="tax", percent=Decimal(5), tax=True),
        MinimumCharge(name="minimum", amount=Decimal(5), of=("energy",)),
        ReactiveCharge(name="reactive_demand", price=Decimal(5), by_energy=True),
    ],
)
def test_charges_that_a_rate_cannot_state_are_left_out_whole(charge):
    written = urdb_from_tariff(tariff_of(charge, holidays=frozenset({date(2024, 1, 1)})))
    assert charge.name in {finding.name for finding in written.left_out}
    assert not any(key.endswith(("structure", "charge", "window")) for key in written.document)


def test_a_look_back_that_does_not_wrap_is_said_and_told():
    rule = BillingDemand(ratchets=(DemandRatchet(share_by_billing_month=(0.5,) * 12, preceding_months=11),))
    written = urdb_from_tariff(tariff_of(replace(FLAT, billing_demand=rule)))
    assert (written.document["lookbackpercent"], written.document["lookbackrange"]) == (0.5, 11)
    assert [one.pointer for one in written.left_out] == [
        "/time_zone",
        "/revisions/0/charges/0/billing_demand",
    ]


def test_tiers_that_all_energy_fills_are_left_out():
    period = PricePeriod(
        name="period_0", tiers=(PriceTier(price=Decimal(1), limit=5.0), PriceTier(price=Decimal(2)))
    )
    charge = EnergyCharge(
        name="energy", periods=(period,), accumulation=TierAccumulation.ALL_PERIODS_IN_TIME_ORDER
    )
    written = urdb_from_tariff(tariff_of(charge))
    assert "energyratestructure" not in written.document
    assert [finding.pointer for finding in written.left_out] == ["/time_zone", "/revisions/0/charges/0"]


def test_fixed_charges_are_added_up_and_prices_of_all_energy_are_the_adj():
    tariff = tariff_of(
        FixedCharge(name="meter", price=Decimal(5), meters=2),
        FixedCharge(name="fee", price=Decimal(24), per=FixedChargePeriod.YEAR),
        FixedCharge(name="daily", price=Decimal(1), per=FixedChargePeriod.DAY),
        ENERGY,
        EnergyCharge(name="tax", periods=always("0.02", TariffTierUnit.KWH)),
        secondary_loss_factor=0.01,
        hours_of_use_minimum=5.0,
        notes=("net of tax",),
    )
    written = urdb_from_tariff(tariff, name="Rate", utility="Utility")
    assert written.document["fixedchargefirstmeter"] == 144
    assert written.document["fixedchargeunits"] == "$/year"
    assert written.document["energyratestructure"] == [[{"rate": 0.1, "unit": "kWh", "adj": 0.02}]]
    assert {finding.name for finding in written.left_out} == {
        "daily",
        "fee",
        "hours_of_use_minimum",
        "meter",
        "notes",
        "secondary_loss_factor",
        "tax",
        "time_zone",
    }


def test_the_revision_in_force_is_written():
    revisions = tuple(
        TariffRevision(
            effective_from=date(year, 1, 1), charges=(FixedCharge(name="customer", price=Decimal(year)),)
        )
        for year in (2023, 2024)
    )
    tariff = Tariff(currency_code="USD", time_zone="Etc/UTC", revisions=revisions)
    assert urdb_from_tariff(tariff).document["fixedchargefirstmeter"] == 2024
    written = urdb_from_tariff(tariff, on=date(2023, 6, 1))
    assert written.document["fixedchargefirstmeter"] == 2023
    assert ("revisions", "/revisions/1") in {(finding.name, finding.pointer) for finding in written.left_out}
    assert urdb_from_tariff(tariff, on=date(2020, 1, 1)).document["fixedchargefirstmeter"] == 2023
