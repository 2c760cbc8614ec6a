"""Rules of tenants and API keys, and the live keys of a process."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pydantic import MISSING
from sqlalchemy import Select

from service.audit.service import WriteContext, WriteOutcome, Writes, to_audit_columns
from service.auth import repository
from service.auth.errors import (
    KeyNotFound,
    NotRotating,
    ScopeNotHeld,
    SecretMismatch,
    TenantExists,
    TenantNotFound,
)
from service.auth.keys import KeyVerifier
from service.auth.records import (
    IDENTITIES,
    KEYS,
    PAST_KEYS,
    REGISTER,
    TENANTS,
    build_registration,
    is_registering,
)
from service.auth.schemas import ApiKey, ApiKeyRequest, TenantRequest
from service.auth.tables import ApiKeyRow, IdentityRow, TenantRow
from service.kit.clock import now
from service.kit.database.engine import Database, Reader, Writer, insert_new
from service.kit.http.admission import build_unauthorized
from service.kit.http.problems import FieldError, Unprocessable
from service.kit.security.credentials import (
    API_KEY,
    digest_credential,
    generate_id,
    is_well_formed,
    mint_credential,
    parse_id,
)
from service.kit.security.identity import PEOPLE, normalize_person
from service.kit.security.keyring import Keyring
from service.kit.security.principals import (
    DEFAULT_TENANT,
    LOCAL,
    RESERVED_TENANTS,
    SYSTEM_TENANT,
    Principal,
    PrincipalKind,
    build_permission,
    list_ungrantable_scopes,
)

KEYS_KEPT = timedelta(days=400)
"""Time for which a key that has ended can be looked up: a year, and some time to ask about it."""
_DIGESTS = "api key digests"
KeyWrite = Callable[[Writer], WriteOutcome]
_ADMINISTER_TENANTS = build_permission("tenants", "write")
OPENING = WriteContext(LOCAL._replace(id="start"), "create_tenant", "", "start")


def initialize_installation(database: Database, keyring: Keyring, writes: Writes) -> None:
    """Refuses a secret other than this database's, and creates the default tenant of a new database.

    A database that is older than the register of tenants gets one, with its present tenants.
    """
    with database.open_writer() as session:
        if (
            repository.store_fingerprint(session, keyring.compute_fingerprint())
            != keyring.compute_fingerprint()
        ):
            raise SecretMismatch
        if not is_registering(session):
            for state in repository.list_tenant_states(session):
                writes.record_own_change(
                    session, SYSTEM_TENANT, REGISTER, build_registration(state.tenant_id)
                )
        if repository.get_tenant(session, DEFAULT_TENANT) is None:
            body = TenantRequest(id=DEFAULT_TENANT, name="Default")
            writes.record(session, OPENING, create_tenant(session, body))


def key_to_response(row: ApiKeyRow) -> dict[str, Any]:
    """Returns a key as callers see it."""
    return {name: value for name in ApiKey.model_fields if (value := getattr(row, name)) is not None}


def get_key(session: Reader, tenant_id: str, key_id: str) -> dict[str, Any]:
    """Returns a key of a tenant."""
    row = repository.get_key(session, tenant_id, key_id)
    if row is None:
        raise KeyNotFound
    return key_to_response(row)


def get_tenant(session: Reader, tenant_id: str) -> dict[str, Any]:
    """Returns a tenant."""
    row = repository.get_tenant(session, tenant_id)
    if row is None:
        raise TenantNotFound
    return tenant_to_response(row)


def tenant_to_response(row: TenantRow) -> dict[str, Any]:
    """Returns a tenant as callers see it."""
    shown = {"id": row.tenant_id, "name": row.name, "version": row.version, "created_at": row.created_at}
    return shown if row.disabled_at is None else {**shown, "disabled_at": row.disabled_at}


def create_tenant(session: Writer, body: TenantRequest) -> WriteOutcome:
    """Stores a new tenant."""
    if body.id in RESERVED_TENANTS or repository.get_tenant(session, body.id) is not None:
        raise TenantExists("", FieldError("/id", "TAKEN", "a tenant of this id exists"))
    row = TenantRow(tenant_id=body.id, name=body.name, created_at=now(), version=1, keys_revision=0)
    session.add(row)
    session.flush()
    shown = tenant_to_response(row)
    return WriteOutcome(
        tenant_id=body.id,
        resource=f"tenants/{body.id}",
        status=201,
        body=shown,
        headers={"Location": f"/v1/tenants/{body.id}"},
        after=shown,
        state=TENANTS.build_state(session, row),
        also=(build_registration(body.id),),
    )


def set_tenant_disabled(session: Writer, tenant_id: str, *, disabled: bool) -> WriteOutcome:
    """Disables a tenant, so that its credentials are refused, or enables it again."""
    row = _lock_tenant(session, tenant_id)
    before = tenant_to_response(row)
    if disabled != (row.disabled_at is not None):
        row.disabled_at = now() if disabled else None
        row.version += 1
    session.flush()
    after = tenant_to_response(row)
    return WriteOutcome(
        tenant_id=tenant_id,
        resource=f"tenants/{tenant_id}",
        body=after,
        before=before,
        after=after,
        state=TENANTS.build_state(session, row),
    )


def close_tenant(session: Writer, tenant_id: str, *, name: str) -> TenantRow:
    """Disables a tenant and changes its name. Returns the row."""
    row = _lock_tenant(session, tenant_id)
    row.name, row.disabled_at, row.version = name, row.disabled_at or now(), row.version + 1
    session.flush()
    return row


def select_disabled_tenants() -> Select[str]:
    """Returns a query for the ids of disabled tenants, redacted ones too, for use in other features."""
    return repository.select_disabled_tenants()


def expire_keys(session: Writer) -> list[WriteOutcome]:
    """Deletes the keys that ended longer ago than they are kept."""
    return [
        WriteOutcome(
            tenant_id=row.tenant_id,
            resource=KEYS.resource(row),
            also=(
                WriteOutcome(
                    tenant_id=row.tenant_id,
                    resource=PAST_KEYS.resource(past),
                    state=PAST_KEYS.build_state(session, past),
                ),
            ),
        )
        for row, past in repository.delete_dead_keys(session, now() - KEYS_KEPT)
    ]


def _lock_tenant(session: Writer, tenant_id: str) -> TenantRow:
    row = repository.lock_tenant(session, tenant_id) if tenant_id not in RESERVED_TENANTS else None
    if row is None:
        raise TenantNotFound
    return row


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """Rules of API keys, with the key of their digests."""

    digest_key: bytes

    @classmethod
    def from_keyring(cls, keyring: Keyring) -> "ApiKeys":
        """Returns the rules under a service's secret."""
        return cls(keyring.derive_key(_DIGESTS))

    def create(self, session: Writer, creator: Principal, body: ApiKeyRequest) -> WriteOutcome:
        """Stores a new key with no more rights, and no longer life, than its creator's credentials."""
        tenant_id = creator.tenant_id if body.tenant_id is MISSING else body.tenant_id
        if tenant_id != creator.tenant_id and not creator.has_permission(_ADMINISTER_TENANTS):
            detail = "a key for another tenant needs tenants:write"
            raise ScopeNotHeld("", FieldError("/tenant_id", "SCOPE_NOT_HELD", detail))
        if not body.scopes:
            field = FieldError("/scopes", "EMPTY", "a key without scopes opens nothing")
            raise Unprocessable("The key would open nothing", field)
        for position, scope in enumerate(body.scopes):
            check_covers(creator, [scope], f"/scopes/{position}")
        created_at = now()
        # A revocation of the creator locks its tenant too, so that no key is made at the same time.
        repository.lock_tenant(session, creator.tenant_id)
        parent = _find_active_parent(session, creator, created_at)
        expires_at = _compute_expiry(body, parent, created_at)
        if repository.lock_tenant(session, tenant_id) is None:
            detail = "there is no tenant of this id"
            field = FieldError("/tenant_id", "UNKNOWN_REFERENCE", detail)
            raise Unprocessable("A member refers to nothing", field)
        key_id = generate_id()
        secret = mint_credential(API_KEY, key_id)
        row = ApiKeyRow(
            tenant_id=tenant_id,
            id=key_id,
            name=body.name,
            scopes=sorted(set(body.scopes)),
            digest=digest_credential(secret, self.digest_key),
            created_at=created_at,
            created_by=creator.name,
            lineage=_order_lineage(session, creator, parent),
            handed_to=[],
            expires_at=expires_at,
            version=1,
        )
        session.add(row)
        session.flush()
        location = {"Location": f"/v1/api-keys/{key_id}"}
        return _build_key_change(session, row, None, status=201, headers=location, secret=secret)

    def rotate(self, session: Writer, caller: Principal, key_id: str, overlap: timedelta) -> WriteOutcome:
        """Issues the next secret of a key. The previous one works for ``overlap``.

        The caller can act by the key from then on, so they must hold all of its rights, and count as one with
        it. A second rotation inside the overlap replaces the next secret and leaves the first alone, so that
        a lost answer costs nothing.
        """
        row = _lock_key(session, caller.tenant_id, key_id)
        check_covers(caller, row.scopes)
        before = key_to_response(row)
        time = now()
        if row.next_digest is not None and row.rotation_ends_at is not None and time >= row.rotation_ends_at:
            row.digest = row.next_digest
        secret = mint_credential(API_KEY, key_id)
        row.next_digest = digest_credential(secret, self.digest_key)
        # Subjects that could act by the key stay in its lineage: what they did by it is theirs.
        row.handed_to = sorted(
            {*row.handed_to, *resolve_lineage(session, caller)} - {_build_key_name(key_id), *row.lineage}
        )
        row.rotation_ends_at = time + overlap
        return _store_key_change(session, row, before, secret=secret)


