"""Requests and answers of actuals."""

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
    """Source of the bill, such as a provider or an account. A later bill of the same source replaces this one
    in the billing periods that both have."""
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CONTENT)]
    """Comma-separated values under one line of column names. Rows of a run have the tag `quote_id`."""
    replaces: ActualsId | MISSING = MISSING
    """Id of the import of the same table, to match its rows again. Without it a bill that was imported before
    is refused."""
    note: Text | MISSING = MISSING
    """Note on the bill."""


class ActualsWithdrawalRequest(StrictModel):
    """Reason why a bill no longer counts."""

    reason: Text
    """Reason of the withdrawal."""


class ActualsNote(TypedDict):
    """A note on the rows of a bill."""

    code: str
    """Stable name of the note."""
    row_count: Integer
    """Number of rows that the note concerns."""
    detail: str
    """Text of the note."""


class ActualsPeriod(TypedDict):
    """A billing period of a bill."""

    starts_at: AwareDatetime
    """Start of the period."""
    ends_at: AwareDatetime
    """End of the period."""
    covered_until: AwareDatetime
    """Time up to which the bill covers the period: its end, or the last charge of a period that was not over
    yet."""
    row_count: Integer
    """Rows of the bill in the period."""
    matched_row_count: Integer
    """Rows that belong to a quote or a cost centre. The others are not stored."""
    billed: list[MoneyAmount]
    """Sum of the billed cost, by currency."""
    effective: list[MoneyAmount]
    """Sum of the effective cost, by currency."""


class Actuals(TypedDict):
    """A bill that was imported."""

    id: str
    """Id of the import."""
    source: str
    """Source of the bill."""
    state: ActualsState
    """State of the bill. A `superseded` bill no longer counts in any of its billing periods."""
    note: NotRequired[str]
    """Note on the bill."""
    content_sha256: str
    """SHA-256 of the table, which itself is not stored."""
    row_count: Integer
    """Rows of the bill."""
    matched_row_count: Integer
    """Rows that belong to a quote or a cost centre. The others are not stored."""
    periods: list[ActualsPeriod]
    """Billing periods of the bill."""
    notes: list[ActualsNote]
    """Notes on the rows of the bill."""
    created_at: AwareDatetime
    """Time of the import."""
    withdrawn_at: NotRequired[AwareDatetime]
    """Time from which the bill no longer counts."""
    reason: NotRequired[str]
    """Reason of the withdrawal."""


class ActualsPage(TypedDict):
    """A page of imported bills."""

    items: list[Actuals]
    """Imported bills, the newest first."""
    next_page_token: NextPageToken


class ExpectedCost(TypedDict):
    """Quoted cost of the time that is billed so far, with its 80% interval."""

    amount: str
    """Decimal number as text."""
    low: str
    """Lower end of the interval."""
    high: str
    """Upper end of the interval."""
    currency_code: str
    """ISO 4217 code."""


class ServiceCategoryActuals(TypedDict):
    """Costs of one service category."""

    service_category: NotRequired[str]
    """Category as FOCUS names it. Absent if bill and quote name none."""
    expected: NotRequired[MoneyAmount]
    """Quoted cost of the time that is billed."""
    billed: NotRequired[MoneyAmount]
    """Billed cost."""
    effective: NotRequired[MoneyAmount]
    """Effective cost: the billed cost with prepayments spread over their use."""


class ExcludedCharges(TypedDict):
    """Charges that are left out of the comparison."""

    code: ExcludedChargesCode
    """Code of the reason."""
    effective: MoneyAmount
    """Effective cost of the charges."""
    detail: str
    """Description of the reason."""


class QuoteActuals(TypedDict):
    """Billed cost of a quote, compared with the quoted cost."""

    quote_id: str
    """Id of the quote."""
    quote_version: Integer
    """Newest approved version of the quote, else its newest version."""
    state: QuoteState
    """Approval state of that version."""
    total: NotRequired[MoneyQuantity]
    """Quoted cost of the whole run."""
    starts_at: NotRequired[AwareDatetime]
    """Start of the run as quoted, else the day of the first charge."""
    ends_at: NotRequired[AwareDatetime]
    """End of the run as quoted."""
    covered_share: NotRequired[float]
    """Share of the run's time that is covered by bills which name the quote."""
    expected: NotRequired[ExpectedCost]
    """Quoted cost of that share."""
    billed: NotRequired[MoneyAmount]
    """Billed cost in the currency of the quote."""
    effective: NotRequired[MoneyAmount]
    """Effective cost: the billed cost with prepayments spread over their use."""
    compared: NotRequired[MoneyAmount]
    """Part of the effective cost that is compared: all of it once the whole run is billed, else the cost of
    the run's days."""
    left_out: list[ExcludedCharges]
    """Charges that are left out of the comparison, with the reason."""
    ratio: NotRequired[float]
    """Compared cost over expected cost."""
    is_within_interval: NotRequired[bool]
    """True if the compared cost lies within the 80% interval."""
    services: list[ServiceCategoryActuals]
    """Compared cost by service category, or all billed cost if nothing is compared."""
    import_ids: list[str]
    """Ids of the bills that the figures come from."""
    gaps: list[EstimateGap]
    """Figures that are absent, and why."""


class QuoteAccuracy(TypedDict):
    """Deviation of quotes from their billed cost."""

    quote_count: Integer
    """Number of quotes whose cost can be compared."""
    median_absolute_error: NotRequired[float]
    """Median of the absolute deviation, as a share of the quoted cost."""
    bias: NotRequired[float]
    """Mean ratio of billed to expected cost, less 1. Above 0, runs cost more than quoted."""
    interval_coverage: NotRequired[float]
    """Share of the quotes whose cost lies within the 80% interval."""


class QuoteAccuracyGroup(QuoteAccuracy):
    """Deviation of a group of quotes from their billed cost."""

    name: str
    """Name of the group."""


class UncomparedQuotes(TypedDict):
    """Quotes that cannot be compared for one reason."""

    code: str
    """Code of the gap in their actuals."""
    quote_count: Integer
    """Number of quotes."""


class ActualsAccuracy(QuoteAccuracy):
    """Deviation of the tenant's quotes from what was billed for them so far."""

    partly_billed_count: Integer
    """Compared quotes whose run is not fully billed yet. The billed part is compared."""
    without_figure_count: Integer
    """Number of quotes with charges that cannot be compared."""
    without_figure: list[UncomparedQuotes]
    """Quotes that cannot be compared by the first gap of each."""
    by_operation: list[QuoteAccuracyGroup]
    """Deviation by quoted operation."""
    by_accelerator: list[QuoteAccuracyGroup]
    """Deviation by accelerator."""
