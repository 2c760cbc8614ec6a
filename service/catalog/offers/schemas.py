"""Shapes of offers."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType, TypedDict

from service.catalog.rows import DateText, RowInput, Versioned
from service.catalog.shapes import Identifiers, ListQuery, Words, patch_of
from service.kit.pages import NextPageToken
from service.questions.base import Degree, MoneyInput, ResourceId, Text

PurchaseOption = TypeAliasType("PurchaseOption", Literal["on_demand", "spot", "reserved", "capacity_block"])


class OfferInput(RowInput):
    """A dated price of renting an instance."""

    provider: Text
    """Who rents it out."""
    region: Text | MISSING = MISSING
    """Where it is, as the provider calls it."""
    instance_type: Text | MISSING = MISSING
    """The provider's name of the instance."""
    accelerator_id: ResourceId
    """Accelerator of the catalog."""
    accelerator_count: Degree = 1
    """Accelerators of one instance."""
    purchase_option: PurchaseOption
    """On what terms."""
    price_per_instance_hour: MoneyInput
    """Price of the whole instance, with all its accelerators."""
    as_of: DateText
    """When the price held."""


class Offer(OfferInput, Versioned):
    """An offer of the catalog."""

    price_per_device_hour: MoneyInput
    """The instance's price over its accelerators."""


if TYPE_CHECKING:
    OfferPatch = OfferInput
else:
    OfferPatch = patch_of(OfferInput, "OfferPatch")


class OfferPage(TypedDict):
    """A page of offers."""

    items: list[Offer]
    next_page_token: NextPageToken


class OfferQuery(ListQuery):
    """Filters of offers."""

    provider: Words = []
    """Providers to list."""
    region: Words = []
    """Regions to list."""
    accelerator_id: Identifiers = []
    """Accelerators to list offers of."""
    purchase_option: Annotated[list[PurchaseOption], Field(max_length=50)] = []
    """Purchase options to list."""
