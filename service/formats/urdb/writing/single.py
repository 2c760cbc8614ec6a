"""Charges that are one number each: fixed, reactive and minimum."""

from collections.abc import Sequence
from decimal import Decimal

from service.formats.urdb.rate import CUSTOMER, MINIMUM, REACTIVE_DEMAND, YEARLY_MINIMUM
from service.formats.urdb.values import YEAR_MONTHS
from service.formats.urdb.writing.document import PlacedCharge, RateDocument, select_charges, to_json_number
from service.planning.tariff.charges import (
    DemandCharge,
    EnergyCharge,
    FixedCharge,
    FixedChargePeriod,
    MinimumCharge,
    ReactiveCharge,
)


def write_fixed(placed: Sequence[PlacedCharge], document: RateDocument) -> None:
    """Writes one customer charge: monthly and yearly amounts are summed, daily ones only with their like."""
    charges = select_charges(placed, FixedCharge)
    if not charges:
        return
    by_day = charges[0][1].per is FixedChargePeriod.DAY
    said = [(one, charge) for one, charge in charges if (charge.per is FixedChargePeriod.DAY) == by_day]
    for one, charge in charges:
        if (charge.per is FixedChargePeriod.DAY) != by_day:
            document.record_charge_omission(one, f"is due by {charge.per}, and the customer charge is not")
    per = said[0][1].per if len({charge.per for _, charge in said}) == 1 else FixedChargePeriod.YEAR
    total = sum((_compute_amount_due(charge, per) for _, charge in said), Decimal(0))
    number = to_json_number(total)
    if number is None:
        document.record_charge_omission(said[0][0], "has more digits than a number of JSON")
        return
    document.keys |= {"fixedchargefirstmeter": number, "fixedchargeunits": f"$/{per}"}
    document.check_charge_name(said[0][0], CUSTOMER)
    for one, _ in said[1:]:
        document.record_charge_omission(one, "is part of the customer charge")


def _compute_amount_due(charge: FixedCharge, per: FixedChargePeriod) -> Decimal:
    months = YEAR_MONTHS if per is FixedChargePeriod.YEAR and charge.per is FixedChargePeriod.MONTH else 1
    return charge.price * charge.meters * months


def write_single(placed: Sequence[PlacedCharge], document: RateDocument) -> None:
    """Charges that are one number each, and those that have no place."""
    for one, reactive in select_charges(placed, ReactiveCharge):
        if reactive.free_share_of_active or reactive.by_energy:
            document.record_charge_omission(one, "is not on all kvar at the peak of the month")
        else:
            _write_number(one, "demandreactivepowercharge", reactive.price, REACTIVE_DEMAND, document)
    for one, minimum in select_charges(placed, MinimumCharge):
        if minimum.of:
            document.record_charge_omission(one, "is a minimum of some of the charges")
        elif minimum.name == YEARLY_MINIMUM and minimum.per is FixedChargePeriod.YEAR:
            _write_number(one, "annualmincharge", minimum.amount, YEARLY_MINIMUM, document)
        elif _write_number(one, "mincharge", minimum.amount, MINIMUM, document):
            document.keys["minchargeunits"] = f"$/{minimum.per}"
    known = (FixedCharge, DemandCharge, EnergyCharge, ReactiveCharge, MinimumCharge)
    for one in placed:
        if not isinstance(one.charge, known):
            document.record_charge_omission(one, "has no place")


def _write_number(one: PlacedCharge, key: str, price: Decimal, name: str, document: RateDocument) -> bool:
    number = to_json_number(price)
    if key in document.keys or number is None:
        why = (
            "stands beside another of its kind"
            if number is not None
            else "has more digits than a number of JSON"
        )
        document.record_charge_omission(one, why)
        return False
    document.keys[key] = number
    document.check_charge_name(one, name)
    return True
