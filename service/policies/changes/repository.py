"""Queries of pending changes and their settings."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from service.kit.database.engine import Reader, Writer, insert_new
from service.policies.changes.tables import WAITING, ApprovalSettingsRow, PolicyChangeRow
from service.policies.tables import ApprovalPolicyRow

_ROW = PolicyChangeRow


def get_change(session: Session, tenant_id: str, change_id: str) -> PolicyChangeRow | None:
    """Returns a change of a tenant, or None."""
    return session.get(_ROW, (tenant_id, change_id), populate_existing=True)


def lock_change(session: Writer, tenant_id: str, change_id: str) -> PolicyChangeRow | None:
    """Returns a change, locked until the transaction ends, or None.

    The lock follows that of the cost centre.
    """
    return session.get(_ROW, (tenant_id, change_id), with_for_update=True, populate_existing=True)


def find_waiting_change(session: Writer, tenant_id: str, resource: str) -> PolicyChangeRow | None:
    """Returns the pending change of a resource, or None."""
    own = (_ROW.tenant_id == tenant_id, _ROW.resource == resource, _ROW.state == WAITING)
    return session.scalars(select(_ROW).where(*own)).one_or_none()


def list_due_ids(
    session: Session, tenant_id: str, time: datetime, center_id: str | None = None
) -> Sequence[str]:
    """Returns the ids of the due changes of a tenant in order, optionally of one cost centre's budgets."""
    own = select(_ROW.id).where(_ROW.tenant_id == tenant_id, *_build_due_condition(time))
    if center_id is not None:
        own = own.where(_ROW.cost_center_id == center_id)
    # Cost centres are locked in order of their ids.
    return session.scalars(own.order_by(_ROW.cost_center_id, _ROW.effective_at, _ROW.id)).all()


def list_due_tenants(session: Reader, time: datetime) -> Sequence[str]:
    """Returns the tenants with changes whose delay is over."""
    return session.scalars(select(_ROW.tenant_id).where(*_build_due_condition(time)).distinct()).all()


def _build_due_condition(time: datetime) -> tuple[ColumnElement[bool], ...]:
    return (_ROW.state == WAITING, _ROW.effective_at <= time)


def list_page(
    session: Reader, tenant_id: str, states: Collection[str], after: tuple[datetime, str] | None, limit: int
) -> Sequence[PolicyChangeRow]:
    """Returns changes of a tenant after the time and id ``after``, the newest first."""
    own = select(_ROW).where(_ROW.tenant_id == tenant_id)
    if states:
        own = own.where(_ROW.state.in_(states))
    if after is not None:
        time, change_id = after
        tied = and_(_ROW.proposed_at == time, _ROW.id < change_id)
        own = own.where(or_(_ROW.proposed_at < time, tied))
    return session.scalars(own.order_by(_ROW.proposed_at.desc(), _ROW.id.desc()).limit(limit)).all()


def list_all_changes(session: Reader, tenant_id: str) -> Iterator[PolicyChangeRow]:
    """Yields every change of a tenant."""
    yield from session.scalars(select(_ROW).where(_ROW.tenant_id == tenant_id))


def get_settings(session: Session, tenant_id: str) -> ApprovalSettingsRow | None:
    """Returns the settings of a tenant, or None."""
    return session.get(ApprovalSettingsRow, tenant_id, populate_existing=True)


def lock_settings(session: Writer, tenant_id: str, delay_seconds: int) -> ApprovalSettingsRow:
    """Returns the settings of a tenant, locked until the transaction ends. Creates default ones if needed."""
    insert_new(
        session, ApprovalSettingsRow, tenant_id=tenant_id, change_delay_seconds=delay_seconds, version=1
    )
    own = select(ApprovalSettingsRow).where(ApprovalSettingsRow.tenant_id == tenant_id)
    return session.scalars(own.with_for_update().execution_options(populate_existing=True)).one()


def has_policies(session: Writer, tenant_id: str) -> bool:
    """Returns true if a tenant has or had a policy."""
    own = select(ApprovalPolicyRow.id).where(ApprovalPolicyRow.tenant_id == tenant_id)
    return session.scalars(own.limit(1)).first() is not None
