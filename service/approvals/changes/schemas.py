"""Shapes of changes that wait, and of how long they do."""

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired

from pydantic import AwareDatetime, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from service.approvals.budgets.schemas import BudgetTerms
from service.approvals.policies.schemas import ApprovalPolicyRequest
from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.base import Integer, StrictModel
from service.schemas.patches import build_patch_shape

MOST_DELAY_SECONDS = 90 * 86_400
PolicyChangeId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
PolicyChangeState = TypeAliasType("PolicyChangeState", Literal["waiting", "effective", "rejected"])
PolicyChangeAction = TypeAliasType("PolicyChangeAction", Literal["create", "update", "delete"])
DelaySeconds = Annotated[int, Field(ge=0, le=MOST_DELAY_SECONDS, json_schema_extra={"format": "int64"})]


class ApprovalSettingsValues(StrictModel):
    """What holds for the changes of a tenant."""

    change_delay_seconds: DelaySeconds
    """How long a change of a policy or a budget waits that lets more pass, unless it is approved before."""


class ApprovalSettings(ApprovalSettingsValues):
    """What holds for the changes of a tenant."""

    version: Integer
    """Number of changes; 0 while what holds for every new tenant holds."""


if TYPE_CHECKING:
    ApprovalSettingsPatch = ApprovalSettingsValues
else:
    ApprovalSettingsPatch = build_patch_shape(ApprovalSettingsValues, "ApprovalSettingsPatch")


@with_config(use_attribute_docstrings=True)
class PolicyChangeApproval(TypedDict):
    """That somebody agrees to a change."""

    decided_by: str
    """Who."""
    decided_at: AwareDatetime
    """When."""


@with_config(use_attribute_docstrings=True)
class PolicyChange(TypedDict):
    """A change of a policy, a budget or the delay, which takes effect by an approval or after the delay."""

    id: str
    """Id of the change."""
    resource: str
    """What changes: its path below `/v1/`."""
    action: PolicyChangeAction
    """Whether it is created, changed or deleted."""
    policy: NotRequired[ApprovalPolicyRequest]
    """The policy that is to stand then."""
    budget: NotRequired[BudgetTerms]
    """The terms that a budget is to have then."""
    settings: NotRequired[ApprovalSettingsValues]
    """The settings that are to hold then."""
    based_on_version: Integer
    """The version that stands meanwhile; 0 where there is none."""
    proposed_by: str
    """Who wants it."""
    proposed_at: AwareDatetime
    """Since when."""
    effective_at: AwareDatetime
    """When it takes effect, unless it is approved or rejected before."""
    state: PolicyChangeState
    """How far it is; it is rejected too where it has become impossible."""
    approvals: list[PolicyChangeApproval]
    """Who agrees."""
    ended_at: NotRequired[AwareDatetime]
    """Since when it is effective or rejected."""
    ended_by: NotRequired[str]
    """Who approved it last or rejected it; absent where the delay was over."""
    version: Integer
    """Number of changes of this row."""


class PolicyChangePage(TypedDict):
    """A page of changes."""

    items: list[PolicyChange]
    """The newest first."""
    next_page_token: NextPageToken


class PolicyChangeQuery(PageQuery):
    """Filters of changes."""

    state: Annotated[list[PolicyChangeState], Field(max_length=3)] = []
    """States to list."""
