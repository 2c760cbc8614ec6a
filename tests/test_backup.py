"""A database comes back from its backup as it was, on either engine, or not at all."""

import os
import shutil
import signal
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.app import backup, storage
from service.app.backup import BackupRefused, _open_snapshot, restore_backup, write_backup
from service.app.storage import SchemaMismatch, migrate_database, upgrade_schema
from service.kit.database.engine import Base, Database, Json, UtcDateTime
from tests.forked import Process
from tests.prepared import ON_SQLITE
from tests.waiting import until

HARD = '''
"""Tables of hard values, tied to each other; one is the first to be copied, one the last."""
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "8888"
down_revision = "{head}"


def upgrade():
    op.create_table(
        "a_values",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("large", sa.BigInteger),
        sa.Column("small", sa.Float),
        sa.Column("at", sa.DateTime(timezone=True)),
        sa.Column("document", sa.JSON().with_variant(JSONB(), "postgresql")),
        sa.Column("binary", sa.LargeBinary),
        sa.Column("flag", sa.Boolean),
        sa.Column("text", sa.Text),
        sa.Column("select", sa.String(10)),
    )
    op.create_table(
        "z_values",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("value_id", sa.Integer, sa.ForeignKey("a_values.id"), nullable=False),
    )


def downgrade():
    op.drop_table("z_values")
    op.drop_table("a_values")
'''
METADATA = sa.MetaData()
A_VALUES = sa.Table(
    "a_values",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("large", sa.BigInteger),
    sa.Column("small", sa.Float),
    sa.Column("at", UtcDateTime),
    sa.Column("document", Json),
    sa.Column("binary", sa.LargeBinary),
    sa.Column("flag", sa.Boolean),
    sa.Column("text", sa.Text),
    sa.Column("select", sa.String(10)),
)
Z_VALUES = sa.Table(
    "z_values", METADATA, sa.Column("id", sa.Integer, primary_key=True), sa.Column("value_id", sa.Integer)
)
DOCUMENT = {
    "ß 😀 \\u0041": ["'\"\\\n", "\u2028", ""],
    "numbers": [0.1, 1e-300, -1.7976931348623157, 2**53 - 1, -(2**63), 0],
    "rest": [None, True, False, {}, []],
}
ROWS = [
    {"large": 2**63 - 1, "small": 5e-324, "at": datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)},
    {"large": -(2**63), "small": -1.7976931348623157e308, "at": datetime(1, 1, 1, tzinfo=UTC)},
    {
        "large": 2**53 + 1,
        "small": 0.1,
        "at": datetime(2026, 3, 29, 1, 59, 59, 1, timezone(timedelta(hours=1))),
    },
    {"document": DOCUMENT, "flag": True, "binary": bytes(range(256)), "select": "ß" * 10},
    {"document": sa.null(), "flag": False, "binary": b"", "text": ""},
    {"document": sa.JSON.NULL, "text": "'; DROP TABLE a_values; -- %s %(x)s :x ? \r\n\t\x01\x7f 😀"},
    {"document": "text", "text": "x" * 100_000},
    {"document": 0.1},
    {"document": []},
]


def tree(tmp_path, monkeypatch, source):
    """The migrations of this version with one more."""
    folder = tmp_path / f"tree {len(list(tmp_path.iterdir()))}"
    shutil.copytree(storage.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "later.py").write_text(source.format(head=storage.get_head_revision()))
    monkeypatch.setattr(storage, "MIGRATIONS", folder)


@pytest.fixture
def hard(tmp_path, monkeypatch, databases):
    """A database with the shipped catalog and tables of hard values."""
    database = databases.loaded()
    tree(tmp_path, monkeypatch, HARD)
    upgrade_schema(database)
    with database.open_writer() as session:
        for row in ROWS:
            session.execute(sa.insert(A_VALUES).values(**row))
        session.execute(sa.insert(Z_VALUES), [{"value_id": number} for number in (1, 2, 2)])
    return database


