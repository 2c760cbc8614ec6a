"""A tariff that cannot be billed is refused with the place of its fault."""

from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest

from service.planning.errors import PlanningError
from service.planning.tariff.charges import (
    BillingDemand,
    CoincidentPeakCharge,
    CoincidentPeakSet,
    DemandCharge,
    DemandRatchet,
    EnergyCharge,
    FixedCharge,
    HolidayTreatment,
    IntervalPrices,
    LocalTimeWindow,
    MinimumCharge,
    OverrunCharge,
    PercentageCharge,
    PricePeriod,
    PriceTier,
    ReactiveCharge,
    RealTimeCharge,
    TariffCharge,
    TariffRevision,
    TariffTierUnit,
)
from service.planning.tariff.checks import check_tariff
from tests.planning.tariff.loads import START, WEEKDAYS, flat, tariff, timed

HOURS = TariffTierUnit.KWH_PER_KW


def energy(*periods, **fields):
    return EnergyCharge(name="energy", periods=periods or (flat("1"),), **fields)


def ladder(*tiers):
    return PricePeriod(
        name="all",
        tiers=tuple(PriceTier(price=Decimal(1), limit=limit, unit=unit) for limit, unit in tiers),
    )


def demand(*periods, **fields):
    return DemandCharge(name="demand", periods=periods or (flat("1"),), **fields)


def ratcheted(**fields):
    return demand(billing_demand=BillingDemand(ratchets=(DemandRatchet(**fields),)))


def window(**fields):
    return energy(
        PricePeriod(name="all", tiers=(PriceTier(price=Decimal(1)),), windows=(LocalTimeWindow(**fields),))
    )


KWH, KW = TariffTierUnit.KWH, TariffTierUnit.KW
WINTER = frozenset({12, 1, 2})
FAULTS = [
    ((FixedCharge(name="", price=Decimal(1)),), "CHARGE_NAME", "/0/name"),
    ((energy(), energy()), "CHARGE_NAME", "/1/name"),
    ((TariffCharge(name="bare"),), "CHARGE_KIND", "/0"),
    ((FixedCharge(name="x", price=Decimal("NaN")),), "TARIFF_VALUE", "/0/price"),
    ((FixedCharge(name="x", price=Decimal(1), meters=0),), "TARIFF_VALUE", "/0/meters"),
    ((energy(months=frozenset()),), "TARIFF_VALUE", "/0/months"),
    ((energy(hours_of_use_from=5.0, hours_of_use_below=4.0),), "TARIFF_VALUE", "/0/hours_of_use_below"),
    ((energy(billing_demand_of="demand"),), "CHARGE_UNKNOWN", "/0/billing_demand_of"),
    ((energy(flat("1"), flat("2", "x")),), "PRICE_PERIODS_OVERLAP", "/0/periods/1/windows"),
    ((energy(flat("1"), flat("2")),), "PRICE_PERIODS", "/0/periods/1/name"),
    ((EnergyCharge(name="x", periods=()),), "PRICE_PERIODS", "/0/periods"),
    ((window(months=frozenset({13})),), "TARIFF_VALUE", "/0/periods/0/windows/0/months"),
    ((window(weekdays=frozenset({0})),), "WINDOW", "/0/periods/0/windows/0/weekdays"),
    ((window(from_minute=1440),), "WINDOW", "/0/periods/0/windows/0/from_minute"),
    ((window(to_minute=1441),), "WINDOW", "/0/periods/0/windows/0/to_minute"),
    (
        (energy(PricePeriod(name="a", tiers=(PriceTier(price=Decimal(1)),), windows=())),),
        "WINDOW",
        "/0/periods/0/windows",
    ),
    ((energy(PricePeriod(name="a", tiers=())),), "LADDER", "/0/periods/0/tiers"),
    ((energy(ladder((100.0, KWH))),), "LADDER", "/0/periods/0/tiers/0/limit"),
    ((energy(ladder((100.0, KWH), (100.0, KWH), (None, KWH))),), "LADDER", "/0/periods/0/tiers/1/limit"),
    ((energy(ladder((0.0, KWH), (None, KWH))),), "LADDER", "/0/periods/0/tiers/0/limit"),
    ((energy(ladder((200.0, HOURS), (None, KWH))),), "LADDER", "/0/periods/0/tiers/1/limit"),
    ((energy(ladder((None, KW))),), "LADDER", "/0/periods/0/tiers/0/unit"),
    ((demand(ladder((None, HOURS))),), "LADDER", "/0/periods/0/tiers/0/unit"),
    ((demand(ladder((5.0, KW))),), "LADDER", "/0/periods/0/tiers/0/limit"),
    ((demand(window_minutes=7),), "DEMAND_WINDOW", "/0/window_minutes"),
    ((demand(rolling=True),), "DEMAND_WINDOW", "/0/window_minutes"),
    ((demand(peaks=0),), "TARIFF_VALUE", "/0/peaks"),
    ((demand(minimum=Decimal("Infinity")),), "TARIFF_VALUE", "/0/minimum"),
    (
        (demand(billing_demand=BillingDemand(minimum_kw=-1.0)),),
        "TARIFF_VALUE",
        "/0/billing_demand/minimum_kw",
    ),
    (
        (demand(billing_demand=BillingDemand(power_factor_threshold=1.5)),),
        "TARIFF_VALUE",
        "/0/billing_demand/power_factor_threshold",
    ),
    (
        (demand(billing_demand=BillingDemand(own_peak_months=frozenset({0}))),),
        "TARIFF_VALUE",
        "/0/billing_demand/own_peak_months",
    ),
    ((ratcheted(),), "RATCHET", "/0/billing_demand/ratchets/0"),
    ((ratcheted(preceding_months=-1),), "TARIFF_VALUE", "/0/billing_demand/ratchets/0/preceding_months"),
    ((ratcheted(preceding_months=0, peak_months=WINTER),), "RATCHET", "/0/billing_demand/ratchets/0"),
    (
        (ratcheted(preceding_months=1, share_by_peak_month=(1.0,)),),
        "RATCHET",
        "/0/billing_demand/ratchets/0/share_by_peak_month",
    ),
    ((ratcheted(preceding_months=1, period="night"),), "RATCHET", "/0/billing_demand/ratchets/0"),
    ((MinimumCharge(name="x", amount=Decimal(1), of=("y",)),), "CHARGE_UNKNOWN", "/0/of/0"),
    ((PercentageCharge(name="x", percent=Decimal(1), of=("energy",)), energy()), "CHARGE_UNKNOWN", "/0/of/0"),
    ((OverrunCharge(name="x", contract_kw=-1.0, price=Decimal(1)),), "TARIFF_VALUE", "/0/contract_kw"),
    (
        (ReactiveCharge(name="x", price=Decimal(1), free_share_of_active=-1.0),),
        "TARIFF_VALUE",
        "/0/free_share_of_active",
    ),
    ((CoincidentPeakCharge(name="x", sets=()),), "PEAK_SET", "/0/sets"),
    ((CoincidentPeakCharge(name="x", sets=(CoincidentPeakSet(price=None),)),), "PEAK_SET", "/0/sets/0"),
    (
        (CoincidentPeakCharge(name="x", sets=(CoincidentPeakSet(price=None, hours_of_year=(0,)),)),),
        "PEAK_SET",
        "/0/sets/0/hours_of_year",
    ),
    (
        (RealTimeCharge(name="x", prices=IntervalPrices(datetime(2024, 1, 1), 60, np.ones(1))),),  # noqa: DTZ001
        "PRICES",
        "/0/prices/start",
    ),
    ((RealTimeCharge(name="x", prices=IntervalPrices(START, 60, np.ones(0))),), "PRICES", "/0/prices/values"),
]


