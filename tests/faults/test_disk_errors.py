"""Every call of a write path fails in turn: what is acknowledged stays, and nothing is there by half."""

import contextlib
import itertools
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import select

from service.catalog.sites.tables import SiteRow
from service.kit.database.engine import Database
from service.kit.http.idempotency import IdempotencyKeyRow, digest_json
from service.quotes.tables import QuoteRow
from tests.faults.faulty_calls import COMPILER, FAULTS, KILLS, Fault, FaultyCalls
from tests.faults.harness import rows
from tests.faults.served import events, free_port, revisions, site
from tests.prepared import fill_directory
from tests.quotes.asking import RENTED, body
from tests.serving import IRONLAW, environment, run

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]

PATIENCE_SECONDS = 60.0
CHECKPOINT_FRAMES = 1000
"""After so many frames SQLite brings its log into the database with a commit."""
FEWEST = 15
"""Calls on the log that one commit makes at least."""
BEYOND = 5
"""So many calls beyond the last are tried: one write makes some fewer than the next."""
WITH_CHECKPOINT = "site, and a checkpoint"
CASES = [
    *itertools.product([*FAULTS, *KILLS], ["site", "quote"]),
    # Some hundred calls each: those of the other faults differ in nothing that the log has not shown.
    *itertools.product(["input/output error", "half a write, then killed"], [WITH_CHECKPOINT]),
]


class Faulty:
    """A served process of an embedded database, whose calls on its files fail as they are armed."""

    def __init__(self, folder):
        self.data = folder / "data"
        fill_directory(self.data)
        self.path = self.data / "ironlaw.db"
        self.database = Database(f"sqlite:///{self.path}")
        self.calls = FaultyCalls(folder, self.path.name)
        self._port = free_port()
        own = {"IRONLAW_PORT": str(self._port), "IRONLAW_BACKGROUND_THREADS": "0"}
        self._environment = environment(self.data, **own, **self.calls.variables)
        self._log = folder / "log"
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", trust_env=False, timeout=60)

    def start(self):
        with self._log.open("a") as log:
            self.process = subprocess.Popen([IRONLAW, "serve"], env=self._environment, stdout=log, stderr=log)
        until_ready = time.monotonic() + PATIENCE_SECONDS
        while not self._is_ready():
            assert self.process.poll() is None, self._log.read_text()[-2000:]
            assert time.monotonic() < until_ready
            time.sleep(0.02)

    def _is_ready(self):
        with contextlib.suppress(httpx.TransportError):
            return self.client.get("/readyz").status_code == httpx.codes.OK
        return False

    def kill(self):
        self.process.kill()
        self.process.wait(60)

    def send(self, path, content, key):
        """The answer to a write, None where there is none."""
        with contextlib.suppress(httpx.TransportError):
            return self.client.post(path, json=content, headers={"Idempotency-Key": key})
        return None

    def fill_log(self):
        """Let the next commit bring the log into the database."""
        with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            for pragma in ("wal_autocheckpoint=0", "synchronous=OFF", "busy_timeout=10000"):
                connection.execute(f"PRAGMA {pragma}")
            for _ in range(CHECKPOINT_FRAMES):
                connection.execute("UPDATE alembic_version SET version_num = version_num")

    def bring_back(self):
        """Start it again after a kill; its database is whole by then."""
        assert self.process.wait(60) == -signal.SIGKILL
        self.check_whole()
        self.start()

    def check_whole(self):
        """Read what a process finds that starts now."""
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.client.close()
        self.database.dispose()


