"""Energy charges."""

from collections.abc import Sequence
from decimal import Decimal

from service.formats.urdb.ladders import HOURS_USE, UNITS
from service.formats.urdb.rate import ENERGY
from service.formats.urdb.writing.document import PlacedCharge, RateDocument, select_charges
from service.formats.urdb.writing.structures import write_scheduled
from service.planning.tariff.charges import (
    BillingDemand,
    DemandCharge,
    EnergyCharge,
    LocalTimeWindow,
    TariffTierUnit,
    TierAccumulation,
)

_ENERGY_TIERS = frozenset(UNITS.values()) - {TariffTierUnit.KW}


def write_energy(placed: Sequence[PlacedCharge], flat: DemandCharge | None, document: RateDocument) -> None:
    """One structure of energy; prices for all hours beside it are the ``adj`` of every tier."""
    charges = select_charges(placed, EnergyCharge)
    main = next((one for one, charge in charges if not _is_one_price(charge)), None)
    main = main or next((one for one, _ in charges), None)
    if main is None:
        return
    charge = next(charge for one, charge in charges if one is main)
    why = _explain_energy_omission(charge, flat)
    if why:
        document.record_charge_omission(main, why)
        for one, _ in charges:
            if one is not main:
                document.record_charge_omission(one, "stands beside energy prices that are left out")
        return
    adj = Decimal(0)
    for one, other in charges:
        if one is main:
            continue
        if not _is_one_price(other):
            document.record_charge_omission(one, "stands beside another of its kind")
            continue
        adj += other.periods[0].tiers[0].price
        document.record_charge_omission(one, "is the adj of every tier")
    if write_scheduled("energy", main, charge.periods, document, adj):
        document.check_charge_name(main, ENERGY)


def _is_one_price(charge: EnergyCharge) -> bool:
    return (
        len(charge.periods) == 1
        and charge.periods[0].windows == (LocalTimeWindow(),)
        and len(charge.periods[0].tiers) == 1
        and charge.periods[0].tiers[0].unit is TariffTierUnit.KWH
    )


def _explain_energy_omission(charge: EnergyCharge, flat: DemandCharge | None) -> str | None:
    tiers = [tier for period in charge.periods for tier in period.tiers]
    if charge.accumulation is not TierAccumulation.PER_PERIOD and any(
        tier.limit is not None for tier in tiers
    ):
        return "fills its tiers with the energy of all periods"
    if not {tier.unit for tier in tiers} <= _ENERGY_TIERS:
        return "has tiers by kW"
    if not any(tier.unit in HOURS_USE for tier in tiers):
        return None
    raised = flat is not None and flat.billing_demand != BillingDemand()
    scaled = charge.billing_demand_of is not None
    if (raised and charge.billing_demand_of != (flat.name if flat else None)) or (scaled and flat is None):
        return "has tiers by hours of use of another demand than the billed"
    return None
