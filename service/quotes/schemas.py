"""Shapes of quotes."""

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
"""Of a version: approvals move it, and nothing else of a version ever moves."""
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
"""Codes of warnings which say that the total has no charge for something that will be charged for."""
DAYS_VALID: Final = 30
ValidForDays = Annotated[int, Field(ge=1, le=365, json_schema_extra={"format": "int64"})]


class QuoteTerms(StrictModel):
    """What a quote says beside its figures."""

    name: Text
    """What it is to be called."""
    cost_center_id: ResourceId | MISSING = MISSING
    """Who pays."""
    note: Text | MISSING = MISSING
    """What approvers should know."""
    valid_for_days: ValidForDays = DAYS_VALID
    """How long it may be approved; a price that ends before ends it."""


class MemoryQuoteRequest(QuoteTerms):
    """A question of memory to be quoted."""

    operation: Literal["memory"]
    request: MemoryEstimateRequest
    """Body of `POST /v1/estimates/memory`."""


class ThroughputQuoteRequest(QuoteTerms):
    """A question of throughput to be quoted, and that of memory with it."""

    operation: Literal["throughput"]
    request: ThroughputEstimateRequest
    """Body of `POST /v1/estimates/throughput`."""


class CostQuoteRequest(QuoteTerms):
    """A question of cost to be quoted, and those of memory and throughput with it."""

    operation: Literal["cost"]
    request: CostEstimateRequest
    """Body of `POST /v1/estimates/cost`."""


class UtilityBillQuoteRequest(QuoteTerms):
    """All four questions to be quoted."""

    operation: Literal["utility-bill"]
    request: UtilityBillRequest
    """Body of `POST /v1/estimates/utility-bill`."""


class CandidateQuoteRequest(QuoteTerms):
    """A row of a plan to be quoted: its requests, answered anew under the present catalog."""

    plan_id: QuoteId
    """Which plan."""
    candidate: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra={"format": "int64"})]
    """Rank of the row."""


def _get_operation(given: object) -> str | None:
    if isinstance(given, Mapping):
        asked = given.get("operation", "plan")
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
"""What is to be quoted: a question by its operation, or a row of a plan."""


class QuoteRepriceRequest(StrictModel):
    """How the next version of a quote differs, beside its prices."""

    version: Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """The newest version that the caller knows; with a newer one the quote stays as it is."""
    valid_for_days: ValidForDays = DAYS_VALID
    """How long it may be approved; a price that ends before ends it."""


class QuoteEstimateRequests(TypedDict):
    """Bodies of `POST /v1/estimates/...` that a quote answers."""

    memory: NotRequired[MemoryEstimateRequest]
    """Of `memory`."""
    throughput: NotRequired[ThroughputEstimateRequest]
    """Of `throughput`."""
    cost: NotRequired[CostEstimateRequest]
    """Of `cost`."""
    utility_bill: NotRequired[UtilityBillRequest]
    """Of `utility-bill`."""


class QuoteEstimates(TypedDict):
    """Answers of the estimates that a quote rests on, as they were when it was made."""

    memory: NotRequired[MemoryEstimate]
    """Does it fit?"""
    throughput: NotRequired[ThroughputEstimate]
    """How fast will it go?"""
    cost: NotRequired[CostEstimate]
    """What will it cost?"""
    utility_bill: NotRequired[UtilityBill]
    """What will it draw and emit?"""


class QuotedRow(EstimateSource):
    """A catalog row that the answers rest on, frozen with its values."""

    row: dict[str, Any]
    """The row as the catalog showed it."""


class QuoteHeadlines(TypedDict):
    """What is decided about. What is not known is absent."""

    total: NotRequired[MoneyQuantity]
    """What has to be paid: rent or share of own devices, else the purchase; electricity of own ones."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the run."""
    device_hours: NotRequired[QuantityEstimate]
    """Devices times hours."""
    total_bytes: NotRequired[QuantityEstimate]
    """Memory of the fullest device."""
    fits: NotRequired[bool]
    """Whether the device holds it."""
    facility_kwh: NotRequired[QuantityEstimate]
    """Energy at the meter."""
    peak_kw: NotRequired[QuantityEstimate]
    """Power at the meter."""
    location_based_kg_co2e: NotRequired[QuantityEstimate]
    """Emissions of the electricity."""
    water_liters: NotRequired[QuantityEstimate]
    """Water on site and off it."""


