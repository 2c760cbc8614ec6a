"""Shapes of the audit."""

from typing import Annotated

from pydantic import MISSING, AwareDatetime, BaseModel, ConfigDict, Field

from service.kit.http.pages import NextPageToken
from service.schemas.base import Integer, StrictModel

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", max_length=64)]
ShortText = Annotated[str, Field(max_length=300)]
ExpectedHead = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,17}:[0-9a-f]{64}$", max_length=83)]
MOST_SHOWN = 100
MOST_EXPECTED = 100


class AuditEvent(StrictModel):
    """One stored write."""

    sequence: Integer
    """Number of the event in the chain of its tenant, from 1 without a gap."""
    occurred_at: AwareDatetime
    """When the write was made."""
    operation: ShortText
    """Id of the operation."""
    resource: ShortText
    """What was written: collection and id."""
    subject_kind: ShortText
    """How the subject proved who it is."""
    subject_id: ShortText | MISSING = MISSING
    """Who wrote; absent after a redaction of the tenant."""
    request_id: ShortText
    """Id of the request, as in the log."""
    before_digest: Digest | MISSING = MISSING
    """SHA-256 of the resource before the write; absent where there was none."""
    after_digest: Digest | MISSING = MISSING
    """SHA-256 of the resource after the write; absent where there is none."""
    state_digest: Digest | MISSING = MISSING
    """SHA-256 of all that is stored of the resource after the write, what nobody is shown included.

    Absent where `after_digest` says as much, where the resource is gone, and from events of earlier versions.
    """
    previous_hash: Digest
    """Hash of the event before; zeros at the beginning."""
    hash: Digest
    """SHA-256 of the event, the hash before included."""


class AuditEventPage(StrictModel):
    """A page of events."""

    items: list[AuditEvent]
    """Events, the newest first."""
    next_page_token: NextPageToken


class AuditFault(StrictModel):
    """Where a chain breaks."""

    sequence: Integer
    """Number of the first event at fault."""
    code: ShortText
    """Stable name of the fault."""
    detail: ShortText
    """What does not hold."""


class AuditDeviation(StrictModel):
    """Something that is not as its last event says."""

    resource: ShortText
    """What it is: collection and id."""
    code: ShortText
    """`CHANGED`, `MISSING`, `NOT_RECORDED`, `CHARGES_CHANGED`, or `UNREADABLE` of a table."""


class AuditGap(StrictModel):
    """What a verification cannot say, because events of earlier versions do not hold it."""

    collection: ShortText
    """Of which resources."""
    code: ShortText
    """Stable name of what is not known."""
    detail: ShortText
    """What is not known."""
    resource_count: Integer
    """Of how many of them."""


class AuditVerdict(StrictModel):
    """Whether every event of the tenant is there, and all that decides who may do what is as they say."""

    valid: bool
    """Whether the whole chain holds and reaches the expected heads, and nothing was changed beside it."""
    events: Integer
    """Events that hold, from the first."""
    head_hash: Digest
    """Hash of the last of them; a copy elsewhere shows whether the end was cut off with its seal."""
    fault: AuditFault | MISSING = MISSING
    """The first fault of the chain; absent if there is none."""
    changed: Annotated[list[AuditDeviation], Field(max_length=MOST_SHOWN)] | MISSING = MISSING
    """What is stored otherwise than it was recorded, the first of it; absent if there is nothing."""
    changed_count: Integer | MISSING = MISSING
    """How much that is."""
    gaps: list[AuditGap] | MISSING = MISSING
    """What nobody can say of what earlier versions have recorded; absent if there is nothing."""


class AuditVerification(BaseModel):
    """What a chain is held against."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    expected_head: Annotated[list[ExpectedHead], Field(max_length=MOST_EXPECTED)] = []
    """Heads that were exported: number of the event and its hash, such as 12:0f..., repeatable."""
