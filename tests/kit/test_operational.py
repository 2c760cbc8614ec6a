"""Failures that operation must expect are a 503 and a warning; any other database error stays a defect."""

import logging
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import pytest
from fastapi import FastAPI
from sqlalchemy import exc, text

from service.app.application import create_app
from service.app.examples import EXAMPLES
from service.app.metrics import render_metrics
from service.app.storage import upgrade_schema
from service.kit.database import engine as kit_database
from service.kit.database import failures
from service.kit.database.engine import Database
from service.kit.database.failures import describe_failure
from service.kit.database.waiting import limit_waits
from service.kit.http import context
from service.kit.http.context import RequestContext
from service.kit.http.operational import build_database_problem, install_database_errors
from service.kit.http.web import install_problem_handlers
from service.kit.memory import MemoryWatch
from tests.applications import OPEN, attach
from tests.conftest import Client
from tests.postgresql import get_server

LONG = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(60)",
}


@pytest.fixture(autouse=True)
def _nobody_was_warned(monkeypatch):
    monkeypatch.setattr(failures, "_warned_at", {})


@pytest.fixture
def impatient(monkeypatch, databases):
    """An empty database whose statements and locks time out in a quarter of a second."""
    monkeypatch.setattr(kit_database, "STATEMENT_MILLISECONDS", 250)
    monkeypatch.setattr(context, "limit_waits", partial(limit_waits, 0.25))
    database = databases.empty()
    with database.open_writer() as session:
        session.execute(text("CREATE TABLE things (id INTEGER PRIMARY KEY, size INTEGER)"))
        session.execute(text("INSERT INTO things VALUES (1, 0)"))
    return database


@contextmanager
def calling(database):
    """A client of an application that executes what it is told."""
    app = FastAPI()
    app.add_middleware(RequestContext, max_body_bytes=2000, hosts=["*"], memory=MemoryWatch(None))
    install_problem_handlers(app)
    install_database_errors(app)

    @app.post("/execute")
    def execute(statement: str) -> int:
        with database.open_writer() as session:
            session.execute(text(statement))
        return 1

    client = Client(app)
    try:
        yield lambda statement: client.post("/execute", params={"statement": statement})
    finally:
        client.close()


def is_unavailable(response, code="DATABASE_BUSY"):
    assert response.headers["retry-after"] in ("1", "30")
    return (response.status_code, response.json()["code"]) == (503, code)


def warned(caplog, words):
    (record,) = [record for record in caplog.records if record.name.startswith("service")]
    return record.levelno == logging.WARNING and words in record.getMessage() and not record.exc_info


def test_a_long_statement_is_stopped(databases, impatient, caplog):
    with calling(impatient) as call:
        started = time.monotonic()
        assert is_unavailable(call(LONG[databases.kind]))
        assert time.monotonic() - started < 30
        assert warned(caplog, "a statement took too long")
        assert call("UPDATE things SET size = 1").status_code == 200


def test_a_lock_that_another_holds_is_not_waited_for_for_ever(impatient, caplog):
    other = Database(impatient.url)  # another process
    with other.open_writer() as session, calling(impatient) as call:
        session.execute(text("UPDATE things SET size = 1"))
        assert is_unavailable(call("UPDATE things SET size = 2"))
        assert warned(caplog, "locked" if impatient.is_sqlite else "too")
        session.commit()
        assert call("UPDATE things SET size = 2").status_code == 200
    other.dispose()


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_migrations_backups_and_loads_have_no_deadline(impatient):
    """A transaction that opts out goes on after the bound."""
    counting = text(LONG["sqlite"].replace("FROM n)", "FROM n WHERE i < 400000)"))
    unbounded = impatient.engine.execution_options(ironlaw_unbounded=True)
    for opened in (unbounded.connect(), impatient.open_writer(is_unbounded=True)):
        with opened as connection:
            started = time.monotonic()
            while time.monotonic() - started < 0.3:
                assert connection.execute(counting).scalar_one() == 400_000
    with calling(impatient) as call:
        assert is_unavailable(call(LONG["sqlite"]))


