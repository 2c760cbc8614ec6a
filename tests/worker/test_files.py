"""Files of a worker: the order in which they reach the disk, and whom they are open to."""

import os
import stat
from pathlib import Path

import pytest

from service.worker import files
from service.worker.errors import WorkerError


@pytest.fixture
def calls(monkeypatch):
    """Calls to the system, in order; a descriptor is named by what it is of."""
    made, names = [], {}
    opened, fsync, rename, close = os.open, os.fsync, Path.rename, os.close

    def noting_open(path, *rest, **named):
        descriptor = opened(path, *rest, **named)
        names[descriptor] = Path(path).name
        return descriptor

    def noting_fsync(descriptor):
        made.append(("fsync", names[descriptor], os.fstat(descriptor).st_size))
        fsync(descriptor)

    def noting_rename(path, target):
        made.append(("rename", path.name, Path(target).name))
        return rename(path, target)

    monkeypatch.setattr(os, "open", noting_open)
    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "close", close)
    monkeypatch.setattr(Path, "rename", noting_rename)
    return made


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_before_anybody_is_told(tmp_path, calls):
    folder = files.create_private_folder(tmp_path / "spool")
    calls.clear()
    files.write_file(folder / "a.json", b"12345")
    assert [call[:2] for call in calls] == [
        ("fsync", ".a.json.part"),
        ("rename", ".a.json.part"),
        ("fsync", "spool"),
    ]
    assert calls[0][2] == 5, "all of it was written when it was brought to the disk"
    assert calls[1][2] == "a.json"


def test_a_folder_that_is_made_is_on_the_disk_with_every_folder_above_it(tmp_path, calls):
    files.create_private_folder(tmp_path / "a" / "b")
    assert {name for _, name, _ in calls} == {"a", tmp_path.name}
    calls.clear()
    files.create_private_folder(tmp_path / "a" / "b")
    assert not calls


def test_a_move_is_on_the_disk_in_the_folder_that_it_goes_to_first(tmp_path, calls):
    source, target = (
        files.create_private_folder(tmp_path / "from"),
        files.create_private_folder(tmp_path / "to"),
    )
    files.write_file(source / "a", b"")
    calls.clear()
    files.move_file(source / "a", target)
    assert [call[:2] for call in calls] == [("rename", "a"), ("fsync", "to"), ("fsync", "from")]


def test_a_write_that_fails_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a"
    files.write_file(path, b"before")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_file(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_everything_is_for_its_owner_alone_whatever_the_mask(tmp_path):
    mask = os.umask(0)
    try:
        folder = files.create_private_folder(tmp_path / "worker")
        files.write_file(folder / "credential.json", b"{}")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "credential.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_that_others_may_open_is_refused(tmp_path, mode):
    path = tmp_path / "credential.json"
    files.write_file(path, b"{}")
    path.chmod(mode)
    with pytest.raises(WorkerError, match="open to others"):
        files.read_private_file(path)


@pytest.mark.parametrize("mode", [0o750, 0o701])
def test_a_folder_that_others_may_enter_is_refused(tmp_path, mode):
    folder = files.create_private_folder(tmp_path / "worker")
    folder.chmod(mode)
    with pytest.raises(WorkerError, match="open to others"):
        files.create_private_folder(folder)


def test_a_link_is_refused(tmp_path):
    files.write_file(tmp_path / "elsewhere", b"{}")
    (tmp_path / "credential.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkerError, match="is a link"):
        files.read_private_file(tmp_path / "credential.json")


def test_a_file_of_another_user_is_refused(tmp_path, monkeypatch):
    files.write_file(tmp_path / "credential.json", b"{}")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(WorkerError, match="belongs to another user"):
        files.read_private_file(tmp_path / "credential.json")