@pytest.fixture
def file(tmp_path):
    return tmp_path / "a backup?.ironlaw"


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, databases_of):
    """An empty database of each kind, whatever the kind of the source."""
    maker = databases_of(request.param)
    yield maker.empty()
    maker.dispose()


def tables_of(database):
    return set(sa.inspect(database.engine).get_table_names())


def rows(database):
    """Every row of every table, NULL and null of documents told apart."""
    found = {}
    with database.open_reader() as session:
        for table in (*Base.metadata.sorted_tables, A_VALUES, Z_VALUES):
            if table.name in tables_of(database):
                nulls = [column.is_(None) for column in table.columns if column.type is Json]
                statement = sa.select(table, *nulls).order_by(*table.primary_key)
                found[table.name] = session.execute(statement).all()
    return found


def test_a_backup_restores_on_either_engine(hard, target, file):
    before = rows(hard)
    assert all(before[name] for name in ("a_values", "z_values", "offers", "catalog_state"))
    written = write_backup(hard, file)
    assert restore_backup(target, file) == written
    assert rows(target) == before
    assert tables_of(target) == tables_of(hard)
    assert {name: len(found) for name, found in before.items()} == {
        content.table_name: content.row_count for content in written if content.table_name in before
    }
    assert "0 rows changed" in migrate_database(target)


@ON_SQLITE
def test_what_is_restored_counts_on(hard, target, file):
    write_backup(hard, file)
    restore_backup(target, file)
    with target.open_writer() as session:
        inserted = session.execute(sa.insert(A_VALUES).values(text="next").returning(A_VALUES.c.id))
        assert inserted.scalar_one() == len(ROWS) + 1


@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_a_backup_holds_one_instant(hard, target, file):
    """A writer puts a row into the first and the last table at once; a backup has both or neither."""
    stop = threading.Event()
    written = 0

    def write():
        nonlocal written
        while not stop.is_set():
            with hard.open_writer() as session:
                made = session.execute(sa.insert(A_VALUES).values(text="a").returning(A_VALUES.c.id))
                session.execute(sa.insert(Z_VALUES).values(value_id=made.scalar_one()))
            written += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while written < 3:
            pass
        before = written
        contents = {content.table_name: content.row_count for content in write_backup(hard, file)}
        after = written
    finally:
        stop.set()
        writer.join()
    assert after > before
    assert contents["a_values"] - len(ROWS) == contents["z_values"] - 3 >= before
    restore_backup(target, file)
    kept = rows(target)
    assert [row.id for row in kept["a_values"][len(ROWS) :]] == [row.value_id for row in kept["z_values"][3:]]


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_no_migration_runs_beside_a_backup(database):
    """One that rewrites a table would empty it for a transaction that began before."""
    turn = sa.select(sa.func.pg_try_advisory_xact_lock(storage.ONE_MIGRATION_AT_A_TIME))
    with _open_snapshot(database), database.open_reader() as session:
        assert not session.scalar(turn)

    def is_free():
        with database.open_reader() as session:
            return session.scalar(turn)

    until(is_free)  # the server ends a closed connection in its own time