@pytest.mark.parametrize("statement", ["SELECT nothing", "INSERT INTO things VALUES (1, 0)"])
def test_a_defect_stays_a_500(impatient, caplog, statement):
    with calling(impatient) as call:
        response = call(statement)
    assert (response.status_code, response.json()["code"]) == (500, "INTERNAL_ERROR")
    assert [record.levelno for record in caplog.records if record.exc_info] == [logging.ERROR]


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_full_disk(impatient, caplog):
    with impatient.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with calling(impatient) as call:
        assert is_unavailable(call("INSERT INTO things(size) SELECT zeroblob(100000)"), "DATABASE_FULL")
    assert warned(caplog, "the disk is full")


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_a_connection_that_the_server_ends(impatient, caplog):
    with calling(impatient) as call:
        terminating = call("SELECT pg_terminate_backend(pg_backend_pid())")
        assert is_unavailable(terminating, "DATABASE_UNAVAILABLE")
        assert call("UPDATE things SET size = 1").status_code == 200
    assert warned(caplog, "stopping or starting")


def code_of(error):
    failure = describe_failure(error)
    return failure and build_database_problem(failure).code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (psycopg.errors.DiskFull, "DATABASE_FULL"),
        (psycopg.errors.TooManyConnections, "DATABASE_BUSY"),
        (psycopg.errors.DeadlockDetected, "DATABASE_BUSY"),
        (psycopg.errors.SerializationFailure, "DATABASE_BUSY"),
        (psycopg.errors.LockNotAvailable, "DATABASE_BUSY"),
        (psycopg.errors.QueryCanceled, "DATABASE_BUSY"),
        (psycopg.errors.CannotConnectNow, "DATABASE_UNAVAILABLE"),
        (psycopg.errors.AdminShutdown, "DATABASE_UNAVAILABLE"),
        (psycopg.errors.ConnectionTimeout, "DATABASE_UNAVAILABLE"),
        (psycopg.errors.DatabaseDropped, "DATABASE_UNAVAILABLE"),
        (psycopg.errors.ReadOnlySqlTransaction, "DATABASE_READ_ONLY"),
        (psycopg.errors.StatementCompletionUnknown, "OUTCOME_UNKNOWN"),
        (psycopg.errors.IoError, "DATABASE_IO_ERROR"),
        (psycopg.errors.DataCorrupted, "DATABASE_DAMAGED"),
        (psycopg.errors.UniqueViolation, None),
        (psycopg.errors.NumericValueOutOfRange, None),
        (psycopg.errors.UndefinedTable, None),
        (psycopg.DataError, None),
    ],
)
def test_errors_of_postgresql(error, code):
    assert code_of(exc.DBAPIError.instance("", {}, error("x"), psycopg.Error, dialect=None)) == code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SQLITE_BUSY_SNAPSHOT", "DATABASE_BUSY"),
        ("SQLITE_FULL", "DATABASE_FULL"),
        ("SQLITE_CANTOPEN", "DATABASE_UNAVAILABLE"),
        ("SQLITE_READONLY_DBMOVED", "DATABASE_READ_ONLY"),
        ("SQLITE_IOERR_FSYNC", "DATABASE_IO_ERROR"),
        ("SQLITE_CORRUPT_INDEX", "DATABASE_DAMAGED"),
        ("SQLITE_NOTADB", "DATABASE_DAMAGED"),
        ("SQLITE_CONSTRAINT_UNIQUE", None),
        ("SQLITE_ERROR", None),
    ],
)
def test_errors_of_sqlite(name, code):
    error = sqlite3.DatabaseError("x")
    error.sqlite_errorcode = getattr(sqlite3, name)
    assert code_of(exc.DBAPIError.instance("", {}, error, sqlite3.Error, dialect=None)) == code


def test_other_errors_are_defects():
    assert code_of(exc.TimeoutError("QueuePool limit")) == "DATABASE_BUSY"
    assert describe_failure(exc.InvalidRequestError("x")) is None
    assert describe_failure(ValueError("x")) is None