class Writing:
    """Writes of one kind, each under a key of its own, and what became of them."""

    def __init__(self, server, kind):
        self._server, self._kind = server, kind
        self._events_before = self._count_events()
        self._keys = {}
        self.answers, self.failed = Counter(), Counter()
        self.stored_before_the_retry = 0
        self.longest_s = 0.0

    def write(self, call, fault):
        """Write once while a call fails, look, then until it is acknowledged; whether it came to the call."""
        name, key = f"row-{uuid4().hex}", uuid4().hex
        if self._kind == WITH_CHECKPOINT:
            self._server.fill_log()
        self._server.calls.arm(call, fault)
        answer = self._send(name, key)
        what = self._server.calls.heal()
        if what:
            self.failed[what.replace("ironlaw.db", "database")] += 1
        if what and fault in KILLS.values():
            self._server.bring_back()
        status = answer.status_code if answer is not None else 0
        self.answers[status] += 1
        self._look(name, status)
        was_stored = self._acknowledge(name, key)
        self.stored_before_the_retry += was_stored and status != httpx.codes.CREATED
        return bool(what)

    def _send(self, name, key):
        if self._kind == "quote":
            return self._server.send("/v1/quotes", {**body(RENTED), "name": name}, key)
        return self._server.send("/v1/sites", site(name, f"note of {name}"), key)

    def _look(self, name, status):
        """A write is there whole where it was acknowledged, and otherwise whole or not at all."""
        assert status in (0, httpx.codes.CREATED) or status >= httpx.codes.INTERNAL_SERVER_ERROR
        if self._kind == "quote":
            return
        seen = self._server.client.get(f"/v1/sites/{name}")
        if seen.status_code != httpx.codes.OK:
            assert seen.status_code == httpx.codes.NOT_FOUND, seen.text
            assert status != httpx.codes.CREATED
        else:
            assert seen.json()["note"] == f"note of {name}"

    def _acknowledge(self, name, key):
        """Send a write until it is acknowledged; whether it had been stored before."""
        began = time.monotonic()
        while (answer := self._send(name, key)) is None or answer.status_code != httpx.codes.CREATED:
            assert answer is None or answer.status_code >= httpx.codes.INTERNAL_SERVER_ERROR, answer.text
            assert time.monotonic() < began + PATIENCE_SECONDS
            time.sleep(0.05)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self._keys[name] = key
        return "Idempotency-Replayed" in answer.headers

    def check(self):
        """What was acknowledged is stored once with its event and its answer, and nothing else is."""
        name = QuoteRow.name if self._kind == "quote" else SiteRow.id
        database = self._server.database
        found = Counter(rows(database, select(name).where(name.startswith("row-"))))
        assert found == Counter((name,) for name in self._keys)
        kept = Counter(rows(database, select(IdempotencyKeyRow.key_digest)))
        assert kept == Counter((digest_json(key),) for key in self._keys.values())
        assert self._count_events() == self._events_before + len(self._keys)
        if self._kind != "quote":
            revision, changes = revisions(database)
            assert len(changes) == revision
        said, errors, status = run("audit", "verify", data_dir=self._server.data)
        assert status == 0, errors
        assert "valid" in said
        self._server.check_whole()
        return len(self._keys)

    def count(self, file):
        """How many calls on a file failed."""
        return sum(number for what, number in self.failed.items() if what.endswith(f" {file}"))

    def _count_events(self):
        return events(self._server.database)


@pytest.fixture
def server(tmp_path):
    with Faulty(tmp_path) as server:
        server.start()
        yield server


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_whatever_call_of_a_write_fails_nothing_is_lost_or_there_by_half(server, kind, name, report):
    began = time.monotonic()
    writing = Writing(server, kind)
    writing.write(2**40, Fault(0))
    missed, calls = 0, itertools.count(1)
    while missed < BEYOND:
        missed = 0 if writing.write(next(calls), {**FAULTS, **KILLS}[name]) else missed + 1
    server.kill()
    writes = writing.check()
    assert writing.count("database-wal") >= FEWEST
    report(
        "Calls of the operating system that fail while a write is stored, SQLite",
        write=kind,
        fault=name,
        calls=sum(writing.failed.values()),
        of_the_log=writing.count("database-wal"),
        of_the_database=writing.count("database"),
        answered_201=writing.answers[201],
        answered_5xx=sum(number for status, number in writing.answers.items() if status >= 500),
        not_answered=writing.answers[0],
        stored_before_the_retry=writing.stored_before_the_retry,
        writes=writes,
        lost=0,
        twice=0,
        longest_until_acknowledged_s=f"{writing.longest_s:.2f}",
        minutes=f"{(time.monotonic() - began) / 60:.1f}",
    )