def check_covers(caller: Principal, scopes: Iterable[str], pointer: str = "") -> None:
    """Refuses to grant, widen or change credentials with rights that the caller does not hold.

    This is the one rule of all credentials: keys and their rotation, enrolment tokens, webhooks. ``pointer``
    names the member that requests the scopes.
    """
    lacking = list_ungrantable_scopes(caller.scopes, sorted(set(scopes)))
    if lacking:
        detail = f"this needs {', '.join(lacking)}, which the caller does not hold"
        raise ScopeNotHeld("", FieldError(pointer, "SCOPE_NOT_HELD", detail))


def resolve_lineage(session: Reader | Writer, subject: Principal) -> frozenset[str]:
    """Returns the names of all who can act by a subject: itself, and the makers and holders of a key.

    Subjects of the issuer are included under their verified identity too.
    """
    names = {subject.name}
    if subject.kind is PrincipalKind.API_KEY:
        row = repository.get_key(session, subject.tenant_id, subject.id)
        names.update(
            _lineage_of(row) if row else repository.get_past_lineage(session, subject.tenant_id, subject.id)
        )
    if subject.person:
        names.add(f"{PrincipalKind.PERSON}:{subject.person}")
    known = repository.list_people(session, subject.tenant_id, filter(_is_token, names))
    return frozenset(names.union(f"{PrincipalKind.PERSON}:{person}" for person in known))