def test_one_warning_of_a_failure_for_a_while(caplog):
    """Whoever meets it; the next warning says how often it was met, and another failure is said at once."""
    log, away = logging.getLogger("service.kit"), exc.TimeoutError("QueuePool limit")
    for doing in ("a request was not answered", "not looking for jobs") * 5:
        failures.warn_of_error(log, doing, away)
    failures.warn_of_error(log, "not looking for jobs", failures.ReadOnlyError())
    said = [record.getMessage() for record in caplog.records]
    assert [message.partition(":")[0] for message in said] == [
        "a request was not answered",
        "not looking for jobs",
    ]
    failures._warned_at["every connection is in use"] -= failures.QUIET_SECONDS
    failures.warn_of_error(log, "not looking for jobs", away)
    assert "(9 times more" in caplog.records[-1].getMessage()


def spoil_pages(path):
    """Leave the head of the file and its first page as they are."""
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"x" * (len(whole) - 4096))


def counts_rows(app):
    """Whether metrics count stored rows. They are rendered in any case, and say whether they do."""
    lines = render_metrics(app).decode().splitlines()
    counts = "# TYPE ironlaw_plans gauge" in lines
    assert f"ironlaw_database_up {float(counts)}" in lines
    return counts


SICK = {
    "other bytes": ("DATABASE_DAMAGED", lambda path: path.write_bytes(b"x" * path.stat().st_size)),
    "pages": ("DATABASE_DAMAGED", spoil_pages),
    "moved away": ("DATABASE_UNAVAILABLE", lambda path: path.rename(path.with_suffix(".away"))),
}


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("code", "spoil"), SICK.values(), ids=SICK)
def test_a_sick_file_makes_the_service_not_ready(app, databases, caplog, code, spoil):
    database = databases.loaded()
    attach(app, database)
    client = Client(app)
    assert client.get("/readyz").status_code == 200
    assert counts_rows(app)
    with closing(sqlite3.connect(database.url.database)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.engine.dispose()  # new connections, as those of a pool that grows
    spoil(Path(database.url.database))
    caplog.clear()
    assert is_unavailable(client.get("/readyz"), code)
    if code == "DATABASE_DAMAGED":
        assert is_unavailable(client.get("/v1/sites"), code)
        assert is_unavailable(client.post("/v1/sites", EXAMPLES["create_site"]), code)
        assert not counts_rows(app)
    assert not [record for record in caplog.records if record.exc_info]
    client.close()


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_a_write_that_is_stored_is_answered_though_it_cannot_be_read(app, databases, caplog):
    def refresh():
        raise exc.TimeoutError("QueuePool limit")

    attach(app, databases.loaded())
    app.state.catalog = replace(app.state.catalog, on_change=refresh)
    client, site = Client(app), EXAMPLES["create_site"]
    assert client.post("/v1/sites", site).status_code == 201
    assert warned(caplog, "a write is stored, but not read yet")
    assert client.get(f"/v1/sites/{site['id']}").status_code == 200
    client.close()


@pytest.fixture
def server(postgresql):
    """A PostgreSQL server that a test may stop."""
    del postgresql  # it prepares the package
    directory = Path(tempfile.mkdtemp(prefix="ironlaw-"))
    server = get_server(directory / "data", cleanup_mode="stop")
    yield server
    server.stop()
    shutil.rmtree(directory)


def test_a_server_that_stops_and_comes_back(server, caplog):
    uri = server.get_uri("postgres").replace("postgresql://", "postgresql+psycopg://")
    database = Database(uri)
    upgrade_schema(database)
    app = create_app(OPEN)
    attach(app, database)
    client = Client(app)
    created = client.post("/v1/sites", EXAMPLES["create_site"])
    assert created.status_code == 201
    server.stop()
    caplog.clear()
    for _ in range(2):
        assert is_unavailable(client.get("/v1/sites"), "DATABASE_UNAVAILABLE")
        assert is_unavailable(client.post("/v1/offers", EXAMPLES["create_offer"]), "DATABASE_UNAVAILABLE")
    assert is_unavailable(client.get("/readyz"), "DATABASE_UNAVAILABLE")
    question = EXAMPLES["estimate_memory"]
    assert client.post("/v1/estimates/memory", question).status_code == 200
    assert {record.levelno for record in caplog.records if record.name.startswith("service")} == {
        logging.WARNING
    }
    server.ensure_postgres_running()
    assert client.get(created.headers["location"]).json() == created.json()
    assert client.post("/v1/offers", EXAMPLES["create_offer"]).status_code == 201
    client.close()
    database.dispose()
