"""Shapes of offers."""

from typing import Annotated, Literal

from pydantic import MISSING, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from service.catalog.rows import EXAMPLE_SOURCES, DateText, RowDocument, RowInput, Versioned
from service.catalog.shapes import IdentifierFilter, ListQuery, TextFilter
from service.schemas.base import Degree, Integer, MoneyInput, ResourceId, Size, StrictModel, Text

PurchaseOption = TypeAliasType(
    "PurchaseOption", Literal["on_demand", "spot", "reserved", "committed", "capacity_block"]
)
OfferInclusion = TypeAliasType(
    "OfferInclusion", Literal["host", "local_storage", "network_storage", "network", "software", "support"]
)
LONGEST_TERM_DAYS = 3660


class OfferCommitment(StrictModel):
    """What is agreed before the first hour; amounts are for one instance, in the currency of the price."""

    term_days: Annotated[int, Field(ge=1, le=LONGEST_TERM_DAYS, json_schema_extra={"format": "int64"})]
    """Length of the term; a year counts 365 days."""
    upfront_per_instance: MoneyInput | MISSING = MISSING
    """Paid at the start for the whole term."""
    hourly_per_instance: MoneyInput | MISSING = MISSING
    """Paid for every hour of the term, used or not."""
    minimum_instances: Degree | MISSING = MISSING
    """Fewest instances that the term is sold for."""
    minimum_spend_per_hour: MoneyInput | MISSING = MISSING
    """Least spend of an hour that the term is sold for."""


class OfferRequest(RowInput):
    """A dated price of renting an instance."""

    provider: Text
    """Who rents it out."""
    region: Text | MISSING = MISSING
    """Where it is, as the provider calls it."""
    zone: Text | MISSING = MISSING
    """Part of the region that the price holds for, where prices differ within it."""
    instance_type: Text | MISSING = MISSING
    """The provider's name of the instance."""
    accelerator_id: ResourceId
    """Accelerator of the catalog."""
    accelerator_count: Degree = 1
    """Accelerators of one instance."""
    purchase_option: PurchaseOption
    """On what terms. Under committed an amount of use or spend is promised, under reserved an instance is
    kept, and a capacity block is paid as a whole, up front."""
    price_per_instance_hour: MoneyInput | MISSING = MISSING
    """Price of the whole instance, with all its accelerators; under a commitment everything that is paid
    over its hours. Left out where the commitment states its parts."""
    commitment: OfferCommitment | MISSING = MISSING
    """Length and parts of a reserved or committed term, or of a capacity block."""
    billing_increment_seconds: Size | MISSING = MISSING
    """Use is rounded up to a multiple of it."""
    minimum_billed_seconds: Size | MISSING = MISSING
    """Least use that is billed."""
    includes: Annotated[list[OfferInclusion], Field(max_length=6)] | MISSING = MISSING
    """What the price covers beside the accelerators; left out where that is not known."""
    as_of: DateText
    """When the price held."""
    valid_from: DateText | MISSING = MISSING
    """From when it holds."""
    valid_until: DateText | MISSING = MISSING
    """Last day, month or year in which it holds."""
    doubt: Text | MISSING = MISSING
    """Why the figure may be wrong; estimates that use it say so."""


class Offer(OfferRequest, Versioned):
    """An offer of the catalog."""

    effective_price_per_instance_hour: MoneyInput
    """Price of the whole instance for an hour; under a commitment, everything paid over the hours of it."""
    price_per_device_hour: MoneyInput
    """The effective price of the instance over its accelerators."""


class OfferQuery(ListQuery):
    """Filters of offers."""

    provider: TextFilter = []
    """Providers to list."""
    region: TextFilter = []
    """Regions to list."""
    accelerator_id: IdentifierFilter = []
    """Accelerators to list offers of."""
    purchase_option: Annotated[list[PurchaseOption], Field(max_length=50)] = []
    """Purchase options to list."""


OfferFormat = TypeAliasType(
    "OfferFormat",
    Literal["skypilot", "gpuhunt", "gpuhunt_tpu", "ec2instances", "opencost_csv", "opencost_json"],
)
LONGEST_CONTENT = 8 * 2**20


class PriceListSource(StrictModel):
    """Where a price list comes from."""

    citation: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """Document, publisher and how it was read."""
    url: Annotated[str, Field(max_length=500, pattern=r"^https://[!-~]+$")] | MISSING = MISSING
    licence: Text | MISSING = MISSING


class PriceList(StrictModel):
    """What a price list in the format of its publisher does not say itself."""

    format: OfferFormat
    """Format of the list: the catalog CSV of SkyPilot or gpuhunt (of one provider), the TPU prices of
    gpuhunt, instances of ec2instances.info, or custom prices of OpenCost."""
    provider: Text | MISSING = MISSING
    """Whose prices these are, such as aws; needed where the format does not say."""
    accelerator_id: ResourceId | MISSING = MISSING
    """Which accelerator an OpenCost price document prices; it names none."""
    as_of: DateText
    """When the prices held."""
    valid_until: DateText | MISSING = MISSING
    """Last day, month or year in which they hold."""
    source: PriceListSource


class OfferImportRequest(PriceList):
    """A price list in the format of its publisher."""

    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CONTENT)]
    """The file as text."""


@with_config(use_attribute_docstrings=True)
class RefusedRow(TypedDict):
    """A row of the list that is no offer."""

    pointer: str
    """Line of a table, the header being /1, or JSON Pointer into a document."""
    code: str
    """Stable name of the reason."""
    detail: str
    """What is wrong with it."""


@with_config(use_attribute_docstrings=True)
class RefusedRowCount(TypedDict):
    """How many rows were refused for one reason."""

    code: str
    """Stable name of the reason."""
    row_count: Integer
    """Rows refused for it."""


@with_config(use_attribute_docstrings=True)
class ImportedOffers(TypedDict):
    """What became of the rows of a price list."""

    created: list[ResourceId]
    """Ids of offers that are new."""
    changed: list[ResourceId]
    """Ids of offers that got a new version."""
    unchanged: list[ResourceId]
    """Ids of offers that were stored like this already."""
    refused: list[RefusedRow]
    """The first thousand rows that are no offers, with the reason."""
    refused_reasons: list[RefusedRowCount]
    """All that were refused, by reason."""
    row_count: Integer
    """Rows, or prices of a document, that were read."""


EXAMPLE: RowDocument = {
    "id": "example-cloud-h100-8x",
    "name": "Example Cloud, 8 x H100",
    "provider": "example-cloud",
    "region": "eu-north-1",
    "accelerator_id": "h100-sxm",
    "accelerator_count": 8,
    "purchase_option": "reserved",
    "price_per_instance_hour": {"amount": "19.92", "currency_code": "USD"},
    "as_of": "2026-11-20",
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {
    "price_per_instance_hour": {"amount": "18.80", "currency_code": "USD"},
    "as_of": "2026-11-21",
}
