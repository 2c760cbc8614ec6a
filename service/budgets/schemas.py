"""Requests and answers of budgets."""

from typing import TYPE_CHECKING, Annotated, NotRequired

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.base import (
    EstimateGap,
    Integer,
    MoneyAmount,
    ResourceId,
)
from service.schemas.budgets import BudgetEnforcement, BudgetTerms
from service.schemas.patches import build_patch_shape
from service.schemas.tariffs import Day


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


class BudgetEffect(TypedDict):
    """Effect of a quote on a budget of its cost centre. Amounts are in the currency of the budget."""

    budget_id: str
    """Id of the budget."""
    amount: NotRequired[MoneyAmount]
    """Part of the quote's total that falls into the period of the budget."""
    remaining_before: NotRequired[MoneyAmount]
    """Amount that is left without the quote."""
    remaining_after: NotRequired[MoneyAmount]
    """Amount that is left with the quote. Below 0 if the budget is exceeded."""
    unknown: NotRequired[str]
    """Reason why the effect is unknown: TOTAL_UNKNOWN or RATE_UNKNOWN."""
    is_exceeded: bool
    """True if the quote exceeds the budget, or if the effect is unknown."""
    blocks: bool
    """True if the budget refuses approvals that exceed it."""


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
