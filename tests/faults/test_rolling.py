"""An older version is replaced, process after process, while callers write and read: nothing is lost."""

import contextlib
import statistics
import subprocess
import threading
import time

import httpx
import pytest

from service.app.storage import get_head_revision, get_schema_revision
from tests.applications import bearing
from tests.faults.served import Load, events, free_port, revisions
from tests.migrations.storing import COMMITS, GIT, ROOT, build_command, extract
from tests.serving import IRONLAW, environment, run
from tests.waiting import until

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(not (GIT and (ROOT / ".git").exists()), reason="older versions are in the history"),
]

OLDER = ["0031", "0032"]
"""Before the two newest migrations."""
CALLERS, BESIDE_SECONDS, START_SECONDS = 2, 2.0, 120.0


class Address:
    """An address that a process of an older or of this version serves."""

    def __init__(self, variables, log):
        self._variables, self._log = variables, log
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.process = None
        self._client = httpx.Client(base_url=self.address, trust_env=False)

    def start(self, command, **more):
        own = {**self._variables, "IRONLAW_PORT": str(self.port), **more}
        self.process = subprocess.Popen(
            [*command, "serve"], env=own, stdout=self._log, stderr=self._log, cwd=more.get("PYTHONPATH", ROOT)
        )
        until(self._is_ready, START_SECONDS)

    def _is_ready(self):
        assert self.process.poll() is None
        with contextlib.suppress(httpx.TransportError):
            return self._client.get("/readyz").is_success
        return False

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def end(self):
        if self.process is not None:
            self.stop()
        self._client.close()


class Versions:
    """Two addresses on one database, which an older version has made."""

    def __init__(self, database, revision, folder, log):
        self.database = database
        source = folder / "source"
        source.mkdir()
        extract(COMMITS[revision], source)
        self.older = {"command": build_command(source), "PYTHONPATH": str(source)}
        url = database.url.render_as_string(hide_password=False)
        self._own = {
            "IRONLAW_MODE": "tenant",
            "IRONLAW_REQUESTS_PER_MINUTE": "0",
            "IRONLAW_DATABASE_URL": url,
        }
        self._folder = folder
        variables = environment(folder, **self._own)
        for arguments in (["migrate"], ["keys", "create", "--admin"]):
            said = subprocess.run(
                [*self.older["command"], *arguments],
                env={**variables, "PYTHONPATH": str(source)},
                cwd=source,
                check=True,
                capture_output=True,
                text=True,
            )
        self.credential = said.stdout.strip()
        self.places = [Address(variables, log) for _ in range(2)]

    def clients(self):
        return [
            httpx.Client(base_url=one.address, headers=bearing(self.credential), trust_env=False, timeout=20)
            for one in self.places
        ]

    def command(self, *arguments):
        out, errors, status = run(*arguments, data_dir=self._folder, **self._own)
        assert status == 0, errors
        return out


class Reading:
    """Reads again and again, from whichever process takes the connection."""

    def __init__(self, versions):
        self._versions = versions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.seconds, self.statuses = [], set()

    def _read(self):
        clients = self._versions.clients()
        while not self._stop.is_set():
            for client in clients:
                began = time.monotonic()
                with contextlib.suppress(httpx.TransportError):
                    self.statuses.add(client.get("/v1/sites/shared").status_code)
                    self.seconds.append(time.monotonic() - began)
            time.sleep(0.1)
        for client in clients:
            client.close()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize("revision", OLDER)
def test_two_versions_side_by_side_lose_nothing(databases_of, tmp_path, report, revision):
    maker = databases_of("postgresql")
    with (tmp_path / "log").open("w") as log, contextlib.ExitStack() as ending:
        ending.callback(maker.dispose)
        versions = Versions(maker.empty(), revision, tmp_path, log)
        for place in versions.places:
            ending.callback(place.end)
            place.start(**versions.older)
        with Load(versions, CALLERS) as load, Reading(versions) as reading:
            time.sleep(BESIDE_SECONDS)
            assert get_schema_revision(versions.database) == revision
            began = time.monotonic()
            versions.command("migrate")
            migrated = time.monotonic() - began
            assert get_schema_revision(versions.database) == get_head_revision()
            for place in versions.places:
                time.sleep(BESIDE_SECONDS)
                place.stop()
                place.start([IRONLAW])
            time.sleep(BESIDE_SECONDS)
            load.stop()
        lost, twice = load.unmatched()
        assert (lost, twice) == ({}, {})
        assert reading.statuses == {httpx.codes.OK}
        revision_now, changes = revisions(versions.database)
        assert len(changes) == revision_now
        stored = events(versions.database)
        assert f"default: {stored} events, valid" in versions.command("audit", "verify")
    report(
        "Two versions side by side, PostgreSQL",
        older_schema=revision,
        newer_schema=get_head_revision(),
        writes_acknowledged=len(load.acknowledged),
        retried=sum(write.attempts > 1 for write in load.acknowledged),
        lost=0,
        twice=0,
        reads=len(reading.seconds),
        reads_refused=0,
        migration_s=f"{migrated:.1f}",
        read_median_s=f"{statistics.median(reading.seconds):.3f}",
        read_longest_s=f"{max(reading.seconds):.2f}",
    )
