"""Queries of nodes and leases."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, delete, exists, func, select, update
from sqlalchemy.orm import Session, aliased

from service.kit.database.engine import Reader, Writer, insert_new
from service.kit.jobs import leases
from service.kit.jobs.leases import RUNNING, WAITING, LeaseLost, RowLease
from service.nodes.tables import (
    ACTIVE,
    CURRENT,
    PENDING,
    RETIRED,
    REVOKED,
    WITHDRAWN,
    EnrolmentTokenRow,
    LeaseGrantRow,
    LeaseRow,
    NodeCredentialRow,
    NodeIntakeRow,
    NodeInventoryRow,
    NodeRow,
)

if TYPE_CHECKING:
    from service.nodes.heartbeats import LastHeartbeat


def get_time(session: Session) -> datetime:
    """Returns the database's time."""
    return leases.read_database_time(session)


def get_node(session: Session, tenant_id: str, node_id: str) -> NodeRow | None:
    """Returns a node of a tenant, or None."""
    return session.scalars(_select_node(tenant_id, node_id)).one_or_none()


def lock_node(session: Writer, tenant_id: str, node_id: str) -> NodeRow | None:
    """Returns a node, locked until the transaction ends, or None. The lock precedes those of its leases."""
    return session.scalars(_select_node(tenant_id, node_id).with_for_update()).one_or_none()


def _select_node(tenant_id: str, node_id: str) -> Any:  # noqa: ANN401
    return select(NodeRow).where(NodeRow.tenant_id == tenant_id, NodeRow.id == node_id)


