"""Processes that work on background jobs: the server by default, and `ironlaw worker background`."""

import contextlib
import signal
import time

import pytest
from sqlalchemy import select

from service.app.background.service import list_schedules
from service.kit.database.engine import Database
from service.kit.jobs.tables import JobRow
from tests import forked
from tests.applications import MEANS
from tests.serving import environment, run, serving

LOOPBACK = pytest.mark.allow_hosts(["127.0.0.1"])


def states(url):
    database = Database(url)
    with database.open_reader() as session:
        found = {row.kind: row.state for row in session.scalars(select(JobRow))}
    database.dispose()
    return found


def until_expiry_ran(url):
    deadline = time.monotonic() + 60
    while states(url).get("jobs.expire") != "done":
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextlib.contextmanager
def worker(data_dir, **variables):
    process = forked.Staying("worker", "background", environment=environment(data_dir, **variables))
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


@pytest.mark.enable_socket
@LOOPBACK
def test_a_server_works_by_default(tmp_path):
    with serving(tmp_path):
        until_expiry_ran(f"sqlite:///{tmp_path / 'ironlaw.db'}")


@pytest.mark.enable_socket
@LOOPBACK
def test_a_server_without_threads_leaves_work_to_others(tmp_path):
    url = f"sqlite:///{tmp_path / 'ironlaw.db'}"
    with serving(tmp_path, IRONLAW_BACKGROUND_THREADS="0"):
        time.sleep(0.5)
        assert states(url) == {}
        with worker(tmp_path):
            until_expiry_ran(url)


def test_a_worker_stops_when_asked(database, tmp_path):
    url = database.url.render_as_string(hide_password=False)
    with worker(tmp_path, IRONLAW_DATABASE_URL=url) as process:
        until_expiry_ran(database.url)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert process.errors() == "the schema is current\n" or database.is_sqlite
    assert states(database.url)[list_schedules((), MEANS)[0].kind.name] == "waiting"


def test_a_worker_without_threads_is_refused(tmp_path):
    _, errors, status = run("worker", "background", data_dir=tmp_path, IRONLAW_BACKGROUND_THREADS="0")
    assert status == 2
    assert "IRONLAW_BACKGROUND_THREADS" in errors
