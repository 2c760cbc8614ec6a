"""Shapes of actuals."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypeAliasType, TypedDict

from service.kit.http.pages import NextPageToken
from service.quotes.schemas import QuoteState
from service.schemas.base import (
    EstimateGap,
    Integer,
    MoneyAmount,
    MoneyQuantity,
    ResourceId,
    StrictModel,
    Text,
)

LONGEST_CONTENT = 8 * 2**20
ActualsId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
ExcludedChargesCode = TypeAliasType("ExcludedChargesCode", Literal["OUTSIDE_RUN", "NOT_COVERED"])
ActualsState = TypeAliasType("ActualsState", Literal["active", "superseded", "withdrawn"])


class ActualsImportRequest(StrictModel):
    """A bill as a table in the columns of FOCUS 1.0 to 1.3, with every charge of its billing periods."""

    source: ResourceId
    """Where it comes from, such as a provider or an account. A later bill of the same source takes the place
    of this one in the billing periods that both have."""
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CONTENT)]
    """Comma-separated values under one line of column names. Rows of a run bear the tag `quote_id`."""
    replaces: ActualsId | MISSING = MISSING
    """The import of the same table, to look up anew what its rows belong to; without it a bill that was
    imported before is refused."""
    note: Text | MISSING = MISSING
    """What to know of it."""


class ActualsWithdrawalRequest(StrictModel):
    """Why a bill counts no longer."""

    reason: Text
    """What is wrong with it."""


class ActualsNote(TypedDict):
    """What to know of a bill."""

    code: str
    """Stable name of it."""
    row_count: Integer
    """How many rows it concerns."""
    detail: str
    """What to know."""


class ActualsPeriod(TypedDict):
    """A billing period of a bill."""

    starts_at: AwareDatetime
    """Its start."""
    ends_at: AwareDatetime
    """Its end."""
    covered_until: AwareDatetime
    """How far the bill speaks for it: to its end, or to the last charge of one that was not over yet."""
    row_count: Integer
    """Rows of the bill."""
    matched_row_count: Integer
    """Those that belong to a quote or a cost centre; the others are not kept."""
    billed: list[MoneyAmount]
    """Sum of the billed cost, by currency."""
    effective: list[MoneyAmount]
    """Sum of the effective cost, by currency."""


class Actuals(TypedDict):
    """A bill that was imported."""

    id: str
    """Id of the import."""
    source: str
    """Where it comes from."""
    state: ActualsState
    """Whether it counts: superseded is one that counts in none of its billing periods any more."""
    note: NotRequired[str]
    """What to know of it."""
    content_sha256: str
    """Digest of the table, which itself is not kept."""
    row_count: Integer
    """Rows of the bill."""
    matched_row_count: Integer
    """Those that belong to a quote or a cost centre; the others are not kept."""
    periods: list[ActualsPeriod]
    """Its billing periods."""
    notes: list[ActualsNote]
    """What to know of its rows."""
    created_at: AwareDatetime
    """When it was imported."""
    withdrawn_at: NotRequired[AwareDatetime]
    """Since when it counts no longer."""
    reason: NotRequired[str]
    """Why."""


class ActualsPage(TypedDict):
    """A page of imported bills."""

    items: list[Actuals]
    """The newest first."""
    next_page_token: NextPageToken


class ExpectedCost(TypedDict):
    """What the quote says of what is billed so far, with its 80% interval."""

    amount: str
    """Decimal number as text."""
    low: str
    """Lower end of the interval."""
    high: str
    """Upper end of the interval."""
    currency_code: str
    """ISO 4217 code."""


class ServiceCategoryActuals(TypedDict):
    """One category of service."""

    service_category: NotRequired[str]
    """As FOCUS calls it; absent where bill and quote name none."""
    expected: NotRequired[MoneyAmount]
    """What the quote says of the time that is billed."""
    billed: NotRequired[MoneyAmount]
    """What was billed."""
    effective: NotRequired[MoneyAmount]
    """The same with what was paid in advance spread over its use."""


class ExcludedCharges(TypedDict):
    """Charges that are not compared."""

    code: ExcludedChargesCode
    """Why."""
    effective: MoneyAmount
    """Their effective cost."""
    detail: str
    """What to know."""


class QuoteActuals(TypedDict):
    """What was billed for a quote, beside what it says."""

    quote_id: str
    """Which quote."""
    quote_version: Integer
    """The newest version that is approved, else the newest."""
    state: QuoteState
    """How far the approval of that version is."""
    total: NotRequired[MoneyQuantity]
    """What the quote says of the whole run."""
    starts_at: NotRequired[AwareDatetime]
    """Start of the run: as quoted, else the day of the first charge."""
    ends_at: NotRequired[AwareDatetime]
    """Its end, as quoted."""
    covered_share: NotRequired[float]
    """Share of that time for which bills speak that name the quote."""
    expected: NotRequired[ExpectedCost]
    """What the quote says of that share."""
    billed: NotRequired[MoneyAmount]
    """What was billed, in the currency of the quote."""
    effective: NotRequired[MoneyAmount]
    """The same with what was paid in advance spread over its use."""
    compared: NotRequired[MoneyAmount]
    """What of the effective cost is compared: all once the whole run is billed, else that of its days."""
    left_out: list[ExcludedCharges]
    """What of it is not compared, and why."""
    ratio: NotRequired[float]
    """What is compared over what was expected."""
    is_within_interval: NotRequired[bool]
    """Whether what is compared lies inside the 80% interval."""
    services: list[ServiceCategoryActuals]
    """What is compared, or all that was billed where nothing is, by category of service."""
    import_ids: list[str]
    """Bills that it is from."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class QuoteAccuracy(TypedDict):
    """How far quotes were off what was billed for them."""

    quote_count: Integer
    """Quotes whose cost can be compared."""
    median_absolute_error: NotRequired[float]
    """Half of the quotes were off by no more than this share of what they said."""
    bias: NotRequired[float]
    """Mean of what was billed over what was expected, less 1: above 0, runs cost more than quoted."""
    interval_coverage: NotRequired[float]
    """Share of the quotes whose cost lay inside the 80% interval."""


class QuoteAccuracyGroup(QuoteAccuracy):
    """The same of some quotes."""

    name: str
    """What they have in common."""


class UncomparedQuotes(TypedDict):
    """Quotes that cannot be compared for one reason."""

    code: str
    """The code of the gap that their actuals tell."""
    quote_count: Integer
    """How many."""


class ActualsAccuracy(QuoteAccuracy):
    """How far the tenant's quotes were off, each beside what was billed for it so far."""

    partly_billed_count: Integer
    """Of these quotes, those whose run is not billed to its end: what is billed of it is compared."""
    without_figure_count: Integer
    """Quotes with charges that cannot be compared."""
    without_figure: list[UncomparedQuotes]
    """Why: the first gap of each."""
    by_operation: list[QuoteAccuracyGroup]
    """By what was quoted."""
    by_accelerator: list[QuoteAccuracyGroup]
    """By what the devices are."""
