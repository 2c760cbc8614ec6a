"""Every query of nodes and leases."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, exists, select, update
from sqlalchemy.orm import Session, aliased

from service.kit import leases
from service.kit.database import Writer
from service.kit.leases import RUNNING, WAITING, Lease, LeaseLost
from service.nodes.tables import (
    REVOKED,
    EnrolmentTokenRow,
    LeaseGrantRow,
    LeaseRow,
    NodeInventoryRow,
    NodeRow,
)


def time(session: Session) -> datetime:
    """The database's time."""
    return session.scalars(select(leases.now())).one()


def node(session: Session, tenant_id: str, node_id: str) -> NodeRow | None:
    """A node of a tenant."""
    return session.scalars(_node(tenant_id, node_id)).one_or_none()


def locked_node(session: Writer, tenant_id: str, node_id: str) -> NodeRow | None:
    """A node of a tenant, locked until the transaction ends; before any of its leases."""
    return session.scalars(_node(tenant_id, node_id).with_for_update()).one_or_none()


def _node(tenant_id: str, node_id: str) -> Any:  # noqa: ANN401
    return select(NodeRow).where(NodeRow.tenant_id == tenant_id, NodeRow.id == node_id)


def claimable(row: NodeRow) -> tuple[ColumnElement[bool], ...]:
    """Leases that a node may claim now; none while it holds one."""
    held = aliased(LeaseRow)
    is_busy = exists().where(held.node_id == row.id, held.state == RUNNING)
    return (
        LeaseRow.tenant_id == row.tenant_id,
        LeaseRow.state == WAITING,
        LeaseRow.device == row.device,
        LeaseRow.target_node_id.is_(None) | (LeaseRow.target_node_id == row.id),
        ~is_busy,
    )


def locked_running_lease(session: Writer, node_id: str) -> LeaseRow | None:
    """The lease that a node holds, locked until the transaction ends."""
    held = select(LeaseRow).where(LeaseRow.node_id == node_id, LeaseRow.state == RUNNING)
    options = {"populate_existing": True}
    return session.scalars(held.with_for_update(), execution_options=options).one_or_none()


def lease(session: Session, tenant_id: str, lease_id: str) -> LeaseRow | None:
    """A lease of a tenant."""
    return session.scalars(_lease(tenant_id, lease_id)).one_or_none()


def locked_lease(session: Writer, tenant_id: str, lease_id: str) -> LeaseRow | None:
    """A lease of a tenant, locked until the transaction ends."""
    return session.scalars(_lease(tenant_id, lease_id).with_for_update()).one_or_none()


def _lease(tenant_id: str, lease_id: str) -> Any:  # noqa: ANN401
    own = select(LeaseRow).where(LeaseRow.tenant_id == tenant_id, LeaseRow.id == lease_id)
    return own.execution_options(populate_existing=True)


def free_leases(session: Writer, *conditions: ColumnElement[bool], limit: int) -> Sequence[LeaseRow]:
    """Leases that meet ``conditions`` and that nobody else is changing, locked."""
    found = select(LeaseRow).where(*conditions).order_by(LeaseRow.due_at, LeaseRow.id).limit(limit)
    options = {"populate_existing": True}
    return session.scalars(found.with_for_update(skip_locked=True), execution_options=options).all()


def locked_targeted(session: Writer, tenant_id: str, node_id: str) -> Sequence[LeaseRow]:
    """Leases that wait for one node, locked."""
    own = (LeaseRow.tenant_id == tenant_id, LeaseRow.target_node_id == node_id, LeaseRow.state == WAITING)
    found = select(LeaseRow).where(*own).order_by(LeaseRow.id).with_for_update()
    return session.scalars(found, execution_options={"populate_existing": True}).all()


def lapsed() -> ColumnElement[bool]:
    """Whether a lease has ended with nobody saying how."""
    return and_(LeaseRow.state == RUNNING, LeaseRow.due_at <= leases.now())


def close(session: Writer, held: Lease, **values: Any) -> LeaseRow:  # noqa: ANN401
    """Take a running lease from its holder: under the token that was read, and raising it."""
    statement = (
        update(LeaseRow)
        .where(LeaseRow.id == held.id, LeaseRow.fencing_token == held.token, LeaseRow.state == RUNNING)
        .values(fencing_token=held.token + 1, **values)
        .returning(LeaseRow)
    )
    row = session.scalars(statement, execution_options={"populate_existing": True}).one_or_none()
    if row is None:
        raise LeaseLost(held.id)
    return row


def end_waiting(session: Writer, row: LeaseRow, state: str, **values: Any) -> LeaseRow:  # noqa: ANN401
    """End a locked lease that waits; the token is raised, so that no earlier holder can mean it."""
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.now()}
    statement = (
        update(LeaseRow)
        .where(LeaseRow.id == row.id, LeaseRow.fencing_token == row.fencing_token, LeaseRow.state == WAITING)
        .values(state=state, fencing_token=row.fencing_token + 1, **ended, **values)
        .returning(LeaseRow)
    )
    return session.scalars(statement, execution_options={"populate_existing": True}).one()


def grant(session: Session, held: Lease, tenant_id: str, node_id: str) -> LeaseGrantRow | None:
    """The grant of a lease to a node under a token."""
    found = select(LeaseGrantRow).where(
        LeaseGrantRow.lease_id == held.id,
        LeaseGrantRow.fencing_token == held.token,
        LeaseGrantRow.tenant_id == tenant_id,
        LeaseGrantRow.node_id == node_id,
    )
    return session.scalars(found).one_or_none()


def was_granted(session: Session, tenant_id: str, node_id: str, lease_id: str) -> bool:
    """Whether a node ever held a lease."""
    found = exists().where(
        LeaseGrantRow.lease_id == lease_id,
        LeaseGrantRow.tenant_id == tenant_id,
        LeaseGrantRow.node_id == node_id,
    )
    return session.scalar(select(found)) or False


def end_grant(session: Writer, held: Lease, outcome: str, state_after: str) -> None:
    """Remember how a grant ended."""
    statement = update(LeaseGrantRow).where(
        LeaseGrantRow.lease_id == held.id,
        LeaseGrantRow.fencing_token == held.token,
        LeaseGrantRow.outcome.is_(None),
    )
    session.execute(statement.values(outcome=outcome, state_after=state_after, ended_at=leases.now()))


def leases_of(session: Session, tenant_id: str, ids: Iterable[str]) -> Sequence[LeaseRow]:
    """Leases of a tenant by id."""
    found = select(LeaseRow).where(LeaseRow.tenant_id == tenant_id, LeaseRow.id.in_(list(ids)))
    return session.scalars(found).all()


def node_is_known(session: Session, tenant_id: str, node_id: str, device: str) -> bool:
    """Whether a tenant has a node, not revoked, that measures ``device``."""
    row = node(session, tenant_id, node_id)
    return row is not None and row.state != REVOKED and row.device == device


def inventory(session: Session, tenant_id: str, node_id: str, content_sha256: str) -> NodeInventoryRow | None:
    """An inventory of a node, by its digest."""
    found = select(NodeInventoryRow).where(
        NodeInventoryRow.tenant_id == tenant_id,
        NodeInventoryRow.node_id == node_id,
        NodeInventoryRow.content_sha256 == content_sha256,
    )
    return session.scalars(found).one_or_none()


def delete_expired_tokens(session: Writer, before: datetime) -> int:
    """Delete the enrolment tokens that expired before a time; their number."""
    old = delete(EnrolmentTokenRow).where(EnrolmentTokenRow.expires_at < before)
    return len(session.scalars(old.returning(EnrolmentTokenRow.id)).all())
