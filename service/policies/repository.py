"""Queries of approval policies."""

from collections.abc import Iterator, Sequence

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from service.kit.clock import now
from service.kit.database.engine import Reader, Writer, insert_new
from service.policies.tables import ApprovalPolicyRow


def lock_policy(session: Writer, tenant_id: str, policy_id: str) -> ApprovalPolicyRow | None:
    """Returns a policy, even a deleted one, locked until the transaction ends, or None."""
    return session.scalars(_select_policy(tenant_id, policy_id).with_for_update()).one_or_none()


def lock_or_add_policy(session: Writer, tenant_id: str, policy_id: str) -> ApprovalPolicyRow:
    """Returns a policy, locked until the transaction ends. A new id gets a row that is not live."""
    draft = {"version": 0, "is_live": False, "document": "{}", "created_at": now(), "updated_at": now()}
    insert_new(session, ApprovalPolicyRow, tenant_id=tenant_id, id=policy_id, **draft)
    return session.scalars(_select_policy(tenant_id, policy_id).with_for_update()).one()


def get_live_policy(session: Session, tenant_id: str, policy_id: str) -> ApprovalPolicyRow | None:
    """Returns a policy that is not deleted, or None."""
    return session.scalars(
        _select_policy(tenant_id, policy_id).where(ApprovalPolicyRow.is_live)
    ).one_or_none()


def _select_policy(tenant_id: str, policy_id: str) -> Select[ApprovalPolicyRow]:
    return select(ApprovalPolicyRow).where(
        ApprovalPolicyRow.tenant_id == tenant_id, ApprovalPolicyRow.id == policy_id
    )


def list_live_after(
    session: Session, tenant_id: str, after: str = "", limit: int | None = None
) -> Sequence[ApprovalPolicyRow]:
    """Returns policies of a tenant after the id ``after``, by id."""
    own = (ApprovalPolicyRow.tenant_id == tenant_id, ApprovalPolicyRow.is_live, ApprovalPolicyRow.id > after)
    found = select(ApprovalPolicyRow).where(*own).order_by(ApprovalPolicyRow.id)
    return session.scalars(found.limit(limit)).all()


def list_all_policies(session: Reader, tenant_id: str) -> Iterator[ApprovalPolicyRow]:
    """Yields every policy of a tenant, including deleted ones."""
    yield from session.scalars(select(ApprovalPolicyRow).where(ApprovalPolicyRow.tenant_id == tenant_id))
