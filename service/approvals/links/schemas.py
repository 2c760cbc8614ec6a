"""Shapes of links."""

from typing import Annotated, Literal, NotRequired

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from service.approvals.schemas import ApprovalId, SubjectName
from service.schemas.base import StrictModel


class ApprovalLinkRequest(StrictModel):
    """A link for one person."""

    approver: SubjectName
    """An approver of the step that is open, who has no credentials: `person:` and who it is."""


class ApprovalLink(TypedDict):
    """A link, without its secret."""

    id: Annotated[str, Field(max_length=100)]
    """Id of the link."""
    approval_id: ApprovalId
    """What is to be decided."""
    approver: str
    """Whose decision it will be."""
    created_by: str
    """Who made it."""
    created_at: AwareDatetime
    """When."""
    expires_at: AwareDatetime
    """Until when it works, unless the step ends before."""
    used_at: NotRequired[AwareDatetime]
    """When somebody decided by it."""
    revoked_at: NotRequired[AwareDatetime]
    """Since when it does not work."""


class ApprovalLinkDetails(ApprovalLink):
    """A link and what has become of it."""

    state: Literal["open", "used", "revoked", "expired", "ended"]
    """`ended` where the step that it was made for has ended without it."""


class ApprovalLinkList(TypedDict):
    """The links of an approval."""

    items: list[ApprovalLinkDetails]
    """Links in the order in which they were made."""


class IssuedApprovalLink(TypedDict):
    """A link and its address, which is shown this once and kept nowhere."""

    link: ApprovalLink
    """What is kept of it."""
    url: NotRequired[Annotated[str, Field(max_length=2000)]]
    """Whoever opens it may decide in the approver's name, once; absent from a repeated answer."""
