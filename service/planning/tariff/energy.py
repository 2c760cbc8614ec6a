"""Energy charges: flat, by time of use, by tier, by hours of use of the billing demand."""

from collections.abc import Sequence
from decimal import Decimal

from service.planning.tariff.amounts import price_quantity
from service.planning.tariff.bill import BillLine
from service.planning.tariff.charges import EnergyCharge
from service.planning.tariff.ladders import list_energy_reaches
from service.planning.tariff.spans import RevisionSpan


def build_energy_lines(
    charge: EnergyCharge, kwh: Sequence[float], part: RevisionSpan, billing_kw: float
) -> list[BillLine]:
    """Builds the lines of a part whose price periods used ``kwh`` each.

    Every tier prices its stretch of them. ``billing_kw`` scales limits in hours of use.
    """
    found = []
    for period, quantity in zip(charge.periods, kwh, strict=True):
        if not quantity:
            continue
        for reach in list_energy_reaches(period.tiers, billing_kw, part.days, part.share):
            within = reach.clip_quantity(quantity)
            if within > 0.0:
                found.append(_build_line(charge, period.name, within, reach.tier.price, reach.place))
    return found


def build_tiered_lines(charge: EnergyCharge, kwh: Sequence[Sequence[float]]) -> list[BillLine]:
    """Builds lines of kWh that are known by price period and tier."""
    return [
        _build_line(charge, period.name, quantity, tier.price, place)
        for period, row in zip(charge.periods, kwh, strict=True)
        for place, (tier, quantity) in enumerate(zip(period.tiers, row, strict=True), 1)
        if quantity > 0.0
    ]


def _build_line(charge: EnergyCharge, period: str, kwh: float, price: Decimal, place: int) -> BillLine:
    return BillLine(charge.name, "energy", kwh, "kWh", price, price_quantity(kwh, price), period, place)
