"""Queries of tenants, keys and ended sessions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Select, Text, cast, delete, or_, select, update
from sqlalchemy.orm import Session

from service.auth.tables import (
    ApiKeyRow,
    EndedSessionRow,
    IdentityRow,
    InstallationRow,
    PastKeyRow,
    TenantRow,
)
from service.kit.database.engine import Reader, Writer, insert_new
from service.kit.security.principals import SHIPPED_TENANT


class TenantState(NamedTuple):
    """State of a tenant that each process polls."""

    tenant_id: str
    keys_revision: int
    disabled_at: datetime | None


def list_tenant_states(session: Session) -> list[TenantState]:
    """Returns the state of every tenant."""
    columns = (TenantRow.tenant_id, TenantRow.keys_revision, TenantRow.disabled_at)
    return [TenantState(*row) for row in session.execute(select(*columns))]


def select_disabled_tenants() -> Select[str]:
    """Returns a query for the ids of disabled tenants, for use in other statements."""
    return select(TenantRow.tenant_id).where(TenantRow.disabled_at.is_not(None))


def list_live_keys(session: Reader, tenant_ids: Iterable[str]) -> list[ApiKeyRow]:
    """Returns the keys of tenants that are not revoked."""
    wanted = ApiKeyRow.tenant_id.in_(list(tenant_ids))
    return list(session.scalars(select(ApiKeyRow).where(wanted, ApiKeyRow.revoked_at.is_(None))))


def has_keys(session: Session) -> bool:
    """Returns true if there is a key that is not revoked."""
    return session.scalar(select(ApiKeyRow.id).where(ApiKeyRow.revoked_at.is_(None)).limit(1)) is not None


def get_key(session: Session, tenant_id: str, key_id: str) -> ApiKeyRow | None:
    """Returns a key of a tenant."""
    statement = select(ApiKeyRow).where(ApiKeyRow.tenant_id == tenant_id, ApiKeyRow.id == key_id)
    return session.scalars(statement).one_or_none()


def get_live_key(session: Session, key_id: str) -> ApiKeyRow | None:
    """Returns a key of any tenant, unless it is revoked."""
    statement = select(ApiKeyRow).where(ApiKeyRow.id == key_id, ApiKeyRow.revoked_at.is_(None))
    return session.scalars(statement).one_or_none()


def list_keys_after(session: Reader, tenant_id: str, after: str, limit: int) -> list[ApiKeyRow]:
    """Returns keys of a tenant after the id ``after``, in order of id."""
    statement = select(ApiKeyRow).where(ApiKeyRow.tenant_id == tenant_id, ApiKeyRow.id > after)
    return list(session.scalars(statement.order_by(ApiKeyRow.id).limit(limit)))


def get_tenant(session: Session, tenant_id: str) -> TenantRow | None:
    """Returns a tenant. The tenant of the shipped rows is not visible."""
    return session.get(TenantRow, tenant_id) if tenant_id != SHIPPED_TENANT else None


def list_tenants_after(session: Reader, after: str, limit: int) -> list[TenantRow]:
    """Returns tenants after the id ``after``, in order of id."""
    statement = select(TenantRow).where(TenantRow.tenant_id > after, TenantRow.tenant_id != SHIPPED_TENANT)
    return list(session.scalars(statement.order_by(TenantRow.tenant_id).limit(limit)))


def lock_tenant(session: Writer, tenant_id: str) -> TenantRow | None:
    """Returns a tenant, locked until the transaction ends, and takes the next revision of its keys."""
    statement = select(TenantRow).where(TenantRow.tenant_id == tenant_id).with_for_update()
    row = session.scalars(statement).one_or_none()
    if row is not None:
        row.keys_revision += 1
    return row


def delete_dead_keys(session: Writer, before: datetime) -> list[tuple[ApiKeyRow, PastKeyRow]]:
    """Deletes the keys that were revoked or expired before a time. Returns each with its stored lineage."""
    ended = or_(ApiKeyRow.revoked_at < before, ApiKeyRow.expires_at < before)
    rows = session.scalars(delete(ApiKeyRow).where(ended).returning(ApiKeyRow)).all()
    past = [
        PastKeyRow(tenant_id=row.tenant_id, id=row.id, lineage=[*row.lineage, *row.handed_to]) for row in rows
    ]
    session.add_all(past)
    session.flush()
    return list(zip(rows, past, strict=True))


def get_past_lineage(session: Session, tenant_id: str, key_id: str) -> list[str]:
    """Returns the subjects that could act by a key that was removed after it had ended."""
    row = session.get(PastKeyRow, (tenant_id, key_id))
    return [] if row is None else row.lineage


def lock_keys_of(session: Writer, names: Iterable[str]) -> list[ApiKeyRow]:
    """Returns the live keys, of any tenant, by which one of some subjects can act. Locks their tenants."""
    wanted = frozenset(names)
    lists = (ApiKeyRow.lineage, ApiKeyRow.handed_to)
    # As text, a list of names contains each as JSON writes it. The exact match is made below.
    written = [json.dumps(name, ensure_ascii=is_ascii) for name in wanted for is_ascii in (True, False)]
    mentions = or_(*(cast(one, Text).contains(text, autoescape=True) for one in lists for text in written))
    found = select(ApiKeyRow).where(ApiKeyRow.revoked_at.is_(None), mentions)
    for tenant_id in sorted({row.tenant_id for row in session.scalars(found)}):
        lock_tenant(session, tenant_id)
    fresh = found.order_by(ApiKeyRow.tenant_id, ApiKeyRow.id).execution_options(populate_existing=True)
    return [row for row in session.scalars(fresh) if not wanted.isdisjoint([*row.lineage, *row.handed_to])]


def get_identity(session: Session, *, tenant_id: str, subject: str, person: str) -> IdentityRow | None:
    """Returns the row with one verified identity of a subject."""
    own = (IdentityRow.tenant_id == tenant_id, IdentityRow.subject == subject, IdentityRow.person == person)
    return session.scalars(select(IdentityRow).where(*own)).one_or_none()


def list_identities(session: Session, tenant_id: str, subject: str) -> list[IdentityRow]:
    """Returns every verified identity of a subject of the issuer."""
    wanted = (IdentityRow.tenant_id == tenant_id, IdentityRow.subject == subject)
    return list(session.scalars(select(IdentityRow).where(*wanted).order_by(IdentityRow.id)))


def is_disabled(session: Session, tenant_id: str, subject: str, person: str) -> bool:
    """Returns true if a subject of the issuer, or a person, is disabled."""
    named = or_(IdentityRow.subject == subject, IdentityRow.person == person)
    wanted = (IdentityRow.tenant_id == tenant_id, IdentityRow.disabled_at.is_not(None), named)
    return session.scalar(select(IdentityRow.id).where(*wanted).limit(1)) is not None


def list_people(session: Session, tenant_id: str, subjects: Iterable[str]) -> list[str]:
    """Returns the verified identities of some subjects of the issuer."""
    wanted = (IdentityRow.tenant_id == tenant_id, IdentityRow.subject.in_(sorted(subjects)))
    return list(session.scalars(select(IdentityRow.person).where(*wanted)))


def list_subjects(session: Session, tenant_id: str, people: Iterable[str]) -> list[str]:
    """Returns the subjects of the issuer that were verified to be one of some people."""
    wanted = (IdentityRow.tenant_id == tenant_id, IdentityRow.person.in_(sorted(people)))
    return list(session.scalars(select(IdentityRow.subject).where(*wanted)))


def list_ended_sessions(session: Reader, tenant_ids: Iterable[str]) -> list[EndedSessionRow]:
    """Returns the ended sessions of some tenants."""
    wanted = EndedSessionRow.tenant_id.in_(list(tenant_ids))
    return list(session.scalars(select(EndedSessionRow).where(wanted)))


def get_ended_session(session: Writer, tenant_id: str, ended_id: str) -> EndedSessionRow | None:
    """Returns the record of an ended session or person."""
    return session.get(EndedSessionRow, (tenant_id, ended_id))


def store_ended_sessions(
    session: Writer, tenant_id: str, ended_id: str, **values: datetime | int | None
) -> EndedSessionRow:
    """Stores that sessions have ended, or updates an earlier record. The tenant is locked."""
    row = get_ended_session(session, tenant_id, ended_id)
    if row is None:
        row = EndedSessionRow(tenant_id=tenant_id, id=ended_id)
        session.add(row)
    for name, value in values.items():
        setattr(row, name, value)
    session.flush()
    return row


def delete_ended_sessions(session: Writer, before: datetime) -> Sequence[EndedSessionRow]:
    """Deletes records of sessions that would have ended by themselves before a time."""
    old = delete(EndedSessionRow).where(EndedSessionRow.expires_at < before)
    return session.scalars(old.returning(EndedSessionRow)).all()


def record_key_use(session: Writer, used: Mapping[str, datetime]) -> None:
    """Stores the time at which keys were last used."""
    for key_id, time in sorted(used.items()):
        earlier = or_(ApiKeyRow.last_used_at.is_(None), ApiKeyRow.last_used_at < time)
        session.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id, earlier).values(last_used_at=time))


def store_fingerprint(session: Writer, fingerprint: str) -> str:
    """Returns the fingerprint of this database; stores ``fingerprint`` if it has none."""
    insert_new(session, InstallationRow, tenant_id=SHIPPED_TENANT, fingerprint=fingerprint)
    return session.scalars(select(InstallationRow.fingerprint)).one()
