"""The charges of an estimate as FOCUS rows."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from pydantic import MISSING

from service.estimates.charges import to_lines
from service.estimates.cost import AnsweredCost, answer_cost
from service.kit.http.csv_tables import render_csv
from service.planning import METHOD_VERSION
from service.planning.cost import round_amount
from service.planning.cost.charges import CurrencyCharges
from service.planning.cost.focus import (
    COLUMNS,
    COMMITTED_UNIT,
    BillingAccount,
    ChargeCategory,
    ChargeCommitment,
    ChargeFrequency,
    FocusCharge,
    PricingCategory,
    ServiceCategory,
    build_focus_rows,
    pricing_quantity,
)
from service.planning.errors import PlanningError
from service.planning.estimates.rent import Rent
from service.planning.quantity import Quantity
from service.planning.units import DAY_SECONDS
from service.resolve.catalog import CatalogView
from service.schemas.base import CostLine
from service.schemas.estimates import BilledAccount, CostEstimateRequest, CostExportRequest

_LONGEST_SECONDS: Final = 3660.0 * DAY_SECONDS
"""Ten years of rows, one a month."""
ESTIMATE: Final = "Ironlaw"
"""Who states a price that no provider does."""

_DEVICES = ServiceCategory("Compute", "Virtual Machines", "Accelerators")
_OWNED = ServiceCategory("Compute", "Other (Compute)", "Accelerators")
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
"""FOCUS has capital words in the plural; others stay as they are."""


class ChargePeriod(NamedTuple):
    """When what is charged for takes place."""

    start: datetime
    end: datetime


class PriceOrigin(NamedTuple):
    """Whose price it is and of what."""

    provider: str = ESTIMATE
    sku: str | None = None
    region: str | None = None
    zone: str | None = None


def find_period(starts_at: datetime | MISSING, duration: Quantity | None) -> ChargePeriod:
    """From the start to the end of a run; refuses one that has no start, no end or lasts ten years."""
    if starts_at is MISSING:
        raise PlanningError(
            "STARTS_AT_REQUIRED", "/starts_at", "rows need the time in which they are charged"
        )
    if duration is None:
        raise PlanningError("RATE_UNKNOWN", "/workload", "how long the run lasts is not known")
    if duration.value > _LONGEST_SECONDS:
        raise PlanningError("TOO_LONG", "/workload", "rows are written for runs of at most ten years")
    return ChargePeriod(starts_at, starts_at + timedelta(seconds=max(1, math.ceil(duration.value))))


def to_charges(lines: Iterable[CostLine], period: ChargePeriod, origin: PriceOrigin) -> Iterator[FocusCharge]:
    """One charge for each line of an answer; a line without an amount is none."""
    for line in lines:
        amount = line.get("amount")
        if amount is not None:
            yield _to_charge(line, Decimal(amount["amount"]), amount["currency_code"], period, origin)


def _to_charge(
    line: CostLine, amount: Decimal, currency: str, period: ChargePeriod, origin: PriceOrigin
) -> FocusCharge:
    category = ChargeCategory(line.get("category", "usage").capitalize())
    name, stated = line["name"], line.get("unit_price")
    quantity = unit = unit_price = sku = None
    if category in (ChargeCategory.USAGE, ChargeCategory.PURCHASE):
        quantity, unit = pricing_quantity(line["quantity"]), _UNITS.get(line["unit"], line["unit"])
        unit_price, sku = Decimal(stated["amount"]) if stated else None, origin.sku or name
        if unit_price is not None and unit_price < 0:
            # A list price is not below zero: what is paid back has a negative quantity.
            quantity, unit_price = -quantity, -unit_price
    return FocusCharge(
        name=name,
        description=f"{name.replace('_', ' ')} (estimate; price: {line['source']})",
        category=category,
        service=_SERVICES.get(name, _DEVICES),
        provider=origin.provider,
        currency_code=currency,
        billed=amount,
        effective=amount,
        start=period.start,
        end=period.end,
        source=line["source"],
        quantity=quantity,
        unit=unit,
        unit_price=unit_price,
        frequency=ChargeFrequency.ONCE if category is ChargeCategory.PURCHASE else ChargeFrequency.BY_USE,
        sku=sku,
        region=origin.region,
        zone=origin.zone,
    )


def _list_rent_charges(rental: Rent, period: ChargePeriod) -> list[FocusCharge]:
    """Charges of a rental: what is paid before the devices start is a purchase, which their hours use up."""
    terms, found = rental.terms, rental.charges
    origin = PriceOrigin(terms.provider or ESTIMATE, terms.offer_id, terms.region, terms.zone)
    charges = list(to_charges(to_lines(found), period, origin))
    if terms.option == "spot":
        charges = [charge._replace(pricing=PricingCategory.DYNAMIC) for charge in charges]
    if terms.block_hours is not None:
        return [_charge_block(charges, found), *(charge._replace(billed=Decimal(0)) for charge in charges)]
    if terms.term_hours is not None:
        return list(_spread_upfront(charges, terms.offer_id or "commitment"))
    return charges


def _charge_block(charges: Sequence[FocusCharge], found: CurrencyCharges) -> FocusCharge:
    """The payment for whole blocks; the hours in them cost nothing more."""
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
    """What is paid upfront is spread over the committed hours, used or not."""
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


def export_cost(question: CostExportRequest, catalog: CatalogView, tenant_id: str) -> str:
    """The lines of an estimate of cost as FOCUS rows; refuses one whose total is not known."""
    found = answer_cost(question, catalog)
    charges = list_cost_charges(question, found)
    digest = found.answer["evidence"]["input_digest"]
    return render_csv(COLUMNS, build_focus_rows(charges, build_account(question, digest, tenant_id)))


def list_cost_charges(question: CostEstimateRequest, found: AnsweredCost) -> list[FocusCharge]:
    """The charges of a run that is worked out; refuses one without a start or without a total."""
    period = find_period(question.starts_at, found.run.duration_seconds)
    if found.cost.total is None:
        gap = next(gap for gap in found.answer["gaps"] if gap["pointer"] == "/total")
        raise PlanningError(gap["code"], "", f"the total is not known: {gap['detail']}")
    return list(_list_charges(found.cost.rent, found.cost.total, period))


def _list_charges(rent: Rent | None, total: CurrencyCharges, period: ChargePeriod) -> Iterator[FocusCharge]:
    lines = to_lines(total)
    if rent is not None:
        yield from _list_rent_charges(rent, period)
        lines = lines[len(rent.charges.lines) :]
    yield from to_charges(lines, period, PriceOrigin())


def build_account(question: BilledAccount, input_digest: str, tenant_id: str) -> BillingAccount:
    """The account that is charged, and where its rows come from."""
    account_id = tenant_id if question.billing_account_id is MISSING else question.billing_account_id
    name = account_id if question.billing_account_name is MISSING else question.billing_account_name
    tags = {"estimate": "true", "input_digest": input_digest, "method_version": METHOD_VERSION}
    return BillingAccount(account_id, name, tags)