def _is_token(name: str) -> bool:
    return name.startswith(f"{PrincipalKind.TOKEN}:")


def _build_key_name(key_id: str) -> str:
    return f"{PrincipalKind.API_KEY}:{key_id}"


def _lineage_of(row: ApiKeyRow) -> list[str]:
    return [*row.lineage, *row.handed_to]


def _order_lineage(session: Writer, creator: Principal, parent: ApiKeyRow | None) -> list[str]:
    """Returns the creator, then the subjects that can act by it, the first of all last."""
    above = _lineage_of(parent) if parent else []
    others = sorted(resolve_lineage(session, creator) - {creator.name, *above})
    return list(dict.fromkeys([creator.name, *others, *above]))


def _find_active_parent(session: Writer, creator: Principal, time: datetime) -> ApiKeyRow | None:
    """Returns the live key that the creator acts by, or None if it acts by none."""
    if creator.kind is not PrincipalKind.API_KEY:
        return None
    row = repository.get_key(session, creator.tenant_id, creator.id)
    if row is None or not _is_alive(row, time):
        raise build_unauthorized()
    return row


def _compute_expiry(body: ApiKeyRequest, parent: ApiKeyRow | None, time: datetime) -> datetime | None:
    """Returns the expiry of a new key: as requested, and no later than the key of its creator."""
    latest = parent.expires_at if parent else None
    if body.expires_at is MISSING:
        return latest
    if body.expires_at <= time:
        field = FieldError("/expires_at", "IN_THE_PAST", "must lie in the future")
        raise Unprocessable("The key would never work", field)
    if latest is not None and body.expires_at > latest:
        field = FieldError("/expires_at", "OUTLIVES_MAKER", "must not lie behind the end of the caller's key")
        raise Unprocessable("The key would outlive the key that it is made with", field)
    return body.expires_at