def build_claimable_conditions(row: NodeRow) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions of leases that a node may claim now.

    They match nothing while it holds a lease.
    """
    held = aliased(LeaseRow)
    is_busy = exists().where(held.node_id == row.id, held.state == RUNNING)
    return (
        LeaseRow.tenant_id == row.tenant_id,
        LeaseRow.state == WAITING,
        LeaseRow.device == row.device,
        LeaseRow.target_node_id.is_(None) | (LeaseRow.target_node_id == row.id),
        ~is_busy,
    )


def lock_running_lease(session: Writer, node_id: str) -> LeaseRow | None:
    """Returns the lease that a node holds, locked until the transaction ends, or None."""
    held = select(LeaseRow).where(LeaseRow.node_id == node_id, LeaseRow.state == RUNNING)
    options = {"populate_existing": True}
    return session.scalars(held.with_for_update(), execution_options=options).one_or_none()


def lock_lease(session: Writer, tenant_id: str, lease_id: str) -> LeaseRow | None:
    """Returns a lease of a tenant, locked until the transaction ends, or None."""
    return session.scalars(_select_lease(tenant_id, lease_id).with_for_update()).one_or_none()


def lock_lease_shared(session: Writer, tenant_id: str, lease_id: str) -> None:
    """Takes a shared lock on a lease until the transaction ends."""
    session.execute(_select_lease(tenant_id, lease_id).with_for_update(read=True))


def _select_lease(tenant_id: str, lease_id: str) -> Any:  # noqa: ANN401
    own = select(LeaseRow).where(LeaseRow.tenant_id == tenant_id, LeaseRow.id == lease_id)
    return own.execution_options(populate_existing=True)


def lock_free_leases(session: Writer, *conditions: ColumnElement[bool], limit: int) -> Sequence[LeaseRow]:
    """Returns leases that meet ``conditions`` and that no other transaction has locked, locked."""
    found = select(LeaseRow).where(*conditions).order_by(LeaseRow.due_at, LeaseRow.id).limit(limit)
    options = {"populate_existing": True}
    return session.scalars(found.with_for_update(skip_locked=True), execution_options=options).all()


def lock_targeted_leases(session: Writer, tenant_id: str, node_id: str) -> Sequence[LeaseRow]:
    """Returns the leases that wait for one node, locked."""
    own = (LeaseRow.tenant_id == tenant_id, LeaseRow.target_node_id == node_id, LeaseRow.state == WAITING)
    found = select(LeaseRow).where(*own).order_by(LeaseRow.id).with_for_update()
    return session.scalars(found, execution_options={"populate_existing": True}).all()


def build_lapsed_condition() -> ColumnElement[bool]:
    """Returns the condition of a running lease whose time is over."""
    return and_(LeaseRow.state == RUNNING, LeaseRow.due_at <= leases.get_database_time())


def close_lease(session: Writer, held: RowLease, **values: Any) -> LeaseRow:  # noqa: ANN401
    """Ends a running lease under the token that was read, and raises the token."""
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


def end_waiting_lease(session: Writer, row: LeaseRow, state: str, **values: Any) -> LeaseRow:  # noqa: ANN401
    """Ends a locked waiting lease and raises its token, so that no earlier holder can match it."""
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.get_database_time()}
    statement = (
        update(LeaseRow)
        .where(LeaseRow.id == row.id, LeaseRow.fencing_token == row.fencing_token, LeaseRow.state == WAITING)
        .values(state=state, fencing_token=row.fencing_token + 1, **ended, **values)
        .returning(LeaseRow)
    )
    return session.scalars(statement, execution_options={"populate_existing": True}).one()


def get_grant(session: Session, held: RowLease, tenant_id: str, node_id: str) -> LeaseGrantRow | None:
    """Returns the grant of a lease to a node under a token, or None."""
    found = select(LeaseGrantRow).where(
        LeaseGrantRow.lease_id == held.id,
        LeaseGrantRow.fencing_token == held.token,
        LeaseGrantRow.tenant_id == tenant_id,
        LeaseGrantRow.node_id == node_id,
    )
    return session.scalars(found).one_or_none()


def was_granted(session: Session, tenant_id: str, node_id: str, lease_id: str) -> bool:
    """Returns true if a node ever held a lease."""
    found = exists().where(
        LeaseGrantRow.lease_id == lease_id,
        LeaseGrantRow.tenant_id == tenant_id,
        LeaseGrantRow.node_id == node_id,
    )
    return session.scalar(select(found)) or False


def end_grant(session: Writer, held: RowLease, outcome: str, state_after: str) -> None:
    """Stores the outcome of a grant."""
    statement = update(LeaseGrantRow).where(
        LeaseGrantRow.lease_id == held.id,
        LeaseGrantRow.fencing_token == held.token,
        LeaseGrantRow.outcome.is_(None),
    )
    session.execute(
        statement.values(outcome=outcome, state_after=state_after, ended_at=leases.get_database_time())
    )


def list_leases(session: Session, tenant_id: str, ids: Iterable[str]) -> Sequence[LeaseRow]:
    """Returns leases of a tenant by id."""
    found = select(LeaseRow).where(LeaseRow.tenant_id == tenant_id, LeaseRow.id.in_(list(ids)))
    return session.scalars(found).all()


def is_known_node(session: Session, tenant_id: str, node_id: str, device: str) -> bool:
    """Returns true if a tenant has a node that is not revoked and measures ``device``."""
    row = get_node(session, tenant_id, node_id)
    return row is not None and row.state != REVOKED and row.device == device


def count_nodes(session: Session) -> tuple[int, datetime | None]:
    """Returns the number of nodes of every tenant, and the creation time of the latest."""
    count, latest_at = session.execute(select(func.count(), func.max(NodeRow.created_at))).one()
    return count, latest_at


def list_node_ids(session: Session) -> list[tuple[str, str]]:
    """Returns tenant and id of every node."""
    return [
        (tenant_id, node_id) for tenant_id, node_id in session.execute(select(NodeRow.tenant_id, NodeRow.id))
    ]


def delete_expired_tokens(session: Writer, before: datetime) -> Sequence[EnrolmentTokenRow]:
    """Deletes the enrolment tokens that expired before a time, and returns them."""
    old = delete(EnrolmentTokenRow).where(EnrolmentTokenRow.expires_at < before)
    return session.scalars(old.returning(EnrolmentTokenRow)).all()


def get_token(session: Session, tenant_id: str, token_id: str) -> EnrolmentTokenRow | None:
    """Returns an enrolment token of a tenant, or None."""
    own = (EnrolmentTokenRow.tenant_id == tenant_id, EnrolmentTokenRow.id == token_id)
    return session.scalars(select(EnrolmentTokenRow).where(*own)).one_or_none()


def list_tokens(session: Reader, tenant_id: str, after: str, limit: int) -> Sequence[EnrolmentTokenRow]:
    """Returns enrolment tokens of a tenant after the id ``after``, in order of id."""
    own = (EnrolmentTokenRow.tenant_id == tenant_id, EnrolmentTokenRow.id > after)
    found = select(EnrolmentTokenRow).where(*own).order_by(EnrolmentTokenRow.id).limit(limit)
    return session.scalars(found).all()


def lock_presented_token(session: Writer, token_id: str) -> EnrolmentTokenRow | None:
    """Returns the enrolment token with this id, of any tenant, locked, or None."""
    found = select(EnrolmentTokenRow).where(EnrolmentTokenRow.id == token_id).with_for_update()
    return session.scalars(found, execution_options={"populate_existing": True}).one_or_none()


def use_token(session: Writer, token_id: str, digest: str, installation_id: str) -> bool:
    """Marks an enrolment token as used, if it is valid, unused and not expired, in one statement."""
    statement = (
        update(EnrolmentTokenRow)
        .where(
            EnrolmentTokenRow.id == token_id,
            EnrolmentTokenRow.digest == digest,
            EnrolmentTokenRow.used_at.is_(None),
            EnrolmentTokenRow.expires_at > leases.get_database_time(),
        )
        .values(used_at=leases.get_database_time(), installation_id=installation_id)
        .returning(EnrolmentTokenRow.id)
    )
    return session.execute(statement).first() is not None


def add_node(session: Writer, **values: object) -> bool:
    """Inserts a node, unless its installation has one that is not revoked.

    Returns true if it was inserted.
    """
    return insert_new(session, NodeRow, **values)


def lock_installation(session: Writer, tenant_id: str, installation_id: str) -> NodeRow | None:
    """Returns the node of an installation that is not revoked, locked, or None."""
    own = (
        NodeRow.tenant_id == tenant_id,
        NodeRow.installation_id == installation_id,
        NodeRow.state != REVOKED,
    )
    found = select(NodeRow).where(*own).with_for_update()
    return session.scalars(found, execution_options={"populate_existing": True}).one_or_none()


def is_barred(session: Writer, tenant_id: str, installation_id: str) -> bool:
    """Returns true if an operator has barred an installation, by any of its nodes."""
    barred = exists().where(
        NodeRow.tenant_id == tenant_id,
        NodeRow.installation_id == installation_id,
        NodeRow.barred_at.is_not(None),
    )
    return session.scalar(select(barred)) or False


def find_node_by_id(session: Session, node_id: str) -> NodeRow | None:
    """Returns the node with this id, of any tenant, or None."""
    return session.scalars(select(NodeRow).where(NodeRow.id == node_id)).one_or_none()


def list_credentials(session: Session, node_id: str) -> Sequence[NodeCredentialRow]:
    """Returns every generation of a node's credential, the newest first."""
    found = select(NodeCredentialRow).where(NodeCredentialRow.node_id == node_id)
    ordered = found.order_by(NodeCredentialRow.generation.desc())
    return session.scalars(ordered, execution_options={"populate_existing": True}).all()


