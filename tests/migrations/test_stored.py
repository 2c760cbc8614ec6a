"""What each older version stored is shown alike by this one, once it is migrated; see storing.py."""

import contextlib
import gzip
import json
import sqlite3
from datetime import UTC, datetime

import pytest
from alembic import command
from sqlalchemy import JSON, Boolean, DateTime, MetaData

from service.app import application
from service.app.storage import build_alembic_config, get_head_revision, get_schema_revision, migrate_database
from service.kit.security.keyring import Keyring
from tests.applications import KEYRING, OPEN
from tests.conftest import Client
from tests.faults.harness import LONG
from tests.migrations.storing import FOLDER

REVISIONS = sorted(path.name.partition(".")[0] for path in FOLDER.iterdir())
RELEASED = ["0026"]
"""The schema of 0.1.0."""


PASSING = {"reachable"}
"""What time alone changes."""


def load(database, revision, dump):
    """Let a database be what a version left; PostgreSQL gets the rows that it left in an embedded one."""
    if database.is_sqlite:
        with contextlib.closing(sqlite3.connect(database.url.database)) as connection:
            connection.executescript(dump)
        return
    command.upgrade(build_alembic_config(database), revision)
    with contextlib.closing(sqlite3.connect(":memory:")) as connection, database.engine.begin() as target:
        connection.row_factory = sqlite3.Row
        connection.executescript(dump)
        known = MetaData()
        known.reflect(target)
        for table in reversed(known.sorted_tables):
            target.execute(table.delete())
        for table in known.sorted_tables:
            rows = connection.execute(f"SELECT * FROM {table.name}").fetchall()
            if rows:
                target.execute(table.insert(), [convert(table, row) for row in rows])


def convert(table, row):
    """The values of a row of SQLite as PostgreSQL takes them."""
    return {name: convert_value(table.columns[name].type, row[name]) for name in row.keys()}  # noqa: SIM118  # of sqlite3.Row


def convert_value(kind, value):
    if value is None:
        return None
    if isinstance(kind, Boolean):
        return bool(value)
    if isinstance(kind, DateTime):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return json.loads(value) if isinstance(kind, JSON) else value


def list_differences(before, now, at=""):
    """Where a document does not have what it had before; members may have come."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name, value in before.items():
            yield from list_differences(value, now.get(name), f"{at}/{name}")
    elif before != now and at.rpartition("/")[2] not in PASSING:
        yield at, before, now


@pytest.mark.parametrize("revision", REVISIONS if LONG else RELEASED)
@pytest.mark.parametrize("databases", ["sqlite", "postgresql"] if LONG else ["sqlite"], indirect=True)
def test_what_an_older_version_stored_is_shown_alike(databases, app, revision):
    stored = json.loads(gzip.decompress((FOLDER / f"{revision}.json.gz").read_bytes()))
    database = databases.empty()
    load(database, revision, stored["dump"])
    assert get_schema_revision(database) == revision
    migrate_database(database)
    assert get_schema_revision(database) == get_head_revision()
    keyring = Keyring(stored["secret"].encode()) if stored["secret"] else KEYRING
    application.attach_database(app, database, OPEN, keyring)
    with contextlib.closing(Client(app)) as client:
        verified = client.get("/v1/audit-events:verify").json()
        assert verified["valid"], verified
        different = [
            (path, *one)
            for path, before in stored["shown"].items()
            for one in list_differences(before, client.get(path).json())
        ]
    assert different == []
