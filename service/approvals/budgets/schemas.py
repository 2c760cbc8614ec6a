"""Shapes of budgets."""

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypeAliasType, TypedDict

from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.base import (
    CurrencyCode,
    EstimateGap,
    Integer,
    MoneyAmount,
    ResourceId,
    Share,
    StrictModel,
    Text,
)
from service.schemas.patches import build_patch_shape
from service.schemas.tariffs import Day

BudgetEnforcement = TypeAliasType("BudgetEnforcement", Literal["warn", "block"])


class BudgetAmount(StrictModel):
    """An amount of one currency."""

    amount: Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,6})?$", max_length=19)]
    """Decimal number as text, such as "250000"."""
    currency_code: CurrencyCode
    """ISO 4217 code."""


class BudgetTerms(StrictModel):
    """What of a budget may change."""

    name: Text
    """What people call it."""
    note: Text | MISSING = MISSING
    """What to know of it."""
    amount: BudgetAmount
    """What there is; its currency stays."""
    thresholds: Annotated[list[Share], Field(max_length=10)] = [0.5, 0.8, 1.0]
    """Shares of the amount: an event is sent once when so much is committed or spent."""
    enforcement: BudgetEnforcement = "warn"
    """Whether an approval that takes more than there is is refused (block) or told of (warn)."""


class BudgetRequest(BudgetTerms):
    """What a cost centre may spend in a period.

    An approval commits the total of its quote, a run over several periods by the time in each, whether it was
    approved before or after there was the budget.
    """

    id: ResourceId
    """What answers call it."""
    cost_center_id: ResourceId
    """Whose it is."""
    starts_on: Day
    """First day (UTC)."""
    ends_on: Day
    """Last day (UTC)."""


if TYPE_CHECKING:
    BudgetPatch = BudgetTerms
else:
    BudgetPatch = build_patch_shape(BudgetTerms, "BudgetPatch")


class BudgetCommitment(TypedDict):
    """What an approval takes of a budget."""

    approval_id: str
    """Which approval."""
    quote_id: str
    """Of which quote."""
    quote_version: Integer
    """In which version."""
    quoted: NotRequired[MoneyAmount]
    """The whole of it, as quoted; absent where its total is not known."""
    amount: NotRequired[MoneyAmount]
    """What falls into the period, in the currency of the budget; absent where there is no exchange rate."""
    rate: NotRequired[str]
    """What one unit of the currency of the quote was worth in that of the budget when it was approved."""
    rate_on: NotRequired[str]
    """Day of that rate."""
    committed_at: AwareDatetime
    """Since when."""
    released_at: NotRequired[AwareDatetime]
    """Until when; the approval was cancelled, closed or superseded."""


class BudgetSummary(TypedDict):
    """A budget as lists show it."""

    id: str
    """Id of the budget."""
    name: str
    """What people call it."""
    note: NotRequired[str]
    """What to know of it."""
    cost_center_id: str
    """Whose it is."""
    starts_on: str
    """First day (UTC)."""
    ends_on: str
    """Last day (UTC)."""
    amount: MoneyAmount
    """What there is."""
    thresholds: list[float]
    """Shares of the amount of which an event tells."""
    enforcement: BudgetEnforcement
    """Whether an approval that takes more than there is is refused."""
    committed: MoneyAmount
    """What approvals have committed."""
    spent: MoneyAmount
    """What was spent, by imported actuals (effective cost)."""
    outstanding: MoneyAmount
    """What is committed and not spent yet, of each quote by itself."""
    remaining: MoneyAmount
    """Amount less spent and outstanding: of each quote the larger of committed and spent counts."""
    gaps: list[EstimateGap]
    """What is not in these figures, and why."""
    version: Integer
    """Number of this version; the ETag of the resource."""
    created_at: AwareDatetime
    """Since when there is one."""


class Budget(BudgetSummary):
    """A budget, with what was committed of it last."""

    commitments: list[BudgetCommitment]
    """The newest 100 first, released ones too."""


class BudgetPage(TypedDict):
    """A page of budgets."""

    items: list[BudgetSummary]
    """In order of id."""
    next_page_token: NextPageToken


class BudgetQuery(PageQuery):
    """Filters of budgets."""

    cost_center_id: Annotated[list[ResourceId], Field(max_length=50)] = []
    """Whose budgets to list."""
