"""Shapes of approval policies: which quotes they speak of, and who has to approve those."""

from typing import TYPE_CHECKING, Annotated

from pydantic import MISSING, AwareDatetime, Field

from service.approvals.schemas import SubjectName
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
    """All that are given have to hold; a policy without any speaks of every quote."""

    total_above: MoneyInput | MISSING = MISSING
    """Totals above this amount, converted at the catalog's rates. One that is unknown or leaves out charges
    counts as above."""
    total_high_above: MoneyInput | MISSING = MISSING
    """The same of the upper end of the total's 80% interval."""
    location_based_kg_co2e_above: NotNegative | MISSING = MISSING
    """Emissions above this; unknown ones count as above."""
    cost_center_ids: CostCenters | MISSING = MISSING
    """Quotes that one of these pays."""
    requesters: SubjectNames | MISSING = MISSING
    """Quotes that one of these asks for, be it by a key that they made."""
    providers: Providers | MISSING = MISSING
    """Quotes with devices that one of these rents out."""


class ApprovalEscalation(StrictModel):
    """Who may decide too, once a step has waited."""

    after_seconds: StepSeconds
    """Since the step opened."""
    to: SubjectNames
    """Who may decide then, beside the approvers."""


class PolicyStep(StrictModel):
    """Somebody to ask."""

    name: Text
    """What the step is called."""
    approvers: SubjectNames
    """Who may decide."""
    quorum: Quorum = 1
    """How many of them have to approve; one rejection rejects."""
    order: StepOrder = 0
    """Steps of all policies that match open one after the other by this number, then by id of the policy."""
    expires_after_seconds: StepSeconds | MISSING = MISSING
    """After so long without its decisions the approval expires; a quote's end of validity ends it anyway."""
    escalation: ApprovalEscalation | MISSING = MISSING
    """Who may decide too, once it has waited."""


PolicySteps = Annotated[list[PolicyStep], Field(max_length=MOST_STEPS)]


class ApprovalPolicyRequest(StrictModel):
    """Which quotes a policy speaks of, and who has to approve those."""

    id: ResourceId
    name: Text
    conditions: PolicyConditions
    """Which quotes it speaks of."""
    steps: PolicySteps
    """Who has to approve them, in order. With none nobody has to be asked, unless what a quote of money costs
    in all or a condition cannot be judged; the policy says so by `automatic`."""
    automatic: bool = False
    """Has to be true where there are no steps, and only there: quotes pass without anybody being asked."""


class ApprovalPolicy(ApprovalPolicyRequest):
    """A policy as it is now; approvals keep the steps that they were submitted under."""

    version: Integer
    """Number of changes, the creation included."""
    written_by: Annotated[list[str], Field(max_length=1000)] | MISSING = MISSING
    """Who has written a version of it: none of them asks under it. Absent of older ones until they change."""
    created_at: AwareDatetime
    """When it was created."""
    updated_at: AwareDatetime
    """When it was last changed."""


if TYPE_CHECKING:
    ApprovalPolicyPatch = ApprovalPolicyRequest
else:
    ApprovalPolicyPatch = build_patch_shape(ApprovalPolicyRequest, "ApprovalPolicyPatch")


class ApprovalPolicyPage(StrictModel):
    """A page of policies."""

    items: list[ApprovalPolicy]
    """By id."""
    next_page_token: NextPageToken


class ApprovalPolicyQuery(PageQuery):
    """Paging."""
