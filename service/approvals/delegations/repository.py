"""Queries of delegations."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from service.approvals.tables import ApprovalDelegationRow
from service.kit.database.engine import Reader, Writer

_ROW = ApprovalDelegationRow


def lock_own_delegation(
    session: Writer, tenant_id: str, approver: str, delegation_id: str
) -> ApprovalDelegationRow | None:
    """Returns a delegation of an approver, locked until the transaction ends, or None."""
    own = (_ROW.tenant_id == tenant_id, _ROW.id == delegation_id, _ROW.approver == approver)
    return session.scalars(select(_ROW).where(*own).with_for_update()).one_or_none()


def list_active_delegations(
    session: Session, tenant_id: str, delegate: str, time: datetime
) -> Sequence[ApprovalDelegationRow]:
    """Returns delegations to somebody that are valid at a time, the oldest first."""
    holds = (_ROW.starts_at <= time, _ROW.ends_at > time, _ROW.revoked_at.is_(None))
    own = (_ROW.tenant_id == tenant_id, _ROW.delegate == delegate)
    return session.scalars(select(_ROW).where(*own, *holds).order_by(_ROW.created_at, _ROW.id)).all()


def list_page(
    session: Reader, tenant_id: str, after: tuple[datetime, str] | None, limit: int
) -> Sequence[ApprovalDelegationRow]:
    """Returns delegations of a tenant after the creation time and id ``after``, the newest first."""
    statement = select(_ROW).where(_ROW.tenant_id == tenant_id)
    if after is not None:
        created_at, delegation_id = after
        tied = and_(_ROW.created_at == created_at, _ROW.id < delegation_id)
        statement = statement.where(or_(_ROW.created_at < created_at, tied))
    return session.scalars(statement.order_by(_ROW.created_at.desc(), _ROW.id.desc()).limit(limit)).all()


def list_all_delegations(session: Reader, tenant_id: str) -> Iterator[ApprovalDelegationRow]:
    """Yields every delegation of a tenant."""
    yield from session.scalars(select(_ROW).where(_ROW.tenant_id == tenant_id))
