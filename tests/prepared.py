"""Databases with the shipped catalog that tests copy: made once in a run, by the first process that asks."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.app.storage import upgrade_schema
from service.kit.database.engine import Database
from tests.forked import DIRECTORY

ON_SQLITE = pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
"""Of what no database could answer differently: refusals of a body, rules in Python, pages, exports."""


@contextmanager
def _turn() -> Iterator[Path]:
    """The folder of the run, while no other process makes anything in it."""
    folder = Path(os.environ[DIRECTORY])
    with (folder / "prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def prepare_file() -> Path:
    """The file of an embedded database."""
    with _turn() as folder:
        file, unfinished = folder / "prepared.db", folder / "unfinished.db"
        if not file.exists():
            database = Database(f"sqlite:///{unfinished}")
            upgrade_schema(database)
            database.dispose()
            unfinished.rename(file)
    return file


def prepare_on_server(address: Callable[[str], str], execute: Callable[[str], None]) -> str:
    """The name of a database of PostgreSQL; ``address`` is that of a database by its name."""
    with _turn() as folder:
        done = folder / "prepared.postgresql"
        if not done.exists():
            execute("CREATE DATABASE test_prepared")
            database = Database(address("test_prepared"))
            upgrade_schema(database)
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
