"""Files that survive a power failure and that only their owner can open."""

import os
import stat
from pathlib import Path

from service.kit.files import sync_folder
from service.worker.errors import WorkerError

LOCK_FILE = Path("/tmp/ironlaw-worker.lock")  # noqa: S108  # opened so that no link and no other file is followed
"""Default lock file that one worker of a host holds."""
UNFINISHED = ".part"
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_OTHERS = 0o077


def create_private_folder(path: Path) -> Path:
    """Returns the folder, created durably if it does not exist.

    Raises:
        WorkerError: It belongs to another user, or others may enter it.
    """
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
    for folder in made:
        sync_folder(folder.parent)
    _check_private(path, is_kind=stat.S_ISDIR(path.lstat().st_mode))
    return path


def read_private_file(path: Path) -> bytes:
    """Returns the content of a file that only its owner can open.

    Raises:
        WorkerError: It belongs to another user, is a link, or others may open it.
    """
    _check_private(path, is_kind=stat.S_ISREG(path.lstat().st_mode))
    return path.read_bytes()


def _check_private(path: Path, *, is_kind: bool) -> None:
    found = path.lstat()
    if not is_kind:
        raise WorkerError(f"{path} is a link or has the wrong type")
    if found.st_uid != os.geteuid():
        raise WorkerError(f"{path} belongs to another user: run the worker as that user, or move it away")
    if found.st_mode & _OTHERS:
        raise WorkerError(f"{path} is open to others: chmod go= {path}, and enrol again if it was read")


def write_file(path: Path, content: bytes) -> None:
    """Writes a file so that after a crash it is complete, as it was before, or absent.

    Once this returns, the file survives a loss of power.

    Raises:
        OSError: The disk is full or fails; nothing of this attempt is left.
    """
    unfinished = path.with_name(f".{path.name}{UNFINISHED}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(unfinished, flags, _PRIVATE_FILE), "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def move_file(path: Path, folder: Path) -> Path:
    """Moves a file to another folder of the same file system, durably once this returns."""
    target = folder / path.name
    path.rename(target)
    sync_folder(folder)
    sync_folder(path.parent)
    return target


def remove_file(path: Path) -> None:
    """Removes a file, durably once this returns."""
    path.unlink(missing_ok=True)
    sync_folder(path.parent)