def _is_alive(row: ApiKeyRow, time: datetime) -> bool:
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > time)


def record_identity(session: Writer, subject: Principal) -> WriteOutcome | None:
    """Stores the verified identity of a subject before it writes. Returns None if it is known."""
    if not subject.person or repository.get_identity(
        session, tenant_id=subject.tenant_id, subject=subject.name, person=subject.person
    ):
        return None
    known = {"tenant_id": subject.tenant_id, "subject": subject.name, "person": subject.person}
    # A concurrent request of the same person may store the same row.
    if not insert_new(session, IdentityRow, id=generate_id(), seen_at=now(), **known):
        return None
    row = repository.get_identity(session, **known)
    return None if row is None else _build_identity_change(session, row, None)


def set_person_disabled(
    session: Writer, tenant_id: str, subject_ids: Iterable[str], *, disabled: bool
) -> list[WriteOutcome]:
    """Disables the credentials that subjects of the issuer have handed out, or enables them again."""
    changes = []
    for subject_id in subject_ids:
        subject = f"{PrincipalKind.TOKEN}:{subject_id}"
        if not repository.list_identities(session, tenant_id, subject):
            known = {"tenant_id": tenant_id, "subject": subject, "person": normalize_person(subject_id)}
            insert_new(session, IdentityRow, id=generate_id(), seen_at=now(), **known)
        for row in repository.list_identities(session, tenant_id, subject):
            before = to_audit_columns(row)
            row.disabled_at = (row.disabled_at or now()) if disabled else None
            session.flush()
            changes.append(_build_identity_change(session, row, before))
    return changes


def _build_identity_change(
    session: Writer, row: IdentityRow, before: Mapping[str, Any] | None
) -> WriteOutcome:
    return WriteOutcome(
        tenant_id=row.tenant_id,
        resource=f"identities/{row.id}",
        before=before,
        after=to_audit_columns(row),
        state=IDENTITIES.build_state(session, row),
    )


def is_active(session: Reader | Writer, subject: Principal, time: datetime) -> bool:
    """Returns true if a subject is not disabled, and its key neither revoked nor expired."""
    if subject.kind in PEOPLE:
        person = normalize_person(subject.id)
        return not repository.is_disabled(session, subject.tenant_id, subject.name, person)
    if subject.kind is not PrincipalKind.API_KEY:
        return True
    row = repository.get_key(session, subject.tenant_id, subject.id)
    return row is not None and _is_alive(row, time)


