"""Queries of cost centres."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.cost_centers.tables import CostCenterRow
from service.kit.database.engine import Reader, Writer


def get_cost_center(session: Session, tenant_id: str, center_id: str) -> CostCenterRow | None:
    """Returns a cost centre of a tenant, or None."""
    return session.get(CostCenterRow, (tenant_id, center_id))


def lock_cost_center(session: Writer, tenant_id: str, center_id: str) -> CostCenterRow | None:
    """Returns a cost centre, locked until the transaction ends, or None."""
    return session.get(CostCenterRow, (tenant_id, center_id), with_for_update=True, populate_existing=True)


def list_after(session: Reader, tenant_id: str, after_id: str, limit: int) -> Sequence[CostCenterRow]:
    """Returns cost centres of a tenant after an id, in order of id."""
    own = select(CostCenterRow).where(CostCenterRow.tenant_id == tenant_id, CostCenterRow.id > after_id)
    return session.scalars(own.order_by(CostCenterRow.id).limit(limit)).all()


def list_all_cost_centers(session: Session, tenant_id: str) -> Sequence[CostCenterRow]:
    """Returns all cost centres of a tenant, in order of id."""
    own = select(CostCenterRow).where(CostCenterRow.tenant_id == tenant_id)
    return session.scalars(own.order_by(CostCenterRow.id)).all()