@pytest.mark.parametrize(("charges", "code", "pointer"), FAULTS)
def test_a_fault_is_named_with_its_place(charges, code, pointer):
    with pytest.raises(PlanningError) as problem:
        check_tariff(tariff(*charges))
    assert (problem.value.code, problem.value.pointer) == (code, f"/revisions/0/charges{pointer}")


def test_faults_of_the_tariff_itself():
    sound = tariff(energy())
    check_tariff(sound)
    early = TariffRevision(effective_from=date(1, 1, 1), charges=())
    for wrong, code, pointer in (
        (replace(sound, time_zone="Mars/Olympus"), "TIME_ZONE_UNKNOWN", "/time_zone"),
        (replace(sound, time_zone="../etc"), "TIME_ZONE_UNKNOWN", "/time_zone"),
        (replace(sound, revisions=()), "TARIFF_REVISIONS", "/revisions"),
        (
            replace(sound, revisions=(*sound.revisions, early)),
            "TARIFF_REVISIONS",
            "/revisions/1/effective_from",
        ),
        (replace(sound, secondary_loss_factor=-0.1), "TARIFF_VALUE", "/secondary_loss_factor"),
    ):
        with pytest.raises(PlanningError) as problem:
            check_tariff(wrong)
        assert (problem.value.code, problem.value.pointer) == (code, pointer)


def test_windows_that_meet_on_some_day_overlap():
    """A night that begins on Friday and lasts into Saturday meets a window of Saturday morning."""
    friday = timed("night", "1", 22, 6, weekdays=frozenset({5}))
    check_tariff(tariff(energy(friday, timed("saturday", "1", 6, 12, weekdays=frozenset({6})))))
    with pytest.raises(PlanningError):
        check_tariff(tariff(energy(friday, timed("saturday", "1", 5, 12, weekdays=frozenset({6})))))
    january = timed("night", "1", 22, 6, months=frozenset({1}))
    with pytest.raises(PlanningError):
        check_tariff(tariff(energy(january, timed("february", "1", 5, 12, months=frozenset({2})))))


def test_holidays_count_where_a_tariff_has_any():
    peak = timed("peak", "1", 0, 24, weekdays=WEEKDAYS)
    off = PricePeriod(
        name="off",
        tiers=(PriceTier(price=Decimal(1)),),
        windows=(LocalTimeWindow(weekdays=frozenset({6, 7}), holidays=HolidayTreatment.INCLUDED),),
    )
    check_tariff(tariff(energy(peak, off)))
    with pytest.raises(PlanningError):
        check_tariff(tariff(energy(peak, off), holidays=frozenset({date(2024, 12, 25)})))
    without = replace(peak, windows=(replace(peak.windows[0], holidays=HolidayTreatment.EXCLUDED),))
    check_tariff(tariff(energy(without, off), holidays=frozenset({date(2024, 12, 25)})))


def test_a_nested_ladder_of_hours_use_is_sound():
    tiers = [(200.0, HOURS), (3000.0, KWH), (10000.0, KWH), (None, KWH), (400.0, HOURS), (None, HOURS)]
    check_tariff(tariff(energy(ladder(*tiers))))


def test_a_ratchet_may_look_at_the_billing_month_alone():
    check_tariff(tariff(ratcheted(preceding_months=0, within_billing_month=True)))
