"""Requests and answers of budgets."""

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
    """Members of a budget that can change."""

    name: Text
    """Display name of the budget."""
    note: Text | MISSING = MISSING
    """Note on the budget."""
    amount: BudgetAmount
    """Amount of the budget. Its currency cannot change."""
    thresholds: Annotated[list[Share], Field(max_length=10)] = [0.5, 0.8, 1.0]
    """Shares of the amount. When so much is committed or spent, an event is sent once."""
    enforcement: BudgetEnforcement = "warn"
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""


class BudgetRequest(BudgetTerms):
    """Amount that a cost centre may spend in a period.

    An approval commits the total of its quote. A run over several periods is divided by the time in each,
    whether it was approved before or after the budget was created.
    """

    id: ResourceId
    """Id of the budget."""
    cost_center_id: ResourceId
    """Id of the cost centre."""
    starts_on: Day
    """First day of the period, UTC."""
    ends_on: Day
    """Last day of the period, UTC."""


if TYPE_CHECKING:
    BudgetPatch = BudgetTerms
else:
    BudgetPatch = build_patch_shape(BudgetTerms, "BudgetPatch")


class BudgetCommitment(TypedDict):
    """Amount that an approval commits from a budget."""

    approval_id: str
    """Id of the approval."""
    quote_id: str
    """Id of the quote."""
    quote_version: Integer
    """Version of the quote."""
    quoted: NotRequired[MoneyAmount]
    """Total of the quote. Absent if it is unknown."""
    amount: NotRequired[MoneyAmount]
    """Part of the total that falls into the period, in the currency of the budget. Absent if there is no
    exchange rate."""
    rate: NotRequired[str]
    """Units of the budget's currency for one unit of the quote's currency at the time of the approval."""
    rate_on: NotRequired[str]
    """Day of the exchange rate."""
    committed_at: AwareDatetime
    """Time of the commitment."""
    released_at: NotRequired[AwareDatetime]
    """Time at which the commitment was released because the approval was cancelled, closed or superseded."""


class BudgetSummary(TypedDict):
    """A budget in lists."""

    id: str
    """Id of the budget."""
    name: str
    """Display name of the budget."""
    note: NotRequired[str]
    """Note on the budget."""
    cost_center_id: str
    """Id of the cost centre."""
    starts_on: str
    """First day of the period, UTC."""
    ends_on: str
    """Last day of the period, UTC."""
    amount: MoneyAmount
    """Amount of the budget."""
    thresholds: list[float]
    """Shares of the amount at which an event is sent."""
    enforcement: BudgetEnforcement
    """Treatment of an approval that exceeds the budget: `block` refuses it, `warn` adds a warning."""
    committed: MoneyAmount
    """Amount that approvals have committed."""
    spent: MoneyAmount
    """Amount that was spent, by imported actuals (effective cost)."""
    outstanding: MoneyAmount
    """Amount that is committed and not spent yet, computed for each quote separately."""
    remaining: MoneyAmount
    """Amount less spent and outstanding. For each quote the larger of committed and spent counts."""
    gaps: list[EstimateGap]
    """Figures that are not included, and why."""
    version: Integer
    """Number of this version; the ETag of the resource."""
    created_at: AwareDatetime
    """Time at which the budget was created."""


class Budget(BudgetSummary):
    """A budget with its latest commitments."""

    commitments: list[BudgetCommitment]
    """Newest 100 commitments, the newest first, including released ones."""


class BudgetPage(TypedDict):
    """A page of budgets."""

    items: list[BudgetSummary]
    """Budgets in order of id."""
    next_page_token: NextPageToken


class BudgetQuery(PageQuery):
    """Filters of budgets."""

    cost_center_id: Annotated[list[ResourceId], Field(max_length=50)] = []
    """Cost centres whose budgets to list."""
