"""The migration tree on both databases: one head, both ways, no drift, no lost data, one runner at a time."""

import contextlib
import os
import shutil
import sqlite3
import threading
from dataclasses import fields

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select
from sqlalchemy.exc import OperationalError

from service.app import storage
from service.app.storage import (
    SchemaMismatch,
    build_alembic_config,
    check_schema,
    get_schema_revision,
    migrate_database,
    prepare_database,
    upgrade_schema,
)
from service.catalog.registry import RESOURCES
from service.evidence.snapshot import SnapshotStore
from service.kit.database import waiting
from service.kit.database.engine import Base, Database
from service.kit.security.principals import DEFAULT_TENANT
from tests import forked
from tests.applications import attach
from tests.conftest import Client

NEXT = '''
"""One more table."""
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade():
    op.create_table("later", sa.Column("id", sa.Integer, primary_key=True))
    {then}


def downgrade():
    op.drop_table("later")
'''


@pytest.fixture
def next_version(tmp_path, monkeypatch):
    """Makes a later version of the service: the same tree with one migration more."""

    def make(then="pass"):
        tree = tmp_path / "a tree 100%"
        shutil.copytree(storage.MIGRATIONS, tree, ignore=shutil.ignore_patterns("__pycache__"))
        source = NEXT.format(head=storage.get_head_revision(), then=then)
        (tree / "versions" / "9999_later.py").write_text(source)
        monkeypatch.setattr(storage, "MIGRATIONS", tree)

    return make


def tables(database):
    return set(inspect(database.engine).get_table_names())


def stored(database):
    """Every version of every row."""
    with database.open_reader() as session:
        return {
            name: session.execute(
                select(table.__table__).order_by(table.tenant_id, table.id, table.version)
            ).all()
            for name, table in ((name, resource.table) for name, resource in RESOURCES.items())
        }


def test_the_only_head_is_read_off_the_files():
    assert ScriptDirectory(str(storage.MIGRATIONS)).get_heads() == [storage.get_head_revision()]


def test_every_step_goes_up_and_down_and_up_again(databases, monkeypatch):
    database = databases.empty()
    tree = ScriptDirectory(str(storage.MIGRATIONS))
    monkeypatch.setattr(ScriptDirectory, "from_config", lambda _: tree)  # read once, not by every command
    steps, after = list(tree.walk_revisions())[::-1], [{"alembic_version"}]
    for step in steps:
        command.upgrade(build_alembic_config(database), step.revision)
        after.append(tables(database))
    for step, before in zip(steps[::-1], after[-2::-1], strict=True):
        command.downgrade(build_alembic_config(database), step.down_revision or "base")
        assert tables(database) == before, step.revision
    command.upgrade(build_alembic_config(database), "head")
    assert tables(database) == after[-1]


@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_tables_and_migrations_agree(databases):
    database = databases.unchanged()  # made by `upgrade_schema`
    with database.engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_data_survives_a_step_up_and_down(database, next_version):
    before = stored(database)
    assert all(before.values())
    next_version()
    upgrade_schema(database)
    assert "later" in tables(database)
    assert stored(database) == before
    command.downgrade(build_alembic_config(database), "-1")
    assert stored(database) == before


def test_the_catalog_is_the_same_on_both_databases(databases, snapshot):
    """What a database gives back is what the files ship, whatever the dialect."""
    store = SnapshotStore(databases.unchanged())
    store.refresh()
    built = store.get_current(DEFAULT_TENANT)
    for name in RESOURCES.keys() & {field.name for field in fields(snapshot)}:
        assert getattr(built, name) == getattr(snapshot, name), name


