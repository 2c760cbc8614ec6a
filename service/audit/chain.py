"""Audit chain: each event's hash covers the previous one, and the head is sealed."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from datetime import UTC
from typing import NamedTuple

from service.audit.tables import AuditEventRow, AuditHeadRow
from service.kit.http.cancellation import check_cancelled

GENESIS = "0" * 64
"""Previous hash of the first event of a tenant."""

REDACTION = "redact_tenant"
"""Operation that removes subjects from earlier events. Its own event has a subject."""

_COVERED = (
    "tenant_id",
    "sequence",
    "operation",
    "resource",
    "subject_kind",
    "subject_digest",
    "request_id",
    "before_digest",
    "after_digest",
    "previous_hash",
)


class ChainFault(NamedTuple):
    """First event at which a chain is invalid."""

    sequence: int
    code: str
    detail: str


class ChainVerdict(NamedTuple):
    """Verdict on a tenant's chain, with the number of its events and its last hash."""

    tenant_id: str
    events: int
    head_hash: str
    fault: ChainFault | None


def salt_subject(subject_id: str) -> tuple[bytes, str]:
    """Returns a new salt and the digest of a subject with it."""
    salt = secrets.token_bytes(16)
    return salt, compute_subject_digest(salt, subject_id)


def compute_subject_digest(salt: bytes, subject_id: str) -> str:
    """Returns the digest of a subject that the chain keeps permanently."""
    return hashlib.sha256(salt + subject_id.encode()).hexdigest()


def compute_event_hash(event: AuditEventRow) -> str:
    """Returns the hash of an event over its canonical JSON, including the previous hash."""
    time = event.occurred_at.astimezone(UTC).isoformat(timespec="microseconds")
    values = [time, *(getattr(event, name) for name in _COVERED)]
    if event.state_digest is not None:  # events from before the column keep their hash
        values.append(event.state_digest)
    return hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).hexdigest()


def compute_seal(key: bytes, tenant_id: str, sequence: int, last_hash: str) -> str:
    """Returns the seal of a chain's head."""
    return hmac.digest(key, json.dumps([tenant_id, sequence, last_hash]).encode(), "sha256").hex()


def verify_chain(
    tenant_id: str, events: Iterable[AuditEventRow], head: AuditHeadRow | None, key: bytes
) -> ChainVerdict:
    """Verifies a tenant's events in order. Returns the verdict with the first fault."""
    previous, count, redacted, redaction = GENESIS, 0, 0, 0
    for event in events:
        check_cancelled()
        fault = _find_fault(event, count + 1, previous)
        if fault is not None:
            return ChainVerdict(tenant_id, count, previous, fault)
        count, previous = event.sequence, event.hash
        if event.subject_id is None:
            redacted = count
        if event.operation == REDACTION:
            redaction = count
    return ChainVerdict(
        tenant_id,
        count,
        previous,
        _find_end_fault(tenant_id, count, previous, head, key)
        or (
            ChainFault(redacted, "SUBJECT_REMOVED", "no redaction explains the missing subject")
            if redacted and redacted >= redaction
            else None
        ),
    )


def _find_fault(event: AuditEventRow, sequence: int, previous: str) -> ChainFault | None:
    if event.sequence != sequence:
        return ChainFault(sequence, "EVENT_MISSING", f"the next event is number {event.sequence}")
    if event.previous_hash != previous:
        return ChainFault(sequence, "ORDER_BROKEN", "the event does not follow the one before")
    if event.hash != compute_event_hash(event):
        return ChainFault(sequence, "EVENT_CHANGED", "the hash is not that of the event")
    if event.subject_id is not None and (
        event.subject_salt is None
        or compute_subject_digest(event.subject_salt, event.subject_id) != event.subject_digest
    ):
        return ChainFault(sequence, "SUBJECT_CHANGED", "the subject is not the one that acted")
    return None


def _find_end_fault(
    tenant_id: str, sequence: int, last_hash: str, head: AuditHeadRow | None, key: bytes
) -> ChainFault | None:
    if head is None:
        return ChainFault(sequence, "HEAD_MISSING", "the head of the chain is gone")
    if (head.sequence, head.hash) != (sequence, last_hash):
        detail = f"the head names event {head.sequence}, the chain ends otherwise"
        return ChainFault(min(sequence, head.sequence) + 1, "END_CHANGED", detail)
    if not hmac.compare_digest(head.seal, compute_seal(key, tenant_id, sequence, last_hash)):
        return ChainFault(sequence, "SEAL_BROKEN", "the head was not sealed by this service")
    return None
