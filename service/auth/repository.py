"""Every query of tenants, keys and ended sessions."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Select, delete, or_, select, update
from sqlalchemy.orm import Session

from service.auth.tables import ApiKeyRow, EndedSessionRow, InstallationRow, TenantRow
from service.kit.database import Reader, Writer, insert_new
from service.kit.subjects import SHIPPED_TENANT


class TenantState(NamedTuple):
    """What a process polls of a tenant."""

    tenant_id: str
    keys_revision: int
    disabled_at: datetime | None


def tenant_states(session: Session) -> list[TenantState]:
    """The state of every tenant."""
    columns = (TenantRow.tenant_id, TenantRow.keys_revision, TenantRow.disabled_at)
    return [TenantState(*row) for row in session.execute(select(*columns))]


def disabled_tenants() -> Select[str]:
    """Ids of the tenants that are disabled, for statements of others."""
    return select(TenantRow.tenant_id).where(TenantRow.disabled_at.is_not(None))


def live_keys(session: Reader, tenant_ids: Iterable[str]) -> list[ApiKeyRow]:
    """The keys of tenants that are not revoked."""
    wanted = ApiKeyRow.tenant_id.in_(list(tenant_ids))
    return list(session.scalars(select(ApiKeyRow).where(wanted, ApiKeyRow.revoked_at.is_(None))))


def has_keys(session: Session) -> bool:
    """Whether there is a key that is not revoked."""
    return session.scalar(select(ApiKeyRow.id).where(ApiKeyRow.revoked_at.is_(None)).limit(1)) is not None


def key(session: Session, tenant_id: str, key_id: str) -> ApiKeyRow | None:
    """A key of a tenant."""
    statement = select(ApiKeyRow).where(ApiKeyRow.tenant_id == tenant_id, ApiKeyRow.id == key_id)
    return session.scalars(statement).one_or_none()


def keys_after(session: Reader, tenant_id: str, after: str, limit: int) -> list[ApiKeyRow]:
    """Keys of a tenant behind the id ``after``, in order of id."""
    statement = select(ApiKeyRow).where(ApiKeyRow.tenant_id == tenant_id, ApiKeyRow.id > after)
    return list(session.scalars(statement.order_by(ApiKeyRow.id).limit(limit)))


def tenant(session: Session, tenant_id: str) -> TenantRow | None:
    """A tenant; that of the shipped rows is nobody's."""
    return session.get(TenantRow, tenant_id) if tenant_id != SHIPPED_TENANT else None


def tenants_after(session: Reader, after: str, limit: int) -> list[TenantRow]:
    """Tenants behind the id ``after``, in order of id."""
    statement = select(TenantRow).where(TenantRow.tenant_id > after, TenantRow.tenant_id != SHIPPED_TENANT)
    return list(session.scalars(statement.order_by(TenantRow.tenant_id).limit(limit)))


def locked_tenant(session: Writer, tenant_id: str) -> TenantRow | None:
    """A tenant, locked until the transaction ends, with the next revision of its keys taken."""
    statement = select(TenantRow).where(TenantRow.tenant_id == tenant_id).with_for_update()
    row = session.scalars(statement).one_or_none()
    if row is not None:
        row.keys_revision += 1
    return row


def delete_dead_keys(session: Writer, before: datetime) -> int:
    """Delete the keys that ended before a time, revoked or expired; their number."""
    ended = or_(ApiKeyRow.revoked_at < before, ApiKeyRow.expires_at < before)
    return len(session.scalars(delete(ApiKeyRow).where(ended).returning(ApiKeyRow.id)).all())


def ended_sessions(session: Reader, tenant_ids: Iterable[str], after: datetime) -> list[EndedSessionRow]:
    """Of some tenants, what was ended of sessions that would live on after a time."""
    wanted = EndedSessionRow.tenant_id.in_(list(tenant_ids))
    return list(session.scalars(select(EndedSessionRow).where(wanted, EndedSessionRow.expires_at > after)))


def end_sessions(session: Writer, tenant_id: str, ended_id: str, ended_at: datetime, until: datetime) -> None:
    """Keep until a time that sessions have ended; later than was kept before. The tenant is locked."""
    row = session.get(EndedSessionRow, (tenant_id, ended_id))
    if row is None:
        row = EndedSessionRow(tenant_id=tenant_id, id=ended_id)
        session.add(row)
    row.ended_at, row.expires_at = ended_at, until
    session.flush()


def delete_ended_sessions(session: Writer, before: datetime) -> int:
    """Delete what is about sessions that ended by themselves before a time; the number of rows."""
    old = delete(EndedSessionRow).where(EndedSessionRow.expires_at < before)
    return len(session.scalars(old.returning(EndedSessionRow.id)).all())


def note_use(session: Writer, used: Mapping[str, datetime]) -> None:
    """Remember when keys were last used."""
    for key_id, time in sorted(used.items()):
        earlier = or_(ApiKeyRow.last_used_at.is_(None), ApiKeyRow.last_used_at < time)
        session.execute(update(ApiKeyRow).where(ApiKeyRow.id == key_id, earlier).values(last_used_at=time))


def settled_fingerprint(session: Writer, fingerprint: str) -> str:
    """The fingerprint that this database keeps; ``fingerprint`` where it kept none."""
    insert_new(session, InstallationRow, tenant_id=SHIPPED_TENANT, fingerprint=fingerprint)
    return session.scalars(select(InstallationRow.fingerprint)).one()
