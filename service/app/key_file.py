"""A new key in its own file. However writing is interrupted, no key is lost or created twice.

The draft is on disk before the key works, and is renamed afterwards. An interrupted run leaves its draft:
either the key in it was never stored and it is replaced, or the next run renames it.
"""

import os
from pathlib import Path

from service.kit.files import sync_folder


class KeyFileRefused(RuntimeError):
    """A new key cannot be written to the file that was named."""


class KeyFile:
    """The file at ``path``, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._draft = path.with_name(f".{path.name}.part")

    def read_draft(self) -> str:
        """Returns the draft of an interrupted run, or an empty text."""
        try:
            return self._draft.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return ""

    def write_draft(self, secret: str) -> None:
        """Writes a secret to disk, in place of a draft that opens nothing."""
        if self.path.exists():
            raise KeyFileRefused(f"{self.path} exists already; name a new file")
        self._draft.unlink(missing_ok=True)
        descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._draft.parent)

    def finish(self) -> None:
        """Renames the draft, unless a concurrent run has done so."""
        if self.path.exists() and self._draft.exists():
            raise KeyFileRefused(f"{self.path} exists: the key is in {self._draft}")
        try:
            self._draft.rename(self.path)
        except FileNotFoundError:
            if not self.path.exists():
                raise
        sync_folder(self.path.parent)
