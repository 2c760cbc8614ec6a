"""Charges of an estimate as charges of FOCUS, from which its rows are written.

Each line of a run's cost or electricity becomes one charge over a period. Payments before the devices start
are purchases, which the hours that they pay for use up. Source: FOCUS 1.2,
https://focus.finops.org/focus-specification/v1-2/.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from service.planning.cost import round_amount
from service.planning.cost.charges import ChargeLine, CurrencyCharges, UnitPrice
from service.planning.cost.currencies import TotalCurrency
from service.planning.cost.focus import (
    COMMITTED_UNIT,
    ChargeCategory,
    ChargeCommitment,
    ChargeFrequency,
    FocusCharge,
    PricingCategory,
    ServiceCategory,
    pricing_quantity,
)
from service.planning.cost.tariff_lines import TariffLine, build_tariff_lines
from service.planning.errors import PlanningError
from service.planning.estimates.electricity import RunTariffBill
from service.planning.estimates.rent import Rent
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity
from service.planning.units import DAY_SECONDS

_LONGEST_SECONDS: Final = 3660.0 * DAY_SECONDS
"""Ten years of rows, one a month."""
_ESTIMATE: Final = "Ironlaw"
"""Provider of a price that no provider states."""

_DEVICES = ServiceCategory("Compute", "Virtual Machines", "Accelerators")
_OWNED = ServiceCategory("Compute", "Other (Compute)", "Accelerators")
_ELECTRICITY = ServiceCategory("Other", "Other (Other)", "Electricity")
_SERVICES = {
    "storage_dataset": ServiceCategory("Storage", "Object Storage", "Storage"),
    "storage_checkpoints": ServiceCategory("Storage", "Object Storage", "Storage"),
    "egress": ServiceCategory("Networking", "Data Transfer", "Egress"),
    "storage": ServiceCategory("Storage", "Other (Storage)", "Storage"),
    "network": ServiceCategory("Networking", "Other (Networking)", "Network"),
    "devices": _OWNED,
    "hosts": _OWNED,
    "depreciation": _OWNED,
    "financing": _OWNED,
    "maintenance": _OWNED,
    "staff": ServiceCategory("Other", "Other (Other)", "Staff"),
    "space": ServiceCategory("Other", "Other (Other)", "Space"),
}
_UNITS = {
    "device_hour": COMMITTED_UNIT,
    "device_term": "Devices",
    "device": "Devices",
    "host": "Hosts",
    "system": "Units",
    "hour": "Hours",
    "year": "Years",
    "month": "Months",
    "day": "Days",
    "gigabyte_month": "GB-Months",
    "gigabyte": "GB",
}
"""Units of FOCUS, capital words in the plural; other units keep their own word."""


class ChargePeriod(NamedTuple):
    """Time in which a charge arises, half-open."""

    start: datetime
    end: datetime


class PriceOrigin(NamedTuple):
    """Provider, article and place of a price."""

    provider: str = _ESTIMATE
    sku: str | None = None
    region: str | None = None
    zone: str | None = None


def find_period(starts_at: datetime | None, duration: Quantity | None) -> ChargePeriod:
    """Returns the time of a run; refuses one that has no start, no end or lasts more than ten years."""
    if starts_at is None:
        raise PlanningError(
            "STARTS_AT_REQUIRED", "/starts_at", "rows need the time in which they are charged"
        )
    if duration is None:
        raise PlanningError("RATE_UNKNOWN", "/workload", "how long the run lasts is not known")
    if duration.value > _LONGEST_SECONDS:
        raise PlanningError("TOO_LONG", "/workload", "rows are written for runs of at most ten years")
    return ChargePeriod(starts_at, starts_at + timedelta(seconds=max(1, math.ceil(duration.value))))


def list_cost_charges(
    rent: Rent | None, total: CurrencyCharges, period: ChargePeriod
) -> Iterator[FocusCharge]:
    """Yields the charges of a run's cost, those of its rental first."""
    lines = total.lines
    if rent is not None:
        yield from _list_rent_charges(rent, period)
        lines = lines[len(rent.charges.lines) :]
    yield from _list_charges(lines, period, PriceOrigin())


def list_electricity_charges(
    charged: CurrencyCharges,
    bill: RunTariffBill | None,
    starts_at: datetime | None,
    duration: Quantity | None,
) -> Iterator[FocusCharge]:
    """Yields the charges of a run's electricity, over the billing period of each or the time of the run.

    The local days of a billing period are written as days of UTC, so that a month stays one row.
    """
    if bill is None or not bill.is_dated:
        lines = charged.lines if bill is None else [one.charge for one in _list_tariff_lines(bill)]
        if lines:
            yield from _list_metered_charges(lines, find_period(starts_at, duration))
        return
    for line in _list_tariff_lines(bill):
        days = line.share.period
        period = ChargePeriod(_to_midnight(days.start), _to_midnight(days.end))
        yield from _list_metered_charges([line.charge], period)


def _list_tariff_lines(bill: RunTariffBill) -> tuple[TariffLine, ...]:
    return build_tariff_lines(bill.allocation, bill.source)


def _to_midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _list_metered_charges(lines: Iterable[ChargeLine], period: ChargePeriod) -> Iterator[FocusCharge]:
    for charge in _list_charges(lines, period, PriceOrigin()):
        yield charge._replace(service=_ELECTRICITY)


def _list_charges(
    lines: Iterable[ChargeLine], period: ChargePeriod, origin: PriceOrigin
) -> Iterator[FocusCharge]:
    return (_to_charge(line, period, origin) for line in lines)


