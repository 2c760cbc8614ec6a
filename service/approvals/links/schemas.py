"""Shapes of links."""

from typing import Annotated, NotRequired

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict

from service.approvals.schemas import ApprovalId, SubjectName
from service.questions.base import Input


class ApprovalLinkInput(Input):
    """A link for one approver."""

    approver: SubjectName
    """An approver of the step that is open."""


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


class IssuedApprovalLink(TypedDict):
    """A link and its address, which is shown this once and kept nowhere."""

    link: ApprovalLink
    """What is kept of it."""
    url: NotRequired[Annotated[str, Field(max_length=2000)]]
    """Whoever opens it may decide in the approver's name, once; absent from a repeated answer."""
