"""Ladders of tiers: the prices of a period of a structure."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from service.formats.urdb.values import MemberPath
from service.planning.tariff.charges import PriceTier, TariffTierUnit

_LARGEST_LIMIT = Decimal("1e300")
HUGE = 1e9
"""A limit from here on means none: files write 1e38, 9.99e37, 1e10 or a row of nines."""

UNITS: Mapping[str, TariffTierUnit] = {
    "kWh": TariffTierUnit.KWH,
    "kWh/kW": TariffTierUnit.KWH_PER_KW,
    "kWh daily": TariffTierUnit.KWH_PER_DAY,
    "kWh/kW daily": TariffTierUnit.KWH_PER_KW_PER_DAY,
    "kW": TariffTierUnit.KW,
}
HOURS_USE = frozenset({TariffTierUnit.KWH_PER_KW, TariffTierUnit.KWH_PER_KW_PER_DAY})
LISTED_ENERGY_UNITS = ("kWh", "kWh/kW")
ENERGY_UNITS = (*LISTED_ENERGY_UNITS, "kWh daily", "kWh/kW daily")
DEMAND_UNITS = ("kW",)

_MEMBERS = ("rate", "adj", "max", "unit")
_EXPORT_MEMBER = "sell"


class LadderRules(NamedTuple):
    """Units that a tier may have, the first by default, and the permission of a price for exports."""

    units: Sequence[str]
    with_export: bool


def read_structure(place: MemberPath, rules: LadderRules) -> list[tuple[PriceTier, ...]] | None:
    """The ladder of each period, or None where one of them cannot be read."""
    periods = place.list_entries()
    if periods is None:
        return None
    if not periods:
        place.record_refusal("has no period")
        return None
    ladders = [_read_ladder(period, rules) for period in periods]
    return None if None in ladders else [ladder for ladder in ladders if ladder is not None]


def _read_ladder(place: MemberPath, rules: LadderRules) -> tuple[PriceTier, ...] | None:
    entries = place.list_entries()
    if entries is None:
        return None
    if not entries:
        place.record_refusal("has no tier")
        return None
    tiers = [_read_tier(entry, rules) for entry in entries]
    if None in tiers:
        return None
    read = [tier for tier in tiers if tier is not None]
    return _check_ladder(read, entries)


def _read_tier(place: MemberPath, rules: LadderRules) -> PriceTier | None:
    known = (*_MEMBERS, _EXPORT_MEMBER) if rules.with_export else _MEMBERS
    members = place.read_members(known)
    if members is None:
        return None
    if _EXPORT_MEMBER in members:
        members[_EXPORT_MEMBER].findings.record_warning(
            members[_EXPORT_MEMBER].pointer, "exported energy is not billed"
        )
    unit = members["unit"].read_choice(rules.units) if "unit" in members else rules.units[0]
    price = _read_price(place, members)
    limit = members["max"].read_quantity(largest=_LARGEST_LIMIT) if "max" in members else 0.0
    if unit is None or price is None or limit is None:
        return None
    return PriceTier(price=price, limit=limit if 0 < limit < HUGE else None, unit=UNITS[unit])


def _read_price(place: MemberPath, members: Mapping[str, MemberPath]) -> Decimal | None:
    if "rate" not in members and "adj" not in members:
        place.get_part("rate").record_refusal("is missing: the tier has no price")
        return None
    prices = [members[name].read_price() for name in ("rate", "adj") if name in members]
    if None in prices:
        return None
    if "rate" not in members:
        place.findings.record_approximation(place.pointer, "has no rate: the price is its adj alone")
    return sum((price for price in prices if price is not None), Decimal(0))


def _check_ladder(tiers: list[PriceTier], entries: Sequence[MemberPath]) -> tuple[PriceTier, ...] | None:
    """The ladder without a limit at its top, or None where its limits do not rise."""
    if any(tier.unit in HOURS_USE for tier in tiers):
        return _check_hours_use(tiers, entries)
    for place in range(1, len(tiers)):
        below, tier = tiers[place - 1], tiers[place]
        if tier.unit is not below.unit:
            entries[place].get_part("unit").record_refusal("differs from that of the tier below")
            return None
        if below.limit is None:
            entries[place].findings.record_approximation(
                entries[place].pointer, "is never reached: the tier below has no limit"
            )
            return tuple(tiers[:place])
        if tier.limit is not None and tier.limit <= below.limit:
            entries[place].get_part("max").record_refusal("is not above that of the tier below")
            return None
    return (*tiers[:-1], _drop_limit(tiers[-1], entries[-1]))


def _drop_limit(tier: PriceTier, entry: MemberPath) -> PriceTier:
    if tier.limit is None:
        return tier
    entry.findings.record_approximation(
        entry.get_part("max").pointer, "the last tier has a limit: its price holds above it too"
    )
    return PriceTier(price=tier.price, unit=tier.unit)


def _check_hours_use(tiers: list[PriceTier], entries: Sequence[MemberPath]) -> tuple[PriceTier, ...] | None:
    """Limits of hours of use rise over the ladder, those of the kWh tiers that divide a reach within it."""
    openers = [place for place, tier in enumerate(tiers) if tier.unit in HOURS_USE]
    if len({tiers[place].unit for place in openers}) > 1:
        entries[openers[0]].get_part("unit").record_refusal("hours of use are by month or by day, not both")
        return None
    if not _is_rising(tiers, entries, openers):
        return None
    before = range(openers[0])
    if not _is_rising(tiers, entries, before):
        return None
    if before and tiers[before[-1]].limit is None:
        entries[before[-1]].get_part("max").record_refusal("is missing below another tier")
        return None
    for opener, end in zip(openers, [*openers[1:], len(tiers)], strict=True):
        if not _is_rising(tiers, entries, range(opener + 1, end)):
            return None
        # What divides a reach prices all of it, and the last reach has no end.
        ends = {end - 1} if opener < end - 1 else set()
        for place in ends | ({opener} if opener == openers[-1] else set()):
            tiers[place] = _drop_limit(tiers[place], entries[place])
    return tuple(tiers)


def _is_rising(tiers: Sequence[PriceTier], entries: Sequence[MemberPath], places: Collection[int]) -> bool:
    """Returns true if limits of one unit rise, with one on all but the last."""
    highest = 0.0
    for position, place in enumerate(places):
        limit = tiers[place].limit
        if limit is not None and limit <= highest:
            entries[place].get_part("max").record_refusal("is not above that of the tier below")
            return False
        if limit is None and position < len(places) - 1:
            entries[place].get_part("max").record_refusal("is missing below another tier")
            return False
        highest = limit or highest
    return True
