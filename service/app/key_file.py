"""A new key in a file of its own: whenever writing it is interrupted, no key is lost and none is made twice.

The draft is on disk before the key works, and gets the name of the file after. Of a run that was cut short
the draft is left: either what it holds opens nothing, and it gives way, or the next run gives it its name.
"""

import os
from pathlib import Path

from service.app.backup import sync_folder


class KeyFileRefused(RuntimeError):
    """A new key cannot be written where it was asked for."""


class KeyFile:
    """The file at ``path``, for its owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._draft = path.with_name(f".{path.name}.part")

    def read_draft(self) -> str:
        """What a run that was interrupted left; empty if none did."""
        try:
            return self._draft.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return ""

    def write_draft(self, secret: str) -> None:
        """Put a secret on disk, in place of one that opens nothing."""
        if self.path.exists():
            raise KeyFileRefused(f"{self.path} exists: it must be a new file")
        self._draft.unlink(missing_ok=True)
        descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(self._draft.parent)

    def finish(self) -> None:
        """Give the draft its name; it may have got it from a run beside this one."""
        if self.path.exists() and self._draft.exists():
            raise KeyFileRefused(f"{self.path} exists: the key is in {self._draft}")
        try:
            self._draft.rename(self.path)
        except FileNotFoundError:
            if not self.path.exists():
                raise
        sync_folder(self.path.parent)
