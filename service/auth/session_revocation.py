"""Early end of access: one session of a browser, or everything of a person.

Everything of a person is their sessions, the tokens that the issuer gave them, and the keys that they made or
were handed. A person has several names, and every name that the service knows ends with the given one.

A session carries the generation of its person, which rises with every end, so that no clock decides which
sessions have ended. A token has nothing but the time at which the issuer made it.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from service.audit.service import WriteOutcome
from service.auth import repository
from service.auth.errors import TenantNotFound
from service.auth.records import SESSIONS
from service.auth.service import AccessEnd, revoke_keys_of, set_person_disabled
from service.kit.clock import now
from service.kit.database.engine import Writer
from service.kit.security.identity import normalize_person
from service.kit.security.keyring import Keyring
from service.kit.security.principals import Principal, PrincipalKind

SESSION_SECONDS: Final = 3600
_DISABLED_UNTIL: Final = datetime(9999, 12, 31, tzinfo=UTC)
_KEPT_UNTIL: Final = _DISABLED_UNTIL
"""The end of a person is kept for good: a generation that began anew would revive sessions."""
_ID_CHARACTERS: Final = 32
_TOKEN: Final = f"{PrincipalKind.TOKEN}:"


class SessionRevocations:
    """Ends sessions, and tells which have ended; ``get_end`` looks up an id of a tenant.

    Only this service can compute the id of a person, so that the audit, which keeps it for ever, names
    nobody.
    """

    def __init__(self, keyring: Keyring, get_end: Callable[[str, str], AccessEnd | None]) -> None:
        self._key = keyring.derive_key("people of sessions")
        self._get_end = get_end

    def compute_person_id(self, tenant_id: str, subject_id: str) -> str:
        """Returns the id of everything that a subject of the issuer acts by."""
        return self._compute_id(f"{tenant_id} {subject_id}")

    def has_ended(self, subject: Principal, session_id: str, generations: Sequence[int]) -> bool:
        """Returns true if a session was ended, by itself or with everything of its person."""
        if self._get_end(subject.tenant_id, session_id) is not None:
            return True
        present = self.list_generations(subject)
        # A session that began under a version without generations has none.
        return present != (list(generations) or [0] * len(present))

    def list_generations(self, subject: Principal) -> list[int]:
        """Returns the present generation of each name of a person."""
        return [0 if end is None else end.generation for end in self._list_ends(subject)]

    def is_disabled(self, subject: Principal) -> bool:
        """Returns true if a person is disabled."""
        return any(end is not None and end.ended_at == _DISABLED_UNTIL for end in self._list_ends(subject))

    def has_ended_token(self, subject: Principal, issued_at: datetime) -> bool:
        """Returns true if everything of a person was ended when a token was issued, or later."""
        return any(end is not None and issued_at <= end.ended_at for end in self._list_ends(subject))

    def _list_ends(self, subject: Principal) -> list[AccessEnd | None]:
        people = [subject.person] if subject.person else []
        ids = self._list_ended_ids(subject.tenant_id, [subject.id], people)
        return [self._get_end(subject.tenant_id, each) for each in ids]

    def end_session(self, session: Writer, tenant_id: str, session_id: str) -> WriteOutcome:
        """Ends one session, whoever holds copies of its cookie."""
        ended_at = _lock_and_read_time(session, tenant_id)
        expires_at = ended_at + timedelta(seconds=SESSION_SECONDS)
        return _store_end(session, tenant_id, session_id, ended_at=ended_at, expires_at=expires_at)

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
            _end_name(session, tenant_id, each, disabled=disabled)
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


def _end_name(
    session: Writer, tenant_id: str, ended_id: str, *, disabled: bool | None = None
) -> WriteOutcome:
    """Ends everything of a person under one name."""
    time = _lock_and_read_time(session, tenant_id)
    known = repository.get_ended_session(session, tenant_id, ended_id)
    was_disabled = known is not None and known.ended_at == _DISABLED_UNTIL
    stays_disabled = disabled or (disabled is None and was_disabled)
    return _store_end(
        session,
        tenant_id,
        ended_id,
        generation=1 if known is None else (known.generation or 1) + 1,
        ended_at=_DISABLED_UNTIL if stays_disabled else time,
        expires_at=_KEPT_UNTIL,
    )


def _lock_and_read_time(session: Writer, tenant_id: str) -> datetime:
    # Taking the lock raises the tenant's revision, by which every process sees the end within a second.
    if repository.lock_tenant(session, tenant_id) is None:
        raise TenantNotFound
    return now()


def _store_end(session: Writer, tenant_id: str, ended_id: str, **values: datetime | int) -> WriteOutcome:
    row = repository.store_ended_sessions(session, tenant_id, ended_id, **values)
    ended = {"id": ended_id, "ended_at": row.ended_at}
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
