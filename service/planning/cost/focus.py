"""Cost rows for accountants: the columns of the FinOps Open Cost and Usage Specification, FOCUS 1.2.

A charge is one row for each month (UTC) of its period, in proportion to time, and one row if it is paid once.
Billed costs are rounded amounts; the last row takes the rest of rounding, so that rows add up to their
charge; list and contracted cost are unit price times pricing quantity, exactly. Absent values are empty
fields. Times are UTC, numbers plain decimals.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from service.planning.cost.money import round_amount

COLUMNS: Final = (
    "AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType",
    "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId",
    "CapacityReservationStatus", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency",
    "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory", "CommitmentDiscountId",
    "CommitmentDiscountName", "CommitmentDiscountQuantity", "CommitmentDiscountStatus",
    "CommitmentDiscountType", "CommitmentDiscountUnit", "ConsumedQuantity", "ConsumedUnit",
    "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceId", "InvoiceIssuerName", "ListCost",
    "ListUnitPrice", "PricingCategory", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice", "PricingQuantity", "PricingUnit",
    "ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType",
    "ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails",
    "SkuPriceId", "SubAccountId", "SubAccountName", "SubAccountType", "Tags", "x_LineName", "x_PriceSource",
)  # fmt: skip
"""All columns of version 1.2 in alphabetical order, and two custom ones."""

COMMITTED_UNIT: Final = "Device-Hours"
_QUANTITY_DIGITS: Final = Decimal("0.000000001")
_PRECISION: Final = 80
"""Digits of a product: more than any quantity and price have together."""


class ChargeCategory(StrEnum):
    """The highest-level classification of a charge."""

    USAGE = "Usage"
    PURCHASE = "Purchase"
    TAX = "Tax"
    CREDIT = "Credit"


class PricingCategory(StrEnum):
    """Kind of price of a charge."""

    STANDARD = "Standard"
    DYNAMIC = "Dynamic"
    COMMITTED = "Committed"
    OTHER = "Other"


class ChargeFrequency(StrEnum):
    """Frequency of a charge."""

    ONCE = "One-Time"
    RECURRING = "Recurring"
    BY_USE = "Usage-Based"


class ServiceCategory(NamedTuple):
    """Service of a charge: category, subcategory and name."""

    category: str
    subcategory: str
    name: str


class ChargeCommitment(NamedTuple):
    """A commitment that a charge belongs to.

    ``used`` is None for its purchase, which has the ``hours`` that it buys; other charges have their own
    quantity.
    """

    commitment_id: str
    used: bool | None
    hours: Decimal | None = None


class FocusCharge(NamedTuple):
    """One charge over a period; a tax has no quantity, unit or price.

    ``effective`` differs from ``billed`` where one charge pays for the use of others: it is 0 for the
    payment, and their share for those.
    """

    name: str
    description: str
    category: ChargeCategory
    service: ServiceCategory
    provider: str
    currency_code: str
    billed: Decimal
    effective: Decimal
    start: datetime
    end: datetime
    source: str
    quantity: Decimal | None = None
    unit: str | None = None
    unit_price: Decimal | None = None
    pricing: PricingCategory = PricingCategory.STANDARD
    frequency: ChargeFrequency = ChargeFrequency.BY_USE
    sku: str | None = None
    region: str | None = None
    zone: str | None = None
    commitment: ChargeCommitment | None = None
    tags: Mapping[str, str] = MappingProxyType({})
    """Tags of this charge, beside those of its account."""


class BillingAccount(NamedTuple):
    """Account that is charged, and tags of every row."""

    account_id: str
    name: str
    tags: Mapping[str, str]


def pricing_quantity(quantity: float) -> Decimal:
    """Returns a quantity with nine decimals, so that its products are written in full."""
    return Decimal(repr(quantity)).quantize(_QUANTITY_DIGITS)


def build_focus_rows(
    charges: Iterable[FocusCharge], account: BillingAccount
) -> Iterator[list[str | Decimal | None]]:
    """Builds the rows of ``charges``, each in the order of ``COLUMNS``; None where a value is absent.

    Source: FOCUS 1.2, https://focus.finops.org/focus-specification/v1-2/. Range: no corrections, one billing
    currency per charge, list price equal to contracted price.
    """
    for charge in charges:
        with localcontext(prec=_PRECISION):
            rows = list(_build_rows(charge, account))
        yield from ([row.get(name) for name in COLUMNS] for row in rows)


def _build_rows(charge: FocusCharge, account: BillingAccount) -> Iterator[dict[str, str | Decimal]]:
    """Yields one row for each month of the period of a charge, or a single row if it is paid once."""
    periods = list(_split_months(charge))
    seconds = (charge.end - charge.start).total_seconds()
    left = charge
    for start, end in periods[:-1]:
        share = Decimal((end - start).total_seconds() / seconds)
        part = charge._replace(
            start=start,
            end=end,
            billed=round_amount(charge.billed * share, charge.currency_code),
            effective=round_amount(charge.effective * share, charge.currency_code),
            quantity=charge.quantity and (charge.quantity * share).quantize(_QUANTITY_DIGITS),
        )
        left = left._replace(
            billed=left.billed - part.billed,
            effective=left.effective - part.effective,
            quantity=left.quantity and left.quantity - (part.quantity or 0),
        )
        yield _build_row(part, account)
    yield _build_row(left._replace(start=periods[-1][0]), account)


def _split_months(charge: FocusCharge) -> Iterator[tuple[datetime, datetime]]:
    start, end = charge.start.astimezone(UTC), charge.end.astimezone(UTC)
    while charge.frequency is not ChargeFrequency.ONCE and _next_month(start) < end:
        yield start, _next_month(start)
        start = _next_month(start)
    yield start, end


def _next_month(time: datetime) -> datetime:
    year, month = divmod(time.year * 12 + time.month, 12)
    return datetime(year, month + 1, 1, tzinfo=UTC)


def _build_row(charge: FocusCharge, account: BillingAccount) -> dict[str, str | Decimal]:
    taxed = charge.category is ChargeCategory.TAX
    listed = charge.billed
    if charge.quantity is not None and charge.unit_price is not None:
        listed = charge.quantity * charge.unit_price
    row = {
        "AvailabilityZone": charge.zone,
        "BilledCost": charge.billed,
        "BillingAccountId": account.account_id,
        "BillingAccountName": account.name,
        "BillingCurrency": charge.currency_code,
        "BillingPeriodStart": _format_time(
            charge.start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        ),
        "BillingPeriodEnd": _format_time(_next_month(charge.start)),
        "ChargeCategory": charge.category,
        "ChargeDescription": charge.description,
        "ChargeFrequency": charge.frequency,
        "ChargePeriodStart": _format_time(charge.start),
        "ChargePeriodEnd": _format_time(charge.end),
        "ContractedCost": listed,
        "ContractedUnitPrice": charge.unit_price,
        "EffectiveCost": charge.effective,
        "InvoiceIssuerName": charge.provider,
        "ListCost": listed,
        "ListUnitPrice": charge.unit_price,
        "PricingCategory": None if taxed else charge.pricing,
        "PricingQuantity": charge.quantity,
        "PricingUnit": charge.unit,
        "ProviderName": charge.provider,
        "PublisherName": charge.provider,
        "RegionId": charge.region,
        "RegionName": charge.region,
        "ServiceCategory": charge.service.category,
        "ServiceName": charge.service.name,
        "ServiceSubcategory": charge.service.subcategory,
        "SkuId": charge.sku,
        "SkuPriceId": charge.sku,
        "Tags": json.dumps({**account.tags, **charge.tags}, sort_keys=True),
        "x_LineName": charge.name,
        "x_PriceSource": charge.source,
        **_build_commitment_columns(charge),
    }
    return {name: _format_value(value) for name, value in row.items() if value is not None}


def _build_commitment_columns(charge: FocusCharge) -> dict[str, object]:
    """Returns the quantities of a commitment; without one, the consumed quantity is the pricing quantity."""
    usage = charge.category is ChargeCategory.USAGE
    if charge.commitment is None:
        return {"ConsumedQuantity": charge.quantity, "ConsumedUnit": charge.unit} if usage else {}
    found, used = charge.commitment, charge.commitment.used
    row: dict[str, object] = {
        "CommitmentDiscountCategory": "Usage",
        "CommitmentDiscountId": found.commitment_id,
        "CommitmentDiscountName": found.commitment_id,
        "CommitmentDiscountType": "Reservation",
    }
    quantity = charge.quantity if found.hours is None else found.hours
    row |= {"CommitmentDiscountQuantity": quantity, "CommitmentDiscountUnit": COMMITTED_UNIT}
    if used is not None:
        row["CommitmentDiscountStatus"] = "Used" if used else "Unused"
    if used:
        row |= {"ConsumedQuantity": charge.quantity, "ConsumedUnit": charge.unit}
    return row


def _format_value(value: object) -> str | Decimal:
    return value if isinstance(value, Decimal) else str(value)


def _format_time(time: datetime) -> str:
    """Formats a time as RFC 3339 in whole seconds of UTC."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
