"""The schema of a database: its revision, its creation and its migration."""

import glob
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect

from service.catalog import service as catalog
from service.catalog.service import ShippedLoad
from service.kit.clock import now
from service.kit.database.engine import Database
from service.kit.security import private

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"
_REVISION = re.compile(r'^(down_revision|revision)\b[^=]*= "(\w+)"$', re.MULTILINE)
_SUFFIXES = ("-wal", "-shm", "-journal")
ONE_MIGRATION_AT_A_TIME = 0x1A0414
"""Key of the advisory lock of PostgreSQL: migrations exclude each other and backups."""


class SchemaMismatch(RuntimeError):
    """The database does not have the schema of this version of the service."""


def build_alembic_config(database: Database) -> "Config":
    """Returns Alembic's configuration for ``database``, without a file."""
    return _build_config(database=database)


def _build_config(**attributes: object) -> "Config":
    from alembic.config import Config  # noqa: PLC0415  # a start without a migration does not need it

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes.update(attributes)
    return config


def _read_revisions() -> dict[str, str | None]:
    """Maps each revision to the one before it, as the files say, which Alembic would execute."""
    found = (
        dict(_REVISION.findall(file.read_text(encoding="utf-8")))
        for file in (MIGRATIONS / "versions").glob("*.py")
    )
    return {each["revision"]: each.get("down_revision") for each in found}


def get_head_revision() -> str:
    """Returns the newest revision of the schema."""
    revisions = _read_revisions()
    (head,) = revisions.keys() - revisions.values()
    return head


def get_schema_revision(database: Database) -> str | None:
    """Returns the revision of ``database``, None without a schema; refuses one of a later version."""
    with database.engine.connect() as connection:
        return get_revision(connection)


def get_revision(connection: Connection) -> str | None:
    """Returns the revision of the schema that ``connection`` sees."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    known: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if known is not None and known not in _read_revisions():
        raise SchemaMismatch(f"the database has schema {known}, of a later version of Ironlaw; use that one")
    return known


def create_schema(connection: Connection, revision: str) -> None:
    """Creates the schema of ``revision`` in the transaction of ``connection``."""
    from alembic import command  # noqa: PLC0415

    command.upgrade(_build_config(connection=connection), revision)


def check_schema(database: Database) -> None:
    """Refuses a database that `ironlaw migrate` must still bring up to date."""
    if get_schema_revision(database) != get_head_revision():
        raise SchemaMismatch("the schema does not match this version: run `ironlaw migrate`")
    with database.open_reader() as session:
        if not catalog.list_own_revisions(session):
            raise SchemaMismatch("the catalog is not loaded: run `ironlaw migrate`")


def upgrade_schema(database: Database) -> ShippedLoad:
    """Migrates the schema and loads the shipped rows."""
    from alembic import command  # noqa: PLC0415

    command.upgrade(build_alembic_config(database), "head")
    return _load_shipped_rows(database)


def _load_shipped_rows(database: Database) -> ShippedLoad:
    with database.open_writer(is_unbounded=True) as session:
        return catalog.load_shipped(session)


def _copy_database(path: Path) -> Path:
    """Writes a consistent copy of an embedded database beside it."""
    copy = path.with_name(f"{path.stem}-{now():%Y%m%dT%H%M%S%f}.backup.db")
    private.create_file(copy)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def secure_embedded_file(database: Database) -> Path | None:
    """Restricts an embedded database to its owner and returns its path; None on PostgreSQL."""
    if not database.is_sqlite:
        return None
    path = Path(database.url.database or "")
    private.make_folder(path)
    if not path.exists():
        private.create_file(path)  # its log and shared memory inherit its permissions
    beside = [path.with_name(path.name + suffix) for suffix in _SUFFIXES]
    for file in (path, *beside, *path.parent.glob(f"{glob.escape(path.stem)}-*.backup.db")):
        private.restrict_access(file)
    return path


def migrate_database(database: Database) -> str:
    """Migrates ``database`` and returns a description of what was done; embedded data is copied first."""
    path = secure_embedded_file(database)
    known = get_schema_revision(database)
    if known == get_head_revision():
        done, load = "the schema is current", _load_shipped_rows(database)
    else:
        done = "created the schema" if known is None else f"migrated the schema from {known}"
        if known and path:
            done += f", with a copy of the old data in {_copy_database(path)}"
        load = upgrade_schema(database)
    return f"{done}; catalog revision {load.revision}, {load.changed} rows changed"


def prepare_database(database: Database) -> str:
    """Prepares ``database`` for serving, and returns a description of what was done.

    The embedded database is migrated. PostgreSQL is left to ``ironlaw migrate``: several processes share it,
    and its operator decides when.
    """
    if database.is_sqlite:
        return migrate_database(database)
    check_schema(database)
    return "the schema is current"