def kill_within(at, operation, url, file):
    """Do a part of the backup in this process, which is killed where it calls ``at``."""
    setattr(backup, at, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    getattr(backup, operation)(Database(url), file)


def killed(at, operation, database, file):
    url = database.url.render_as_string(hide_password=False)
    process = Process(kill_within, at, operation, url, file)
    assert process.wait(timeout=60) == -signal.SIGKILL


def test_a_backup_that_is_killed_leaves_no_file(database, file):
    killed("_list_contents", "write_backup", database, file)
    (unfinished,) = file.parent.iterdir()
    assert unfinished.suffix == ".part"
    write_backup(database, file)


def test_a_restore_that_is_killed_leaves_nothing(database, databases, file):
    write_backup(database, file)
    target = databases.empty()
    killed("_copy_rows", "restore_backup", target, file)
    assert tables_of(target) == set()
    restore_backup(target, file)
    assert rows(target) == rows(database)


@pytest.fixture(scope="module")
def backups(tmp_path_factory):
    """Where the backup of each kind of database is, once it is written."""
    return tmp_path_factory.mktemp("backups")


@pytest.fixture
def kept(databases, backups, file):
    """The backup of a database with the shipped catalog."""
    written = backups / databases.kind
    if not written.exists():
        write_backup(databases.unchanged(), written)
    return Path(shutil.copy2(written, file))


def refused(databases, file, saying):
    target = databases.empty()
    with pytest.raises(BackupRefused, match=saying) as error:
        restore_backup(target, file)
    assert "\n" not in str(error.value)
    assert not target.is_sqlite or not Path(target.url.database).exists()
    assert tables_of(target) == set()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
@ON_SQLITE
def test_a_truncated_file_is_refused(databases, kept, share):
    os.truncate(kept, int(kept.stat().st_size * share))
    refused(databases, kept, "is damaged")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE offers SET note = 'x' WHERE id = (SELECT min(id) FROM offers)",
        "UPDATE sites SET pue = pue + 1e-12",
        "DELETE FROM grids WHERE id = (SELECT min(id) FROM grids)",
        "DELETE FROM models",
        "DROP TABLE links",
        "ALTER TABLE links RENAME COLUMN kind TO sort",
        "CREATE TABLE more (id INTEGER)",
        "DELETE FROM backup_contents",
        "UPDATE alembic_version SET version_num = '0000'",
    ],
)
@ON_SQLITE
def test_an_edited_file_is_refused(databases, kept, statement):
    with closing(sqlite3.connect(kept)) as connection, connection:
        connection.execute(statement)
    refused(databases, kept, "is damaged: its contents differ")


@ON_SQLITE
def test_a_flipped_bit_is_refused(databases, kept):
    content = bytearray(kept.read_bytes())
    at = content.index(b"H100")
    content[at] ^= 1
    kept.write_bytes(content)
    refused(databases, kept, "is damaged")


@pytest.mark.parametrize("content", [b"", b"no database" * 1000])
@ON_SQLITE
def test_a_file_that_is_no_backup_is_refused(databases, file, content):
    refused(databases, file, "is not a file")
    file.write_bytes(content)
    refused(databases, file, "is damaged")


def test_a_database_that_is_not_empty_is_refused(database, kept):
    before = rows(database)
    with pytest.raises(BackupRefused, match="not empty"):
        restore_backup(database, kept)
    assert rows(database) == before


def test_a_file_that_exists_is_kept(database, file):
    file.write_text("mine")
    with pytest.raises(BackupRefused, match="exists"):
        write_backup(database, file)
    assert file.read_text() == "mine"
    assert list(file.parent.iterdir()) == [file]


def test_an_empty_database_has_nothing_to_back_up(databases, file):
    database = databases.empty()
    for _ in range(2):
        with pytest.raises(BackupRefused, match="nothing to back up"):
            write_backup(database, file)
        assert not list(file.parent.iterdir())
        database.engine.connect().close()  # from here on SQLite has a file, without a table


def test_a_file_is_for_its_owner_alone_and_unchanged_by_a_restore(databases, kept):
    assert kept.stat().st_mode & 0o777 == 0o600
    before = kept.read_bytes()
    restore_backup(databases.empty(), kept)
    assert kept.read_bytes() == before
    assert list(kept.parent.iterdir()) == [kept]


def test_a_backup_of_an_older_version_restores_into_a_newer_one(databases, kept, tmp_path, monkeypatch):
    before = rows(databases.unchanged())
    tree(tmp_path, monkeypatch, HARD)
    target = databases.empty()
    restore_backup(target, kept)
    assert "a_values" not in tables_of(target)
    assert "migrated the schema from" in migrate_database(target)
    assert rows(target) == {**before, "a_values": [], "z_values": []}


@ON_SQLITE
def test_a_backup_of_a_later_version_is_refused(hard, databases, file, monkeypatch):
    write_backup(hard, file)
    monkeypatch.undo()
    target = databases.empty()
    with pytest.raises(SchemaMismatch, match="later version"):
        restore_backup(target, file)
    assert tables_of(target) == set()
