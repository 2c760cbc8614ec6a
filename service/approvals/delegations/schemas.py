"""Requests and answers of delegations."""

from typing import Annotated, NotRequired

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypedDict

from service.auth.schemas import SubjectName
from service.kit.http.pages import NextPageToken
from service.schemas.base import Instant, StrictModel, Text

DelegationId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]


class ApprovalDelegationRequest(StrictModel):
    """Right of a delegate to decide in the caller's place, for a time."""

    delegate: SubjectName
    """Subject that may decide. A delegate cannot delegate further, and never decides on their own
    requests."""
    starts_at: Instant | MISSING = MISSING
    """Start of the delegation. Defaults to now."""
    ends_at: Instant
    """End of the delegation."""
    note: Text | MISSING = MISSING
    """Reason for the delegation."""


class ApprovalDelegation(TypedDict):
    """Right of a delegate to decide in an approver's place, for a time."""

    id: str
    """Id of the delegation."""
    approver: str
    """Subject in whose place the delegate decides."""
    delegate: str
    """Subject that may decide."""
    starts_at: AwareDatetime
    """Start of the delegation."""
    ends_at: AwareDatetime
    """End of the delegation."""
    note: NotRequired[str]
    """Reason for the delegation."""
    created_at: AwareDatetime
    """Time at which the delegation was created."""
    revoked_at: NotRequired[AwareDatetime]
    """Time at which the delegation was revoked. Absent unless it was ended early."""


class ApprovalDelegationPage(TypedDict):
    """A page of delegations, including those that have ended."""

    items: list[ApprovalDelegation]
    """Delegations, the newest first."""
    next_page_token: NextPageToken
