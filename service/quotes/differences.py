"""Shapes of what differs between two quotes."""

from typing import Literal, NotRequired

from typing_extensions import TypeAliasType, TypedDict

from service.schemas.base import Integer, MoneyAmount
from service.schemas.bill_answers import BillingPeriod

JsonScalar = TypeAliasType("JsonScalar", str | float | bool)


class QuoteValueChange(TypedDict):
    """A value that differs."""

    pointer: str
    """Where it is."""
    before: NotRequired[JsonScalar]
    """Absent where there was none."""
    after: NotRequired[JsonScalar]
    """Absent where there is none."""


class QuotedRowChange(TypedDict):
    """A row of the catalog that one of two quotes rests on, or both with other values."""

    kind: str
    """What kind of row it is."""
    id: str
    """Id of the row."""
    version_before: NotRequired[Integer]
    """Absent where the first does not rest on it."""
    version_after: NotRequired[Integer]
    """Absent where the second does not rest on it."""
    changes: list[QuoteValueChange]
    """Values that differ, prices first; pointers are into the row."""


class QuoteHeadlineChange(TypedDict):
    """A headline that differs."""

    name: str
    """Which."""
    before: NotRequired[JsonScalar]
    """Its value; absent where it was not known."""
    after: NotRequired[JsonScalar]
    """Its value; absent where it is not known."""
    difference: NotRequired[str | float]
    """The second less the first; of money as text. Absent where they are no numbers of one unit."""
    ratio: NotRequired[float]
    """The second over the first."""
    currency_code: NotRequired[str]
    """Of money."""
    is_beyond_intervals: NotRequired[bool]
    """Whether the two 80% intervals lie apart."""


class QuoteChargeSum(TypedDict):
    """All charges of one purpose on one side."""

    amount: MoneyAmount
    """Their sum."""
    quantity: NotRequired[float]
    """How much is charged for; absent where they do not share a unit."""
    unit: NotRequired[str]
    """What the quantity counts."""
    unit_price: NotRequired[MoneyAmount]
    """Absent where they do not share one."""


class QuoteLineChange(TypedDict):
    """Charges of one purpose that differ: of the same bill, name, resource, period and tier."""

    part: Literal["cost", "electricity"]
    """Of which bill."""
    name: str
    """What is charged for."""
    resource: NotRequired[str]
    """Accelerator that is counted, or tariff whose periods and tiers are named."""
    billing_period: NotRequired[BillingPeriod]
    """When it is billed."""
    price_period: NotRequired[str]
    """Hours that share the price."""
    tier: NotRequired[Integer]
    """Place of the tier in its ladder, from 1."""
    change: Literal["new", "removed", "changed"]
    """Whether both quotes have it."""
    before: NotRequired[QuoteChargeSum]
    """Absent where there were none."""
    after: NotRequired[QuoteChargeSum]
    """Absent where there are none."""
    contribution: NotRequired[MoneyAmount]
    """What it adds to the change of the total; absent where the totals are not compared."""
    by_quantity: NotRequired[MoneyAmount]
    """The part of the contribution that follows from another quantity, at the mean of both prices."""
    by_price: NotRequired[MoneyAmount]
    """The part that follows from another price, at the mean of both quantities, rounding included."""
    by_exchange_rate: NotRequired[MoneyAmount]
    """The part that follows from another exchange rate."""
    not_split: NotRequired[
        Literal["UNIT_DIFFERS", "CURRENCY_DIFFERS", "PRICE_UNKNOWN", "NOT_A_PRODUCT", "ROUNDING"]
    ]
    """Why the contribution of what both have is not told apart."""


class QuoteTotalChange(TypedDict):
    """By how much the total differs; the parts add up to it exactly."""

    difference: MoneyAmount
    """The second total less the first: the sum of the contributions of the lines."""
    by_quantity: MoneyAmount
    """Of other quantities."""
    by_price: MoneyAmount
    """Of other prices."""
    by_exchange_rate: MoneyAmount
    """Of other exchange rates."""
    by_new: MoneyAmount
    """Of what only the second has."""
    by_removed: MoneyAmount
    """Of what only the first has."""
    not_split: MoneyAmount
    """Of lines that both have and that are not told apart."""
