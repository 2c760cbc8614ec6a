"""Results on disk until the service has acknowledged them; a crash or a full disk loses none.

A file is named by the id of its result and the digest of its bytes. It is moved and never changed:
``waiting`` -> ``acknowledged``, or ``rejected`` if the service refuses it. A file that a crash left
incomplete, or that no longer matches its digest, is moved to ``incomplete`` for inspection.
"""

import re
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from service.kit.files import sync_folder
from service.protocol.nodes import NodeSpoolState
from service.protocol.results import content_sha256
from service.worker.files import (
    UNFINISHED,
    create_private_folder,
    move_file,
    remove_file,
    write_file,
)

KEPT_SECONDS = 7 * 86_400.0
"""Seconds that a result is kept after its acknowledgement, for a service restored from an older backup."""

_NAME = re.compile(r"[0-9a-f-]{36}\.[0-9a-f]{64}\.json")


class SpoolEntry(NamedTuple):
    """One result in the spool."""

    path: Path
    result_id: str
    content_sha256: str

    @classmethod
    def from_path(cls, path: Path) -> "SpoolEntry":
        """Parses the entry from a file name."""
        result_id, digest, _ = path.name.split(".")
        return cls(path, result_id, digest)


class ResultSpool:
    """The results of one worker; safe to use from several threads."""

    def __init__(self, folder: Path, *, most_bytes: int, least_free_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._least_free_bytes = least_free_bytes
        self._is_refused = False
        self._folder = create_private_folder(folder)
        self._waiting = create_private_folder(folder / "waiting")
        self._acknowledged = create_private_folder(folder / "acknowledged")
        self._rejected = create_private_folder(folder / "rejected")
        self._incomplete = create_private_folder(folder / "incomplete")
        sync_folder(folder)

    def recover(self) -> int:
        """Sets aside files that a crash left incomplete, and returns their number."""
        left = list(self._waiting.glob(f".*{UNFINISHED}"))
        for path in left:
            move_file(path, self._incomplete)
        return len(left)

    def add(self, result_id: str, content: bytes) -> SpoolEntry:
        """Stores a result; once this returns, it survives a loss of power.

        Raises:
            OSError: There is no room; the caller still holds the result and must try again.
        """
        digest = content_sha256(content)
        path = self._waiting / f"{result_id}.{digest}.json"
        try:
            write_file(path, content)
        except OSError:
            self._is_refused = True
            raise
        self._is_refused = False
        return SpoolEntry(path, result_id, digest)

    def list_waiting(self) -> list[SpoolEntry]:
        """Returns the results to upload, oldest first: ids of results begin with their time."""
        return self._list_entries(self._waiting)

    def read(self, entry: SpoolEntry) -> bytes | None:
        """Returns the bytes of a result; None if the disk has changed them, or they are gone."""
        try:
            content = entry.path.read_bytes()
        except FileNotFoundError:
            return None
        if content_sha256(content) == entry.content_sha256:
            return content
        move_file(entry.path, self._incomplete)
        return None

    def acknowledge(self, entry: SpoolEntry) -> None:
        """Marks a result as acknowledged by the service."""
        moved = move_file(entry.path, self._acknowledged)
        moved.touch()  # its age counts from here

    def reject(self, entry: SpoolEntry, why: str) -> None:
        """Marks a result as rejected, and stores the reason of the service."""
        write_file(self._rejected / f"{entry.path.name}.reason.txt", why.encode())
        move_file(entry.path, self._rejected)

    def find_state(self, result_id: str) -> str | None:
        """Returns the name of the folder that contains a result; None if there is none."""
        for folder in (self._waiting, self._acknowledged, self._rejected):
            if any(folder.glob(f"{result_id}.*.json")):
                return folder.name
        return None

    def list_acknowledged(self) -> list[str]:
        """Returns digests of the results that were acknowledged in the last seven days, newest first."""
        return [entry.content_sha256 for entry in reversed(self._list_entries(self._acknowledged))]

    def requeue_results(self, digests: list[str]) -> int:
        """Requeues acknowledged results that the service lacks, and returns their number."""
        wanted = set(digests)
        found = [entry for entry in self._list_entries(self._acknowledged) if entry.content_sha256 in wanted]
        for entry in found:
            move_file(entry.path, self._waiting)
        return len(found)

    def prune(self) -> None:
        """Deletes old acknowledged results, and the oldest of them if they exceed their space."""
        oldest, room = time.time() - KEPT_SECONDS, self._most_bytes
        for entry in reversed(self._list_entries(self._acknowledged)):
            found = entry.path.stat()
            room -= found.st_size
            if found.st_mtime < oldest or room < 0:
                remove_file(entry.path)

    def compute_state(self) -> NodeSpoolState:
        """Returns the numbers and sizes of stored results, and if the spool is full."""
        waiting, rejected = self._list_entries(self._waiting), self._list_entries(self._rejected)
        waiting_bytes = _count_bytes(self._waiting)
        held_bytes = waiting_bytes + _count_bytes(self._rejected) + _count_bytes(self._incomplete)
        free_bytes = shutil.disk_usage(self._folder).free
        return NodeSpoolState(
            waiting_count=len(waiting),
            waiting_bytes=waiting_bytes,
            rejected_count=len(rejected),
            free_bytes=free_bytes,
            is_full=self._is_refused or held_bytes >= self._most_bytes or free_bytes < self._least_free_bytes,
        )

    def _list_entries(self, folder: Path) -> list[SpoolEntry]:
        return [SpoolEntry.from_path(path) for path in sorted(folder.iterdir()) if _NAME.fullmatch(path.name)]


def _count_bytes(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # moved by another thread
            continue
    return total
