"""Floors and ratchets: from the peak of a month to the demand that is billed."""

from dataclasses import replace
from typing import NamedTuple

from service.formats.urdb.rate import Rate
from service.formats.urdb.values import YEAR_MONTHS, Place
from service.planning.tariff.charges import MONTHS, BillingDemand, Proration, Ratchet

_WINTER_MONTHS = frozenset({12, 1, 2, 3})
_PERCENT = 100.0
_PRORATIONS = ("30-day month",)
_POWER_FACTOR_RULES = frozenset({"demand*(1+threshold-pf)", "1+threshold-pf"})
_MEMBERS = (
    "percent_by_month",
    "include_actual_peak_by_month",
    "lookback_months",
    "year_zero_peaks_kw",
    "apparent_power_factor",
    "winter_ratchet_percent",
    "minimum_kw",
    "proration",
    "note",
)
_OF_PERCENT = ("include_actual_peak_by_month", "lookback_months", "year_zero_peaks_kw")


class DemandRule(NamedTuple):
    """How the demand is found, and what a monthly price of it is for."""

    demand: BillingDemand
    proration: Proration


def billing_demand(rate: Rate) -> DemandRule:
    """The rule that all floors and ratchets of a rate make together."""
    rule = DemandRule(
        BillingDemand(
            minimum_kw=_floor(rate),
            ratchets=(*_lookback(rate), *_older_ratchet(rate)),
            power_factor_threshold=_threshold(rate),
        ),
        Proration.NONE,
    )
    if not rate.has("x_billing_demand"):
        return rule
    members = rate.at("x_billing_demand").members(_MEMBERS)
    return rule if members is None else _extended(rate, rule.demand, members)


def _floor(rate: Rate) -> float:
    return (rate.at("x_min_billing_kw").quantity() or 0.0) if rate.has("x_min_billing_kw") else 0.0


def _threshold(rate: Rate) -> float | None:
    if not rate.has("x_power_factor"):
        return None
    place = rate.at("x_power_factor")
    members = place.members(("threshold", "rule"))
    if members is None:
        return None
    for name in ("threshold", "rule"):
        if name not in members:
            place.part(name).refuse("is missing")
            return None
    rule = members["rule"].value
    if not isinstance(rule, str) or "".join(rule.split()) not in _POWER_FACTOR_RULES:
        members["rule"].refuse("is not known; known is demand * (1 + threshold - pf)")
        return None
    threshold = members["threshold"].quantity()
    if threshold is not None and threshold > 1.0:
        members["threshold"].refuse("must be from 0 to 1")
        return None
    return threshold


def _lookback(rate: Rate) -> tuple[Ratchet, ...]:
    share = rate.at("lookbackpercent").share() if rate.has("lookbackpercent") else 0.0
    reach = rate.at("lookbackrange").whole(0, YEAR_MONTHS) if rate.has("lookbackrange") else 0
    months = _lookback_months(rate)
    if not share or reach is None or months is None:
        return ()
    if reach and months:
        rate.at("lookbackmonths").refuse("excludes lookbackrange, which is there too")
        return ()
    if reach:
        shares = (share,) * YEAR_MONTHS
        return (Ratchet(share_by_billing_month=shares, preceding_months=reach, wraps_year=True),)
    if months:
        return (Ratchet(share_by_billing_month=(share,) * YEAR_MONTHS, peak_months=months),)
    if not rate.has("lookbackmonths"):
        rate.at("lookbackpercent").refuse("has neither lookbackmonths nor lookbackrange beside it")
    return ()


def _lookback_months(rate: Rate) -> frozenset[int] | None:
    if not rate.has("lookbackmonths"):
        return frozenset()
    flags = rate.at("lookbackmonths").twelve_flags()
    return None if flags is None else frozenset(month for month, flag in enumerate(flags, start=1) if flag)


def _older_ratchet(rate: Rate) -> tuple[Ratchet, ...]:
    shares = rate.at("demandratchetpercentage").shares() if rate.has("demandratchetpercentage") else None
    if shares is None or not any(shares):
        return ()
    return (Ratchet(share_by_billing_month=shares, peak_months=MONTHS),)


def _extended(rate: Rate, demand: BillingDemand, members: dict[str, Place]) -> DemandRule:
    proration = Proration.NONE
    if "proration" in members and members["proration"].text(_PRORATIONS):
        proration = Proration.THIRTY_DAYS
    if "note" in members:
        rate.findings.warn(members["note"].pointer, str(members["note"].value))
    demand = replace(
        demand,
        minimum_kw=max(demand.minimum_kw, _number(members, "minimum_kw")),
        apparent_power_share=_number(members, "apparent_power_factor"),
        ratchets=(*demand.ratchets, *_winter(members)),
    )
    return DemandRule(_by_percent(rate, demand, members), proration)


def _number(members: dict[str, Place], name: str) -> float:
    return (members[name].quantity() or 0.0) if name in members else 0.0


def _winter(members: dict[str, Place]) -> tuple[Ratchet, ...]:
    share = _number(members, "winter_ratchet_percent") / _PERCENT
    if not share:
        return ()
    ratchet = Ratchet(share_by_billing_month=(share,) * YEAR_MONTHS, peak_months=_WINTER_MONTHS)
    if "year_zero_peaks_kw" in members:
        # Those peaks are for the percentages: the winter is that of the load's own year.
        return (ratchet,)
    return (replace(ratchet, preceding_months=YEAR_MONTHS - 1, within_billing_month=True, wraps_year=True),)


def _by_percent(rate: Rate, demand: BillingDemand, members: dict[str, Place]) -> BillingDemand:
    """A percentage of each month's peak, looked back on; the month's own peak only where it is included."""
    if "percent_by_month" not in members:
        for name in _OF_PERCENT:
            if name in members:
                rate.findings.warn(members[name].pointer, "has no effect without percent_by_month")
        return demand
    percents = members["percent_by_month"].twelve_numbers()
    included = None
    if "include_actual_peak_by_month" in members:
        included = members["include_actual_peak_by_month"].twelve_flags()
    else:
        rate.at("x_billing_demand").part("include_actual_peak_by_month").refuse(
            "is missing: nothing says in which months the month's own peak counts"
        )
    back = members["lookback_months"].whole(0, YEAR_MONTHS) if "lookback_months" in members else 0
    if "year_zero_peaks_kw" in members:
        rate.year_zero_peaks_kw = members["year_zero_peaks_kw"].twelve_numbers(negative=True)
    if percents is None or included is None or back is None:
        return demand
    if rate.year_zero_peaks_kw is not None and rate.has("lookbackrange"):
        members["year_zero_peaks_kw"].refuse(
            "stands beside lookbackrange, which looks at the same year instead"
        )
        return demand
    ratchet = Ratchet(
        share_by_peak_month=tuple(percent / _PERCENT for percent in percents),
        preceding_months=back,
        within_billing_month=True,
    )
    return replace(
        demand,
        ratchets=(*demand.ratchets, ratchet),
        own_peak_months=frozenset(month for month, flag in enumerate(included, start=1) if flag),
    )
