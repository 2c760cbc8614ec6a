"""Ladders of tiers: the part of a quantity that each tier prices."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

from service.planning.tariff.charges import DemandPricing, PriceTier, TariffTierUnit

OF_DEMAND: Final = frozenset({TariffTierUnit.KWH_PER_KW, TariffTierUnit.KWH_PER_KW_PER_DAY})
"""Units of hours of use."""
_BY_DAY: Final = frozenset({TariffTierUnit.KWH_PER_DAY, TariffTierUnit.KWH_PER_KW_PER_DAY})


class TierReach(NamedTuple):
    """The stretch of a quantity, from ``low`` to ``high``, that the tier at ``place`` (from 1) prices."""

    place: int
    tier: PriceTier
    low: float
    high: float

    def clip_quantity(self, quantity: float) -> float:
        """Returns the part of ``quantity``, counted from 0, that lies in the stretch."""
        return max(min(quantity, self.high) - self.low, 0.0)


def list_energy_reaches(
    tiers: Sequence[PriceTier], billing_kw: float, days: float, share: float = 1.0
) -> tuple[TierReach, ...]:
    """Returns the stretches of a billing period's kWh.

    A tier of hours of use reaches up to limit x billing kW. kWh tiers that follow it directly divide that
    reach, their limits cumulative and cut off at it, and its own price is not used; the next tier of hours of
    use continues from there (data/tariffs/README.md, "Hours-use tiers"; SSC's kWh/kW tiers). Limits by day
    are multiplied by ``days``; others by ``share``, 1 for a whole billing period.
    """
    found, low, ceiling = [], 0.0, inf
    for place, tier in enumerate(tiers):
        limit = inf if tier.limit is None else tier.limit * (days if tier.unit in _BY_DAY else share)
        if tier.unit in OF_DEMAND:
            ceiling = inf if tier.limit is None else limit * billing_kw
            if place + 1 < len(tiers) and tiers[place + 1].unit not in OF_DEMAND:
                continue
            limit = ceiling
        high = max(low, min(limit, ceiling))
        found.append(TierReach(place + 1, tier, low, high))
        low = high
    return tuple(found)


def split_demand(
    tiers: Sequence[PriceTier], demand: float, pricing: DemandPricing
) -> Iterator[tuple[int, PriceTier, float]]:
    """Yields place, tier and the kW (or 1 step) that each tier prices."""
    low = 0.0
    for place, tier in enumerate(tiers, 1):
        limit = inf if tier.limit is None else tier.limit
        if pricing is DemandPricing.MARGINAL:
            if demand > low:
                yield place, tier, min(demand, limit) - low
        elif demand <= limit:
            yield place, tier, 1.0 if pricing is DemandPricing.BRACKET_AMOUNT else demand
            return
        low = max(low, limit)
