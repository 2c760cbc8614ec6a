"""Databases with the shipped catalog that tests copy: made once in a run, by the first process that asks."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from service.app.storage import upgrade_schema
from service.audit.service import Writes
from service.auth.service import initialize_installation
from service.kit.database.engine import Database
from tests.applications import KEYRING
from tests.forked import DIRECTORY


@contextmanager
def _turn() -> Iterator[Path]:
    """The folder of the run, while no other process makes anything in it."""
    folder = Path(os.environ[DIRECTORY])
    with (folder / "prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _prepare(file: Path, do: Callable[[Database], object]) -> Path:
    """A file of an embedded database, as ``do`` leaves it."""
    unfinished = file.with_name(f"unfinished-{file.name}")
    if not file.exists():
        database = Database(f"sqlite:///{unfinished}")
        do(database)
        database.dispose()
        unfinished.rename(file)
    return file


def open_database(database: Database) -> None:
    """Leave a database as a service with the secret of the tests does that has started on it."""
    upgrade_schema(database)
    initialize_installation(database, KEYRING, Writes(database, KEYRING))


def prepare_file() -> Path:
    """The file of an embedded database on which no service has started."""
    with _turn() as folder:
        return _prepare(folder / "prepared.db", upgrade_schema)


def open_file() -> Path:
    """The file of an embedded database on which a service has started."""
    with _turn() as folder:
        return _prepare(folder / "opened.db", open_database)


def prepare_on_server(address: Callable[[str], str], execute: Callable[[str], None]) -> str:
    """The name of a database of PostgreSQL on which a service has started; ``address`` is that of a name."""
    with _turn() as folder:
        done = folder / "prepared.postgresql"
        if not done.exists():
            execute("CREATE DATABASE test_prepared")
            database = Database(address("test_prepared"))
            open_database(database)
            database.dispose()
            done.touch()
    return "test_prepared"


def fill_directory(data_dir: Path) -> None:
    """Give a data directory without a database one, as ``ironlaw migrate`` leaves it."""
    file = data_dir / "ironlaw.db"
    if not file.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(prepare_file(), file)
        file.chmod(0o600)
