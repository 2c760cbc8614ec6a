"""Every query of nodes and leases."""

from collections.abc import Iterable, Mapping, Sequence
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
    """The database's time."""
    return leases.read_database_time(session)


def get_node(session: Session, tenant_id: str, node_id: str) -> NodeRow | None:
    """A node of a tenant."""
    return session.scalars(_select_node(tenant_id, node_id)).one_or_none()


def lock_node(session: Writer, tenant_id: str, node_id: str) -> NodeRow | None:
    """A node of a tenant, locked until the transaction ends; before any of its leases."""
    return session.scalars(_select_node(tenant_id, node_id).with_for_update()).one_or_none()


def _select_node(tenant_id: str, node_id: str) -> Any:  # noqa: ANN401
    return select(NodeRow).where(NodeRow.tenant_id == tenant_id, NodeRow.id == node_id)


def build_claimable_conditions(row: NodeRow) -> tuple[ColumnElement[bool], ...]:
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


def lock_running_lease(session: Writer, node_id: str) -> LeaseRow | None:
    """The lease that a node holds, locked until the transaction ends."""
    held = select(LeaseRow).where(LeaseRow.node_id == node_id, LeaseRow.state == RUNNING)
    options = {"populate_existing": True}
    return session.scalars(held.with_for_update(), execution_options=options).one_or_none()


def get_lease(session: Session, tenant_id: str, lease_id: str) -> LeaseRow | None:
    """A lease of a tenant."""
    return session.scalars(_select_lease(tenant_id, lease_id)).one_or_none()


def lock_lease(session: Writer, tenant_id: str, lease_id: str) -> LeaseRow | None:
    """A lease of a tenant, locked until the transaction ends."""
    return session.scalars(_select_lease(tenant_id, lease_id).with_for_update()).one_or_none()


def lock_lease_shared(session: Writer, tenant_id: str, lease_id: str) -> None:
    """Let nobody change a lease until the transaction ends; several may hold it so."""
    session.execute(_select_lease(tenant_id, lease_id).with_for_update(read=True))


def _select_lease(tenant_id: str, lease_id: str) -> Any:  # noqa: ANN401
    own = select(LeaseRow).where(LeaseRow.tenant_id == tenant_id, LeaseRow.id == lease_id)
    return own.execution_options(populate_existing=True)


def lock_free_leases(session: Writer, *conditions: ColumnElement[bool], limit: int) -> Sequence[LeaseRow]:
    """Leases that meet ``conditions`` and that nobody else is changing, locked."""
    found = select(LeaseRow).where(*conditions).order_by(LeaseRow.due_at, LeaseRow.id).limit(limit)
    options = {"populate_existing": True}
    return session.scalars(found.with_for_update(skip_locked=True), execution_options=options).all()


def lock_targeted_leases(session: Writer, tenant_id: str, node_id: str) -> Sequence[LeaseRow]:
    """Leases that wait for one node, locked."""
    own = (LeaseRow.tenant_id == tenant_id, LeaseRow.target_node_id == node_id, LeaseRow.state == WAITING)
    found = select(LeaseRow).where(*own).order_by(LeaseRow.id).with_for_update()
    return session.scalars(found, execution_options={"populate_existing": True}).all()


def build_lapsed_condition() -> ColumnElement[bool]:
    """Whether a lease has ended with nobody saying how."""
    return and_(LeaseRow.state == RUNNING, LeaseRow.due_at <= leases.get_database_time())


def close_lease(session: Writer, held: RowLease, **values: Any) -> LeaseRow:  # noqa: ANN401
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


def end_waiting_lease(session: Writer, row: LeaseRow, state: str, **values: Any) -> LeaseRow:  # noqa: ANN401
    """End a locked lease that waits; the token is raised, so that no earlier holder can mean it."""
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.get_database_time()}
    statement = (
        update(LeaseRow)
        .where(LeaseRow.id == row.id, LeaseRow.fencing_token == row.fencing_token, LeaseRow.state == WAITING)
        .values(state=state, fencing_token=row.fencing_token + 1, **ended, **values)
        .returning(LeaseRow)
    )
    return session.scalars(statement, execution_options={"populate_existing": True}).one()


def get_grant(session: Session, held: RowLease, tenant_id: str, node_id: str) -> LeaseGrantRow | None:
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


