"""Charges per kW and month, and how the metered peak becomes the demand that is billed."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from service.formats.urdb.billing_demand import read_billing_demand
from service.formats.urdb.energy import raises_demand, read_scheduled_periods
from service.formats.urdb.hours import build_month_windows
from service.formats.urdb.ladders import read_structure
from service.formats.urdb.rate import FLAT_DEMAND, TIME_OF_USE_DEMAND, UrdbRate, format_period_name
from service.planning.tariff.charges import DemandCharge, PricePeriod, PriceTier, TariffTierUnit

_DEMAND_UNITS = ("kW",)
_APPARENT_UNITS = ("kW", "kVA")
_WINDOWS_MINUTES = (5, 15, 30, 60)
_YEAR_MONTHS = 12


def read_demand_charges(rate: UrdbRate) -> None:
    """Time-of-use and flat demand charges."""
    window = _read_window_minutes(rate)
    _read_time_of_use(rate, window)
    rule = read_billing_demand(rate)
    flat = _read_flat_periods(rate)
    unit = _read_unit(rate, "flatdemandunit", _APPARENT_UNITS)
    minimum = _read_minimum(rate)
    if flat is None:
        if rate.has_key("flatdemandstructure") or not (raises_demand(rule.demand) or minimum is not None):
            return
        flat = _build_free_period()
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


def _read_time_of_use(rate: UrdbRate, window: int | None) -> None:
    periods = read_scheduled_periods(rate, "demand", rate.demand_ladders)
    unit = _read_unit(rate, "demandrateunit", _DEMAND_UNITS if rate.only_listed else _APPARENT_UNITS)
    if periods is None or unit is None:
        return
    rate.charges.append(
        DemandCharge(name=TIME_OF_USE_DEMAND, periods=periods, apparent=unit == "kVA", window_minutes=window)
    )


def _read_unit(rate: UrdbRate, key: str, known: Sequence[str]) -> str | None:
    return rate.get_field(key).read_choice(known) if rate.has_key(key) else known[0]


def _read_window_minutes(rate: UrdbRate) -> int | None:
    """The minutes over which a demand is a mean; the load's own intervals where none is written."""
    if not rate.has_key("demandwindow"):
        return None
    place = rate.get_field("demandwindow")
    minutes = place.read_integer(1, _WINDOWS_MINUTES[-1])
    if minutes is not None and minutes not in _WINDOWS_MINUTES:
        place.record_refusal(f"must be one of {', '.join(map(str, _WINDOWS_MINUTES))}")
        return None
    return minutes


def _read_minimum(rate: UrdbRate) -> Decimal | None:
    key = "x_min_demand_charge_usd_month"
    if not rate.has_key(key) or not rate.check_currency(rate.get_field(key), "USD"):
        return None
    return rate.get_field(key).read_price()


def _build_free_period() -> tuple[PricePeriod, ...]:
    """A charge of nothing: it holds the billing demand that tiers by hours of use need."""
    return (
        PricePeriod(name=format_period_name(0), tiers=(PriceTier(price=Decimal(0), unit=TariffTierUnit.KW),)),
    )


def _read_flat_periods(rate: UrdbRate) -> tuple[PricePeriod, ...] | None:
    """Entries of the flat structure by month; where a second list of months is there, both added up."""
    for key in rate.list_present_keys(("flatdemandmonths", "x_extraflatdemandmonths")):
        if not rate.has_key("flatdemandstructure"):
            rate.findings.record_warning(rate.get_field(key).pointer, "chooses from no structure")
    if not rate.has_key("flatdemandstructure"):
        return None
    ladders = read_structure(rate.get_field("flatdemandstructure"), rate.demand_ladders)
    if ladders is None:
        return None
    months = _read_months(rate, "flatdemandmonths", len(ladders))
    if months is None:
        return None
    if not rate.has_key("x_extraflatdemandmonths"):
        return _build_periods(ladders, months)
    extra = rate.get_field("x_extraflatdemandmonths").read_twelve_indexes(len(ladders))
    if extra is None:
        return None
    pairs = list(zip(months, extra, strict=True))
    distinct = list(dict.fromkeys(pairs))
    added = [sum_ladders(ladders[first], ladders[second]) for first, second in distinct]
    return _build_periods(added, [distinct.index(pair) for pair in pairs])


def _build_periods(
    ladders: Sequence[tuple[PriceTier, ...]], months: Sequence[int]
) -> tuple[PricePeriod, ...]:
    return tuple(
        PricePeriod(name=format_period_name(place), tiers=ladders[place], windows=windows)
        for place, windows in build_month_windows(months).items()
    )


def _read_months(rate: UrdbRate, key: str, count: int) -> list[int] | None:
    if rate.has_key(key):
        return rate.get_field(key).read_twelve_indexes(count)
    if count > 1:
        rate.get_field(key).record_refusal("is missing: nothing says which entry holds in which month")
        return None
    rate.findings.record_approximation(
        rate.get_field(key).pointer, "is missing: the only entry holds in every month"
    )
    return [0] * _YEAR_MONTHS


def sum_ladders(first: Sequence[PriceTier], second: Sequence[PriceTier]) -> tuple[PriceTier, ...]:
    """The marginal ladder that prices each part of a demand by both."""
    limits = sorted({tier.limit for tier in (*first, *second) if tier.limit is not None})
    tops = [*limits, None]
    return tuple(
        replace(first[-1], price=_find_price_below(first, top) + _find_price_below(second, top), limit=top)
        for top in tops
    )


def _find_price_below(ladder: Sequence[PriceTier], top: float | None) -> Decimal:
    """The price of what is just below ``top``."""
    for tier in ladder:
        if tier.limit is None or (top is not None and top <= tier.limit):
            return tier.price
    return ladder[-1].price
