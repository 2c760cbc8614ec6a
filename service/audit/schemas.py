"""Shapes of the audit."""

from typing import Annotated

from pydantic import MISSING, AwareDatetime, Field

from service.kit.pages import NextPageToken
from service.questions.base import Input, Integer

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", max_length=64)]
Word = Annotated[str, Field(max_length=300)]


class AuditEvent(Input):
    """One stored write."""

    sequence: Integer
    """Number of the event in the chain of its tenant, from 1 without a gap."""
    occurred_at: AwareDatetime
    """When the write was made."""
    operation: Word
    """Id of the operation."""
    resource: Word
    """What was written: collection and id."""
    subject_kind: Word
    """How the subject proved who it is."""
    subject_id: Word | MISSING = MISSING
    """Who wrote; absent after a redaction of the tenant."""
    request_id: Word
    """Id of the request, as in the log."""
    before_digest: Digest | MISSING = MISSING
    """SHA-256 of the resource before the write; absent where there was none."""
    after_digest: Digest | MISSING = MISSING
    """SHA-256 of the resource after the write; absent where there is none."""
    previous_hash: Digest
    """Hash of the event before; zeros at the beginning."""
    hash: Digest
    """SHA-256 of the event, the hash before included."""


class AuditEventPage(Input):
    """A page of events."""

    items: list[AuditEvent]
    """Events, the newest first."""
    next_page_token: NextPageToken


class AuditFault(Input):
    """Where a chain breaks."""

    sequence: Integer
    """Number of the first event at fault."""
    code: Word
    """Stable name of the fault."""
    detail: Word
    """What does not hold."""


class AuditVerdict(Input):
    """Whether every event of the tenant is there, unchanged and in order."""

    valid: bool
    """Whether the whole chain holds."""
    events: Integer
    """Events that hold, from the first."""
    head_hash: Digest
    """Hash of the last of them; a copy elsewhere shows whether the end was cut off with its seal."""
    fault: AuditFault | MISSING = MISSING
    """The first fault; absent if there is none."""
