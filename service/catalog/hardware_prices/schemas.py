"""Requests and answers of hardware prices."""

from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.catalog.rows import EXAMPLE_SOURCES, DateText, RowDocument, RowInput, Versioned
from service.catalog.shapes import IdentifierFilter, ListQuery
from service.schemas.base import Degree, MoneyInput, ResourceId, StrictModel, Text

HardwareInclusion = TypeAliasType("HardwareInclusion", Literal["host", "network"])


class HardwarePriceRange(StrictModel):
    """Range of a published price, for the whole product."""

    low: MoneyInput
    """Lowest price."""
    high: MoneyInput
    """Highest price."""


class HardwarePriceRequest(RowInput):
    """A dated price of buying an accelerator, or a product that contains some."""

    product: Text
    """Product, as its seller or the source names it."""
    accelerator_id: ResourceId
    """Accelerator of the catalog."""
    accelerator_count: Degree = 1
    """Accelerators of the product, such as 8 of a server or 72 of a rack."""
    price: MoneyInput | MISSING = MISSING
    """Price of the whole product. Left out where only a range is published."""
    price_range: HardwarePriceRange | MISSING = MISSING
    """Range of the price of the whole product."""
    includes: Annotated[list[HardwareInclusion], Field(max_length=2)] | MISSING = MISSING
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""
    as_of: DateText
    """Date of the price."""
    doubt: Text | MISSING = MISSING
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class HardwarePrice(HardwarePriceRequest, Versioned):
    """A hardware price of the catalog."""

    price_per_device: MoneyInput
    """Price of the product, or the middle of its range, over its accelerators."""


class HardwarePriceQuery(ListQuery):
    """Filters of hardware prices."""

    accelerator_id: IdentifierFilter = []
    """Accelerators to list prices of."""


EXAMPLE: RowDocument = {
    "id": "example-server",
    "name": "Example server, 8 x H100",
    "product": "Example server",
    "accelerator_id": "h100-sxm",
    "accelerator_count": 8,
    "price": {"amount": "280000", "currency_code": "USD"},
    "price_range": {
        "low": {"amount": "250000", "currency_code": "USD"},
        "high": {"amount": "320000", "currency_code": "USD"},
    },
    "includes": ["host"],
    "as_of": "2026-11-20",
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {
    "price": {"amount": "275000", "currency_code": "USD"},
    "as_of": "2026-11-21",
}
