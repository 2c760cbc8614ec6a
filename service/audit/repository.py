"""Queries of the audit."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from service.audit.chain import GENESIS
from service.audit.tables import AuditEventRow, AuditHeadRow
from service.kit.database.engine import Reader, Writer, insert_new

_AT_A_TIME = 1000


def lock_head(session: Writer, tenant_id: str) -> AuditHeadRow:
    """Returns the head of a tenant's chain, locked until the transaction ends. A new one is empty."""
    insert_new(session, AuditHeadRow, tenant_id=tenant_id, sequence=0, hash=GENESIS, seal="")
    statement = select(AuditHeadRow).where(AuditHeadRow.tenant_id == tenant_id)
    return session.scalars(statement.with_for_update()).one()


def get_head(session: Session, tenant_id: str) -> AuditHeadRow | None:
    """Returns the head of a tenant's chain, or None."""
    return session.get(AuditHeadRow, tenant_id)


@contextmanager
def stream_events(session: Reader, tenant_id: str) -> Iterator[Iterable[AuditEventRow]]:
    """Yields every event of a tenant in order, in batches."""
    statement = (
        select(AuditEventRow)
        .where(AuditEventRow.tenant_id == tenant_id)
        .order_by(AuditEventRow.sequence)
        .execution_options(yield_per=_AT_A_TIME)
    )
    events = session.scalars(statement)
    try:
        yield events
    finally:
        events.close()


def list_page(session: Reader, tenant_id: str, *, before: int | None, limit: int) -> list[AuditEventRow]:
    """Returns events of a tenant with numbers below ``before``, the newest first."""
    statement = select(AuditEventRow).where(AuditEventRow.tenant_id == tenant_id)
    if before is not None:
        statement = statement.where(AuditEventRow.sequence < before)
    return list(session.scalars(statement.order_by(AuditEventRow.sequence.desc()).limit(limit)))


def list_resource_events(session: Reader | Writer, tenant_id: str, resource: str) -> Sequence[AuditEventRow]:
    """Returns events of a tenant on one resource, in order."""
    own = (AuditEventRow.tenant_id == tenant_id, AuditEventRow.resource == resource)
    return session.scalars(select(AuditEventRow).where(*own).order_by(AuditEventRow.sequence)).all()


class LastEvent(NamedTuple):
    """Digests of a resource in its last event."""

    after_digest: str | None
    state_digest: str | None


def get_last_states(session: Reader, tenant_id: str, prefix: str, since: str) -> dict[str, LastEvent]:
    """Returns the digests in the last event of each resource, from the last operation ``since``."""
    own = AuditEventRow.tenant_id == tenant_id
    begun = select(func.max(AuditEventRow.sequence)).where(own, AuditEventRow.operation == since)
    of_them = (
        own,
        AuditEventRow.resource.startswith(prefix, autoescape=True),
        AuditEventRow.sequence >= func.coalesce(begun.scalar_subquery(), 0),
    )
    last = select(func.max(AuditEventRow.sequence)).where(*of_them).group_by(AuditEventRow.resource)
    found = select(AuditEventRow.resource, AuditEventRow.after_digest, AuditEventRow.state_digest)
    rows = session.execute(found.where(own, AuditEventRow.sequence.in_(last)))
    return {resource: LastEvent(*digests) for resource, *digests in rows}


def list_heads(session: Reader) -> Sequence[AuditHeadRow]:
    """Returns the head of every chain, by tenant."""
    return session.scalars(select(AuditHeadRow).order_by(AuditHeadRow.tenant_id)).all()


def get_hashes(session: Reader, tenant_id: str, sequences: Collection[int]) -> dict[int, str]:
    """Returns the hashes of some events of a tenant, by number."""
    found: dict[int, str] = {}
    wanted = sorted(sequences)
    for begin in range(0, len(wanted), _AT_A_TIME):
        rows = select(AuditEventRow.sequence, AuditEventRow.hash).where(
            AuditEventRow.tenant_id == tenant_id,
            AuditEventRow.sequence.in_(wanted[begin : begin + _AT_A_TIME]),
        )
        found.update((sequence, event_hash) for sequence, event_hash in session.execute(rows))
    return found


def list_operation_resources(session: Reader, tenant_id: str, operation: str) -> list[str]:
    """Returns the distinct resources of an operation."""
    own = (AuditEventRow.tenant_id == tenant_id, AuditEventRow.operation == operation)
    found = select(AuditEventRow.resource).where(*own).distinct().order_by(AuditEventRow.resource)
    return list(session.scalars(found))


def list_tenants(session: Reader) -> set[str]:
    """Returns every tenant that has events or a head."""
    known = set(session.scalars(select(AuditEventRow.tenant_id).distinct()))
    return known | set(session.scalars(select(AuditHeadRow.tenant_id)))


def redact_subjects(session: Writer, tenant_id: str) -> None:
    """Removes the subjects from every event of a tenant."""
    statement = update(AuditEventRow).where(AuditEventRow.tenant_id == tenant_id)
    session.execute(statement.values(subject_id=None, subject_salt=None))
