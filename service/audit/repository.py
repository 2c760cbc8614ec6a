"""Every query of the audit."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from service.audit.chain import GENESIS
from service.audit.tables import AuditEventRow, AuditHeadRow
from service.kit.database import Reader, Writer, insert_new

_AT_A_TIME = 1000


def locked_head(session: Writer, tenant_id: str) -> AuditHeadRow:
    """The head of a tenant's chain, locked until the transaction ends; an empty one for a new tenant."""
    insert_new(session, AuditHeadRow, tenant_id=tenant_id, sequence=0, hash=GENESIS, seal="")
    statement = select(AuditHeadRow).where(AuditHeadRow.tenant_id == tenant_id)
    return session.scalars(statement.with_for_update()).one()


def head(session: Session, tenant_id: str) -> AuditHeadRow | None:
    """The head of a tenant's chain."""
    return session.get(AuditHeadRow, tenant_id)


@contextmanager
def chain(session: Reader, tenant_id: str) -> Iterator[Iterable[AuditEventRow]]:
    """Every event of a tenant, in order, some at a time."""
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


def page(session: Reader, tenant_id: str, *, before: int | None, limit: int) -> list[AuditEventRow]:
    """Events of a tenant, the newest first, older than number ``before``."""
    statement = select(AuditEventRow).where(AuditEventRow.tenant_id == tenant_id)
    if before is not None:
        statement = statement.where(AuditEventRow.sequence < before)
    return list(session.scalars(statement.order_by(AuditEventRow.sequence.desc()).limit(limit)))


def tenants(session: Reader) -> set[str]:
    """Every tenant that has events or a head."""
    known = set(session.scalars(select(AuditEventRow.tenant_id).distinct()))
    return known | set(session.scalars(select(AuditHeadRow.tenant_id)))


def forget_subjects(session: Writer, tenant_id: str) -> None:
    """Remove who acted from every event of a tenant."""
    statement = update(AuditEventRow).where(AuditEventRow.tenant_id == tenant_id)
    session.execute(statement.values(subject_id=None, subject_salt=None))
