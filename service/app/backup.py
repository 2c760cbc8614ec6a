"""Backup of a whole database to one portable file, and its restore.

The file is a SQLite database with the schema of the original, whatever engine that runs on, so a backup of
one engine restores on the other. Every table is copied, none is named here.
"""

import hashlib
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, Table, event
from sqlalchemy.dialects.postgresql import JSONB, REGCLASS
from sqlalchemy.exc import DatabaseError, SAWarning
from sqlalchemy.sql.elements import BindParameter, ColumnElement
from sqlalchemy.types import JSON, TypeDecorator

from service.app.storage import (
    ONE_MIGRATION_AT_A_TIME,
    create_schema,
    get_revision,
    secure_embedded_file,
)
from service.kit.database.engine import Database, UtcDateTime
from service.kit.files import sync_folder

BATCH_ROWS = 1000
CONTENTS = "backup_contents"
"""Table of a backup that lists the contents of the others."""


class BackupRefused(RuntimeError):
    """A file or a database cannot be used for a backup or a restore."""


class TableContent(NamedTuple):
    """Contents of one table of a backup."""

    table_name: str
    row_count: int
    digest: str


def write_backup(database: Database, path: Path) -> list[TableContent]:
    """Writes the contents of ``database`` at one instant to a new file at ``path``."""
    if database.is_sqlite and not Path(database.url.database or "").exists():
        raise BackupRefused(f"{database.url.database} does not exist: there is nothing to back up")
    with create_new_file(path) as unfinished:
        return _write_contents(database, unfinished)


@contextmanager
def create_new_file(path: Path) -> Iterator[Path]:
    """Opens a file for its owner alone, which is renamed to ``path`` once it is complete and on disk."""
    if path.exists():
        raise BackupRefused(f"{path} exists already; name a new file")
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    unfinished = Path(name)
    try:
        yield unfinished
        os.fsync(descriptor)
        unfinished.rename(path)
    finally:
        os.close(descriptor)
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


def _write_contents(database: Database, path: Path) -> list[TableContent]:
    with _open_snapshot(database) as source, _open_file(path, "rw") as file:
        revision = get_revision(source)
        if revision is None:
            raise BackupRefused("the database is empty: there is nothing to back up")
        file.exec_driver_sql("PRAGMA journal_mode = OFF")  # an incomplete file is deleted
        create_schema(file, revision)
        _copy_rows(file, source, _list_tables(file))
        contents = _list_contents(file)
        file.exec_driver_sql(f"CREATE TABLE {CONTENTS} (table_name TEXT, row_count INTEGER, digest TEXT)")
        file.exec_driver_sql(f"INSERT INTO {CONTENTS} VALUES (?, ?, ?)", contents)  # noqa: S608
        return contents


def restore_backup(database: Database, path: Path) -> list[TableContent]:
    """Fills ``database``, which must be empty, with a backup: all of it or nothing."""
    if not path.is_file():
        raise BackupRefused(f"{path} is not a file")
    with _open_file(path, "ro") as file:
        contents = _verify_file(file, path)
        revision = get_revision(file)
        if revision is None:
            raise BackupRefused(f"{path} has no schema revision")
        secure_embedded_file(database)
        with _open_empty_database(database) as target:
            create_schema(target, revision)
            tables = _list_tables(file)
            _copy_rows(target, file, tables)
            if not database.is_sqlite:
                _advance_sequences(target, tables)
    return contents


