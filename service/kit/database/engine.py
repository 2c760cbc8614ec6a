"""Engines, sessions and column types that behave alike on SQLite and PostgreSQL.

A :class:`Reader` opens a deferred, a :class:`Writer` an immediate transaction: SQLite cannot upgrade a
read to a write once another writer has come in between, whatever the busy timeout (the increment test
loses updates or fails without this). Nothing below the edge commits.

No statement runs for ever: PostgreSQL bounds each, on SQLite the transaction has a deadline, because a
listener on every statement cost 2% of a short one. Migrations and backups opt out by the execution option
``ironlaw_unbounded``.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from math import inf
from threading import Lock
from time import monotonic
from typing import Any

from sqlalchemy import JSON, Connection, DateTime, Dialect, Engine, MetaData, create_engine, event, literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Session
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.types import TypeDecorator

from service.kit.tracing import open_inner_span

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
SQLITE_BUSY_MILLISECONDS = 10_000
STATEMENT_MILLISECONDS = 30_000
SQLITE_STEPS_BETWEEN_LOOKS = 10_000


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
        self._turn = Lock()
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        else:
            self._reading = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )

    def _build_engine_options(self) -> dict[str, Any]:
        if self.is_sqlite:
            return {}
        # In another zone the latest times would leave the range of the driver's type.
        options = f"-c statement_timeout={STATEMENT_MILLISECONDS} -c timezone=UTC"
        return {
            "pool_size": 20,
            "max_overflow": 20,
            "pool_pre_ping": True,
            "connect_args": {"options": options},
        }

    @contextmanager
    def open_reader(self) -> Iterator[Reader]:
        """Opens a read transaction that sees one state of the database and is rolled back at the end."""
        with self._open_span("read"), Reader(self._reading, autoflush=False) as session:
            yield session

    @contextmanager
    def open_writer(self) -> Iterator[Writer]:
        """Opens a write transaction, committed at the end or rolled back on error."""
        engine = self.engine.execution_options(ironlaw_write=True)
        opened = Writer(engine, expire_on_commit=False)
        with self._open_span("write"), self._wait_to_write(), opened as session, session.begin():
            yield session

    def _open_span(self, access: str) -> AbstractContextManager[object]:
        return open_inner_span(f"database {access}", db__system__name=self.url.get_backend_name())

    @contextmanager
    def _wait_to_write(self) -> Iterator[None]:
        """Lets the writers of this process wait for each other on SQLite, without a connection.

        SQLite itself polls with ever longer sleeps: of 200 writers at once some waited nine seconds while
        nobody wrote, and they held every connection. Writers of other processes are left to it.
        """
        has_turn = self.is_sqlite and self._turn.acquire(timeout=SQLITE_BUSY_MILLISECONDS / 1000)
        try:
            yield
        finally:
            if has_turn:
                self._turn.release()

    def is_answering(self) -> bool:
        """Returns true if the database answers a query."""
        try:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("SELECT 1")
        except SQLAlchemyError:
            return False
        return True

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def insert_new(session: Writer, table: type[Base], **values: object) -> bool:
    """Inserts a row unless one with its key exists, waiting for a transaction that has just inserted it.

    Returns true if the row was inserted.
    """
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    inserting = dialect.insert(table).values(values).on_conflict_do_nothing()
    # PostgreSQL reports a row count of -1 here, whatever was inserted.
    return session.execute(inserting.returning(literal(1))).first() is not None


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
        f"busy_timeout={SQLITE_BUSY_MILLISECONDS}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    unbounded = options.get("ironlaw_unbounded", False)
    connection.info["deadline"] = inf if unbounded else monotonic() + STATEMENT_MILLISECONDS / 1000
    connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get("ironlaw_write") else "BEGIN DEFERRED")