def _to_plain(number: Decimal) -> Decimal:
    """Returns a number without an exponent, as answers write it."""
    return Decimal(f"{number:f}")


def _to_charge(line: ChargeLine, period: ChargePeriod, origin: PriceOrigin) -> FocusCharge:
    category = ChargeCategory((line.category or "usage").capitalize())
    amount, name = _to_plain(line.amount), line.name
    quantity = unit = unit_price = sku = None
    if category in (ChargeCategory.USAGE, ChargeCategory.PURCHASE):
        quantity, unit = pricing_quantity(line.quantity), _UNITS.get(line.unit, line.unit)
        unit_price, sku = _to_plain(line.unit_price), origin.sku or name
        if unit_price < 0:
            # A list price is not below zero: what is paid back has a negative quantity.
            quantity, unit_price = -quantity, -unit_price
    return FocusCharge(
        name=name,
        description=f"{name.replace('_', ' ')} (estimate; price: {line.source})",
        category=category,
        service=_SERVICES.get(name, _DEVICES),
        provider=origin.provider,
        currency_code=line.currency_code,
        billed=amount,
        effective=amount,
        start=period.start,
        end=period.end,
        source=line.source,
        quantity=quantity,
        unit=unit,
        unit_price=unit_price,
        frequency=ChargeFrequency.ONCE if category is ChargeCategory.PURCHASE else ChargeFrequency.BY_USE,
        sku=sku,
        region=origin.region,
        zone=origin.zone,
    )


def _list_rent_charges(rental: Rent, period: ChargePeriod) -> list[FocusCharge]:
    """Lists the charges of a rental: payments before the devices start are purchases."""
    terms, found = rental.terms, rental.charges
    origin = PriceOrigin(terms.provider or _ESTIMATE, terms.offer_id, terms.region, terms.zone)
    charges = list(_list_charges(found.lines, period, origin))
    if terms.option == "spot":
        charges = [charge._replace(pricing=PricingCategory.DYNAMIC) for charge in charges]
    if terms.block_hours is not None:
        return [_charge_block(charges, found), *(charge._replace(billed=Decimal(0)) for charge in charges)]
    if terms.term_hours is not None:
        return list(_spread_upfront(charges, terms.offer_id or "commitment"))
    return charges


def _charge_block(charges: Sequence[FocusCharge], found: CurrencyCharges) -> FocusCharge:
    """Returns the payment for whole blocks; the hours in them cost nothing more."""
    first = charges[0]
    quantity = sum((charge.quantity or Decimal(0) for charge in charges), Decimal(0))
    return first._replace(
        name="capacity_block",
        description="capacity block, paid up front",
        category=ChargeCategory.PURCHASE,
        frequency=ChargeFrequency.ONCE,
        billed=found.amount,
        effective=Decimal(0),
        quantity=quantity,
    )


def _spread_upfront(charges: Sequence[FocusCharge], commitment_id: str) -> Iterator[FocusCharge]:
    """Yields the charges with the upfront payment spread over the committed hours, used or not."""
    upfront = sum(
        (charge.billed for charge in charges if charge.category is ChargeCategory.PURCHASE), Decimal(0)
    )
    hourly = [charge for charge in charges if charge.unit == COMMITTED_UNIT]
    hours = sum((charge.quantity or Decimal(0) for charge in hourly), Decimal(0))
    left = upfront
    for charge in charges:
        if charge.category is ChargeCategory.PURCHASE:
            bought = ChargeCommitment(commitment_id, None, hours)
            yield charge._replace(effective=Decimal(0), commitment=bought)
            continue
        if charge.unit != COMMITTED_UNIT or not hours:
            yield charge._replace(pricing=PricingCategory.OTHER)
            continue
        share = round_amount(upfront * (charge.quantity or Decimal(0)) / hours, charge.currency_code)
        share = left if charge is hourly[-1] else share
        left -= share
        used = ChargeCommitment(commitment_id, charge.name != "idle_commitment")
        yield charge._replace(
            effective=charge.billed + share, pricing=PricingCategory.COMMITTED, commitment=used
        )


def exchange_charges(charges: Sequence[FocusCharge], currencies: TotalCurrency) -> list[FocusCharge]:
    """Returns charges in the currency of the totals; the largest takes what rounding leaves.

    Refuses charges that no exchange rate is known for (CURRENCY_MISMATCH).
    """
    exchanged: list[FocusCharge] = []
    whole = Decimal(0)
    for charge in charges:
        one = UnitPrice(Decimal(1), charge.currency_code, charge.source, EvidenceBasis.ASSUMED)
        rate = currencies.exchange_price(one, "", AnswerNotes())
        if rate is None:
            detail = "no exchange rate to the currency of the question is known"
            raise PlanningError("CURRENCY_MISMATCH", "", detail)
        paid, code = charge.billed * rate.amount, rate.currency_code
        amount = round_amount(paid, code)
        price = None if charge.unit_price is None else charge.unit_price * rate.amount
        exchanged.append(
            charge._replace(
                currency_code=code, billed=amount, effective=amount, unit_price=price, source=rate.source
            )
        )
        whole += paid
    if exchanged and exchanged[0].currency_code != charges[0].currency_code:
        largest = max(range(len(exchanged)), key=lambda place: abs(exchanged[place].billed))
        left = round_amount(whole, exchanged[0].currency_code) - sum(charge.billed for charge in exchanged)
        amount = exchanged[largest].billed + left
        exchanged[largest] = exchanged[largest]._replace(billed=amount, effective=amount)
    return exchanged
