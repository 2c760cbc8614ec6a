"""Requests and answers of quotes."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import MISSING, AwareDatetime, BaseModel, ConfigDict, Discriminator, Field, Tag
from typing_extensions import TypeAliasType, TypedDict

from service.kit.http.pages import WHOLE, NextPageToken, PageQuery, build_number_validator
from service.quotes.differences import (
    QuotedRowChange,
    QuoteHeadlineChange,
    QuoteLineChange,
    QuoteTotalChange,
    QuoteValueChange,
)
from service.schemas.answers import MemoryEstimate, ThroughputEstimate
from service.schemas.base import (
    AnswerWarning,
    EstimateGap,
    EstimateSource,
    Integer,
    MoneyQuantity,
    QuantityEstimate,
    ResourceId,
    StrictModel,
    Text,
)
from service.schemas.bill_answers import UtilityBill
from service.schemas.cost_answers import CostEstimate
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)

QuoteId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
QuoteState = TypeAliasType(
    "QuoteState",
    Literal["draft", "pending", "approved", "rejected", "expired", "cancelled", "superseded"],
)
"""State of a version. Approvals change it; nothing else of a version ever changes."""
QuotedOperation = TypeAliasType(
    "QuotedOperation", Literal["memory", "throughput", "cost", "utility-bill", "plan"]
)


LEFT_OUT: Final = frozenset(
    {
        "BLOCK_NOT_COUNTED",
        "COINCIDENT_PEAK_HISTORY",
        "COINCIDENT_PEAK_OUTSIDE",
        "COMMITMENT_NOT_COUNTED",
        "ELECTRICITY_NOT_IN_TOTAL",
        "ENERGY_UNPRICED",
        "INTERRUPTIONS_NOT_COUNTED",
        "RATCHET_HISTORY",
    }
)
"""Codes of warnings which say that the total lacks a charge for something that will be charged."""
DAYS_VALID: Final = 30
ValidForDays = Annotated[int, Field(ge=1, le=365, json_schema_extra={"format": "int64"})]


class QuoteTerms(StrictModel):
    """Terms of a quote beside its figures."""

    name: Text
    """Name of the quote."""
    cost_center_id: ResourceId | MISSING = MISSING
    """Id of the cost centre that pays."""
    note: Text | MISSING = MISSING
    """Note for the approvers."""
    valid_for_days: ValidForDays = DAYS_VALID
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""


class MemoryQuoteRequest(QuoteTerms):
    """Request for a quote on memory."""

    operation: Literal["memory"]
    request: MemoryEstimateRequest
    """Body of `POST /v1/estimates/memory`."""


class ThroughputQuoteRequest(QuoteTerms):
    """Request for a quote on throughput, which includes memory."""

    operation: Literal["throughput"]
    request: ThroughputEstimateRequest
    """Body of `POST /v1/estimates/throughput`."""


class CostQuoteRequest(QuoteTerms):
    """Request for a quote on cost, which includes memory and throughput."""

    operation: Literal["cost"]
    request: CostEstimateRequest
    """Body of `POST /v1/estimates/cost`."""


class UtilityBillQuoteRequest(QuoteTerms):
    """Request for a quote on all four questions."""

    operation: Literal["utility-bill"]
    request: UtilityBillRequest
    """Body of `POST /v1/estimates/utility-bill`."""


CandidateRank = Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra={"format": "int64"})]


class CandidateQuoteRequest(QuoteTerms):
    """Request for a quote on a row of a plan. Its requests are answered anew under the present catalog."""

    plan_id: QuoteId
    """Id of the plan."""
    candidate: CandidateRank
    """Rank of the row."""


def _get_operation(given: object) -> str | None:
    if isinstance(given, Mapping):
        # A question without its operation is no row of a plan.
        asked = given.get("operation", None if "request" in given and "plan_id" not in given else "plan")
        return asked if isinstance(asked, str) else None
    return str(getattr(given, "operation", "plan"))


QuoteRequest = TypeAliasType(
    "QuoteRequest",
    Annotated[
        Annotated[MemoryQuoteRequest, Tag("memory")]
        | Annotated[ThroughputQuoteRequest, Tag("throughput")]
        | Annotated[CostQuoteRequest, Tag("cost")]
        | Annotated[UtilityBillQuoteRequest, Tag("utility-bill")]
        | Annotated[CandidateQuoteRequest, Tag("plan")],
        Discriminator(
            _get_operation,
            custom_error_type="operation",
            custom_error_message="operation is memory, throughput, cost or utility-bill; else give plan_id",
        ),
    ],
)
"""Request for a quote: a question by its operation, or a row of a plan."""


class QuoteRepriceRequest(StrictModel):
    """Terms of the next version of a quote, beside its prices."""

    version: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Newest version that the caller knows. If there is a newer one, the quote stays as it is."""
    valid_for_days: ValidForDays = DAYS_VALID
    """Days in which the quote may be approved. A price that ends earlier shortens the validity."""


class QuoteEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that a quote answers."""

    memory: NotRequired[MemoryEstimateRequest]
    """Body for `memory`."""
    throughput: NotRequired[ThroughputEstimateRequest]
    """Body for `throughput`."""
    cost: NotRequired[CostEstimateRequest]
    """Body for `cost`."""
    utility_bill: NotRequired[UtilityBillRequest]
    """Body for `utility-bill`."""


class QuoteEstimates(TypedDict):
    """Answers of the estimates that a quote rests on, frozen when it was made."""

    memory: NotRequired[MemoryEstimate]
    """Memory estimate."""
    throughput: NotRequired[ThroughputEstimate]
    """Throughput estimate."""
    cost: NotRequired[CostEstimate]
    """Cost estimate."""
    utility_bill: NotRequired[UtilityBill]
    """Utility bill."""


class QuotedRow(EstimateSource):
    """A catalog row that the answers rest on, frozen with its values."""

    row: dict[str, Any]
    """The row as the catalog showed it."""


class QuoteHeadlines(TypedDict):
    """Headline figures of a quote. A figure that is unknown is absent."""

    total: NotRequired[MoneyQuantity]
    """Amount to be paid: rent or share of owned devices, else the purchase; electricity of owned devices."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the run."""
    device_hours: NotRequired[QuantityEstimate]
    """Devices times hours."""
    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device."""
    fits: NotRequired[bool]
    """True if the workload fits the device."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter of the building."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter of the building."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the electricity."""
    water_liters: NotRequired[QuantityEstimate]
    """Water that evaporates on the site and in the power plants of the grid."""


QuoteAlternativeKind = TypeAliasType(
    "QuoteAlternativeKind", Literal["fewer_devices", "other_offer", "token_price"]
)


class QuoteAlternative(TypedDict):
    """A cheaper way to the same work, computed under the same catalog."""

    kind: QuoteAlternativeKind
    """Fewer devices of the same kind, another offer of the same devices, or tokens at a list price."""
    detail: str
    """Sentence for a reader."""
    total: MoneyQuantity
    """Amount to be paid for it, comparable with the total of the headlines."""
    accelerator_count: NotRequired[Integer]
    """Number of devices that serve the load, for `fewer_devices`."""
    offer_id: NotRequired[str]
    """Id of the offer, for `other_offer`."""
    token_price_id: NotRequired[str]
    """Id of the token price, for `token_price`."""
    provider: NotRequired[str]
    """Provider of the offer or of the tokens."""


class QuotedCandidate(TypedDict):
    """The row of a plan that is quoted."""

    plan_id: str
    """Id of the plan."""
    candidate: Integer
    """Rank of the row."""


class QuoteSummary(TypedDict):
    """A version of a quote in lists."""

    id: str
    """Id of the quote, the same for all of its versions."""
    version: Integer
    """Number of the version, from 1. Each version is frozen."""
    state: QuoteState
    """State of the version's approval."""
    name: str
    """Name of the quote."""
    operation: QuotedOperation
    """Operation that was quoted."""
    headlines: QuoteHeadlines
    """Headline figures of the quote."""
    accelerator_id: NotRequired[str]
    """Id of the accelerator."""
    accelerator_count: NotRequired[Integer]
    """Number of devices."""
    providers: list[str]
    """Providers that rent the devices out, as far as they are known."""
    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""
    starts_at: NotRequired[str]
    """Start of the run, if it is given."""
    created_at: AwareDatetime
    """Time at which the version was frozen."""
    created_by: str
    """Kind and id of the subject that requested the version."""
    valid_until: AwareDatetime
    """Time after which the version can be neither submitted nor approved."""
    content_digest: str
    """SHA-256 of all frozen content, which approvers confirm to have seen."""


