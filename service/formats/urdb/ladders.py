"""Ladders of tiers: what a period of a structure costs."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from service.formats.urdb.values import Place
from service.planning.tariff.charges import Tier, TierUnit

_LARGEST_LIMIT = Decimal("1e300")
HUGE = 1e9
"""A limit from here on means none: files write 1e38, 9.99e37, 1e10 or a row of nines."""

UNITS: Mapping[str, TierUnit] = {
    "kWh": TierUnit.KWH,
    "kWh/kW": TierUnit.KWH_PER_KW,
    "kWh daily": TierUnit.KWH_PER_DAY,
    "kWh/kW daily": TierUnit.KWH_PER_KW_PER_DAY,
    "kW": TierUnit.KW,
}
HOURS_USE = frozenset({TierUnit.KWH_PER_KW, TierUnit.KWH_PER_KW_PER_DAY})
LISTED_ENERGY_UNITS = ("kWh", "kWh/kW")
ENERGY_UNITS = (*LISTED_ENERGY_UNITS, "kWh daily", "kWh/kW daily")
DEMAND_UNITS = ("kW",)

_MEMBERS = ("rate", "adj", "max", "unit")
_EXPORT_MEMBER = "sell"


class LadderRules(NamedTuple):
    """Which units a tier may have, the first where none is written, and whether exports may have a price."""

    units: Sequence[str]
    with_export: bool


def structure(place: Place, rules: LadderRules) -> list[tuple[Tier, ...]] | None:
    """The ladder of each period, or None where one of them cannot be read."""
    periods = place.entries()
    if periods is None:
        return None
    if not periods:
        place.refuse("has no period")
        return None
    ladders = [_ladder(period, rules) for period in periods]
    return None if None in ladders else [ladder for ladder in ladders if ladder is not None]


def _ladder(place: Place, rules: LadderRules) -> tuple[Tier, ...] | None:
    entries = place.entries()
    if entries is None:
        return None
    if not entries:
        place.refuse("has no tier")
        return None
    tiers = [_tier(entry, rules) for entry in entries]
    if None in tiers:
        return None
    read = [tier for tier in tiers if tier is not None]
    return _checked(read, entries)


def _tier(place: Place, rules: LadderRules) -> Tier | None:
    known = (*_MEMBERS, _EXPORT_MEMBER) if rules.with_export else _MEMBERS
    members = place.members(known)
    if members is None:
        return None
    if _EXPORT_MEMBER in members:
        members[_EXPORT_MEMBER].findings.warn(
            members[_EXPORT_MEMBER].pointer, "exported energy is not billed"
        )
    unit = members["unit"].text(rules.units) if "unit" in members else rules.units[0]
    price = _price(place, members)
    limit = members["max"].quantity(largest=_LARGEST_LIMIT) if "max" in members else 0.0
    if unit is None or price is None or limit is None:
        return None
    return Tier(price=price, limit=limit if 0 < limit < HUGE else None, unit=UNITS[unit])


def _price(place: Place, members: Mapping[str, Place]) -> Decimal | None:
    if "rate" not in members and "adj" not in members:
        place.part("rate").refuse("is missing: the tier has no price")
        return None
    prices = [members[name].price() for name in ("rate", "adj") if name in members]
    if None in prices:
        return None
    if "rate" not in members:
        place.findings.approximate(place.pointer, "has no rate: the price is its adj alone")
    return sum((price for price in prices if price is not None), Decimal(0))


def _checked(tiers: list[Tier], entries: Sequence[Place]) -> tuple[Tier, ...] | None:
    """The ladder without a limit at its top, or None where its limits do not rise."""
    if any(tier.unit in HOURS_USE for tier in tiers):
        return _checked_hours_use(tiers, entries)
    for place in range(1, len(tiers)):
        below, tier = tiers[place - 1], tiers[place]
        if tier.unit is not below.unit:
            entries[place].part("unit").refuse("differs from that of the tier below")
            return None
        if below.limit is None:
            entries[place].findings.approximate(
                entries[place].pointer, "is never reached: the tier below has no limit"
            )
            return tuple(tiers[:place])
        if tier.limit is not None and tier.limit <= below.limit:
            entries[place].part("max").refuse("is not above that of the tier below")
            return None
    return (*tiers[:-1], _without_limit(tiers[-1], entries[-1]))


def _without_limit(tier: Tier, entry: Place) -> Tier:
    if tier.limit is None:
        return tier
    entry.findings.approximate(
        entry.part("max").pointer, "the last tier has a limit: its price holds above it too"
    )
    return Tier(price=tier.price, unit=tier.unit)


def _checked_hours_use(tiers: list[Tier], entries: Sequence[Place]) -> tuple[Tier, ...] | None:
    """Limits of hours of use rise over the ladder, those of the kWh tiers that divide a reach within it."""
    openers = [place for place, tier in enumerate(tiers) if tier.unit in HOURS_USE]
    if len({tiers[place].unit for place in openers}) > 1:
        entries[openers[0]].part("unit").refuse("hours of use are by month or by day, not both")
        return None
    if not _rises(tiers, entries, openers):
        return None
    before = range(openers[0])
    if not _rises(tiers, entries, before):
        return None
    if before and tiers[before[-1]].limit is None:
        entries[before[-1]].part("max").refuse("is missing below another tier")
        return None
    for opener, end in zip(openers, [*openers[1:], len(tiers)], strict=True):
        if not _rises(tiers, entries, range(opener + 1, end)):
            return None
        # What divides a reach prices all of it, and the last reach has no end.
        ends = {end - 1} if opener < end - 1 else set()
        for place in ends | ({opener} if opener == openers[-1] else set()):
            tiers[place] = _without_limit(tiers[place], entries[place])
    return tuple(tiers)


def _rises(tiers: Sequence[Tier], entries: Sequence[Place], places: Collection[int]) -> bool:
    """Whether limits of one unit rise, with one on all but the last."""
    highest = 0.0
    for position, place in enumerate(places):
        limit = tiers[place].limit
        if limit is not None and limit <= highest:
            entries[place].part("max").refuse("is not above that of the tier below")
            return False
        if limit is None and position < len(places) - 1:
            entries[place].part("max").refuse("is missing below another tier")
            return False
        highest = limit or highest
    return True
