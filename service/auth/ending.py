"""Ending sessions of browsers before their time: one of them, or all of a person."""

import hmac
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from service.audit.service import Change
from service.auth import repository
from service.auth.errors import TenantNotFound
from service.kit.clock import now
from service.kit.database import Writer
from service.kit.keyring import Keyring

SESSION_SECONDS: Final = 3600
_ID_CHARACTERS: Final = 32


class Endings:
    """What ends sessions, and what tells which have ended; ``ended_at`` says it of an id of a tenant.

    A person has an id that only this service can tell from others: the audit keeps it for ever, and need not
    name anybody.
    """

    def __init__(self, keyring: Keyring, ended_at: Callable[[str, str], datetime | None]) -> None:
        self._key = keyring.key("people of sessions")
        self._ended_at = ended_at

    def person(self, tenant_id: str, subject_id: str) -> str:
        """The id of all sessions of a person."""
        digest = hmac.digest(self._key, f"{tenant_id} {subject_id}".encode(), "sha256")
        return f"of-{digest.hex()[:_ID_CHARACTERS]}"

    def has_ended(self, tenant_id: str, session_id: str, subject_id: str, began_at: datetime) -> bool:
        """Whether a session was ended, by itself or with all of its person."""
        if self._ended_at(tenant_id, session_id) is not None:
            return True
        ended_at = self._ended_at(tenant_id, self.person(tenant_id, subject_id))
        return ended_at is not None and began_at <= ended_at

    def end(self, session: Writer, tenant_id: str, session_id: str) -> Change:
        """End one session, whoever holds copies of its cookie."""
        return _end(session, tenant_id, session_id)

    def end_all(self, session: Writer, tenant_id: str, subject_id: str) -> Change:
        """End every session of a person that has begun by now."""
        return _end(session, tenant_id, self.person(tenant_id, subject_id))


def _end(session: Writer, tenant_id: str, ended_id: str) -> Change:
    # The revision of the tenant rises with it, by which every process sees it within a second.
    if repository.locked_tenant(session, tenant_id) is None:
        raise TenantNotFound
    time = now()
    repository.end_sessions(session, tenant_id, ended_id, time, time + timedelta(seconds=SESSION_SECONDS))
    ended = {"id": ended_id, "ended_at": time}
    return Change(tenant_id=tenant_id, resource=f"sessions/{ended_id}", body=ended, after=ended)


def expire(session: Writer) -> int:
    """Delete what is about sessions that have ended by themselves since; the number of rows."""
    return repository.delete_ended_sessions(session, now())