def end_grant(session: Writer, held: RowLease, outcome: str, state_after: str) -> None:
    """Remember how a grant ended."""
    statement = update(LeaseGrantRow).where(
        LeaseGrantRow.lease_id == held.id,
        LeaseGrantRow.fencing_token == held.token,
        LeaseGrantRow.outcome.is_(None),
    )
    session.execute(
        statement.values(outcome=outcome, state_after=state_after, ended_at=leases.get_database_time())
    )


def list_leases(session: Session, tenant_id: str, ids: Iterable[str]) -> Sequence[LeaseRow]:
    """Leases of a tenant by id."""
    found = select(LeaseRow).where(LeaseRow.tenant_id == tenant_id, LeaseRow.id.in_(list(ids)))
    return session.scalars(found).all()


def is_known_node(session: Session, tenant_id: str, node_id: str, device: str) -> bool:
    """Whether a tenant has a node, not revoked, that measures ``device``."""
    row = get_node(session, tenant_id, node_id)
    return row is not None and row.state != REVOKED and row.device == device


def count_nodes(session: Session) -> tuple[int, datetime | None]:
    """How many nodes of every tenant there are, and when the latest came."""
    count, latest_at = session.execute(select(func.count(), func.max(NodeRow.created_at))).one()
    return count, latest_at


def list_node_ids(session: Session) -> list[tuple[str, str]]:
    """Tenant and id of every node."""
    return [
        (tenant_id, node_id) for tenant_id, node_id in session.execute(select(NodeRow.tenant_id, NodeRow.id))
    ]


def delete_expired_tokens(session: Writer, before: datetime) -> Sequence[EnrolmentTokenRow]:
    """Delete the enrolment tokens that expired before a time."""
    old = delete(EnrolmentTokenRow).where(EnrolmentTokenRow.expires_at < before)
    return session.scalars(old.returning(EnrolmentTokenRow)).all()


def get_token(session: Session, tenant_id: str, token_id: str) -> EnrolmentTokenRow | None:
    """An enrolment token of a tenant."""
    own = (EnrolmentTokenRow.tenant_id == tenant_id, EnrolmentTokenRow.id == token_id)
    return session.scalars(select(EnrolmentTokenRow).where(*own)).one_or_none()


def list_tokens(session: Reader, tenant_id: str, after: str, limit: int) -> Sequence[EnrolmentTokenRow]:
    """Enrolment tokens of a tenant behind the id ``after``, in order of id."""
    own = (EnrolmentTokenRow.tenant_id == tenant_id, EnrolmentTokenRow.id > after)
    found = select(EnrolmentTokenRow).where(*own).order_by(EnrolmentTokenRow.id).limit(limit)
    return session.scalars(found).all()


def lock_presented_token(session: Writer, token_id: str) -> EnrolmentTokenRow | None:
    """The enrolment token that somebody presents, of whichever tenant; locked."""
    found = select(EnrolmentTokenRow).where(EnrolmentTokenRow.id == token_id).with_for_update()
    return session.scalars(found, execution_options={"populate_existing": True}).one_or_none()


def use_token(session: Writer, token_id: str, digest: str, installation_id: str) -> bool:
    """Use an enrolment token, if it is right, unused and not expired: one conditional statement."""
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
    """Insert a node, unless its installation has one that is not revoked."""
    return insert_new(session, NodeRow, **values)


def lock_installation(session: Writer, tenant_id: str, installation_id: str) -> NodeRow | None:
    """The node of an installation that is not revoked, locked."""
    own = (
        NodeRow.tenant_id == tenant_id,
        NodeRow.installation_id == installation_id,
        NodeRow.state != REVOKED,
    )
    found = select(NodeRow).where(*own).with_for_update()
    return session.scalars(found, execution_options={"populate_existing": True}).one_or_none()


def is_barred(session: Writer, tenant_id: str, installation_id: str) -> bool:
    """Whether an operator keeps an installation out: by any node that it has or had."""
    barred = exists().where(
        NodeRow.tenant_id == tenant_id,
        NodeRow.installation_id == installation_id,
        NodeRow.barred_at.is_not(None),
    )
    return session.scalar(select(barred)) or False


def find_node_by_id(session: Session, node_id: str) -> NodeRow | None:
    """The node that a credential names, of whichever tenant."""
    return session.scalars(select(NodeRow).where(NodeRow.id == node_id)).one_or_none()


