"""Files and folders that only their owner can open, whatever the umask and their earlier mode."""

import logging
import os
import secrets
import stat
from pathlib import Path
from typing import Final

_FOLDER: Final = 0o700
_FILE: Final = 0o600
_OTHERS: Final = 0o077
log = logging.getLogger(__name__)


def make_folder(file: Path) -> None:
    """Makes the folder of a file. An existing folder is restricted if it holds the file, or nothing."""
    folder = file.parent
    folder.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
    if file.exists() or not any(folder.iterdir()):
        restrict_access(folder)


def create_file(file: Path, content: bytes = b"") -> None:
    """Creates a complete file at once; an existing one keeps its content."""
    # No descriptor of the file itself: closing one would release the locks that SQLite holds in this process.
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE), "wb") as drafted:
        drafted.write(content)
        drafted.flush()
        os.fsync(drafted.fileno())
    try:
        os.link(draft, file)  # of several processes that start at once, the first wins
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def restrict_access(path: Path) -> None:
    """Removes all rights on an existing file or folder from everybody but its owner."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if not found.st_mode & _OTHERS:
        return
    if os.geteuid() not in (0, found.st_uid) or found.st_mode & stat.S_ISVTX:
        log.warning("%s is open to other users, and this user may not restrict it", path)
        return
    path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
