"""Early end of access: one session of a browser, or everything of a person.

Everything of a person is their sessions, the tokens that the issuer gave them, and the keys that they made or
were handed. A person has several names, and every name that the service knows ends with the given one.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from service.audit.service import WriteOutcome
from service.auth import repository
from service.auth.errors import TenantNotFound
from service.auth.records import SESSIONS
from service.auth.service import revoke_keys_of, set_person_disabled
from service.kit.clock import now
from service.kit.database.engine import Writer
from service.kit.security.identity import normalize_person
from service.kit.security.keyring import Keyring
from service.kit.security.principals import Principal, PrincipalKind

SESSION_SECONDS: Final = 3600
PERSON_ENDED: Final = timedelta(days=400)
"""Time for which the end of a person is kept: longer than any of their tokens may live."""
_DISABLED_UNTIL: Final = datetime(9999, 12, 31, tzinfo=UTC)
_ID_CHARACTERS: Final = 32
_TOKEN: Final = f"{PrincipalKind.TOKEN}:"


class SessionRevocations:
    """Ends sessions, and tells which have ended; ``ended_at`` looks up an id of a tenant.

    Only this service can compute the id of a person, so that the audit, which keeps it for ever, names
    nobody.
    """

    def __init__(self, keyring: Keyring, ended_at: Callable[[str, str], datetime | None]) -> None:
        self._key = keyring.derive_key("people of sessions")
        self._ended_at = ended_at

    def compute_person_id(self, tenant_id: str, subject_id: str) -> str:
        """Returns the id of everything that a subject of the issuer acts by."""
        return self._compute_id(f"{tenant_id} {subject_id}")

    def has_ended(self, subject: Principal, session_id: str, began_at: datetime) -> bool:
        """Returns true if a session was ended, by itself or with everything of its person."""
        if self._ended_at(subject.tenant_id, session_id) is not None:
            return True
        return self.has_ended_person(subject, began_at)

    def has_ended_person(self, subject: Principal, began_at: datetime) -> bool:
        """Returns true if everything that a person began by then was ended at that time or later."""
        ids = self._list_ended_ids(
            subject.tenant_id, [subject.id], [subject.person] if subject.person else []
        )
        ends = (self._ended_at(subject.tenant_id, each) for each in ids)
        return any(ended_at is not None and began_at <= ended_at for ended_at in ends)

    def end_session(self, session: Writer, tenant_id: str, session_id: str) -> WriteOutcome:
        """Ends one session, whoever holds copies of its cookie."""
        return _record_end(session, tenant_id, session_id, timedelta(seconds=SESSION_SECONDS))

    def end_sessions(self, session: Writer, tenant_id: str, subject_id: str) -> WriteOutcome:
        """Ends every session and token of a person that has begun by now. Their keys still work."""
        return self._end_all_names(session, tenant_id, subject_id)[0]

    def end_person(
        self, session: Writer, tenant_id: str, subject_id: str, *, disabled: bool | None = None
    ) -> WriteOutcome:
        """Ends every session, token and key of a person that has begun by now.

        A ``disabled`` person cannot begin a new one until enabled again. None leaves the state as it is.
        """
        change, names = self._end_all_names(session, tenant_id, subject_id, disabled=disabled)
        keys = revoke_keys_of(session, names)
        key_ids = [key.resource.partition("/")[2] for key in keys]
        moved = []
        if disabled is not None:
            subject_ids = [name.removeprefix(_TOKEN) for name in names if name.startswith(_TOKEN)]
            moved = set_person_disabled(session, tenant_id, subject_ids, disabled=disabled)
        body = {**(change.body or {}), "revoked_key_ids": key_ids}
        return replace(change, body=body, also=(*change.also, *keys, *moved))

    def _end_all_names(
        self, session: Writer, tenant_id: str, subject_id: str, *, disabled: bool | None = None
    ) -> tuple[WriteOutcome, list[str]]:
        """Ends access under each name of a person. Returns the change of the first name, and the names."""
        subjects, people = _list_person_names(session, tenant_id, subject_id)
        first, *others = [
            _record_end(session, tenant_id, each, PERSON_ENDED, disabled=disabled)
            for each in self._list_ended_ids(tenant_id, subjects, people)
        ]
        names = [_TOKEN + each for each in subjects]
        names += [f"{PrincipalKind.PERSON}:{each}" for each in people]
        return replace(first, also=tuple(others)), names

    def _list_ended_ids(
        self, tenant_id: str, subjects: Iterable[str], people: Iterable[str]
    ) -> Iterator[str]:
        yield from (self.compute_person_id(tenant_id, each) for each in subjects)
        yield from (self._compute_id(f"{tenant_id}\0{each}") for each in people)

    def _compute_id(self, name: str) -> str:
        return f"of-{hmac.digest(self._key, name.encode(), 'sha256').hex()[:_ID_CHARACTERS]}"


def _list_person_names(session: Writer, tenant_id: str, subject_id: str) -> tuple[list[str], list[str]]:
    """Returns the subjects of the issuer and the identities of a person, the given one first."""
    people = {
        normalize_person(subject_id),
        *repository.list_people(session, tenant_id, [_TOKEN + subject_id]),
    }
    known = repository.list_subjects(session, tenant_id, people)
    others = {name.removeprefix(_TOKEN) for name in known} - {subject_id}
    return [subject_id, *sorted(others)], sorted(people)


def _record_end(
    session: Writer, tenant_id: str, ended_id: str, kept: timedelta, *, disabled: bool | None = None
) -> WriteOutcome:
    # Taking the lock raises the tenant's revision, by which every process sees the end within a second.
    if repository.lock_tenant(session, tenant_id) is None:
        raise TenantNotFound
    time = now()
    known = repository.get_ended_session(session, tenant_id, ended_id)
    was_disabled = known is not None and known.ended_at == _DISABLED_UNTIL
    until = _DISABLED_UNTIL if disabled or (disabled is None and was_disabled) else time
    ends = _DISABLED_UNTIL if until == _DISABLED_UNTIL else time + kept
    row = repository.store_ended_sessions(session, tenant_id, ended_id, until, ends)
    ended = {"id": ended_id, "ended_at": until}
    return WriteOutcome(
        tenant_id=tenant_id,
        resource=f"sessions/{ended_id}",
        body=ended,
        after=ended,
        state=SESSIONS.build_state(session, row),
    )


def delete_expired(session: Writer) -> list[WriteOutcome]:
    """Deletes records of sessions that have ended by themselves since."""
    return [
        WriteOutcome(tenant_id=row.tenant_id, resource=SESSIONS.resource(row))
        for row in repository.delete_ended_sessions(session, now())
    ]
