"""PostgreSQL as networks and operators leave it: lost commits, failover, poolers, too many connections."""

import shutil
import socket
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from pwd import getpwnam
from uuid import uuid4

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError

from service.app.storage import upgrade_schema
from service.catalog.sites.tables import SiteRow
from service.kit.database.engine import Database
from tests.applications import attach
from tests.conftest import Client
from tests.faults.harness import LONG, Server, rows
from tests.faults.served import free_port, site
from tests.waiting import until

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
long_only = pytest.mark.skipif(not LONG, reason="starts servers of its own: `make faults`")
COMMIT = b"COMMIT\0"  # not that of READ COMMITTED


class CommitCutter:
    """A proxy in front of a server's Unix socket that loses the connection at a commit when it is told to."""

    def __init__(self, target):
        self._target = target
        self.cut = None
        """"before" or "after" the server has committed; None to pass everything on."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.close()

    def _accept(self):
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            threading.Thread(target=self._pass_on, args=(caller, server), daemon=True).start()
            threading.Thread(target=self._copy, args=(server, caller), daemon=True).start()

    def _pass_on(self, caller, server):
        with closing(caller), closing(server):
            while content := self._receive(caller):
                if COMMIT in content and self.cut:
                    how, self.cut = self.cut, None
                    if how == "after":
                        caller.shutdown(socket.SHUT_RD)
                        self._muted = caller
                        server.sendall(content)
                        until(lambda: self._answered)
                    for each in (caller, server):
                        each.shutdown(socket.SHUT_RDWR)
                    return
                server.sendall(content)

    _muted = None
    _answered = False

    def _copy(self, server, caller):
        while content := self._receive(server):
            if caller is self._muted:
                self._answered = True
                return
            with suppress(OSError):
                caller.sendall(content)

    @staticmethod
    def _receive(connection):
        try:
            return connection.recv(65536)
        except OSError:
            return b""


@contextmanager
def calling(app, database):
    attach(app, database)
    client = Client(app)
    try:
        yield client
    finally:
        client.close()


def count_sites(database, row_id):
    ((count,),) = rows(database, select(func.count()).where(SiteRow.id == row_id))
    return count


@pytest.mark.parametrize("databases", ["postgresql"], indirect=True)
def test_a_commit_whose_connection_drops_is_an_unknown_outcome(app, databases):
    """It is no success, and its retry with the Idempotency-Key gives the one result."""
    direct = databases.loaded()
    folder, port = direct.url.query["host"], direct.url.port or 5432
    with closing(CommitCutter(f"{folder}/.s.PGSQL.{port}")) as proxy:
        database = Database(direct.url.set(host="127.0.0.1", port=proxy.port, query={}))
        with calling(app, database) as client:
            for how, is_replayed in (("before", False), ("after", True)):
                headers = {"Idempotency-Key": uuid4().hex}
                proxy.cut = how
                lost = client.post("/v1/sites", json=site(how, "x"), headers=headers)
                assert (lost.status_code, lost.json()["code"]) == (503, "OUTCOME_UNKNOWN")
                again = client.post("/v1/sites", json=site(how, "x"), headers=headers)
                assert again.status_code == 201, again.text
                assert ("Idempotency-Replayed" in again.headers) == is_replayed
                assert count_sites(direct, how) == 1
        database.dispose()


@pytest.fixture
def folder(postgresql):
    """A folder for servers of a test."""
    del postgresql  # starting it prepared the package
    with tempfile.TemporaryDirectory(prefix="ironlaw-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def running(directory, *settings):
    server = Server(directory, tcp=True)
    with (directory / "postgresql.auto.conf").open("a") as file:
        file.writelines(f"{setting}\n" for setting in settings)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def write_until_stored(client, row_id):
    """Sends a write again until it is answered with success; the codes of its refusals."""
    codes, headers = set(), {"Idempotency-Key": row_id}

    def send():
        answer = client.post("/v1/sites", json=site(row_id, "x"), headers=headers)
        codes.add(answer.json().get("code"))
        assert answer.status_code in (201, 503), answer.text
        return answer.status_code == 201

    until(send)
    return codes - {None}


@long_only
def test_connections_that_a_server_has_not_are_refused_with_a_code(app, folder):
    with running(folder / "data", "max_connections = 12") as server:
        database = Database(server.url)
        upgrade_schema(database)
        with calling(app, database) as client, ExitStack() as held:
            assert client.get("/v1/sites").status_code == 200
            database.engine.dispose()
            other = Database(server.url)
            while True:
                try:
                    held.enter_context(other.engine.connect())
                except OperationalError:
                    break
            refused = client.get("/v1/sites")
            assert (refused.status_code, refused.json()["code"]) == (503, "DATABASE_UNAVAILABLE")
            held.close()
            other.dispose()
            assert client.get("/v1/sites").status_code == 200
        database.dispose()


@long_only
def test_a_failover_to_another_address_is_followed(app, folder):
    """The second server of the address has a copy of the first and becomes the primary when that is gone."""
    with running(folder / "first") as first:
        upgrade_schema(Database(first.url))
        first.stop()
        shutil.copytree(folder / "first", folder / "second")
        shutil.chown(folder / "second", first._installed.system_user)
        for each in (folder / "second").rglob("*"):
            shutil.chown(each, first._installed.system_user)
        (folder / "second" / "standby.signal").touch()
        first.start()
        with running(folder / "second") as second:
            ports = [each.url.partition("port=")[2] for each in (first, second)]
            hosts = "&".join(f"host=127.0.0.1:{port}" for port in ports)
            address = f"postgresql+psycopg://postgres@/postgres?{hosts}&target_session_attrs=read-write"
            database = Database(address)
            with calling(app, database) as client:
                assert not write_until_stored(client, "before")
                first.stop()
                refused = client.post("/v1/sites", json=site("between", "x"))
                assert (refused.status_code, refused.json()["code"]) == (503, "DATABASE_UNAVAILABLE")
                assert client.get("/readyz").status_code == 503
                second._control("promote")
                write_until_stored(client, "between")
                assert client.get("/readyz").status_code == 200
            database.dispose()
            first.start()


@long_only
def test_a_primary_that_becomes_a_replica_is_left(app, folder):
    """Sessions that are open then refuse writes; the pool opens new ones where writes are taken."""
    with running(folder / "data") as server:
        database = Database(f"{server.url}&target_session_attrs=read-write")
        upgrade_schema(database)
        with calling(app, database) as client:
            assert not write_until_stored(client, "before")
            other = Database(server.url)
            alter = "ALTER SYSTEM SET default_transaction_read_only = {}"
            with other.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for value in ("on", "off"):
                    connection.execute(text(alter.format(value)))
                    connection.execute(text("SELECT pg_reload_conf()"))
                    if value == "on":
                        until(lambda: client.get("/readyz").status_code == 503)
                        refused = client.post("/v1/sites", json=site("between", "x"))
                        assert refused.status_code == 503
            codes = write_until_stored(client, "between")
            assert codes <= {"DATABASE_READ_ONLY", "DATABASE_UNAVAILABLE"}
            other.dispose()
        database.dispose()


def is_open(port):
    with socket.socket() as trying:
        return not trying.connect_ex(("127.0.0.1", port))


@contextmanager
def pooled(server, folder):
    """The address of a PgBouncer in transaction mode in front of a server, which passes no options on."""
    port, user, behind = free_port(), getpwnam("nobody"), server.url.partition("port=")[2]
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={behind} user=postgres\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\npool_mode = transaction\n"
        f"default_pool_size = 3\nauth_type = any\nauth_file = {folder / 'users'}\n"
    )
    command = ["pgbouncer", "-q", "-u", user.pw_name, str(folder / "pgbouncer.ini")]
    process = subprocess.Popen(command, cwd="/", stderr=subprocess.DEVNULL)
    try:
        until(partial(is_open, port))
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait(timeout=60)


@long_only
@pytest.mark.skipif(not shutil.which("pgbouncer"), reason="PgBouncer is not installed")
def test_a_pooler_in_transaction_mode_serves(app, folder):
    """Reads and writes from many threads over three connections to the server."""
    with running(folder / "data") as server:
        direct = Database(server.url)
        upgrade_schema(direct)
        with pooled(server, folder) as address:
            database = Database(address)
            with calling(app, database) as client, ThreadPoolExecutor(8) as pool:
                for number in range(20):
                    assert client.post("/v1/sites", json=site(f"row-{number}", "x")).status_code == 201
                    assert client.get("/v1/sites").status_code == 200

                def read(_):
                    with database.open_reader() as session:
                        bound = session.execute(text("SHOW statement_timeout")).scalar_one()
                        zone = session.execute(text("SHOW timezone")).scalar_one()
                        return bound, zone, session.execute(select(func.count(SiteRow.id))).scalar_one() >= 20

                assert set(pool.map(read, range(200))) == {("30s", "UTC", True)}
                assert client.get("/readyz").status_code == 200
            database.dispose()
        direct.dispose()
