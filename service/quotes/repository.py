"""Queries of quotes."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, tuple_
from sqlalchemy.orm import Session, aliased, undefer

from service.kit.database.engine import Reader, Writer
from service.kit.jobs import leases
from service.quotes.tables import DRAFT, PENDING, QuoteRow

PageCursor = tuple[datetime, str]
"""Time and id of the row before a page."""
_WHOLE = (undefer(QuoteRow.document), undefer(QuoteRow.focus))


def _select_own(tenant_id: str, quote_id: str) -> Any:  # noqa: ANN401
    return select(QuoteRow).where(QuoteRow.tenant_id == tenant_id, QuoteRow.id == quote_id)


def get_version(
    session: Session, tenant_id: str, quote_id: str, version: int | None = None
) -> QuoteRow | None:
    """Returns a version of a quote with all columns, by default the newest, or None."""
    own = _select_own(tenant_id, quote_id).options(*_WHOLE)
    if version is not None:
        own = own.where(QuoteRow.version == version)
    # Rows that another transaction has written are read again.
    newest = session.scalars(
        own.order_by(QuoteRow.version.desc()).limit(1), execution_options={"populate_existing": True}
    )
    found: QuoteRow | None = newest.first()
    return found


def count_by_state(session: Reader) -> list[tuple[str, int]]:
    """Returns the number of versions by state, over all tenants."""
    statement = select(QuoteRow.state, func.count()).group_by(QuoteRow.state)
    return [(state, number) for state, number in session.execute(statement)]


def expiring(
    session: Reader, within: timedelta, after: tuple[str, str, int] | None, limit: int
) -> Sequence[QuoteRow]:
    """Returns undecided versions of every tenant that expire within a time, by their keys."""
    key = (QuoteRow.tenant_id, QuoteRow.id, QuoteRow.version)
    soon = (
        QuoteRow.valid_until > leases.get_database_time(),
        QuoteRow.valid_until <= leases.get_time_after(within.total_seconds()),
    )
    statement = select(QuoteRow).where(QuoteRow.state.in_((DRAFT, PENDING)), *soon)
    if after is not None:
        statement = statement.where(tuple_(*key) > after)
    return session.scalars(statement.order_by(*key).limit(limit)).all()


def lock_quote(session: Writer, tenant_id: str, quote_id: str) -> None:
    """Locks a quote, so that no other transaction changes or adds versions before this one ends.

    The lock is on the first version, since another version may be newest once it is granted.
    """
    first = select(QuoteRow.version).where(
        QuoteRow.tenant_id == tenant_id, QuoteRow.id == quote_id, QuoteRow.version == 1
    )
    session.execute(first.with_for_update())


def _build_newest_condition() -> ColumnElement[bool]:
    other = aliased(QuoteRow)
    same = and_(other.tenant_id == QuoteRow.tenant_id, other.id == QuoteRow.id)
    return QuoteRow.version == select(func.max(other.version)).where(same).scalar_subquery()


def list_page(
    session: Reader,
    tenant_id: str,
    *,
    states: Collection[str],
    operations: Collection[str],
    cost_centers: Collection[str],
    after: PageCursor | None,
    limit: int,
) -> Sequence[QuoteRow]:
    """Returns quotes of a tenant in their newest versions, the last frozen first."""
    statement = select(QuoteRow).where(QuoteRow.tenant_id == tenant_id, _build_newest_condition())
    if states:
        statement = statement.where(QuoteRow.state.in_(states))
    if operations:
        statement = statement.where(QuoteRow.operation.in_(operations))
    if cost_centers:
        statement = statement.where(QuoteRow.cost_center_id.in_(cost_centers))
    if after is not None:
        created_at, quote_id = after
        earlier = and_(QuoteRow.created_at == created_at, QuoteRow.id < quote_id)
        statement = statement.where(or_(QuoteRow.created_at < created_at, earlier))
    ordered = statement.order_by(QuoteRow.created_at.desc(), QuoteRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def list_versions(
    session: Reader, tenant_id: str, quote_id: str, *, below: int | None, limit: int
) -> Sequence[QuoteRow]:
    """Returns versions of a quote, the newest first."""
    own = _select_own(tenant_id, quote_id)
    if below is not None:
        own = own.where(QuoteRow.version < below)
    found: Sequence[QuoteRow] = session.scalars(own.order_by(QuoteRow.version.desc()).limit(limit)).all()
    return found


def list_all_versions(
    session: Session, tenant_id: str, quote_ids: Collection[str], *, with_charges: bool = False
) -> Sequence[QuoteRow]:
    """Returns every version of some quotes."""
    some = select(QuoteRow).where(QuoteRow.tenant_id == tenant_id, QuoteRow.id.in_(quote_ids))
    if with_charges:
        some = some.options(undefer(QuoteRow.focus))
    return session.scalars(some.order_by(QuoteRow.id, QuoteRow.version)).all()


def iterate_all_versions(session: Session, tenant_id: str) -> Iterator[QuoteRow]:
    """Yields every version of every quote of a tenant with all columns, in batches."""
    own = select(QuoteRow).where(QuoteRow.tenant_id == tenant_id).options(*_WHOLE)
    ordered = own.order_by(QuoteRow.id, QuoteRow.version)
    return iter(session.scalars(ordered, execution_options={"yield_per": 20}))


def list_version_states(session: Session, tenant_id: str) -> Iterator[tuple[str, int, str, str]]:
    """Yields id, version, state and content digest of every version."""
    members = (QuoteRow.id, QuoteRow.version, QuoteRow.state, QuoteRow.content_digest)
    for row in session.execute(select(*members).where(QuoteRow.tenant_id == tenant_id)):
        yield row.id, row.version, row.state, row.content_digest
