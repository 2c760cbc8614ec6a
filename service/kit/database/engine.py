"""Engines, sessions and column types that behave alike on SQLite and PostgreSQL.

A :class:`Reader` opens a deferred, a :class:`Writer` an immediate transaction: SQLite cannot upgrade a
read to a write once another writer has come in between, whatever the busy timeout (the increment test
loses updates or fails without this). Nothing below the edge commits.

No statement runs for ever: PostgreSQL bounds each, on SQLite the transaction has a deadline, because a
listener on every statement cost 2% of a short one. Nor does a transaction wait for ever: see
:mod:`service.kit.database.waiting`. Migrations, backups and the load of the shipped rows opt
out by the execution option ``ironlaw_unbounded``.

Nothing is set for a session of PostgreSQL but its time zone, which poolers know, and no statement is prepared
there: behind a pooler in transaction mode each transaction may have another session.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from math import inf
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any
from urllib.parse import quote

from sqlalchemy import JSON, Connection, DateTime, Dialect, Engine, MetaData, create_engine, event, literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlalchemy.types import TypeDecorator

from service.kit.database.failures import (
    READ_ONLY_STATE,
    STOPS_WRITES,
    FailureKind,
    OutcomeUnknownError,
    ReadOnlyError,
    WriteTurnError,
    describe_failure,
    is_outcome_unknown,
)
from service.kit.database.waiting import (
    MIGRATION_SECONDS,
    REQUEST_SECONDS,
    TRANSACTION_SECONDS,
    get_wait_budget,
)
from service.kit.tracing import open_inner_span

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
STATEMENT_MILLISECONDS = 30_000
IDLE_MILLISECONDS = 60_000
"""Longest time between two statements of a transaction, after which PostgreSQL frees its locks: the host of
this process may be gone.
"""
SQLITE_STEPS_BETWEEN_LOOKS = 10_000
MOST_WRITERS = 32
"""Most threads of a process that write or wait for their turn: less than the framework has, so that readers
find one.
"""
_SET_BOUNDS = """SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true),
set_config('idle_in_transaction_session_timeout', %s, true)"""
_PROBE_SECONDS = 1
_CONNECTING = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Parameters of libpq that find out that a host is gone; one that the address names is left as it is."""


class Base(DeclarativeBase):
    """Base of every table."""

    metadata = MetaData(naming_convention=NAMING_CONVENTION)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, stored and returned in UTC.

    SQLite has no zone, and PostgreSQL returns that of the session.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a time without a zone."""
        del dialect
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("the time has no zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Returns the same instant in UTC."""
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Json = JSON().with_variant(JSONB(), "postgresql")
"""A JSON document; the schemas that fill it allow neither NaN nor NUL."""


SECRET = {"secret": True}
"""The ``info`` of a column with a secret, or a salt that hides a subject. Only whole backups contain it."""


LATER = {"later": True}
"""The ``info`` of a column that is younger than its table. The audit leaves an empty one out, so that the
digests of older rows still hold.
"""


class Reader(Session):
    """A session for reading."""


class Writer(Session):
    """A session for one short write transaction."""


