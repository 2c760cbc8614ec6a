"""The folder of a worker and the locks that keep two from working at once."""

import os

import pytest

from service.worker import state_directory as module
from service.worker.errors import WorkerError
from service.worker.state_directory import (
    HeldLease,
    Node,
    StateDirectory,
    boot_id_sha256,
    is_locked,
    lock_home,
    lock_host,
)


def test_what_is_kept_is_there_for_the_next_process(tmp_path):
    held = HeldLease(id="run-1", fencing_token=3)
    StateDirectory(tmp_path / "worker").save_state(held)
    again = StateDirectory(tmp_path / "worker")
    assert again.load_state(HeldLease) == held
    again.delete_state(HeldLease)
    assert StateDirectory(tmp_path / "worker").load_state(HeldLease) is None


def test_a_file_that_cannot_be_understood_is_named(tmp_path):
    home = StateDirectory(tmp_path / "worker")
    home.save_state(HeldLease(id="run-1", fencing_token=3))
    path = home.folder / "heldlease.json"
    path.write_text("{")
    with pytest.raises(WorkerError, match=r"heldlease\.json cannot be read"):
        home.load_state(HeldLease)
    assert home.load_state(Node) is None


class TestLock:
    def test_one_at_a_time(self, tmp_path):
        path = tmp_path / "lock"
        held = lock_host(path)
        assert is_locked(path)
        with pytest.raises(WorkerError, match="another worker of this host"):
            lock_host(path)
        os.close(held)
        assert not is_locked(path)

    def test_a_process_that_hangs_holds_it_after_its_worker_was_killed(self, tmp_path):
        path = tmp_path / "lock"
        held = lock_host(path)
        inherited = os.dup(held)
        os.close(held)
        assert is_locked(path)
        os.close(inherited)
        assert not is_locked(path)

    def test_one_of_another_user_is_enough(self, tmp_path):
        """Whoever made the file, everybody can lock it: reading is enough."""
        path = tmp_path / "lock"
        os.close(lock_host(path))
        assert path.stat().st_mode & 0o777 == 0o644
        path.chmod(0o444)
        os.close(lock_host(path))

    @pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
    def test_nothing_but_a_plain_file(self, tmp_path, kind):
        path = tmp_path / "lock"
        if kind == "link":
            (tmp_path / "elsewhere").touch()
            path.symlink_to(tmp_path / "elsewhere")
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
        with pytest.raises((WorkerError, OSError)):
            lock_host(path)

    def test_a_folder_has_its_own(self, tmp_path):
        home = StateDirectory(tmp_path / "worker")
        held = lock_home(home)
        with pytest.raises(WorkerError):
            lock_home(StateDirectory(tmp_path / "worker"))
        os.close(held)


def test_the_boot_of_this_host_has_an_id(tmp_path, monkeypatch):
    assert boot_id_sha256() == boot_id_sha256()
    (tmp_path / "boot_id").write_text("another\n")
    before = boot_id_sha256()
    monkeypatch.setattr(module, "BOOT_ID", tmp_path / "boot_id")
    assert boot_id_sha256() != before
