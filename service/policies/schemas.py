"""Requests and answers of approval policies."""

from typing import TYPE_CHECKING, Annotated

from pydantic import MISSING, AwareDatetime, Field

from service.auth.schemas import SubjectName
from service.kit.http.pages import NextPageToken, PageQuery
from service.schemas.base import Integer, MoneyInput, NotNegative, ResourceId, StrictModel, Text
from service.schemas.patches import build_patch_shape

_YEAR_SECONDS = 366 * 86_400
MOST_STEPS = 20
StepSeconds = Annotated[int, Field(ge=1, le=_YEAR_SECONDS, json_schema_extra={"format": "int64"})]
StepOrder = Annotated[int, Field(ge=0, le=1000, json_schema_extra={"format": "int64"})]
Quorum = Annotated[int, Field(ge=1, le=50, json_schema_extra={"format": "int64"})]
SubjectNames = Annotated[list[SubjectName], Field(min_length=1, max_length=50)]
Providers = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]],
    Field(min_length=1, max_length=50),
]
CostCenters = Annotated[list[ResourceId], Field(min_length=1, max_length=50)]


class PolicyConditions(StrictModel):
    """Conditions of a policy, all of which must hold. A policy without conditions applies to every quote."""

    total_above: MoneyInput | MISSING = MISSING
    """Applies to totals above this amount, converted at the exchange rates of the catalog. A total that is
    unknown or leaves out charges counts as above."""
    total_high_above: MoneyInput | MISSING = MISSING
    """Applies if the upper end of the total's 80% interval is above this amount."""
    location_based_kg_co2e_above: NotNegative | MISSING = MISSING
    """Applies to emissions above this value. Unknown emissions count as above."""
    cost_center_ids: CostCenters | MISSING = MISSING
    """Applies to quotes that one of these cost centres pays for."""
    requesters: SubjectNames | MISSING = MISSING
    """Applies to quotes that one of these subjects requests, directly or by a key that they made."""
    providers: Providers | MISSING = MISSING
    """Applies to quotes with devices from one of these providers."""


class ApprovalEscalation(StrictModel):
    """Subjects that may also decide once a step has been open for some time."""

    after_seconds: StepSeconds
    """Seconds after the step opened."""
    to: SubjectNames
    """Subjects that may decide then, beside the approvers."""


class PolicyStep(StrictModel):
    """A step of an approval, decided by a quorum of approvers."""

    name: Text
    """Name of the step."""
    approvers: SubjectNames
    """Subjects that may decide."""
    quorum: Quorum = 1
    """Number of approvers that must approve. A single rejection rejects."""
    order: StepOrder = 0
    """Order of the step. Steps of all matching policies open one after another by this number, then by id of
    the policy."""
    expires_after_seconds: StepSeconds | MISSING = MISSING
    """Seconds after which the approval expires if the step is undecided. The end of the quote's validity ends
    it in any case."""
    escalation: ApprovalEscalation | MISSING = MISSING
    """Escalation of a step that stays open."""


PolicySteps = Annotated[list[PolicyStep], Field(max_length=MOST_STEPS)]


class ApprovalPolicyRequest(StrictModel):
    """A policy: the quotes that it applies to, and the steps of their approval."""

    id: ResourceId
    name: Text
    conditions: PolicyConditions
    """Conditions on the quotes that the policy applies to."""
    steps: PolicySteps
    """Steps of the approval, in order. A policy without steps approves quotes automatically, except if the
    total of a quote that costs money is unknown or a condition cannot be evaluated; it then sets
    `automatic`."""
    automatic: bool = False
    """Set to true if and only if the policy has no steps: quotes then pass without an approver."""


class ApprovalPolicy(ApprovalPolicyRequest):
    """A policy as it is now. Approvals keep the steps under which they were submitted."""

    version: Integer
    """Number of changes, the creation included."""
    written_by: Annotated[list[str], Field(max_length=1000)] | MISSING = MISSING
    """Subjects that have written a version of the policy. They cannot submit quotes under it. Absent for
    older policies until their next change."""
    created_at: AwareDatetime
    """Time at which the policy was created."""
    updated_at: AwareDatetime
    """Time of the last change."""


if TYPE_CHECKING:
    ApprovalPolicyPatch = ApprovalPolicyRequest
else:
    ApprovalPolicyPatch = build_patch_shape(ApprovalPolicyRequest, "ApprovalPolicyPatch")


class ApprovalPolicyPage(StrictModel):
    """A page of policies."""

    items: list[ApprovalPolicy]
    """Policies in order of id."""
    next_page_token: NextPageToken


class ApprovalPolicyQuery(PageQuery):
    """Paging."""
