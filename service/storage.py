"""The schema of a database: what it is, what it should be, and how it gets there."""

import sqlite3
from contextlib import closing
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from service.catalog import service as catalog
from service.catalog.service import ShippedLoad
from service.kit.clock import now
from service.kit.database import Database

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"


class SchemaOutdated(RuntimeError):
    """The database has not the schema of this version of the service."""


def alembic_config(database: Database) -> Config:
    """Alembic's configuration for ``database``, without a file."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["database"] = database
    return config


def head() -> str:
    """The newest revision of the schema."""
    revision = ScriptDirectory(str(MIGRATIONS)).get_current_head()
    assert revision is not None  # noqa: S101
    return revision


def schema_revision(database: Database) -> str | None:
    """The revision that ``database`` has; None without a schema."""
    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(database: Database) -> ShippedLoad:
    """Bring schema and shipped rows up to date."""
    command.upgrade(alembic_config(database), "head")
    with database.writing() as session:
        return catalog.load_shipped(session)


def _sqlite_path(database: Database) -> Path:
    return Path(database.url.database or "")


def _back_up(database: Database) -> Path:
    """A consistent copy of an embedded database beside it."""
    path = _sqlite_path(database)
    copy = path.with_name(f"{path.stem}-{now():%Y%m%dT%H%M%S%f}.backup.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def prepare(database: Database) -> str:
    """Make ``database`` fit to serve, and say what was done.

    The embedded database is created, migrated after a backup copy, and loaded. PostgreSQL is left to
    ``ironlaw migrate``: several processes share it, and its operator decides when.
    """
    if database.is_sqlite:
        return _prepare_embedded(database)
    if schema_revision(database) != head():
        raise SchemaOutdated("the database schema is not that of this version: run `ironlaw migrate`")
    with database.reading() as session:
        if not catalog.revision(session):
            raise SchemaOutdated("the catalog is not loaded: run `ironlaw migrate`")
    return "the schema is current"


def _prepare_embedded(database: Database) -> str:
    path = _sqlite_path(database)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = schema_revision(database) if path.exists() and path.stat().st_size else None
    if known is None:
        load = upgrade(database)
        return f"created {path} with {load.changed} catalog rows"
    if known != head():
        copy = _back_up(database)
        upgrade(database)
        return f"migrated {path} from {known}; the old data is in {copy}"
    with database.writing() as session:
        load = catalog.load_shipped(session)
    return f"loaded {load.changed} changed catalog rows" if load.changed else "the data is current"
