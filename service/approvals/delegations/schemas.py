"""Shapes of delegations."""

from typing import Annotated, NotRequired

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypedDict

from service.approvals.schemas import SubjectName
from service.kit.http.pages import NextPageToken
from service.schemas.base import Instant, StrictModel, Text

DelegationId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]


class ApprovalDelegationRequest(StrictModel):
    """Who may decide in the caller's place, and when."""

    delegate: SubjectName
    """Who may. They cannot hand it on, and never decide what they have asked for themselves."""
    starts_at: Instant | MISSING = MISSING
    """From when on; at once if it is left out."""
    ends_at: Instant
    """Until when."""
    note: Text | MISSING = MISSING
    """Why."""


class ApprovalDelegation(TypedDict):
    """For a time somebody may decide in an approver's place."""

    id: str
    """Id of the delegation."""
    approver: str
    """In whose place."""
    delegate: str
    """Who may decide."""
    starts_at: AwareDatetime
    """From when on."""
    ends_at: AwareDatetime
    """Until when."""
    note: NotRequired[str]
    """Why."""
    created_at: AwareDatetime
    """When it was created."""
    revoked_at: NotRequired[AwareDatetime]
    """Since when it does not hold any more, where it was ended early."""


class ApprovalDelegationPage(TypedDict):
    """A page of delegations, those of the past too."""

    items: list[ApprovalDelegation]
    """The newest first."""
    next_page_token: NextPageToken
