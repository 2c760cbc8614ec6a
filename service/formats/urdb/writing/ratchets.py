"""Ratchets of a billing demand, as keys of a rate."""

from dataclasses import replace

from service.formats.urdb.hours import MONTHS_OF_YEAR
from service.formats.urdb.values import YEAR_MONTHS
from service.planning.tariff.charges import MONTHS, BillingDemand, DemandRatchet


def build_ratchet_keys(rule: BillingDemand) -> dict[str, object] | None:
    """Returns the keys that state the ratchets of a rule, or None if there are none for it."""
    if replace(rule, ratchets=()) != BillingDemand():
        return None
    keys: dict[str, object] = {}
    for ratchet in rule.ratchets:
        found = _build_one_ratchet_keys(ratchet, older="lookbackpercent" in keys)
        if found is None or keys.keys() & found.keys():
            return None
        keys |= found
    return keys


def _build_one_ratchet_keys(ratchet: DemandRatchet, *, older: bool) -> dict[str, object] | None:
    shares = ratchet.share_by_billing_month
    plain = DemandRatchet(
        share_by_billing_month=shares,
        preceding_months=ratchet.preceding_months,
        peak_months=ratchet.peak_months,
        wraps_year=ratchet.wraps_year and ratchet.preceding_months is not None,
    )
    if plain != ratchet or not 0.0 < max(shares) <= 1.0 or min(shares) < 0.0:
        return None
    uniform = len(set(shares)) == 1
    reach, months = ratchet.preceding_months, ratchet.peak_months
    if months is None and reach is not None and uniform and 1 <= reach <= YEAR_MONTHS:
        return {"lookbackpercent": shares[0], "lookbackrange": reach}
    if reach is not None or not months:
        return None
    if uniform and not older:
        flags = [int(month in months) for month in MONTHS_OF_YEAR]
        return {"lookbackpercent": shares[0], "lookbackmonths": flags}
    return {"demandratchetpercentage": list(shares)} if months == MONTHS else None
