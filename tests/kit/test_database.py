"""The two databases behave alike: times, documents, transactions, many writers."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, insert, select, text, update
from sqlalchemy.exc import InternalError, OperationalError, StatementError

from service.audit.tables import AuditHeadRow
from service.kit.database import engine as kit_database
from service.kit.database.engine import Database, Json, UtcDateTime, insert_new
from service.kit.database.failures import (
    FailureKind,
    OutcomeUnknownError,
    ReadOnlyError,
    WriteTurnError,
    describe_failure,
)
from service.kit.database.waiting import limit_waits
from tests.waiting import until

METADATA = MetaData()
THINGS = Table(
    "things",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("count", Integer),
    Column("at", UtcDateTime),
    Column("document", Json),
)


@pytest.fixture
def things(databases):
    database = databases.empty()
    METADATA.create_all(database.engine)
    return database


def value(database, column):
    with database.open_reader() as session:
        return session.execute(select(THINGS.c[column])).scalar_one()


def test_times_keep_their_instant(things):
    zoned = datetime(2026, 3, 29, 1, 59, 59, 123456, timezone(timedelta(hours=1)))
    with things.open_writer() as session:
        session.execute(insert(THINGS).values(id=1, at=zoned))
    read = value(things, "at")
    assert read == zoned
    assert read.tzinfo is not None
    assert read.astimezone(UTC).hour == 0


def test_times_come_back_in_utc_whatever_the_zone_of_the_server(things):
    last = datetime.max.replace(tzinfo=UTC)
    with things.open_writer() as session:
        session.execute(insert(THINGS).values(id=1, at=last))
    if not things.is_sqlite:
        with things.engine.begin() as connection:
            connection.execute(text(f"ALTER DATABASE \"{things.url.database}\" SET timezone TO 'Asia/Tokyo'"))
    other = Database(things.url)
    read = value(other, "at")
    other.dispose()
    assert (read, read.tzinfo) == (last, UTC)
    in_tokyo = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    found = UtcDateTime().process_result_value(in_tokyo, things.engine.dialect)
    assert (found.hour, found.tzinfo) == (0, UTC)


def test_a_time_without_a_zone_is_refused(things):
    naive = datetime(2026, 1, 1)  # noqa: DTZ001
    with pytest.raises(StatementError, match="has no zone"), things.open_writer() as session:
        session.execute(insert(THINGS).values(id=1, at=naive))


def test_documents_survive(things):
    document = {"text": "ß 😀 \\u0041", "large": 2**53 - 1, "small": 1e-300, "list": [None, True, {}]}
    with things.open_writer() as session:
        session.execute(insert(THINGS).values(id=1, document=document))
    assert value(things, "document") == document


def test_a_row_is_new_once(database):
    head = {"tenant_id": "new", "sequence": 0, "hash": "", "seal": ""}
    with database.open_writer() as session:
        assert insert_new(session, AuditHeadRow, **head)
        assert not insert_new(session, AuditHeadRow, **head)
    with database.open_writer() as session:
        assert not insert_new(session, AuditHeadRow, **head)


def test_an_error_undoes_the_whole_transaction(things):
    def write_and_fail():
        with things.open_writer() as session:
            session.execute(insert(THINGS).values(id=1, count=1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()
    with things.open_reader() as session:
        assert session.execute(select(THINGS)).all() == []


def test_reading_writes_nothing(things):
    with contextlib.suppress(InternalError), things.open_reader() as session:
        session.execute(insert(THINGS).values(id=1, count=1))
    with things.open_reader() as session:
        assert session.execute(select(THINGS)).all() == []


def test_no_increment_is_lost(things):
    """Eight writers that read, then write: the pattern that deferred transactions of SQLite break."""
    with things.open_writer() as session:
        session.execute(insert(THINGS).values(id=1, count=0))

    def increment(_):
        with things.open_writer() as session:
            counted = session.execute(select(THINGS.c.count).with_for_update()).scalar_one()
            session.execute(update(THINGS).values(count=counted + 1))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(increment, range(480)))
    assert value(things, "count") == 480


def test_sqlite_is_set_up_to_lose_nothing(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'data.db'}")
    with database.open_reader() as session:
        found = {
            name: session.connection().exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}
    database.dispose()


def test_a_probe_reads_and_asks_to_write(tmp_path, things, databases):
    """A lock of a writer is no fault; a file or a server that cannot be written is one."""
    with things.open_writer():
        things.probe("SELECT id FROM things")
    with pytest.raises(OperationalError):
        Database(f"sqlite:///{tmp_path / 'not-there.db'}").probe("SELECT 1")
    assert not (tmp_path / "not-there.db").exists()
    if databases.kind == "postgresql":
        with things.engine.begin() as connection:
            name = things.url.database
            connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only TO on'))
        things.dispose()
        with pytest.raises(ReadOnlyError):
            things.probe("SELECT id FROM things")


def write(database):
    with database.open_writer() as session:
        session.execute(insert(THINGS).values(count=1))


def requesting(seconds, do, *arguments):
    """Does something as a request does that may wait for so long in all."""

    def begin():
        limit_waits(seconds)
        return do(*arguments)

    return copy_context().run(begin)


def test_all_waits_of_a_request_have_one_deadline(things):
    """Two transactions of one request wait for a lock for as long as one may, with statements of 30 s."""
    other = Database(things.url)  # another process

    def write_twice():
        for _ in range(2):
            with pytest.raises(OperationalError) as raised:
                write(other)
            assert describe_failure(raised.value).kind is FailureKind.BUSY

    with things.open_writer() as held:
        held.execute(text("SELECT 1" if things.is_sqlite else "LOCK TABLE things"))
        began = time.monotonic()
        requesting(0.3, write_twice)
        assert 0.3 <= time.monotonic() - began < 5.0
    other.dispose()


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_writer_waits_for_its_turn_no_longer(things):
    with things.open_writer(), ThreadPoolExecutor(1) as pool:
        began = time.monotonic()
        with pytest.raises(WriteTurnError):
            pool.submit(requesting, 0.2, write, things).result()
        assert time.monotonic() - began < 5.0


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_writers_beyond_a_number_are_refused_at_once(things, monkeypatch):
    monkeypatch.setattr(kit_database, "MOST_WRITERS", 2)
    database = Database(things.url)
    with ThreadPoolExecutor(2) as pool, database.open_writer():
        waiting = [pool.submit(write, database) for _ in range(2)]
        refused = until(lambda: [each for each in waiting if each.done()])
        with pytest.raises(WriteTurnError, match="too many"):
            refused[0].result()
    assert len([each for each in waiting if each.exception() is None]) == 1
    database.dispose()


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_a_connection_that_is_lost_at_the_commit_leaves_the_outcome_open(things):
    other = Database(things.url)

    def write_and_lose():
        with other.open_writer() as session:
            session.execute(insert(THINGS).values(id=7, count=1))
            process = session.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with things.open_reader() as ending:
                ending.execute(text(f"SELECT pg_terminate_backend({process}, 10000)"))

    with pytest.raises(OutcomeUnknownError):
        write_and_lose()
    write(other)  # the pool has another connection
    other.dispose()


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_nothing_is_left_in_a_session_of_postgresql(things):
    """A pooler in transaction mode gives each transaction another session, without bounds and statements."""

    def read_bounds():
        with things.open_reader() as session:
            names = ("statement_timeout", "lock_timeout")
            return [session.execute(text(f"SHOW {name}")).scalar_one() for name in names]

    for _ in range(6):  # more often than the driver executes a statement before it prepares it
        assert requesting(5.0, read_bounds) in (["30s", "5s"], ["30s", "4999ms"])
    with things.engine.connect() as connection:
        driver = connection.connection.dbapi_connection
        connection.rollback()
        assert driver.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        assert driver.execute("SHOW statement_timeout").fetchone() == ("0",)


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_writers_that_wait_keep_nobody_from_reading(things):
    """More of them than there are connections; and none sleeps once it is its turn."""
    began, may_end = threading.Event(), threading.Event()

    def write(number):
        with things.open_writer() as session:
            session.execute(insert(THINGS).values(id=number, count=number))
            began.set()
            may_end.wait(timeout=60)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(30)]
    for writer in writers:
        writer.start()
    began.wait(timeout=60)
    time.sleep(0.2)  # for the others to come and wait
    asked_at = time.monotonic()
    with things.open_reader() as session:
        assert session.execute(select(THINGS)).all() == []
    assert time.monotonic() - asked_at < 20.0
    assert things.engine.pool.checkedout() == 1
    may_end.set()
    for writer in writers:
        writer.join(timeout=60)
    with things.open_reader() as session:
        assert len(session.execute(select(THINGS)).all()) == 30
