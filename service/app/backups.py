"""Backups on a schedule: one file an interval, each verified by a trial restore; the newest are kept."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import URL

from service.app.backup import BackupRefused, restore_backup, write_backup
from service.kit.clock import now
from service.kit.database.engine import Database
from service.kit.files import sync_folder

_NAME = "ironlaw-%Y%m%dT%H%M%SZ.backup"
_SHAPE = re.compile(r"ironlaw-\d{8}T\d{6}Z\.backup")
_UNFINISHED = ".unfinished"
"""Folder of an unfinished backup; leftovers of an interrupted run are deleted at the next start."""


class Backups:
    """The backups in one folder, which one process at a time adds to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def lock_folder(self) -> Iterator[None]:
        """Locks the folder against other processes."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise BackupRefused(f"another process already backs up into {self._folder}") from error
            yield
        finally:
            os.close(descriptor)

    def list_backups(self) -> list[Path]:
        """Returns the backups of the folder, oldest first."""
        return sorted(path for path in self._folder.iterdir() if _SHAPE.fullmatch(path.name))

    def compute_wait(self, every: timedelta) -> timedelta:
        """Returns the time until the next backup, at most ``every`` if the newest is dated in the future."""
        kept = self.list_backups()
        if not kept:
            return timedelta(0)
        newest = datetime.strptime(kept[-1].name, _NAME).replace(tzinfo=UTC)
        return min(max(newest + every - now(), timedelta(0)), every)

    def take_backup(self, database: Database, keep: int) -> Path:
        """Writes a backup, restores it on trial, and then deletes all but the newest ``keep``."""
        work = self._folder / _UNFINISHED
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        try:
            path = self._write_verified_backup(database, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        for old in self.list_backups()[:-keep]:
            old.unlink()
        return path

    def _write_verified_backup(self, database: Database, work: Path) -> Path:
        written = work / "written"
        write_backup(database, written)
        trial = Database(URL.create("sqlite", database=str(work / "trial.db")))
        try:
            restore_backup(trial, written)
        finally:
            trial.dispose()
        path = self._folder / now().strftime(_NAME)
        if path.exists():
            raise BackupRefused(f"{path} exists already; name a new file")
        written.rename(path)
        sync_folder(self._folder)
        return path
