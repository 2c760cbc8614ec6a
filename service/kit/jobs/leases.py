"""The lease mechanism: rows that wait, are claimed for a time, and whose holder proves itself by a token.

A row may be claimed from ``due_at`` on: its due time while it waits, the end of its lease while it runs. So
an expired lease is simply claimable, whoever held it. Every claim raises the fencing token, and every later
write carries it: a write of a holder after another has claimed the row is refused as :class:`LeaseLost`.

Times are the database's, read in the statement that uses them, because hosts may disagree. A time that was
set as a span from now is stored with that span. Once the clock has been set back, such a time lies further
ahead than its span and :func:`repair_spans` counts the span anew: no row is held back by the step, and a
holder that renews keeps its lease.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import BigInteger, Float, Integer, SQLColumnExpression, String, literal, select, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Mapped, Session, mapped_column
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.functions import FunctionElement

from service.kit.database.engine import UtcDateTime, Writer

WAITING = "waiting"
RUNNING = "running"


class LeaseLost(Exception):
    """The lease has ended or another holder has claimed the row; nothing was written."""


class RowLease(NamedTuple):
    """The right to one row: its id and the token of the claim."""

    id: str
    token: int


class LeasedColumns:
    """Columns of a table whose rows are leased. ``due_at`` is absent once a row is finished."""

    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    tenant_id: Mapped[str] = mapped_column(String(100))
    state: Mapped[str] = mapped_column(String(20), default=WAITING)
    due_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    span_seconds: Mapped[float | None] = mapped_column(Float)
    """Span in seconds that ``due_at`` was set ahead by; absent where it is a fixed date."""
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    fencing_token: Mapped[int] = mapped_column(BigInteger, default=0)

    @property
    def lease(self) -> RowLease:
        """The lease under the token that was read."""
        return RowLease(self.id, self.fencing_token)


LeasedRow = TypeVar("LeasedRow", bound=LeasedColumns)


class _Clock(FunctionElement[datetime]):
    """The database's clock, a number of seconds ahead."""

    type = UtcDateTime()
    inherit_cache = True


@compiles(_Clock, "postgresql")
def _postgresql_clock(element: _Clock, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    # Not clock_timestamp(): a volatile function could not be looked up in an index.
    seconds = compiler.process(element.clauses, **options)
    return f"(statement_timestamp() + make_interval(secs => {seconds}))"


@compiles(_Clock, "sqlite")
def _sqlite_clock(element: _Clock, compiler: SQLCompiler, **options: Any) -> str:  # noqa: ANN401
    seconds = compiler.process(element.clauses, **options)
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', {seconds})) || '000')"


def get_time_after(seconds: float | SQLColumnExpression[float | None]) -> ColumnElement[datetime]:
    """Returns the database's time some seconds from now."""
    return _build_time_after(seconds) if isinstance(seconds, int | float) else _Clock(seconds)


@lru_cache(maxsize=64)
def _build_time_after(seconds: float) -> ColumnElement[datetime]:
    # A comparison makes an expression refer to itself: one for each call would wait for the collector.
    return _Clock(literal(seconds, Float))


def get_database_time() -> ColumnElement[datetime]:
    """Returns the database's time."""
    return get_time_after(0.0)


def read_database_time(session: Session) -> datetime:
    """Reads the database's current time, not that of the start of the transaction."""
    return session.scalars(select(get_database_time())).one()


def _build_due_values(seconds: float) -> dict[str, Any]:
    return {"due_at": get_time_after(seconds), "span_seconds": seconds}


def claim_row(
    session: Writer,
    table: type[LeasedRow],
    *conditions: ColumnElement[bool],
    seconds: float,
    order: Sequence[SQLColumnExpression[Any]] = (),
    **values: Any,  # noqa: ANN401
) -> LeasedRow | None:
    """Claims the first row by ``order`` that is due and meets ``conditions``, in one statement.

    Of equals it claims the most overdue one. Returns None if there is none.
    """
    candidate = (
        select(table.id)
        .where(table.due_at <= get_database_time(), *conditions)
        .order_by(*order, table.due_at)
        .limit(1)
        .with_for_update(skip_locked=True)
        .correlate(None)
        .scalar_subquery()
    )
    raised = {"attempt": table.attempt + 1, "fencing_token": table.fencing_token + 1}
    statement = (
        update(table)
        .where(table.id == candidate)
        .values(state=RUNNING, **raised, **_build_due_values(seconds), **values)
        .returning(table)
    )
    return session.scalars(statement, execution_options={"populate_existing": True}).one_or_none()


def write_row(
    session: Writer,
    table: type[LeasedRow],
    lease: RowLease,
    *conditions: ColumnElement[bool],
    **values: Any,  # noqa: ANN401
) -> LeasedRow:
    """Write to a leased row, which stays locked until the transaction ends."""
    statement = (
        update(table)
        .where(table.id == lease.id, table.fencing_token == lease.token, table.state == RUNNING, *conditions)
        .values(fencing_token=lease.token, **values)
        .returning(table)
    )
    row = session.scalars(statement, execution_options={"populate_existing": True}).one_or_none()
    if row is None:
        raise LeaseLost(lease.id)
    return row


def renew_lease(
    session: Writer,
    table: type[LeasedRow],
    lease: RowLease,
    *conditions: ColumnElement[bool],
    seconds: float,
    **values: Any,  # noqa: ANN401
) -> LeasedRow:
    """Extends the lease to ``seconds`` from now. A lease that has ended is not renewed."""
    return write_row(
        session,
        table,
        lease,
        table.due_at > get_database_time(),
        *conditions,
        **_build_due_values(seconds),
        **values,
    )


def release_row(
    session: Writer,
    table: type[LeasedRow],
    lease: RowLease,
    *,
    delay: float,
    **values: Any,  # noqa: ANN401  # noqa: ANN401
) -> LeasedRow:
    """Releases the row, which may be claimed again after ``delay`` seconds."""
    return write_row(session, table, lease, state=WAITING, **_build_due_values(delay), **values)


def finish_row(
    session: Writer, table: type[LeasedRow], lease: RowLease, state: str, **values: object
) -> LeasedRow:
    """Put the row into a final state, in which it is never claimed."""
    return write_row(session, table, lease, state=state, due_at=None, span_seconds=None, **values)


def repair_spans(session: Writer, table: type[LeasedColumns]) -> None:
    """Counts spans anew that lie further ahead than they are long, because the clock has been set back."""
    anew = get_time_after(table.span_seconds)
    ahead = (table.span_seconds.is_not(None), table.due_at > anew)
    session.execute(update(table).where(*ahead).values(due_at=anew))
