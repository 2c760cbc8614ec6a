"""Requests and answers of approval links."""

from typing import Annotated, Literal, NotRequired

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from service.approvals.schemas import ApprovalId
from service.auth.schemas import SubjectName
from service.schemas.base import StrictModel


class ApprovalLinkRequest(StrictModel):
    """An approval link for one person."""

    approver: SubjectName
    """Approver of the open step who has no credentials: `person:` and an id."""


class ApprovalLink(TypedDict):
    """An approval link, without its secret."""

    id: Annotated[str, Field(max_length=100)]
    """Id of the link."""
    approval_id: ApprovalId
    """Id of the approval to decide."""
    approver: str
    """Approver whose decision it will be."""
    created_by: str
    """Subject that made the link."""
    created_at: AwareDatetime
    """Time at which the link was made."""
    expires_at: AwareDatetime
    """Time at which the link expires, unless the step ends earlier."""
    used_at: NotRequired[AwareDatetime]
    """Time at which a decision was made by the link."""
    revoked_at: NotRequired[AwareDatetime]
    """Time at which the link was revoked."""


class ApprovalLinkDetails(ApprovalLink):
    """An approval link and its state."""

    state: Literal["open", "used", "revoked", "expired", "ended"]
    """State of the link. `ended` if the step that it was made for has ended without it."""


class ApprovalLinkList(TypedDict):
    """Links of an approval."""

    items: list[ApprovalLinkDetails]
    """Links in the order in which they were made."""


class IssuedApprovalLink(TypedDict):
    """An approval link and its address. The address is shown only in this answer and is not stored."""

    link: ApprovalLink
    """The stored link."""
    url: NotRequired[Annotated[str, Field(max_length=2000)]]
    """Address of the link. Whoever opens it may decide in the approver's name, once. Absent from a repeated
    answer."""