def list_credentials(session: Session, node_id: str) -> Sequence[NodeCredentialRow]:
    """Every generation of a node's credential, the newest first."""
    found = select(NodeCredentialRow).where(NodeCredentialRow.node_id == node_id)
    ordered = found.order_by(NodeCredentialRow.generation.desc())
    return session.scalars(ordered, execution_options={"populate_existing": True}).all()


def get_current_credential(session: Session, node_id: str) -> NodeCredentialRow | None:
    """The credential that a node uses."""
    own = (NodeCredentialRow.node_id == node_id, NodeCredentialRow.state == CURRENT)
    return session.scalars(select(NodeCredentialRow).where(*own)).one_or_none()


def withdraw_credentials(session: Writer, node_id: str) -> None:
    """Let no earlier credential of a node work, or say anything, any more."""
    statement = update(NodeCredentialRow).where(
        NodeCredentialRow.node_id == node_id, NodeCredentialRow.state.in_((PENDING, CURRENT, RETIRED))
    )
    session.execute(statement.values(state=WITHDRAWN, ended_at=leases.get_database_time()))


def get_inventory(session: Session, node_id: str, content_sha256: str) -> NodeInventoryRow | None:
    """An inventory of a node by its digest."""
    return session.get(NodeInventoryRow, (node_id, content_sha256))


def add_inventory(session: Writer, row: NodeRow, content_sha256: str, document: Mapping[str, Any]) -> bool:
    """Keep an inventory; whether it is new."""
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
    """How much a node has handed in, locked until the transaction ends."""
    own = select(NodeIntakeRow).where(NodeIntakeRow.tenant_id == tenant_id, NodeIntakeRow.node_id == node_id)
    locking = own.with_for_update().execution_options(populate_existing=True)
    row = session.scalars(locking).one_or_none()
    if row is None:
        counts = dict.fromkeys(("results", "result_bytes", "inventories", "inventory_bytes"), 0)
        insert_new(session, NodeIntakeRow, tenant_id=tenant_id, node_id=node_id, day="", **counts)
        row = session.scalars(locking).one()
    return row


def record_last_seen(session: Writer, heard: Mapping[str, "LastHeartbeat"]) -> None:
    """Write down when nodes were last heard of, and what they said."""
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
    """Nodes of a tenant behind the id ``after``, in order of id."""
    found = select(NodeRow).where(NodeRow.tenant_id == tenant_id, NodeRow.id > after)
    if states:
        found = found.where(NodeRow.state.in_(states))
    if devices:
        found = found.where(NodeRow.device.in_(devices))
    return session.scalars(found.order_by(NodeRow.id).limit(limit)).all()


def list_running_leases(session: Session, node_ids: Iterable[str]) -> dict[str, LeaseRow]:
    """The leases that nodes hold, by node."""
    found = select(LeaseRow).where(LeaseRow.node_id.in_(list(node_ids)), LeaseRow.state == RUNNING)
    return {str(row.node_id): row for row in session.scalars(found)}


def count_offers(session: Reader) -> Sequence[tuple[str, str, str | None, int]]:
    """How much may be claimed now, by tenant, device and target."""
    kinds = (LeaseRow.tenant_id, LeaseRow.device, LeaseRow.target_node_id)
    due = (LeaseRow.state.in_((WAITING, RUNNING)), LeaseRow.due_at <= leases.get_database_time())
    found = session.execute(select(*kinds, func.count()).where(*due).group_by(*kinds))
    return [(tenant, device, target, count) for tenant, device, target, count in found]


def count_nodes_by_state(session: Reader) -> Sequence[tuple[str, str, int]]:
    """How many nodes there are, by device and state."""
    kinds = (NodeRow.device, NodeRow.state)
    counted = session.execute(select(*kinds, func.count()).group_by(*kinds))
    return [(device, state, count) for device, state, count in counted]


def count_silent_nodes(session: Reader, seconds: float) -> Sequence[tuple[str, int]]:
    """How many active nodes have said nothing for some time, by device."""
    is_silent = (NodeRow.state == ACTIVE, NodeRow.last_seen_at < leases.get_time_after(-seconds))
    counted = session.execute(select(NodeRow.device, func.count()).where(*is_silent).group_by(NodeRow.device))
    return [(device, count) for device, count in counted]


def count_leases(session: Reader) -> Sequence[tuple[str, str, int]]:
    """How many leases there are, by device and state."""
    kinds = (LeaseRow.device, LeaseRow.state)
    counted = session.execute(select(*kinds, func.count()).group_by(*kinds))
    return [(device, state, count) for device, state, count in counted]
