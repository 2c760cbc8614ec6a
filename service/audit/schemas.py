"""Requests and answers of the audit."""

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
    """Time of the write."""
    operation: ShortText
    """Id of the operation."""
    resource: ShortText
    """Resource that was written: collection and id."""
    subject_kind: ShortText
    """Kind of the subject, by its means of authentication."""
    subject_id: ShortText | MISSING = MISSING
    """Id of the subject. Absent after a redaction of the tenant."""
    request_id: ShortText
    """Id of the request, as in the log."""
    before_digest: Digest | MISSING = MISSING
    """SHA-256 of the resource before the write. Absent if it did not exist."""
    after_digest: Digest | MISSING = MISSING
    """SHA-256 of the resource after the write. Absent if it no longer exists."""
    state_digest: Digest | MISSING = MISSING
    """SHA-256 of everything stored of the resource after the write, including what no answer shows.

    Absent if it equals `after_digest`, if the resource is gone, and from events of earlier versions."""
    previous_hash: Digest
    """Hash of the preceding event. Zeros for the first event."""
    hash: Digest
    """SHA-256 of the event, including the preceding hash."""


class AuditEventPage(StrictModel):
    """A page of events."""

    items: list[AuditEvent]
    """Events, the newest first."""
    next_page_token: NextPageToken


class AuditFault(StrictModel):
    """A break in a chain."""

    sequence: Integer
    """Number of the first event at fault."""
    code: ShortText
    """Stable name of the fault."""
    detail: ShortText
    """Description of the fault."""


class AuditDeviation(StrictModel):
    """A stored resource that differs from its last event."""

    resource: ShortText
    """Resource: collection and id."""
    code: ShortText
    """Code of the deviation: `CHANGED`, `MISSING`, `NOT_RECORDED`, `CHARGES_CHANGED`, or `UNREADABLE` for a
    table."""


class AuditGap(StrictModel):
    """Part of a verification that is impossible because events of earlier versions lack the data."""

    collection: ShortText
    """Collection of the resources."""
    code: ShortText
    """Stable name of the gap."""
    detail: ShortText
    """Description of the gap."""
    resource_count: Integer
    """Number of resources."""


class AuditVerdict(StrictModel):
    """Result of a verification of the tenant's chain, and of the stored resources that control access."""

    valid: bool
    """True if the whole chain is intact and reaches the expected heads, and no resource was changed outside
    it."""
    events: Integer
    """Number of intact events, from the first."""
    head_hash: Digest
    """Hash of the last intact event. A copy kept elsewhere reveals if the end was cut off together with its
    seal."""
    fault: AuditFault | MISSING = MISSING
    """First fault of the chain. Absent if there is none."""
    changed: Annotated[list[AuditDeviation], Field(max_length=MOST_SHOWN)] | MISSING = MISSING
    """First resources that differ from their records. Absent if there are none."""
    changed_count: Integer | MISSING = MISSING
    """Number of resources that differ."""
    gaps: list[AuditGap] | MISSING = MISSING
    """Parts that cannot be verified because events of earlier versions lack the data. Absent if there are
    none."""


class AuditVerification(BaseModel):
    """Query of a verification."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    expected_head: Annotated[list[ExpectedHead], Field(max_length=MOST_EXPECTED)] = []
    """Exported heads to check against: number of the event and its hash, such as 12:0f.... May be
    repeated."""