@contextmanager
def _open_file(path: Path, mode: str) -> Iterator[Connection]:
    """Opens the file at ``path`` in one transaction."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    engine = sa.create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(address, uri=True), poolclass=sa.NullPool
    )
    with engine.begin() as connection:
        yield connection


@contextmanager
def _open_snapshot(database: Database) -> Iterator[Connection]:
    """Opens the database as it is at one instant, while others write."""
    with database.engine.execution_options(ironlaw_unbounded=True).connect() as connection:
        if not database.is_sqlite:
            connection.detach()  # settings and locks end with this connection
            connection.exec_driver_sql("SET statement_timeout = 0")
            # A migration that rewrites a table would make it appear empty to a snapshot of an earlier
            # instant.
            connection.exec_driver_sql(f"SELECT pg_advisory_lock_shared({ONE_MIGRATION_AT_A_TIME})")
            connection.commit()
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield connection


@contextmanager
def _open_empty_database(database: Database) -> Iterator[Connection]:
    """Opens a database without tables in one transaction."""
    engine = database.engine.execution_options(ironlaw_write=True, ironlaw_unbounded=True)
    with engine.begin() as connection:
        if sa.inspect(connection).get_table_names():
            raise BackupRefused("the database is not empty: restore into a new one")
        until_commit = (
            "PRAGMA defer_foreign_keys = ON" if database.is_sqlite else "SET LOCAL statement_timeout = 0"
        )
        connection.exec_driver_sql(until_commit)
        yield connection


class _JsonText(TypeDecorator[str]):
    """A JSON document as text, so that every number, NULL and null is preserved."""

    impl = sa.Text
    cache_ok = True

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """Reads a document as text."""
        return sa.cast(column, sa.Text)

    def bind_expression(self, bindparam: BindParameter[str]) -> ColumnElement[Any]:
        """Writes text as a document."""
        return sa.cast(bindparam, sa.Text().with_variant(JSONB(), "postgresql"))


def _use_portable_type(inspector: object, table: Table, column: dict[str, Any]) -> None:
    """Gives a column of the file the type that is equivalent on both engines."""
    del inspector, table
    if isinstance(column["type"], sa.DateTime):
        column["type"] = UtcDateTime()
    elif isinstance(column["type"], JSON):
        column["type"] = _JsonText()


def _list_tables(file: Connection) -> list[Table]:
    """Returns the tables of the schema, each after those that it refers to."""
    metadata = sa.MetaData()
    event.listen(metadata, "column_reflect", _use_portable_type)
    with warnings.catch_warnings():
        # A copy of rows needs no index, and an index of an expression cannot be read back.
        warnings.filterwarnings("ignore", ".*expression-based index", SAWarning)
        metadata.reflect(file, only=lambda name, _: name != "alembic_version")
    return [table for table in metadata.sorted_tables if table.name != CONTENTS]


def _copy_rows(target: Connection, source: Connection, tables: list[Table]) -> None:
    """Copies every row of ``source`` to the fresh schema of ``target``."""
    for table in reversed(tables):
        target.execute(sa.delete(table))  # rows that the migrations themselves have written
    for table in tables:
        rows = source.execute(sa.select(table), execution_options={"yield_per": BATCH_ROWS})
        for batch in rows.mappings().partitions():
            target.execute(sa.insert(table), [dict(row) for row in batch])


def _advance_sequences(target: Connection, tables: list[Table]) -> None:
    """Sets PostgreSQL's sequences to follow the highest number of each table; a NULL sequence is skipped."""
    for table in tables:
        key = table.autoincrement_column
        if key is not None:
            sequence = sa.cast(sa.func.pg_get_serial_sequence(table.name, key.name), REGCLASS)
            following = sa.select(sa.func.coalesce(sa.func.max(key), 0) + 1).scalar_subquery()
            target.execute(sa.select(sa.func.setval(sequence, following, False)))  # noqa: FBT003


def _list_contents(file: Connection) -> list[TableContent]:
    """Returns count and digest of every table of the file, from its stored bytes."""
    names = sorted(name for name in sa.inspect(file).get_table_names() if name != CONTENTS)
    return [_digest_table(file, name) for name in names]


def _digest_table(file: Connection, name: str) -> TableContent:
    rows = file.exec_driver_sql(f'SELECT * FROM "{name}"')  # noqa: S608
    digest = hashlib.sha256(repr(tuple(rows.keys())).encode())
    count = 0
    for row in rows:
        digest.update(repr(tuple(row)).encode())
        count += 1
    return TableContent(name, count, digest.hexdigest())


def _verify_file(file: Connection, path: Path) -> list[TableContent]:
    """Returns the contents of a file after verifying them against its own record."""
    try:
        written = file.exec_driver_sql(f"SELECT * FROM {CONTENTS}")  # noqa: S608
        contents = [TableContent(*row) for row in written]
        sound = file.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        is_intact = sound == "ok" and contents == _list_contents(file)
    except DatabaseError as error:
        raise BackupRefused(f"{path} is damaged or is not a backup: {error.orig}") from error
    if not is_intact:
        raise BackupRefused(f"{path} is damaged: its contents differ from its record of them")
    return contents