class Quote(QuoteSummary):
    """A version of a quote with its requests, answers and prices."""

    tenant_id: str
    """Tenant of the quote."""
    note: NotRequired[str]
    """Note of the author."""
    plan: NotRequired[QuotedCandidate]
    """Plan and row that the quote was made from."""
    owns_devices: bool
    """True if the devices are neither rented nor offered. Electricity is then paid in addition."""
    requests: QuoteEstimateRequests
    """Bodies of `POST /v1/estimates/...` that were answered."""
    answers: QuoteEstimates
    """Answers to the requests."""
    alternatives: NotRequired[list[QuoteAlternative]]
    """Cheaper ways to the same work, the cheapest first, at most one of a kind. Absent from versions of
    earlier releases of the service, which did not look for any."""
    inputs: list[QuotedRow]
    """Rows of the catalog that the answers rest on, with their prices."""
    catalog_revision: Integer
    """Revision of the catalog that was read."""
    method_version: str
    """Version of the formulas."""
    focus_digest: NotRequired[str]
    """SHA-256 of the charges as FOCUS rows. Absent if there are none, and a gap says why."""
    warnings: list[AnswerWarning]
    """Remarks for the reader, each once. Pointers are into the quote."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why, each once. Pointers are into the quote."""


class QuotePage(TypedDict):
    """A page of quotes, each in its newest version."""

    items: list[QuoteSummary]
    """Quotes, the newest first."""
    next_page_token: NextPageToken


class QuoteQuery(PageQuery):
    """Filters of quotes."""

    state: Annotated[list[QuoteState], Field(max_length=7)] = []
    """States of the newest version to list."""
    operation: Annotated[list[QuotedOperation], Field(max_length=5)] = []
    """Operations to list."""
    cost_center_id: Annotated[list[ResourceId], Field(max_length=20)] = []
    """Cost centres to list."""


NEWEST: Final = 0
"""Selects the newest version."""
_Version = Annotated[
    int, Field(ge=0, le=1_000_000, json_schema_extra={"format": "int64"}), build_number_validator(WHOLE)
]


class QuoteVersionQuery(BaseModel):
    """Version of a quote to read."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    version: _Version = NEWEST
    """Number of the version. Defaults to the newest."""


OTHER_QUOTE: Final = r"^([0-9a-f]{32})?$"


class QuoteComparisonQuery(QuoteVersionQuery):
    """Version of a quote to compare with."""

    base_id: Annotated[str, Field(pattern=OTHER_QUOTE, max_length=32)] = ""
    """Id of another quote. Defaults to the same quote."""
    base_version: _Version = NEWEST
    """Version to compare with. Defaults to the newest of another quote, and to the preceding one of the same
    quote."""


class QuoteComparison(TypedDict):
    """Changes between two quotes."""

    before: QuoteSummary
    """First quote of the comparison."""
    after: QuoteSummary
    """Second quote of the comparison."""
    terms: list[QuoteValueChange]
    """Differences in their terms, and in what they were computed under."""
    requests: list[QuoteValueChange]
    """Members of their requests that differ."""
    inputs: list[QuotedRowChange]
    """Rows of the catalog that differ, rows with prices first."""
    headlines: list[QuoteHeadlineChange]
    """Headlines that differ."""
    total_change: NotRequired[QuoteTotalChange]
    """Causes of the change of the total. Absent if the two cannot be compared, and a gap says why."""
    lines: list[QuoteLineChange]
    """Charges that differ, by the size of their effect on the total."""
    warnings: list[AnswerWarning]
    """Remarks on the comparability of the amounts. Pointers are into the comparison."""
    gaps: list[EstimateGap]
    """Figures that are not compared, and why. Pointers are into the comparison."""
