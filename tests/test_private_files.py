"""What the embedded database keeps is its owner's alone: under a common umask, and where it was open."""

import os
import shutil
import stat

import pytest

from service.app.storage import migrate_database, secure_embedded_file
from service.kit.database.engine import Database
from service.kit.security import private
from service.kit.security.keyring import read_or_create_secret
from tests import forked
from tests.serving import environment, served

COMMON_UMASK = 0o022


def modes(folder):
    """The folder's own mode and those of all that is in it, by name."""
    found = {".": folder, **{path.name: path for path in folder.rglob("*")}}
    return {name: stat.S_IMODE(path.stat().st_mode) for name, path in found.items()}


def is_closed(folder):
    return all(not mode & 0o077 for mode in modes(folder).values())


def command(data_dir, *arguments):
    own = environment(data_dir)
    done = forked.ironlaw(*map(str, arguments), environment=own, given=None, umask=COMMON_UMASK)
    assert done.status == 0, done.errors


@pytest.fixture(autouse=True)
def common_umask(tmp_path):
    """Files of these tests are made as those of most users are."""
    tmp_path.chmod(0o755)
    before = os.umask(COMMON_UMASK)
    yield
    os.umask(before)


@pytest.mark.enable_socket
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_what_serving_backing_up_and_restoring_write_is_closed_to_others(tmp_path):
    data_dir, backup, restored = tmp_path / "data", tmp_path / "backup", tmp_path / "restored"
    own = environment(data_dir, IRONLAW_PORT="0")
    with served(forked.Staying("serve", environment=own, umask=COMMON_UMASK)):
        assert {".", "ironlaw.db", "ironlaw.db-wal", "ironlaw.db-shm", "secret.key"} <= set(modes(data_dir))
        assert is_closed(data_dir)
        command(data_dir, "backup", backup)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    restored.mkdir(0o755)
    shutil.copyfile(data_dir / "secret.key", restored / "secret.key")
    (restored / "secret.key").chmod(0o644)
    command(restored, "restore", backup)
    assert modes(restored)["."] == 0o700
    assert modes(restored)["ironlaw.db"] == modes(restored)["secret.key"] == 0o600
    assert is_closed(restored)


def test_what_an_earlier_version_left_open_is_closed_at_the_next_start(databases_of, tmp_path):
    loaded = databases_of("sqlite").loaded()
    folder = tmp_path / "data"
    folder.mkdir(0o755)
    for name in ("ironlaw.db", "ironlaw-20260101T000000000000.backup.db"):
        shutil.copyfile(loaded.url.database, folder / name)
    read_or_create_secret(folder / "secret.key")
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    database = Database(f"sqlite:///{folder / 'ironlaw.db'}")
    with database.open_reader() as held:
        held.connection()
        assert {0o644} == {mode for name, mode in modes(folder).items() if name != "."}
        migrate_database(database)
        read_or_create_secret(folder / "secret.key")
        assert len(modes(folder)) >= 6  # with log and shared memory
        assert is_closed(folder)
    database.dispose()


def test_the_copy_before_a_migration_is_closed_whatever_its_folder_is(tmp_path, monkeypatch):
    database = Database(f"sqlite:///{tmp_path / 'own.db'}")
    migrate_database(database)
    tmp_path.chmod(0o755)
    monkeypatch.setattr("service.app.storage.get_head_revision", lambda: "a later one")
    migrate_database(database)
    database.dispose()
    (copy,) = tmp_path.glob("*.backup.db")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_folder_of_others_is_left_as_it_is(tmp_path):
    shared, sticky = tmp_path / "shared", tmp_path / "sticky"
    for folder, mode in ((shared, 0o755), (sticky, 0o1777)):
        folder.mkdir()
        folder.chmod(mode)
        (folder / "another's").touch()
        (folder / ("first.db" if folder is shared else "own.db")).touch()
        database = Database(f"sqlite:///{folder / 'own.db'}")
        assert secure_embedded_file(database) == folder / "own.db"
        database.dispose()
        assert stat.S_IMODE(folder.stat().st_mode) == mode
        assert stat.S_IMODE((folder / "own.db").stat().st_mode) == 0o600


def test_a_file_that_is_there_keeps_what_it_holds(tmp_path):
    kept = tmp_path / "kept"
    private.create_file(kept, b"first")
    private.create_file(kept, b"second")
    assert kept.read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