def refresh_subject(session: Reader | Writer, subject: Principal, time: datetime) -> Principal:
    """Returns a subject with its rights at ``time``: those of its key, and none if it is not active."""
    if not is_active(session, subject, time):
        return subject._replace(scopes=frozenset())
    if subject.kind is not PrincipalKind.API_KEY:
        return subject
    row = repository.get_key(session, subject.tenant_id, subject.id)
    return subject._replace(scopes=frozenset(row.scopes if row is not None else ()))


def describe_subject(session: Reader | Writer, tenant_id: str, name: str) -> str:
    """Returns a subject as people call it: a key by its name and its maker, anybody else by the id."""
    kind, _, subject_id = name.partition(":")
    if kind == PrincipalKind.LOCAL:
        return "the local user"
    if kind != PrincipalKind.API_KEY:
        return subject_id
    row = repository.get_key(session, tenant_id, subject_id)
    if row is None:
        return f"API key {subject_id}"
    maker = (row.created_by or "").partition(":")
    own = maker[0] in {PrincipalKind.TOKEN, PrincipalKind.PERSON}
    return f"API key “{row.name}” of {maker[2]}" if own else f"API key “{row.name}”"


def build_named_subject(tenant_id: str, name: str) -> Principal:
    """Returns the subject of a name, without rights."""
    kind, _, subject_id = name.partition(":")
    return Principal(PrincipalKind(kind), subject_id, tenant_id, frozenset())


def end_rotation(session: Writer, caller: Principal, key_id: str) -> WriteOutcome:
    """Ends a rotation. Only the newest secret works from then on."""
    row = _lock_key(session, caller.tenant_id, key_id)
    check_covers(caller, row.scopes)
    if row.next_digest is None:
        raise NotRotating
    before = key_to_response(row)
    row.digest, row.next_digest, row.rotation_ends_at = row.next_digest, None, None
    return _store_key_change(session, row, before)


def revoke_key(session: Writer, caller: Principal, key_id: str) -> WriteOutcome:
    """Revokes a key, and every key that was made or rotated by it, directly or indirectly.

    If one of those belongs to another tenant, the caller must be able to create a key there.
    """
    row = _lock_key(session, caller.tenant_id, key_id)
    others = revoke_keys_of(session, {_build_key_name(key_id)})
    if any(each.tenant_id != caller.tenant_id for each in others):
        check_covers(caller, [_ADMINISTER_TENANTS.scope])
    return replace(_mark_revoked(session, row), status=204, also=tuple(others))


def revoke_keys_of(session: Writer, names: Iterable[str]) -> list[WriteOutcome]:
    """Revokes every key by which one of some subjects can act."""
    return [_mark_revoked(session, row) for row in repository.lock_keys_of(session, names)]


def _mark_revoked(session: Writer, row: ApiKeyRow) -> WriteOutcome:
    before = key_to_response(row)
    row.revoked_at = now()
    row.version += 1
    session.flush()
    resource = f"api-keys/{row.id}"
    return WriteOutcome(
        tenant_id=row.tenant_id,
        resource=resource,
        before=before,
        after=key_to_response(row),
        state=KEYS.build_state(session, row),
    )


def _lock_key(session: Writer, tenant_id: str, key_id: str) -> ApiKeyRow:
    _lock_tenant(session, tenant_id)
    row = repository.get_key(session, tenant_id, key_id)
    if row is None or row.revoked_at is not None:
        raise KeyNotFound
    return row


def _store_key_change(
    session: Writer, row: ApiKeyRow, before: Mapping[str, Any], *, secret: str = ""
) -> WriteOutcome:
    row.version += 1
    session.flush()
    return _build_key_change(session, row, before, secret=secret)


