"""Charges per kWh."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from service.formats.urdb.hours import HOURS_OF_DAY, MONTHS_OF_YEAR, build_windows
from service.formats.urdb.ladders import HOURS_USE, LadderRules, read_structure
from service.formats.urdb.rate import (
    ALL_HOURS,
    ENERGY,
    ENERGY_PRICE,
    ENERGY_TAX,
    FLAT_DEMAND,
    UrdbRate,
    format_period_name,
)
from service.planning.tariff.charges import (
    BillingDemand,
    DemandCharge,
    EnergyCharge,
    PricePeriod,
    PriceTier,
    TierAccumulation,
)

_HUNDREDTH = Decimal("0.01")
_ACCUMULATIONS = ("all_periods_in_time_order",)


def read_energy_charges(rate: UrdbRate) -> None:
    """The energy structure, one price of all energy, and a tax; after the demand charges."""
    periods = read_scheduled_periods(rate, "energy", rate.energy_ladders)
    accumulation = _read_accumulation(rate)
    if periods is not None and accumulation is not None:
        rate.charges.append(
            EnergyCharge(
                name=ENERGY,
                periods=periods,
                accumulation=accumulation,
                billing_demand_of=_find_scaling_charge(rate, periods),
            )
        )
    if rate.has_key("x_energy_price_ct_per_kwh"):
        price = rate.get_field("x_energy_price_ct_per_kwh").read_price()
        if price is not None:
            rate.charges.append(_build_flat_charge(ENERGY_PRICE, price * _HUNDREDTH))
    if rate.has_key("x_energy_tax_sek_per_kwh"):
        place = rate.get_field("x_energy_tax_sek_per_kwh")
        price = place.read_price() if rate.check_currency(place, "SEK") else None
        if price is not None:
            rate.charges.append(_build_flat_charge(ENERGY_TAX, price))


def _build_flat_charge(name: str, price: Decimal) -> EnergyCharge:
    return EnergyCharge(name=name, periods=(PricePeriod(name=ALL_HOURS, tiers=(PriceTier(price=price),)),))


def _read_accumulation(rate: UrdbRate) -> TierAccumulation | None:
    if not rate.has_key("x_tier_accumulation"):
        return TierAccumulation.PER_PERIOD
    known = rate.get_field("x_tier_accumulation").read_choice(_ACCUMULATIONS)
    return None if known is None else TierAccumulation.ALL_PERIODS_IN_TIME_ORDER


def _find_scaling_charge(rate: UrdbRate, periods: Sequence[PricePeriod]) -> str | None:
    """The demand charge whose floors and ratchets raise the demand of hours-use tiers."""
    if not any(tier.unit in HOURS_USE for period in periods for tier in period.tiers):
        return None
    for charge in rate.charges:
        if isinstance(charge, DemandCharge) and charge.name == FLAT_DEMAND:
            return FLAT_DEMAND if raises_demand(charge.billing_demand) else None
    return None


def raises_demand(rule: BillingDemand) -> bool:
    """Returns true if the billing demand depends on more than the peak of the month."""
    return replace(rule, power_factor_threshold=None) != BillingDemand()


def read_scheduled_periods(rate: UrdbRate, kind: str, rules: LadderRules) -> tuple[PricePeriod, ...] | None:
    """The periods of ``energy`` or ``demand`` with the hours in which they hold."""
    key = f"{kind}ratestructure"
    schedules = [f"{kind}weekdayschedule", f"{kind}weekendschedule"]
    if not rate.has_key(key):
        for schedule in rate.list_present_keys(schedules):
            rate.findings.record_warning(rate.get_field(schedule).pointer, "is the schedule of no structure")
        return None
    ladders = read_structure(rate.get_field(key), rules)
    if ladders is None:
        return None
    grids = [_read_schedule(rate, schedule, len(ladders)) for schedule in schedules]
    if None in grids:
        return None
    weekday, weekend = (grid for grid in grids if grid is not None)
    return tuple(
        PricePeriod(name=format_period_name(place), tiers=ladders[place], windows=windows)
        for place, windows in build_windows(weekday, weekend).items()
    )


def _read_schedule(rate: UrdbRate, key: str, count: int) -> list[list[int]] | None:
    if rate.has_key(key):
        return rate.get_field(key).read_schedule(count)
    if count > 1:
        rate.get_field(key).record_refusal("is missing: nothing says which period holds when")
        return None
    rate.findings.record_approximation(
        rate.get_field(key).pointer, "is missing: the only period holds at all hours"
    )
    return [[0] * HOURS_OF_DAY for _ in MONTHS_OF_YEAR]
