"""Failures that operation must expect are a 503 and a warning; any other database error stays a defect."""

import logging
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from fastapi import FastAPI
from sqlalchemy import exc, text

from service.app.application import create_app
from service.app.examples import EXAMPLES
from service.app.storage import upgrade_schema
from service.kit.database import engine as kit_database
from service.kit.database.engine import Database
from service.kit.http.context import RequestContext
from service.kit.http.operational import describe_expected_failure, install_database_errors
from service.kit.http.web import install_problem_handlers
from tests.applications import OPEN, attach
from tests.conftest import Client
from tests.postgresql import get_server

LONG = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    "postgresql": "SELECT pg_sleep(60)",
}


@pytest.fixture
def impatient(monkeypatch, databases):
    """An empty database whose statements and locks time out in a quarter of a second."""
    monkeypatch.setattr(kit_database, "STATEMENT_MILLISECONDS", 250)
    monkeypatch.setattr(kit_database, "SQLITE_BUSY_MILLISECONDS", 250)
    database = databases.empty()
    with database.open_writer() as session:
        session.execute(text("CREATE TABLE things (id INTEGER PRIMARY KEY, size INTEGER)"))
        session.execute(text("INSERT INTO things VALUES (1, 0)"))
    return database


@contextmanager
def calling(database):
    """A client of an application that executes what it is told."""
    app = FastAPI()
    app.add_middleware(RequestContext, max_body_bytes=2000, hosts=["*"])
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


def is_unavailable(response):
    return (response.status_code, response.json()["code"], response.headers["retry-after"]) == (
        503,
        "UNAVAILABLE",
        "1",
    )


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
    with impatient.open_writer() as session, calling(impatient) as call:
        session.execute(text("UPDATE things SET size = 1"))
        assert is_unavailable(call("UPDATE things SET size = 2"))
        assert warned(caplog, "locked" if impatient.is_sqlite else "took too long")
        session.commit()
        assert call("UPDATE things SET size = 2").status_code == 200


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_migrations_and_backups_have_no_deadline(impatient):
    """A transaction that opts out reads on after the bound."""
    counting = LONG["sqlite"].replace("FROM n)", "FROM n WHERE i < 2000000)")
    with impatient.engine.execution_options(ironlaw_unbounded=True).connect() as connection:
        started = time.monotonic()
        while time.monotonic() - started < 0.5:
            assert connection.exec_driver_sql(counting).scalar_one() == 2_000_000
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
        assert is_unavailable(call("INSERT INTO things(size) SELECT zeroblob(100000)"))
    assert warned(caplog, "the disk is full")


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_a_connection_that_the_server_ends(impatient, caplog):
    with calling(impatient) as call:
        assert is_unavailable(call("SELECT pg_terminate_backend(pg_backend_pid())"))
        assert call("UPDATE things SET size = 1").status_code == 200
    assert warned(caplog, "stopping or starting")


@pytest.mark.parametrize(
    ("error", "is_expected"),
    [
        (psycopg.errors.DiskFull, True),
        (psycopg.errors.TooManyConnections, True),
        (psycopg.errors.DeadlockDetected, True),
        (psycopg.errors.LockNotAvailable, True),
        (psycopg.errors.CannotConnectNow, True),
        (psycopg.errors.ConnectionTimeout, True),
        (psycopg.errors.UniqueViolation, False),
        (psycopg.errors.NumericValueOutOfRange, False),
        (psycopg.errors.UndefinedTable, False),
        (psycopg.errors.DatabaseDropped, True),
        (psycopg.DataError, False),
    ],
)
def test_errors_of_postgresql(error, is_expected):
    wrapped = exc.DBAPIError.instance("", {}, error("x"), psycopg.Error, dialect=None)
    assert bool(describe_expected_failure(wrapped)) == is_expected


def test_other_errors_are_defects():
    assert describe_expected_failure(exc.TimeoutError("QueuePool limit"))
    assert describe_expected_failure(exc.InvalidRequestError("x")) is None
    assert describe_expected_failure(ValueError("x")) is None


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
        assert is_unavailable(client.get("/v1/sites"))
        assert is_unavailable(client.post("/v1/offers", EXAMPLES["create_offer"]))
    assert client.get("/readyz").status_code == 503
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
