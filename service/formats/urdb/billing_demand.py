"""Floors and ratchets: from the peak of a month to the demand that is billed."""

from dataclasses import replace
from typing import NamedTuple

from service.formats.urdb.rate import UrdbRate
from service.formats.urdb.values import YEAR_MONTHS, MemberPath
from service.planning.tariff.charges import MONTHS, BillingDemand, ChargeProration, DemandRatchet

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


class BillingDemandRule(NamedTuple):
    """Rule by which the billed demand is found, and the subject of its monthly price."""

    demand: BillingDemand
    proration: ChargeProration


def read_billing_demand(rate: UrdbRate) -> BillingDemandRule:
    """Reads the combined rule of all floors and ratchets of a rate."""
    rule = BillingDemandRule(
        BillingDemand(
            minimum_kw=_read_floor(rate),
            ratchets=(*_read_lookback(rate), *_read_older_ratchet(rate)),
            power_factor_threshold=_read_threshold(rate),
        ),
        ChargeProration.NONE,
    )
    if not rate.has_key("x_billing_demand"):
        return rule
    members = rate.get_field("x_billing_demand").read_members(_MEMBERS)
    return rule if members is None else _read_extended_rule(rate, rule.demand, members)


def _read_floor(rate: UrdbRate) -> float:
    return (
        (rate.get_field("x_min_billing_kw").read_quantity() or 0.0)
        if rate.has_key("x_min_billing_kw")
        else 0.0
    )


def _read_threshold(rate: UrdbRate) -> float | None:
    if not rate.has_key("x_power_factor"):
        return None
    place = rate.get_field("x_power_factor")
    members = place.read_members(("threshold", "rule"))
    if members is None:
        return None
    for name in ("threshold", "rule"):
        if name not in members:
            place.get_part(name).record_refusal("is missing")
            return None
    rule = members["rule"].value
    if not isinstance(rule, str) or "".join(rule.split()) not in _POWER_FACTOR_RULES:
        members["rule"].record_refusal("is not known; known is demand * (1 + threshold - pf)")
        return None
    threshold = members["threshold"].read_quantity()
    if threshold is not None and threshold > 1.0:
        members["threshold"].record_refusal("must be from 0 to 1")
        return None
    return threshold


def _read_lookback(rate: UrdbRate) -> tuple[DemandRatchet, ...]:
    share = rate.get_field("lookbackpercent").read_share() if rate.has_key("lookbackpercent") else 0.0
    reach = (
        rate.get_field("lookbackrange").read_integer(0, YEAR_MONTHS) if rate.has_key("lookbackrange") else 0
    )
    months = _read_lookback_months(rate)
    if not share or reach is None or months is None:
        return ()
    if reach and months:
        rate.get_field("lookbackmonths").record_refusal("excludes lookbackrange, which is there too")
        return ()
    if reach:
        shares = (share,) * YEAR_MONTHS
        return (DemandRatchet(share_by_billing_month=shares, preceding_months=reach, wraps_year=True),)
    if months:
        return (DemandRatchet(share_by_billing_month=(share,) * YEAR_MONTHS, peak_months=months),)
    if not rate.has_key("lookbackmonths"):
        rate.get_field("lookbackpercent").record_refusal(
            "has neither lookbackmonths nor lookbackrange beside it"
        )
    return ()


def _read_lookback_months(rate: UrdbRate) -> frozenset[int] | None:
    if not rate.has_key("lookbackmonths"):
        return frozenset()
    flags = rate.get_field("lookbackmonths").read_twelve_flags()
    return None if flags is None else frozenset(month for month, flag in enumerate(flags, start=1) if flag)


def _read_older_ratchet(rate: UrdbRate) -> tuple[DemandRatchet, ...]:
    shares = (
        rate.get_field("demandratchetpercentage").read_shares()
        if rate.has_key("demandratchetpercentage")
        else None
    )
    if shares is None or not any(shares):
        return ()
    return (DemandRatchet(share_by_billing_month=shares, peak_months=MONTHS),)


def _read_extended_rule(
    rate: UrdbRate, demand: BillingDemand, members: dict[str, MemberPath]
) -> BillingDemandRule:
    proration = ChargeProration.NONE
    if "proration" in members and members["proration"].read_choice(_PRORATIONS):
        proration = ChargeProration.THIRTY_DAYS
    if "note" in members:
        rate.findings.record_warning(members["note"].pointer, str(members["note"].value))
    demand = replace(
        demand,
        minimum_kw=max(demand.minimum_kw, _read_number(members, "minimum_kw")),
        apparent_power_share=_read_number(members, "apparent_power_factor"),
        ratchets=(*demand.ratchets, *_read_winter_ratchet(members)),
    )
    return BillingDemandRule(_apply_monthly_percent(rate, demand, members), proration)


def _read_number(members: dict[str, MemberPath], name: str) -> float:
    return (members[name].read_quantity() or 0.0) if name in members else 0.0


def _read_winter_ratchet(members: dict[str, MemberPath]) -> tuple[DemandRatchet, ...]:
    share = _read_number(members, "winter_ratchet_percent") / _PERCENT
    if not share:
        return ()
    ratchet = DemandRatchet(share_by_billing_month=(share,) * YEAR_MONTHS, peak_months=_WINTER_MONTHS)
    if "year_zero_peaks_kw" in members:
        # Those peaks are for the percentages: the winter is that of the load's own year.
        return (ratchet,)
    return (replace(ratchet, preceding_months=YEAR_MONTHS - 1, within_billing_month=True, wraps_year=True),)


def _apply_monthly_percent(
    rate: UrdbRate, demand: BillingDemand, members: dict[str, MemberPath]
) -> BillingDemand:
    """A percentage of each month's peak, looked back on; the month's own peak only where it is included."""
    if "percent_by_month" not in members:
        for name in _OF_PERCENT:
            if name in members:
                rate.findings.record_warning(members[name].pointer, "has no effect without percent_by_month")
        return demand
    percents = members["percent_by_month"].read_twelve_numbers()
    included = None
    if "include_actual_peak_by_month" in members:
        included = members["include_actual_peak_by_month"].read_twelve_flags()
    else:
        rate.get_field("x_billing_demand").get_part("include_actual_peak_by_month").record_refusal(
            "is missing: nothing says in which months the month's own peak counts"
        )
    back = members["lookback_months"].read_integer(0, YEAR_MONTHS) if "lookback_months" in members else 0
    if "year_zero_peaks_kw" in members:
        rate.year_zero_peaks_kw = members["year_zero_peaks_kw"].read_twelve_numbers(negative=True)
    if percents is None or included is None or back is None:
        return demand
    if rate.year_zero_peaks_kw is not None and rate.has_key("lookbackrange"):
        members["year_zero_peaks_kw"].record_refusal(
            "stands beside lookbackrange, which looks at the same year instead"
        )
        return demand
    ratchet = DemandRatchet(
        share_by_peak_month=tuple(percent / _PERCENT for percent in percents),
        preceding_months=back,
        within_billing_month=True,
    )
    return replace(
        demand,
        ratchets=(*demand.ratchets, ratchet),
        own_peak_months=frozenset(month for month, flag in enumerate(included, start=1) if flag),
    )