def get_current_credential(session: Session, node_id: str) -> NodeCredentialRow | None:
    """Returns the current credential of a node, or None."""
    own = (NodeCredentialRow.node_id == node_id, NodeCredentialRow.state == CURRENT)
    return session.scalars(select(NodeCredentialRow).where(*own)).one_or_none()


def withdraw_credentials(session: Writer, node_id: str) -> None:
    """Withdraws all earlier credentials of a node."""
    statement = update(NodeCredentialRow).where(
        NodeCredentialRow.node_id == node_id, NodeCredentialRow.state.in_((PENDING, CURRENT, RETIRED))
    )
    session.execute(statement.values(state=WITHDRAWN, ended_at=leases.get_database_time()))


def get_inventory(session: Session, node_id: str, content_sha256: str) -> NodeInventoryRow | None:
    """Returns an inventory of a node by its digest, or None."""
    return session.get(NodeInventoryRow, (node_id, content_sha256))


def add_inventory(session: Writer, row: NodeRow, content_sha256: str, document: Mapping[str, Any]) -> bool:
    """Stores an inventory. Returns true if it is new."""
    return insert_new(
        session,
        NodeInventoryRow,
        tenant_id=row.tenant_id,
        node_id=row.id,
        content_sha256=content_sha256,
        inventory=document,
        created_at=leases.get_database_time(),
    )


def lock_intake(session: Writer, tenant_id: str, node_id: str) -> NodeIntakeRow:
    """Returns the submission counts of a node, locked until the transaction ends."""
    own = select(NodeIntakeRow).where(NodeIntakeRow.tenant_id == tenant_id, NodeIntakeRow.node_id == node_id)
    locking = own.with_for_update().execution_options(populate_existing=True)
    row = session.scalars(locking).one_or_none()
    if row is None:
        counts = dict.fromkeys(("results", "result_bytes", "inventories", "inventory_bytes"), 0)
        insert_new(session, NodeIntakeRow, tenant_id=tenant_id, node_id=node_id, day="", **counts)
        row = session.scalars(locking).one()
    return row


