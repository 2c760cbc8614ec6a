"""Backups on a schedule: each is tried before it counts, and the newest stay."""

import shutil
from datetime import UTC, datetime, timedelta

import pytest

from service.app import backups
from service.app.backup import BackupRefused, restore_backup
from service.app.backups import Backups

START = datetime(2026, 11, 24, 12, 0, 0, 250_000, tzinfo=UTC)
DAY = timedelta(days=1)


class Clock:
    def __init__(self):
        self.time = START

    def __call__(self):
        return self.time


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(backups, "now", made)
    return made


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_the_newest_stay_and_what_is_not_ours_too(database, folder, clock):
    kept = Backups(folder)
    for name in ("notes.txt", "ironlaw.backup", "ironlaw-20261124T000000Z.backup.part"):
        (folder / name).touch()
    for day in (22, 23):
        (folder / f"ironlaw-202611{day}T120000Z.backup").touch()
    kept.take_backup(database, keep=2)
    assert clock.time == START
    assert names(folder) == [
        "ironlaw-20261123T120000Z.backup",
        "ironlaw-20261124T000000Z.backup.part",
        "ironlaw-20261124T120000Z.backup",
        "ironlaw.backup",
        "notes.txt",
    ]


def test_what_is_kept_restores(database, folder, clock, databases):
    path = Backups(folder).take_backup(database, keep=1)
    assert restore_backup(databases.empty(), path)
    assert clock.time == START


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_one_that_does_not_restore_never_counts(database, folder, clock, monkeypatch):
    """The good one before it stays."""
    kept = Backups(folder)
    before = kept.take_backup(database, keep=1)
    clock.time += DAY

    def cut_short(database, path):
        back_up(database, path)
        path.write_bytes(path.read_bytes()[:-4096])

    back_up = backups.write_backup
    monkeypatch.setattr(backups, "write_backup", cut_short)
    with pytest.raises(BackupRefused, match="damaged"):
        kept.take_backup(database, keep=1)
    assert kept.list_backups() == [before]
    assert names(folder) == [before.name]


@pytest.mark.parametrize("databases", ["sqlite"], indirect=True)
def test_what_an_interrupted_run_left_is_cleared(database, folder, clock):
    kept = Backups(folder)
    (folder / ".unfinished").mkdir()
    (folder / ".unfinished" / "written").write_text("half a backup")
    path = kept.take_backup(database, keep=1)
    assert names(folder) == [path.name]
    assert clock.time == START


def test_it_is_due_an_interval_after_the_newest(folder, clock):
    kept = Backups(folder)
    assert kept.compute_wait(DAY) == timedelta(0)
    (folder / "ironlaw-20261124T000000Z.backup").touch()
    assert kept.compute_wait(DAY) == timedelta(hours=11, minutes=59, seconds=59, microseconds=750_000)
    clock.time += timedelta(days=3)
    assert kept.compute_wait(DAY) == timedelta(0)
    clock.time = START - timedelta(days=30)  # the clock was wrong when the newest was written
    assert kept.compute_wait(DAY) == DAY


def test_one_process_at_a_time(folder):
    with (
        Backups(folder).lock_folder(),
        pytest.raises(BackupRefused, match="another process"),
        Backups(folder).lock_folder(),
    ):
        pass
    with Backups(folder).lock_folder():
        pass
    shutil.rmtree(folder)
    with pytest.raises(FileNotFoundError), Backups(folder).lock_folder():
        pass
