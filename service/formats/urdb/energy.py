"""Charges per kWh."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from service.formats.urdb.hours import HOURS_OF_DAY, MONTHS_OF_YEAR, windows_of
from service.formats.urdb.ladders import HOURS_USE, LadderRules, structure
from service.formats.urdb.rate import (
    ALL_HOURS,
    ENERGY,
    ENERGY_PRICE,
    ENERGY_TAX,
    FLAT_DEMAND,
    Rate,
    period_name,
)
from service.planning.tariff.charges import (
    Accumulation,
    BillingDemand,
    DemandCharge,
    EnergyCharge,
    PricePeriod,
    Tier,
)

_HUNDREDTH = Decimal("0.01")
_ACCUMULATIONS = ("all_periods_in_time_order",)


def energy_charges(rate: Rate) -> None:
    """The energy structure, one price of all energy, and a tax; after the demand charges."""
    periods = scheduled_periods(rate, "energy", rate.energy_ladders)
    accumulation = _accumulation(rate)
    if periods is not None and accumulation is not None:
        rate.charges.append(
            EnergyCharge(
                name=ENERGY,
                periods=periods,
                accumulation=accumulation,
                billing_demand_of=_scaled_by(rate, periods),
            )
        )
    if rate.has("x_energy_price_ct_per_kwh"):
        price = rate.at("x_energy_price_ct_per_kwh").price()
        if price is not None:
            rate.charges.append(_flat(ENERGY_PRICE, price * _HUNDREDTH))
    if rate.has("x_energy_tax_sek_per_kwh"):
        place = rate.at("x_energy_tax_sek_per_kwh")
        price = place.price() if rate.in_currency(place, "SEK") else None
        if price is not None:
            rate.charges.append(_flat(ENERGY_TAX, price))


def _flat(name: str, price: Decimal) -> EnergyCharge:
    return EnergyCharge(name=name, periods=(PricePeriod(name=ALL_HOURS, tiers=(Tier(price=price),)),))


def _accumulation(rate: Rate) -> Accumulation | None:
    if not rate.has("x_tier_accumulation"):
        return Accumulation.PER_PERIOD
    known = rate.at("x_tier_accumulation").text(_ACCUMULATIONS)
    return None if known is None else Accumulation.ALL_PERIODS_IN_TIME_ORDER


def _scaled_by(rate: Rate, periods: Sequence[PricePeriod]) -> str | None:
    """The demand charge whose floors and ratchets raise the demand of hours-use tiers."""
    if not any(tier.unit in HOURS_USE for period in periods for tier in period.tiers):
        return None
    for charge in rate.charges:
        if isinstance(charge, DemandCharge) and charge.name == FLAT_DEMAND:
            return FLAT_DEMAND if raises_demand(charge.billing_demand) else None
    return None


def raises_demand(rule: BillingDemand) -> bool:
    """Whether more than the peak of the month decides on the billing demand."""
    return replace(rule, power_factor_threshold=None) != BillingDemand()


def scheduled_periods(rate: Rate, kind: str, rules: LadderRules) -> tuple[PricePeriod, ...] | None:
    """The periods of ``energy`` or ``demand`` with the hours in which they hold."""
    key = f"{kind}ratestructure"
    schedules = [f"{kind}weekdayschedule", f"{kind}weekendschedule"]
    if not rate.has(key):
        for schedule in rate.one_of(schedules):
            rate.findings.warn(rate.at(schedule).pointer, "is the schedule of no structure")
        return None
    ladders = structure(rate.at(key), rules)
    if ladders is None:
        return None
    grids = [_grid(rate, schedule, len(ladders)) for schedule in schedules]
    if None in grids:
        return None
    weekday, weekend = (grid for grid in grids if grid is not None)
    return tuple(
        PricePeriod(name=period_name(place), tiers=ladders[place], windows=windows)
        for place, windows in windows_of(weekday, weekend).items()
    )


def _grid(rate: Rate, key: str, count: int) -> list[list[int]] | None:
    if rate.has(key):
        return rate.at(key).schedule(count)
    if count > 1:
        rate.at(key).refuse("is missing: nothing says which period holds when")
        return None
    rate.findings.approximate(rate.at(key).pointer, "is missing: the only period holds at all hours")
    return [[0] * HOURS_OF_DAY for _ in MONTHS_OF_YEAR]