def record_last_seen(session: Writer, heard: Mapping[str, "LastHeartbeat"]) -> None:
    """Writes the times and contents of the last heartbeats."""
    for node_id, one in sorted(heard.items()):
        earlier = NodeRow.last_seen_at.is_(None) | (NodeRow.last_seen_at < one.at)
        own = update(NodeRow).where(NodeRow.id == node_id, NodeRow.tenant_id == one.tenant_id, earlier)
        session.execute(own.values(last_seen_at=one.at, **one.said))


def list_nodes(
    session: Reader,
    tenant_id: str,
    after: str,
    *,
    states: Sequence[str],
    devices: Sequence[str],
    limit: int,
) -> Sequence[NodeRow]:
    """Returns nodes of a tenant after the id ``after``, in order of id."""
    found = select(NodeRow).where(NodeRow.tenant_id == tenant_id, NodeRow.id > after)
    if states:
        found = found.where(NodeRow.state.in_(states))
    if devices:
        found = found.where(NodeRow.device.in_(devices))
    return session.scalars(found.order_by(NodeRow.id).limit(limit)).all()


def list_nodes_by_name(session: Reader, tenant_id: str, *, limit: int) -> Sequence[NodeRow]:
    """Returns nodes of a tenant in order of name, those that are revoked last."""
    found = select(NodeRow).where(NodeRow.tenant_id == tenant_id)
    ordered = found.order_by(NodeRow.state == REVOKED, NodeRow.name, NodeRow.id)
    return session.scalars(ordered.limit(limit)).all()


def list_node_names(session: Reader, tenant_id: str, node_ids: Collection[str]) -> dict[str, str]:
    """Returns the names of nodes of a tenant, by id."""
    own = (NodeRow.tenant_id == tenant_id, NodeRow.id.in_(node_ids))
    return {row.id: row.name for row in session.execute(select(NodeRow.id, NodeRow.name).where(*own))}


def list_present_inventories(session: Reader, tenant_id: str, rows: Iterable[NodeRow]) -> dict[str, Any]:
    """Returns the present inventory of each node that has sent one, by node."""
    present = NodeInventoryRow.content_sha256 == NodeRow.inventory_sha256
    statement = (
        select(NodeInventoryRow.node_id, NodeInventoryRow.inventory)
        .join(NodeRow, and_(NodeRow.id == NodeInventoryRow.node_id, present))
        .where(NodeRow.tenant_id == tenant_id, NodeRow.id.in_([row.id for row in rows]))
    )
    return {row.node_id: row.inventory for row in session.execute(statement)}


def list_running_leases(session: Session, node_ids: Iterable[str]) -> dict[str, LeaseRow]:
    """Returns the leases that nodes hold, by node."""
    found = select(LeaseRow).where(LeaseRow.node_id.in_(list(node_ids)), LeaseRow.state == RUNNING)
    return {str(row.node_id): row for row in session.scalars(found)}


def count_offers(session: Reader) -> Sequence[tuple[str, str, str | None, int]]:
    """Returns the number of claimable leases by tenant, device and target."""
    kinds = (LeaseRow.tenant_id, LeaseRow.device, LeaseRow.target_node_id)
    due = (LeaseRow.state.in_((WAITING, RUNNING)), LeaseRow.due_at <= leases.get_database_time())
    found = session.execute(select(*kinds, func.count()).where(*due).group_by(*kinds))
    return [(tenant, device, target, count) for tenant, device, target, count in found]


def count_nodes_by_state(session: Reader) -> Sequence[tuple[str, str, int]]:
    """Returns the number of nodes by device and state."""
    kinds = (NodeRow.device, NodeRow.state)
    counted = session.execute(select(*kinds, func.count()).group_by(*kinds))
    return [(device, state, count) for device, state, count in counted]


def count_silent_nodes(session: Reader, seconds: float) -> Sequence[tuple[str, int]]:
    """Returns the number of active nodes that have been silent for some time, by device."""
    is_silent = (NodeRow.state == ACTIVE, NodeRow.last_seen_at < leases.get_time_after(-seconds))
    counted = session.execute(select(NodeRow.device, func.count()).where(*is_silent).group_by(NodeRow.device))
    return [(device, count) for device, count in counted]


def count_leases(session: Reader) -> Sequence[tuple[str, str, int]]:
    """Returns the number of leases by device and state."""
    kinds = (LeaseRow.device, LeaseRow.state)
    counted = session.execute(select(*kinds, func.count()).group_by(*kinds))
    return [(device, state, count) for device, state, count in counted]
