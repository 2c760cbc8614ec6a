"""Requests and answers of delayed changes, and of the settings for their delay."""

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired

from pydantic import AwareDatetime, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from service.kit.http.pages import NextPageToken, PageQuery
from service.kit.http.web import LOCATED
from service.policies.schemas import ApprovalPolicyRequest
from service.schemas.base import Integer, StrictModel
from service.schemas.budgets import BudgetTerms
from service.schemas.patches import build_patch_shape

MOST_DELAY_SECONDS = 90 * 86_400
PolicyChangeId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
PolicyChangeState = TypeAliasType("PolicyChangeState", Literal["waiting", "effective", "rejected"])
PolicyChangeAction = TypeAliasType("PolicyChangeAction", Literal["create", "update", "delete"])
DelaySeconds = Annotated[int, Field(ge=0, le=MOST_DELAY_SECONDS, json_schema_extra={"format": "int64"})]


class ApprovalSettingsValues(StrictModel):
    """Approval settings of a tenant that can change."""

    change_delay_seconds: DelaySeconds
    """Seconds before a change takes effect that loosens a policy or a budget, unless it is approved
    earlier."""


class ApprovalSettings(ApprovalSettingsValues):
    """Approval settings of a tenant."""

    version: Integer
    """Number of changes. 0 while the defaults of a new tenant apply."""


if TYPE_CHECKING:
    ApprovalSettingsPatch = ApprovalSettingsValues
else:
    ApprovalSettingsPatch = build_patch_shape(ApprovalSettingsValues, "ApprovalSettingsPatch")


@with_config(use_attribute_docstrings=True)
class PolicyChangeApproval(TypedDict):
    """Approval of a change by one person."""

    decided_by: str
    """Subject that approved."""
    decided_at: AwareDatetime
    """Time of the approval."""


@with_config(use_attribute_docstrings=True)
class PolicyChange(TypedDict):
    """A change of a policy, a budget or the delay. It takes effect by an approval or after the delay."""

    id: str
    """Id of the change."""
    resource: str
    """Resource that changes: its path below `/v1/`."""
    action: PolicyChangeAction
    """Action on the resource: create, update or delete."""
    policy: NotRequired[ApprovalPolicyRequest]
    """Policy after the change."""
    budget: NotRequired[BudgetTerms]
    """Terms of the budget after the change."""
    settings: NotRequired[ApprovalSettingsValues]
    """Settings after the change."""
    based_on_version: Integer
    """Version that is in force until the change takes effect. 0 if there is none."""
    proposed_by: str
    """Subject that proposed the change."""
    proposed_at: AwareDatetime
    """Time of the proposal."""
    effective_at: AwareDatetime
    """Time at which the change takes effect, unless it is approved or rejected earlier."""
    state: PolicyChangeState
    """State of the change. A change that has become impossible is rejected too."""
    approvals: list[PolicyChangeApproval]
    """Approvals of the change."""
    ended_at: NotRequired[AwareDatetime]
    """Time at which the change took effect or was rejected."""
    ended_by: NotRequired[str]
    """Subject that approved the change last or rejected it. Absent if it took effect after the delay."""
    version: Integer
    """Number of changes of this resource."""


class PolicyChangePage(TypedDict):
    """A page of changes."""

    items: list[PolicyChange]
    """Changes, the newest first."""
    next_page_token: NextPageToken


class PolicyChangeQuery(PageQuery):
    """Filters of changes."""

    state: Annotated[list[PolicyChangeState], Field(max_length=3)] = []
    """States to list."""


PROPOSED: Final[dict[int | str, dict[str, Any]]] = {
    202: {
        "model": PolicyChange,
        "headers": LOCATED[201]["headers"],
        "description": "The change waits for its approval or the end of the delay.",
    }
}
"""Answer to a write that is delayed."""