def test_a_migration_that_fails_changes_nothing(database, next_version, monkeypatch, app):
    before, before_it, present = stored(database), storage.get_head_revision(), storage.MIGRATIONS
    next_version(then='raise RuntimeError("half-way")')
    with pytest.raises(RuntimeError, match="half-way"):
        upgrade_schema(database)
    assert "later" not in tables(database)
    assert get_schema_revision(database) == before_it
    assert stored(database) == before
    monkeypatch.setattr(storage, "MIGRATIONS", present)
    assert prepare_database(database).startswith("the schema is current")
    attach(app, database)
    with contextlib.closing(Client(app)) as older:
        made = older.post("/v1/cost-centers", {"id": "still-works", "name": "Who pays"})
        assert made.status_code == 201, made.text


def test_processes_that_migrate_at_once_take_turns(databases):
    database = databases.empty()
    own = {**os.environ, "IRONLAW_DATABASE_URL": database.url.render_as_string(hide_password=False)}
    runs = [forked.Staying("migrate", environment=own) for _ in range(3)]
    said = [run.communicate(timeout=240) for run in runs]
    assert [(run.returncode, errors) for run, (_, errors) in zip(runs, said, strict=True)] == [(0, "")] * 3
    changed = sorted(int(out.split("revision 1, ")[1].split()[0]) for out, _ in said)
    assert changed[:2] == [0, 0]
    assert changed[2] > 300


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_migration_of_an_embedded_database_waits_longer_than_other_writers(databases, monkeypatch):
    """Another process that creates the schema may take longer than a transaction is waited for."""
    monkeypatch.setattr(waiting, "TRANSACTION_SECONDS", 0.1)
    database = databases.empty()
    migrate_database(database)
    with contextlib.closing(sqlite3.connect(database.url.database, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"), database.open_writer():
            pass
        threading.Timer(0.5, other.rollback).start()
        assert migrate_database(database).startswith("the schema is current")


def test_a_later_schema_is_refused(database, next_version, monkeypatch):
    present = storage.MIGRATIONS
    next_version()
    upgrade_schema(database)
    monkeypatch.setattr(storage, "MIGRATIONS", present)
    for entry in (check_schema, migrate_database, prepare_database):
        with pytest.raises(SchemaMismatch, match="later version"):
            entry(database)


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_check_wants_schema_and_catalog(databases):
    database = databases.empty()
    with pytest.raises(SchemaMismatch, match="ironlaw migrate"):
        check_schema(database)
    command.upgrade(build_alembic_config(database), "head")
    with pytest.raises(SchemaMismatch, match="catalog is not loaded: run `ironlaw migrate`"):
        check_schema(database)
    migrate_database(database)
    check_schema(database)


def test_an_old_database_is_migrated_when_embedded_and_refused_on_postgresql(database, next_version):
    old = storage.get_head_revision()
    next_version()
    if not database.is_sqlite:
        with pytest.raises(SchemaMismatch, match="ironlaw migrate"):
            prepare_database(database)
        assert f"migrated the schema from {old}" in migrate_database(database)
        assert "later" in tables(database)
        return
    before = stored(database)
    told = prepare_database(database)
    assert "later" in tables(database)
    copy = told.split("old data in ")[1].split(";")[0]
    kept = Database(f"sqlite:///{copy}")
    assert stored(kept) == before
    assert "later" not in tables(kept)
    kept.dispose()


def test_the_backup_holds_what_is_still_in_the_journal(tmp_path):
    """Rows in the write-ahead log are part of the copy."""
    path = tmp_path / "ironlaw.db"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute("CREATE TABLE kept (id INTEGER)")
    writer.execute("INSERT INTO kept VALUES (42)")
    writer.commit()
    copy = sqlite3.connect(storage._copy_database(path))
    assert copy.execute("SELECT id FROM kept").fetchall() == [(42,)]
    writer.close()
    copy.close()


def test_an_empty_data_directory_is_created_and_loaded(tmp_path):
    path = tmp_path / "not there" / "yet" / "ironlaw.db"
    database = Database(f"sqlite:///{path}")
    assert prepare_database(database).startswith("created the schema; catalog revision 1, ")
    assert prepare_database(database) == "the schema is current; catalog revision 1, 0 rows changed"
    assert [file.suffixes for file in path.parent.glob("*.backup.db")] == []
    database.dispose()
