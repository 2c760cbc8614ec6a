"""Schemas of the differences between two quotes."""

from typing import Literal, NotRequired

from typing_extensions import TypeAliasType, TypedDict

from service.schemas.base import Integer, MoneyAmount
from service.schemas.bill_answers import BillingPeriod

JsonScalar = TypeAliasType("JsonScalar", str | float | bool)


class QuoteValueChange(TypedDict):
    """A value that differs."""

    pointer: str
    """JSON Pointer of the value."""
    before: NotRequired[JsonScalar]
    """Value in the first quote. Absent if it has none."""
    after: NotRequired[JsonScalar]
    """Value in the second quote. Absent if it has none."""


class QuotedRowChange(TypedDict):
    """A row of the catalog that only one of two quotes uses, or both with different values."""

    kind: str
    """Kind of the row, such as `offer` or `tariff`."""
    id: str
    """Id of the row."""
    version_before: NotRequired[Integer]
    """Version of the row in the first quote. Absent if that does not use the row."""
    version_after: NotRequired[Integer]
    """Version of the row in the second quote. Absent if that does not use the row."""
    changes: list[QuoteValueChange]
    """Values that differ, prices first. Pointers are relative to the row."""


class QuoteHeadlineChange(TypedDict):
    """A headline that differs."""

    name: str
    """Name of the headline."""
    before: NotRequired[JsonScalar]
    """Value in the first quote. Absent if it was unknown."""
    after: NotRequired[JsonScalar]
    """Value in the second quote. Absent if it is unknown."""
    difference: NotRequired[str | float]
    """Second value minus the first, a string for money. Absent unless both are numbers of one unit."""
    ratio: NotRequired[float]
    """Second value divided by the first."""
    currency_code: NotRequired[str]
    """Currency of both amounts."""
    is_beyond_intervals: NotRequired[bool]
    """True if the two 80% intervals do not overlap."""


class QuoteChargeSum(TypedDict):
    """Sum of all charges of one purpose in one quote."""

    amount: MoneyAmount
    """Sum of the amounts."""
    quantity: NotRequired[float]
    """Sum of the quantities. Absent if the charges do not share a unit."""
    unit: NotRequired[str]
    """Unit of the quantity."""
    unit_price: NotRequired[MoneyAmount]
    """Price of a unit. Absent if the charges do not share one."""


class QuoteLineChange(TypedDict):
    """Change of the charges of one purpose: of the same bill, name, resource, period and tier."""

    part: Literal["cost", "electricity"]
    """Bill of the charges."""
    name: str
    """Name of the charge."""
    resource: NotRequired[str]
    """Accelerator of the devices, or tariff with the periods and tiers."""
    billing_period: NotRequired[BillingPeriod]
    """Billing period of the charges."""
    price_period: NotRequired[str]
    """Price period of the charges: hours that share a price."""
    tier: NotRequired[Integer]
    """Number of the tier in its ladder, from 1."""
    change: Literal["new", "removed", "changed"]
    """`changed` if both quotes have the charges, `new` or `removed` if only the second or the first has."""
    before: NotRequired[QuoteChargeSum]
    """Charges of the first quote. Absent if it has none."""
    after: NotRequired[QuoteChargeSum]
    """Charges of the second quote. Absent if it has none."""
    contribution: NotRequired[MoneyAmount]
    """Contribution to the change of the total. Absent if the totals are not comparable."""
    by_quantity: NotRequired[MoneyAmount]
    """Part of the contribution from the change of the quantity, at the mean of both prices."""
    by_price: NotRequired[MoneyAmount]
    """Part of the contribution from the change of the price, at the mean of both quantities, with
    rounding.
    """
    by_exchange_rate: NotRequired[MoneyAmount]
    """Part of the contribution from the change of the exchange rate."""
    not_split: NotRequired[
        Literal["UNIT_DIFFERS", "CURRENCY_DIFFERS", "PRICE_UNKNOWN", "NOT_A_PRODUCT", "ROUNDING"]
    ]
    """Reason why the contribution of charges that both quotes have cannot be split."""


class QuoteTotalChange(TypedDict):
    """Change of the total, as parts that add up exactly."""

    difference: MoneyAmount
    """Second total minus the first: the sum of the contributions of all lines."""
    by_quantity: MoneyAmount
    """Part from changes of quantities."""
    by_price: MoneyAmount
    """Part from changes of prices."""
    by_exchange_rate: MoneyAmount
    """Part from changes of exchange rates."""
    by_new: MoneyAmount
    """Part from lines that only the second quote has."""
    by_removed: MoneyAmount
    """Part from lines that only the first quote has."""
    not_split: MoneyAmount
    """Part from changed lines whose contribution cannot be split."""
