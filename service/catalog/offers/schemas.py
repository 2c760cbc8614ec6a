"""Requests and answers of offers."""

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
    """Terms that are agreed in advance. Amounts are for one instance, in the currency of the price."""

    term_days: Annotated[int, Field(ge=1, le=LONGEST_TERM_DAYS, json_schema_extra={"format": "int64"})]
    """Length of the term. A year counts 365 days."""
    upfront_per_instance: MoneyInput | MISSING = MISSING
    """Amount that is paid at the start for the whole term."""
    hourly_per_instance: MoneyInput | MISSING = MISSING
    """Amount that is paid for every hour of the term, used or not."""
    minimum_instances: Degree | MISSING = MISSING
    """Smallest number of instances that the term is sold for."""
    minimum_spend_per_hour: MoneyInput | MISSING = MISSING
    """Smallest hourly spend that the term is sold for."""


class OfferRequest(RowInput):
    """A dated price of renting an instance."""

    provider: Text
    """Provider that rents the instance out."""
    region: Text | MISSING = MISSING
    """Region, as the provider names it."""
    zone: Text | MISSING = MISSING
    """Part of the region that the price applies to, if prices differ within the region."""
    instance_type: Text | MISSING = MISSING
    """The provider's name of the instance."""
    accelerator_id: ResourceId
    """Accelerator of the catalog."""
    accelerator_count: Degree = 1
    """Accelerators of one instance."""
    purchase_option: PurchaseOption
    """Purchase option. `committed` promises an amount of use or spend, `reserved` keeps an instance
    available, and `capacity_block` is paid as a whole in advance."""
    price_per_instance_hour: MoneyInput | MISSING = MISSING
    """Hourly price of the whole instance with all its accelerators. Under a commitment, all payments over its
    hours. Left out if the commitment states its parts."""
    commitment: OfferCommitment | MISSING = MISSING
    """Length and parts of a reserved or committed term, or of a capacity block."""
    billing_increment_seconds: Size | MISSING = MISSING
    """Increment that use is rounded up to."""
    minimum_billed_seconds: Size | MISSING = MISSING
    """Shortest use that is billed."""
    includes: Annotated[list[OfferInclusion], Field(max_length=6)] | MISSING = MISSING
    """Parts that the price covers beside the accelerators. Left out if that is unknown."""
    as_of: DateText
    """Date of the price."""
    valid_from: DateText | MISSING = MISSING
    """First day on which the price applies."""
    valid_until: DateText | MISSING = MISSING
    """Last day, month or year in which the price applies."""
    doubt: Text | MISSING = MISSING
    """Reason why the price may be wrong. Estimates that use it repeat the reason."""


class Offer(OfferRequest, Versioned):
    """An offer of the catalog."""

    effective_price_per_instance_hour: MoneyInput
    """Hourly price of the whole instance. Under a commitment, all payments over its hours."""
    price_per_device_hour: MoneyInput
    """Effective price of the instance over its accelerators."""


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
    Literal[
        "skypilot", "gpuhunt", "gpuhunt_tpu", "ec2instances", "opencost_csv", "opencost_json", "dated_csv"
    ],
)
LONGEST_CONTENT = 8 * 2**20


class PriceListSource(StrictModel):
    """Source of a price list."""

    citation: Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$")]
    """Document, publisher and way of access."""
    url: Annotated[str, Field(max_length=500, pattern=r"^https://[!-~]+$")] | MISSING = MISSING
    licence: Text | MISSING = MISSING


class PriceList(StrictModel):
    """Facts that a price list in the format of its publisher does not state."""

    format: OfferFormat
    """Format of the list: the catalog CSV of SkyPilot or gpuhunt (of one provider), the TPU prices of
    gpuhunt, instances of ec2instances.info, custom prices of OpenCost, or a CSV of dated prices whose rows
    name their provider, date and source."""
    provider: Text | MISSING = MISSING
    """Provider of the prices, such as aws. Required if the format does not state it, refused if rows do."""
    accelerator_id: ResourceId | MISSING = MISSING
    """Accelerator of an OpenCost price document, which names none."""
    as_of: DateText
    """Date of the prices. Rows of dated_csv state their own."""
    valid_until: DateText | MISSING = MISSING
    """Last day, month or year in which the prices apply."""
    source: PriceListSource


class OfferImportRequest(PriceList):
    """A price list in the format of its publisher."""

    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CONTENT)]
    """The file as text."""


@with_config(use_attribute_docstrings=True)
class RefusedRow(TypedDict):
    """A row of a price list that is not an offer."""

    pointer: str
    """Line of a table (the header is /1), with the column after it if its cell is the reason, or JSON Pointer
    into a document."""
    code: str
    """Stable name of the reason."""
    detail: str
    """Description of the reason."""


@with_config(use_attribute_docstrings=True)
class RefusedRowCount(TypedDict):
    """Rows that were refused for one reason."""

    code: str
    """Stable name of the reason."""
    row_count: Integer
    """Number of rows."""


@with_config(use_attribute_docstrings=True)
class ImportedOffers(TypedDict):
    """Result of importing a price list."""

    created: list[ResourceId]
    """Ids of new offers."""
    changed: list[ResourceId]
    """Ids of offers that have a new version."""
    unchanged: list[ResourceId]
    """Ids of offers that were already stored with the same content."""
    refused: list[RefusedRow]
    """First thousand rows that are not offers, with the reason."""
    refused_reasons: list[RefusedRowCount]
    """All refused rows by reason."""
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
