"""Databases, an application and its client, on SQLite and on PostgreSQL."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import settings
from sqlalchemy import text

from service.app.application import create_app
from service.kit.database.engine import Database
from service.resolve.catalog import CatalogView
from tests.applications import OPEN, TENANT, Callers, attach, quiet_logs
from tests.asking import shipped
from tests.browsing import browser, window
from tests.faults.harness import LONG
from tests.forked import DIRECTORY
from tests.inline import Loop
from tests.postgresql import get_server
from tests.prepared import prepare_file, prepare_on_server
from tests.searching import share_searches

__all__ = ["browser", "window"]  # fixtures

settings.register_profile("checks", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("checks")

_IN_MEMORY = Path("/dev/shm")  # noqa: S108
_ROOM_BYTES = 4 * 10**9
_COPIED = "STRATEGY FILE_COPY"
"""How PostgreSQL copies a template: page by page through its log it takes twice as long."""


def _room() -> str | None:
    """Where databases of tests live: in memory, where nothing waits for a disk, if there is room.

    Where the power is lost in a test (`make faults`), they live on the disk.
    """
    if LONG or not os.access(_IN_MEMORY, os.W_OK) or shutil.disk_usage(_IN_MEMORY).free < _ROOM_BYTES:
        return None
    return str(_IN_MEMORY)


def _start_server() -> Any:
    # The package looks for a private runtime directory when it is imported and warns without one.
    directory = Path(os.environ[DIRECTORY])
    runtime = directory / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    # Workers share one server, so none of them stops it.
    return get_server(directory / "data", cleanup_mode=None)


def _stop_server(directory: Path) -> None:
    lock = directory / "data" / "postmaster.pid"
    if lock.exists():
        os.kill(int(lock.read_text().split()[0]), signal.SIGQUIT)
        deadline = time.monotonic() + 60
        while lock.exists() and time.monotonic() < deadline:
            time.sleep(0.05)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a quarter of the time tests wait for processes of theirs."""
    return (os.cpu_count() or 1) + 1


def pytest_configure(config: pytest.Config) -> None:
    quiet_logs()
    share_searches()
    if not hasattr(config, "workerinput"):
        os.environ[DIRECTORY] = tempfile.mkdtemp(prefix="ironlaw-", dir=_room())


PURE = {"planning", "formats", "schemas", "protocol", "accuracy"}
"""Folders of tests that start no process and open no database, but where a test asks for one."""
_OF_FOLDERS = {"contract": "contract", "faults": "faults"}
_OPENS_A_BROWSER = {"browser", "window"}
_NEEDS_MORE = {"databases_of", "postgresql", "app"}


