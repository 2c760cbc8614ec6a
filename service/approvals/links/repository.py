"""Queries of links."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from service.approvals.links.tables import ApprovalLinkRow
from service.kit.database.engine import Writer
from service.kit.jobs import leases


def find_presented_link(session: Session, link_id: str) -> ApprovalLinkRow | None:
    """Returns the link with this id, of any tenant, or None."""
    found = select(ApprovalLinkRow).where(ApprovalLinkRow.id == link_id)
    return session.scalars(found, execution_options={"populate_existing": True}).one_or_none()


def list_by_approval(session: Session, tenant_id: str, approval_id: str) -> Sequence[ApprovalLinkRow]:
    """Returns every link of an approval, the oldest first."""
    own = (ApprovalLinkRow.tenant_id == tenant_id, ApprovalLinkRow.approval_id == approval_id)
    found = select(ApprovalLinkRow).where(*own).order_by(ApprovalLinkRow.created_at, ApprovalLinkRow.id)
    return session.scalars(found, execution_options={"populate_existing": True}).all()


def mark_used(session: Writer, tenant_id: str, link_id: str) -> bool:
    """Marks a link as used, if it is unused and not expired, in one conditional statement."""
    statement = (
        update(ApprovalLinkRow)
        .where(
            ApprovalLinkRow.tenant_id == tenant_id,
            ApprovalLinkRow.id == link_id,
            ApprovalLinkRow.used_at.is_(None),
            ApprovalLinkRow.revoked_at.is_(None),
            ApprovalLinkRow.expires_at > leases.get_database_time(),
        )
        .values(used_at=leases.get_database_time())
        .returning(ApprovalLinkRow.id)
    )
    return session.execute(statement).first() is not None


def delete_expired_links(session: Writer, before: datetime) -> Sequence[ApprovalLinkRow]:
    """Deletes links that expired before a time, and returns them."""
    old = delete(ApprovalLinkRow).where(ApprovalLinkRow.expires_at < before)
    return session.scalars(old.returning(ApprovalLinkRow)).all()
