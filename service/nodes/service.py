"""The rules of nodes, and those of leases for the rooms that use them."""

import json
from datetime import timedelta

from sqlalchemy.orm import Session

from service.kit.database import Writer
from service.kit.subjects import Subject, SubjectKind
from service.nodes import repository
from service.nodes.errors import NotANode
from service.nodes.leases import (
    AtReceipt,
    Standing,
    State,
    ask,
    cancel,
    complete,
    lease_at_receipt,
    settle_abandoned,
    standing,
    stands,
)
from service.protocol.nodes import Inventory

__all__ = [
    "AtReceipt",
    "Standing",
    "State",
    "ask",
    "cancel",
    "complete",
    "lease_at_receipt",
    "settle_abandoned",
    "standing",
    "stands",
]

TOKENS_KEPT = timedelta(days=30)
"""How long an enrolment token can be looked up after it has expired."""


def expire_tokens(session: Writer) -> int:
    """Delete the enrolment tokens that expired long ago; their number."""
    return repository.delete_expired_tokens(session, repository.time(session) - TOKENS_KEPT)


def inventory(session: Session, tenant_id: str, node_id: str, content_sha256: str) -> Inventory | None:
    """What a node was made of when it named the digest; None if it never said."""
    row = repository.inventory(session, tenant_id, node_id, content_sha256)
    return None if row is None else Inventory.model_validate_json(json.dumps(row.inventory))


def require_node(subject: Subject) -> Subject:
    """The subject, which must be a node."""
    if subject.kind is not SubjectKind.NODE:
        raise NotANode
    return subject
