"""The rules of nodes, and those of leases for the rooms that use them."""

from datetime import timedelta

from service.kit.database import Writer
from service.nodes import repository
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
