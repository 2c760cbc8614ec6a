"""Charges per kW and month, and how the metered peak becomes the demand that is billed."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from service.formats.urdb.billing_demand import billing_demand
from service.formats.urdb.energy import raises_demand, scheduled_periods
from service.formats.urdb.hours import month_windows
from service.formats.urdb.ladders import structure
from service.formats.urdb.rate import FLAT_DEMAND, TIME_OF_USE_DEMAND, Rate, period_name
from service.planning.tariff.charges import DemandCharge, PricePeriod, Tier, TierUnit

_DEMAND_UNITS = ("kW",)
_APPARENT_UNITS = ("kW", "kVA")
_WINDOWS_MINUTES = (5, 15, 30, 60)
_YEAR_MONTHS = 12


def demand_charges(rate: Rate) -> None:
    """Time-of-use and flat demand charges."""
    window = _window_minutes(rate)
    _time_of_use(rate, window)
    rule = billing_demand(rate)
    flat = _flat_periods(rate)
    unit = _unit(rate, "flatdemandunit", _APPARENT_UNITS)
    minimum = _minimum(rate)
    if flat is None:
        if rate.has("flatdemandstructure") or not (raises_demand(rule.demand) or minimum is not None):
            return
        flat = _without_price()
    if unit is None:
        return
    rate.charges.append(
        DemandCharge(
            name=FLAT_DEMAND,
            periods=flat,
            apparent=unit == "kVA",
            window_minutes=window,
            billing_demand=rule.demand,
            proration=rule.proration,
            minimum=minimum,
        )
    )


def _time_of_use(rate: Rate, window: int | None) -> None:
    periods = scheduled_periods(rate, "demand", rate.demand_ladders)
    unit = _unit(rate, "demandrateunit", _DEMAND_UNITS if rate.only_listed else _APPARENT_UNITS)
    if periods is None or unit is None:
        return
    rate.charges.append(
        DemandCharge(name=TIME_OF_USE_DEMAND, periods=periods, apparent=unit == "kVA", window_minutes=window)
    )


def _unit(rate: Rate, key: str, known: Sequence[str]) -> str | None:
    return rate.at(key).text(known) if rate.has(key) else known[0]


def _window_minutes(rate: Rate) -> int | None:
    """The minutes over which a demand is a mean; the load's own intervals where none is written."""
    if not rate.has("demandwindow"):
        return None
    place = rate.at("demandwindow")
    minutes = place.whole(1, _WINDOWS_MINUTES[-1])
    if minutes is not None and minutes not in _WINDOWS_MINUTES:
        place.refuse(f"must be one of {', '.join(map(str, _WINDOWS_MINUTES))}")
        return None
    return minutes


def _minimum(rate: Rate) -> Decimal | None:
    key = "x_min_demand_charge_usd_month"
    if not rate.has(key) or not rate.in_currency(rate.at(key), "USD"):
        return None
    return rate.at(key).price()


def _without_price() -> tuple[PricePeriod, ...]:
    """A charge of nothing: it holds the billing demand that tiers by hours of use need."""
    return (PricePeriod(name=period_name(0), tiers=(Tier(price=Decimal(0), unit=TierUnit.KW),)),)


def _flat_periods(rate: Rate) -> tuple[PricePeriod, ...] | None:
    """Entries of the flat structure by month; where a second list of months is there, both added up."""
    for key in rate.one_of(("flatdemandmonths", "x_extraflatdemandmonths")):
        if not rate.has("flatdemandstructure"):
            rate.findings.warn(rate.at(key).pointer, "chooses from no structure")
    if not rate.has("flatdemandstructure"):
        return None
    ladders = structure(rate.at("flatdemandstructure"), rate.demand_ladders)
    if ladders is None:
        return None
    months = _months(rate, "flatdemandmonths", len(ladders))
    if months is None:
        return None
    if not rate.has("x_extraflatdemandmonths"):
        return _periods(ladders, months)
    extra = rate.at("x_extraflatdemandmonths").twelve_places(len(ladders))
    if extra is None:
        return None
    pairs = list(zip(months, extra, strict=True))
    distinct = list(dict.fromkeys(pairs))
    added = [added_up(ladders[first], ladders[second]) for first, second in distinct]
    return _periods(added, [distinct.index(pair) for pair in pairs])


def _periods(ladders: Sequence[tuple[Tier, ...]], months: Sequence[int]) -> tuple[PricePeriod, ...]:
    return tuple(
        PricePeriod(name=period_name(place), tiers=ladders[place], windows=windows)
        for place, windows in month_windows(months).items()
    )


def _months(rate: Rate, key: str, count: int) -> list[int] | None:
    if rate.has(key):
        return rate.at(key).twelve_places(count)
    if count > 1:
        rate.at(key).refuse("is missing: nothing says which entry holds in which month")
        return None
    rate.findings.approximate(rate.at(key).pointer, "is missing: the only entry holds in every month")
    return [0] * _YEAR_MONTHS


def added_up(first: Sequence[Tier], second: Sequence[Tier]) -> tuple[Tier, ...]:
    """The marginal ladder that prices each part of a demand by both."""
    limits = sorted({tier.limit for tier in (*first, *second) if tier.limit is not None})
    tops = [*limits, None]
    return tuple(
        replace(first[-1], price=_price_below(first, top) + _price_below(second, top), limit=top)
        for top in tops
    )


def _price_below(ladder: Sequence[Tier], top: float | None) -> Decimal:
    """The price of what is just below ``top``."""
    for tier in ladder:
        if tier.limit is None or (top is not None and top <= tier.limit):
            return tier.price
    return ladder[-1].price