def _tier(item: pytest.Item) -> str:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & _OPENS_A_BROWSER:
        return "browser"
    if folder in PURE and not fixtures & _NEEDS_MORE and not item.get_closest_marker("enable_socket"):
        return "unit"
    return _OF_FOLDERS.get(folder, "integration")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its tier: ``make test-unit`` runs one of them."""
    for item in items:
        item.add_marker(_tier(item))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        directory = Path(os.environ[DIRECTORY])
        _stop_server(directory)
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql() -> str:
    """Address of a PostgreSQL server; a path follows for the database."""
    uri: str = _start_server().get_uri("postgres").replace("postgresql://", "postgresql+psycopg://")
    if not LONG:
        # No test of `make test` takes the power from the server; `make faults` leaves it as it comes.
        server = Server(uri)
        for setting in ("fsync", "full_page_writes", "autovacuum"):
            server.execute(f"ALTER SYSTEM SET {setting} = off")
        server.execute("SELECT pg_reload_conf()")
        server.close()
    return uri


class Server:
    """One connection to a PostgreSQL server, for statements outside transactions."""

    def __init__(self, uri: str) -> None:
        self._database = Database(uri)
        self._connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def execute(self, statement: str) -> None:
        self._connection.execute(text(statement))

    def close(self) -> None:
        self._connection.close()
        self._database.dispose()


def _named(uri: str, name: str) -> str:
    head, _, query = uri.partition("?")
    return f"{head.rpartition('/')[0]}/{name}?{query}"


def _speak_alike(known: Database, other: Database) -> None:
    """Statements are compiled once for all databases of a kind: a fifth of the time of their tests."""
    for engine in (other.engine, other._reading, other._writing):
        engine.dialect = known.engine.dialect
        engine._compiled_cache = known.engine._compiled_cache


class Databases:
    """Makes databases of one kind: empty ones, and copies of one with the shipped catalog."""

    def __init__(self, kind: str, directory: Path, uri: str, worker: str) -> None:
        self.kind = kind
        self._directory = directory
        self._uri = uri
        self._server = Server(uri) if uri else None
        self._prefix = f"test_{worker}"
        self._count = 0
        self._first: Database | None = None
        self._template: str | None = None
        self._unchanged: Database | None = None
        self._lasting: list[Database] = []
        self._made: list[Database] = []

    def empty(self) -> Database:
        self._count += 1
        if self._server is None:
            return self._keep(self._address(str(self._directory / f"{self._count}.db")))
        name = f"{self._prefix}_{self._count}"
        self._server.execute(f"CREATE DATABASE {name} {_COPIED}")
        return self._keep(self._address(name))

    def _address(self, name: str) -> str:
        """The address of a database, by its name or the path of its file."""
        return _named(self._uri, name) if self._server else f"sqlite:///{name}"

    def _prepare(self) -> str:
        if self._server is None:
            return str(prepare_file())
        return prepare_on_server(self._address, self._server.execute)

    def _keep(self, url: str) -> Database:
        database = Database(url)
        if self._first is not None:
            _speak_alike(self._first, database)
        self._made.append(database)
        return database

    def loaded(self) -> Database:
        if self._template is None:
            self._template = self._prepare()
            # A template to which somebody is connected could not be copied.
            self._first = Database(self._uri or self._address(self._template))
            self._first.engine.connect().close()
            self._first.dispose()
        self._count += 1
        if self._server is None:
            copy = self._directory / f"{self._count}.db"
            shutil.copy(self._template, copy)
            return self._keep(self._address(str(copy)))
        name = f"{self._prefix}_{self._count}"
        self._server.execute(f"CREATE DATABASE {name} TEMPLATE {self._template} {_COPIED}")
        return self._keep(self._address(name))

    def lasting(self) -> Database:
        """An empty database that outlives the test which asks for it."""
        database = self.empty()
        self._keep_longer(database)
        return database

    def _keep_longer(self, database: Database) -> None:
        self._made.remove(database)
        self._lasting.append(database)

    def unchanged(self) -> Database:
        """A loaded database that every test shares and none writes to."""
        if self._unchanged is None:
            self._unchanged = self.loaded()
            self._keep_longer(self._unchanged)
        return self._unchanged

    def dispose(self) -> None:
        """Drop what was made since the last time."""
        while self._made:
            self._drop(self._made.pop())

    def _drop(self, database: Database) -> None:
        database.dispose()
        name = database.url.database
        if name == self._template:
            return
        if self._server is not None:
            self._server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            return
        for path in Path(name).parent.glob(f"{Path(name).name}*"):
            path.unlink()

    def close(self) -> None:
        """Drop what lasted, and leave the server."""
        while self._lasting:
            self._drop(self._lasting.pop())
        if self._server is not None:
            self._server.close()


@pytest.fixture(scope="session")
def databases_of(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[[str], Databases]]:
    """The maker of databases of a kind."""
    makers: dict[str, Databases] = {}

    def of(kind: str) -> Databases:
        if kind not in makers:
            worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
            uri = request.getfixturevalue("postgresql") if kind == "postgresql" else ""
            directory = Path(os.environ[DIRECTORY]) / worker
            directory.mkdir(exist_ok=True)
            makers[kind] = Databases(kind, directory, uri, worker)
        return makers[kind]

    yield of
    for maker in makers.values():
        maker.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def databases(
    request: pytest.FixtureRequest, databases_of: Callable[[str], Databases]
) -> Iterator[Databases]:
    """A maker of databases of each kind."""
    maker = databases_of(request.param)
    yield maker
    maker.dispose()


@pytest.fixture
def database(databases: Databases) -> Database:
    """A database with the shipped catalog."""
    return databases.loaded()


class Client:
    """Calls an application in this process, synchronously."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._runner = Loop()
        self._lifespan = app.router.lifespan_context(app)
        self._runner.run(self._lifespan.__aenter__())
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self.headers: dict[str, str] = {}
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test")

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        headers = {**self.headers, **(options.pop("headers", None) or {})}
        return self._runner.run(self._client.request(method, url, headers=headers, **options))

    def get(self, url: str, **options: Any) -> httpx.Response:
        return self.request("GET", url, **options)

    def post(self, url: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.request("POST", url, json=json, **options)

    def patch(self, url: str, json: Any, **options: Any) -> httpx.Response:
        return self.request("PATCH", url, json=json, **options)

    def delete(self, url: str, **options: Any) -> httpx.Response:
        return self.request("DELETE", url, **options)

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()


@pytest.fixture(scope="session")
def app() -> FastAPI:
    """The application, without a database."""
    return create_app(OPEN)


@pytest.fixture
def client(app: FastAPI, database: Database) -> Iterator[Client]:
    """A client of the application over a loaded database."""
    attach(app, database)
    caller = Client(app)
    yield caller
    caller.close()


@pytest.fixture
def reader(app: FastAPI, databases: Databases) -> Iterator[Client]:
    """A client for tests that write nothing."""
    attach(app, databases.unchanged())
    caller = Client(app)
    yield caller
    caller.close()


@pytest.fixture
def callers(app: FastAPI, database: Database) -> Iterator[Callers]:
    """Who calls an application in tenant mode; ``callers.client`` calls without credentials."""
    attach(app, database, TENANT)
    callers = Callers(app, database)
    callers.client = Client(app)
    yield callers
    callers.client.close()


@pytest.fixture(scope="session")
def snapshot() -> CatalogView:
    """The shipped catalog, without a database."""
    return shipped()