def _build_key_change(
    session: Writer,
    row: ApiKeyRow,
    before: Mapping[str, Any] | None,
    *,
    secret: str = "",
    **answer: Any,  # noqa: ANN401
) -> WriteOutcome:
    after = key_to_response(row)
    return WriteOutcome(
        tenant_id=row.tenant_id,
        resource=f"api-keys/{row.id}",
        body={"key": after} if secret else after,
        once={"secret": secret} if secret else {},
        before=before,
        after=after,
        state=KEYS.build_state(session, row),
        **answer,
    )


class AccessEnd(NamedTuple):
    """The early end of a session, or of everything of a person."""

    ended_at: datetime
    generation: int
    """Number of times that everything of the person was ended; 1 for a session."""


class LiveKeys:
    """The live keys and ended sessions of every tenant, in the memory of one process."""

    def __init__(self, database: Database, keys: ApiKeys) -> None:
        self._database = database
        self._digest_key = keys.digest_key
        self._revisions: dict[str, int] = {}
        self._by_tenant: dict[str, dict[str, KeyVerifier]] = {}
        self._verifiers: Mapping[str, KeyVerifier] = {}
        self._ended: dict[str, dict[str, AccessEnd]] = {}
        self._used: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def check(self, credential: str) -> Principal:
        """Returns the subject of a key."""
        time = now()
        verifier = self._verifiers.get(parse_id(credential) or "")
        subject = verifier.check(credential, self._digest_key, time) if verifier else None
        if subject is None:
            raise (
                build_unauthorized()
                if is_well_formed(credential)
                else build_unauthorized("The key is not whole: a part was mistyped")
            )
        self._used[subject.id] = time
        return subject

    async def authenticate(self, credential: str) -> Principal:
        """Returns the subject of a credential, which must be a key."""
        return self.check(credential)

    def __len__(self) -> int:
        """Returns the number of live keys."""
        return len(self._verifiers)

    def has_tenant(self, tenant_id: str) -> bool:
        """Returns true if a tenant exists and is not disabled."""
        return tenant_id in self._by_tenant

    def list_tenant_ids(self) -> list[str]:
        """Returns the tenants that are not disabled."""
        return sorted(self._by_tenant)

    def get_end(self, tenant_id: str, ended_id: str) -> AccessEnd | None:
        """Returns the early end of a session or a person, if it was ended."""
        return self._ended.get(tenant_id, {}).get(ended_id)

    def refresh(self) -> None:
        """Loads the keys and ended sessions of tenants that have changed."""
        with self._lock, self._database.open_reader() as session:
            states = repository.list_tenant_states(session)
            open_tenants = {s.tenant_id: s.keys_revision for s in states if s.disabled_at is None}
            if open_tenants == self._revisions:
                return
            changed = [name for name in open_tenants if open_tenants[name] != self._revisions.get(name)]
            held = {name: {} if name in changed else self._by_tenant[name] for name in open_tenants}
            ended = {name: {} if name in changed else self._ended[name] for name in open_tenants}
            for row in repository.list_live_keys(session, changed):
                held[row.tenant_id][row.id] = _build_verifier(row)
            for one in repository.list_ended_sessions(session, changed):
                ended[one.tenant_id][one.id] = AccessEnd(one.ended_at, one.generation or 1)
            self._by_tenant, self._ended = held, ended
            self._verifiers = {key_id: one for keys in held.values() for key_id, one in keys.items()}
            self._revisions = open_tenants

    def record_key_use(self) -> None:
        """Stores which keys were used since the last call."""
        used, self._used = self._used, {}
        if used:
            with self._database.open_writer() as session:
                repository.record_key_use(session, used)


def _build_verifier(row: ApiKeyRow) -> KeyVerifier:
    subject = Principal(PrincipalKind.API_KEY, row.id, row.tenant_id, frozenset(row.scopes))
    return KeyVerifier(subject, row.digest, row.next_digest, row.rotation_ends_at, row.expires_at)