class Database:
    """One database and its sessions."""

    def __init__(self, url: str | URL) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine: Engine = create_engine(self.url, hide_parameters=True, **self._build_engine_options())
        self._reading = self.engine
        self._writing = self.engine.execution_options(ironlaw_write=True)
        self._probing = self._build_probing_engine()
        self._writers = BoundedSemaphore(MOST_WRITERS)
        self._turn = Lock()
        self._has_failed_to_write = False
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        else:
            event.listen(self.engine, "connect", _prepare_postgresql)
            event.listen(self.engine, "begin", _begin_postgresql)
            event.listen(self.engine, "handle_error", _leave_replica)
            self._reading = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )

    def _build_engine_options(self) -> dict[str, Any]:
        if self.is_sqlite:
            return {"pool_timeout": REQUEST_SECONDS}
        return {
            "pool_size": 20,
            "max_overflow": 20,
            "pool_timeout": REQUEST_SECONDS,
            "pool_pre_ping": True,
            "connect_args": self._build_driver_options(),
        }

    def _build_driver_options(self) -> dict[str, Any]:
        own = {name: value for name, value in _CONNECTING.items() if name not in self.url.query}
        return {"prepare_threshold": None, **own}

    def _build_probing_engine(self) -> Engine:
        """Returns an engine beside the pool, so that a probe does not stand behind requests."""
        if not self.is_sqlite:
            options = {"pool_size": 1, "max_overflow": 0, "pool_pre_ping": True}
            return create_engine(self.url, connect_args=self._build_driver_options(), **options)
        # A new connection has no page in its cache. The file must not be opened in any other way than by
        # SQLite: closing it would drop the locks of this process.
        address = f"file:{quote(self.url.database or '')}?mode=rw"
        return create_engine("sqlite://", creator=partial(_open_sqlite_probe, address), poolclass=NullPool)

    @contextmanager
    def open_reader(self) -> Iterator[Reader]:
        """Opens a read transaction that sees one state of the database and is rolled back at the end."""
        with self._open_span("read"), Reader(self._reading, autoflush=False) as session:
            _begin(session)
            yield session

    @contextmanager
    def open_writer(self, *, is_unbounded: bool = False) -> Iterator[Writer]:
        """Opens a write transaction, committed at the end or rolled back on error.

        An unbounded one may take as long as the machine needs: an operator waits for it, no request.
        """
        engine = self._writing.execution_options(ironlaw_unbounded=True) if is_unbounded else self._writing
        opened = Writer(engine, expire_on_commit=False)
        with self._open_span("write"), self._wait_to_write(), self._note_failures(), opened as session:
            _begin(session)
            yield session
            _commit(session)

    @contextmanager
    def _note_failures(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            failure = describe_failure(error)
            self._has_failed_to_write |= failure is not None and failure.kind in STOPS_WRITES
            raise

    def _open_span(self, access: str) -> AbstractContextManager[object]:
        return open_inner_span(f"database {access}", db__system__name=self.url.get_backend_name())

    @contextmanager
    def _wait_to_write(self) -> Iterator[None]:
        """Bounds the writers of this process; on SQLite they wait for each other, without a connection.

        SQLite itself polls with ever longer sleeps: of 200 writers at once some waited nine seconds while
        nobody wrote, and they held every connection. Writers of other processes are left to it.
        """
        if not self._writers.acquire(blocking=False):
            raise WriteTurnError("too many writers wait for the database")
        try:
            with self._take_turn() if self.is_sqlite else nullcontext():
                yield
        finally:
            self._writers.release()

    @contextmanager
    def _take_turn(self) -> Iterator[None]:
        with get_wait_budget().spend() as seconds:
            has_turn = self._turn.acquire(timeout=seconds)
        if not has_turn:
            raise WriteTurnError("the database is locked by another writer")
        try:
            yield
        finally:
            self._turn.release()

    def probe(self, statement: str) -> None:
        """Executes a statement beside all requests, and raises an error if the database is sick or read-only.

        On SQLite it reads the file again and takes the turn to write, if nobody has it; after a write has
        failed it writes.
        """
        with self._probing.connect() as connection:
            connection.exec_driver_sql(statement).all()
            if self.is_sqlite:
                self._probe_writing(connection)
            elif connection.exec_driver_sql("SHOW transaction_read_only").scalar_one() == "on":
                raise ReadOnlyError

    def _probe_writing(self, connection: Connection) -> None:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            if self._has_failed_to_write:
                version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
                connection.exec_driver_sql(f"PRAGMA user_version = {version}")
                connection.exec_driver_sql("COMMIT")
                self._has_failed_to_write = False
        except OperationalError as error:
            failure = describe_failure(error)
            if failure is None or failure.kind is not FailureKind.BUSY:
                raise

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()
        self._probing.dispose()


def _begin(session: Session) -> None:
    """Begins the transaction, in the time that is left to wait for a connection and the database."""
    with get_wait_budget().spend():
        session.connection()


def _commit(session: Writer) -> None:
    if not session.in_transaction():
        return
    session.flush()
    try:
        session.commit()
    except DBAPIError as error:
        if not is_outcome_unknown(error):
            raise
        raise OutcomeUnknownError(error.statement, error.params, error.orig or error) from error


def insert_new(session: Writer, table: type[Base], **values: object) -> bool:
    """Inserts a row unless one with its key exists, waiting for a transaction that has just inserted it.

    Returns true if the row was inserted.
    """
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    inserting = dialect.insert(table).values(values).on_conflict_do_nothing()
    # PostgreSQL reports a row count of -1 here, whatever was inserted.
    return session.execute(inserting.returning(literal(1))).first() is not None


def _open_sqlite_probe(address: str) -> sqlite3.Connection:
    return sqlite3.connect(address, uri=True, timeout=_PROBE_SECONDS, isolation_level=None)


def _prepare_sqlite(connection: Any, record: ConnectionPoolEntry) -> None:  # noqa: ANN401
    about = record.info
    about["deadline"] = inf
    connection.set_progress_handler(lambda: monotonic() > about["deadline"], SQLITE_STEPS_BETWEEN_LOOKS)
    connection.isolation_level = None  # the driver begins nothing by itself
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={int(TRANSACTION_SECONDS * 1000)}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    unbounded = options.get("ironlaw_unbounded", False)
    connection.info["deadline"] = inf if unbounded else monotonic() + STATEMENT_MILLISECONDS / 1000
    if not options.get("ironlaw_write"):
        connection.exec_driver_sql("BEGIN DEFERRED")
        return
    milliseconds = int(MIGRATION_SECONDS * 1000) if unbounded else _get_milliseconds_to_wait()
    connection.exec_driver_sql(f"PRAGMA busy_timeout={milliseconds}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _get_milliseconds_to_wait() -> int:
    return max(1, int(get_wait_budget().seconds_left * 1000))


def _prepare_postgresql(connection: Any, record: ConnectionPoolEntry) -> None:  # noqa: ANN401
    del record
    # In another zone the latest times would leave the range of the driver's type.
    connection.autocommit = True
    connection.execute("SET TIME ZONE 'UTC'")
    connection.autocommit = False


def _begin_postgresql(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("ironlaw_write"):
        # After a reader it is false, and a replica does not begin such a transaction.
        connection.connection.dbapi_connection.read_only = None  # type: ignore[union-attr]
    if not options.get("ironlaw_unbounded"):
        bounds = STATEMENT_MILLISECONDS, _get_milliseconds_to_wait(), IDLE_MILLISECONDS
        connection.exec_driver_sql(_SET_BOUNDS, tuple(map(str, bounds)))


def _leave_replica(context: ExceptionContext) -> None:
    """Replaces the connections of the pool when the server behind them has become a replica."""
    state = getattr(context.original_exception, "sqlstate", None)
    connection = context.connection
    if state == READ_ONLY_STATE and connection and connection.get_execution_options().get("ironlaw_write"):
        context.is_disconnect = True