class QuotedCandidate(TypedDict):
    """The row of a plan that is quoted."""

    plan_id: str
    """Which plan."""
    candidate: Integer
    """Its rank."""


class QuoteSummary(TypedDict):
    """A version of a quote as lists show it."""

    id: str
    """Id of the quote, the same for all of its versions."""
    version: Integer
    """1, 2, ...; each is frozen."""
    state: QuoteState
    """How far its approval is."""
    name: str
    """What it is called."""
    operation: QuotedOperation
    """What was quoted."""
    headlines: QuoteHeadlines
    """What is decided about."""
    accelerator_id: NotRequired[str]
    """What the devices are."""
    accelerator_count: NotRequired[Integer]
    """How many."""
    providers: list[str]
    """Who rents devices out, where that is known."""
    cost_center_id: NotRequired[str]
    """Who pays."""
    starts_at: NotRequired[str]
    """When the run starts, where that is said."""
    created_at: AwareDatetime
    """When the version was frozen."""
    created_by: str
    """Kind and id of the subject that asked for it."""
    valid_until: AwareDatetime
    """After that moment it can be neither submitted nor approved."""
    content_digest: str
    """SHA-256 of all that is frozen: what approvers say that they have seen."""


class Quote(QuoteSummary):
    """A version of a quote, whole."""

    tenant_id: str
    """Whose it is."""
    note: NotRequired[str]
    """What its author says."""
    plan: NotRequired[QuotedCandidate]
    """Where it is from."""
    owns_devices: bool
    """Whether the devices are neither rented nor offered: then electricity is paid beside them."""
    requests: QuoteEstimateRequests
    """Bodies of `POST /v1/estimates/...` that were answered."""
    answers: QuoteEstimates
    """What they were answered with."""
    inputs: list[QuotedRow]
    """Rows of the catalog that the answers rest on, with their prices."""
    catalog_revision: Integer
    """Revision of the catalog that was read."""
    method_version: str
    """Version of the formulas."""
    focus_digest: NotRequired[str]
    """SHA-256 of the charges as FOCUS rows; absent where there are none, and a gap says why."""
    warnings: list[AnswerWarning]
    """What the reader should know, each once; pointers are into the quote."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why, each once; pointers are into the quote."""


class QuotePage(TypedDict):
    """A page of quotes, each in its newest version."""

    items: list[QuoteSummary]
    """The newest first."""
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
"""Asks for the newest version."""
_Version = Annotated[
    int, Field(ge=0, le=1_000_000, json_schema_extra={"format": "int64"}), build_number_validator(WHOLE)
]


class QuoteVersionQuery(BaseModel):
    """Which version of a quote."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    version: _Version = NEWEST
    """Which version; the newest if it is left out."""


OTHER_QUOTE: Final = r"^([0-9a-f]{32})?$"


class QuoteComparisonQuery(QuoteVersionQuery):
    """What a version of a quote is compared with."""

    base_id: Annotated[str, Field(pattern=OTHER_QUOTE, max_length=32)] = ""
    """Another quote; the same one if it is left out."""
    base_version: _Version = NEWEST
    """Which version of it; if it is left out, of another quote the newest, of the same the one before."""


class QuoteComparison(TypedDict):
    """What has changed between two quotes."""

    before: QuoteSummary
    """The first."""
    after: QuoteSummary
    """The second."""
    terms: list[QuoteValueChange]
    """What they say beside their figures, and what they were computed under."""
    requests: list[QuoteValueChange]
    """Members of their requests that differ."""
    inputs: list[QuotedRowChange]
    """Rows of the catalog that differ, those with prices first."""
    headlines: list[QuoteHeadlineChange]
    """Headlines that differ."""
    total_change: NotRequired[QuoteTotalChange]
    """What moves the total; absent where the two cannot be compared, and a gap says why."""
    lines: list[QuoteLineChange]
    """Charges that differ, those that move the total most first."""
    warnings: list[AnswerWarning]
    """What makes the amounts hard to compare; pointers are into the comparison."""
    gaps: list[EstimateGap]
    """What is not compared, and why; pointers are into the comparison."""
