"""Exports of chain heads outside the database: to the log, a file, and a time stamp authority.

An attacker who can write the database and has an earlier head can cut off the newest events; a head that was
exported later reveals it.
"""

import base64
import fcntl
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.audit.verification import ChainHead
from service.kit.clock import now
from service.kit.files import sync_folder

TimeStamper = Callable[[bytes], bytes]
"""Returns the answer of a time stamp authority to some data (RFC 3161)."""
log = logging.getLogger(__name__)


class TimeStampFailed(Exception):
    """A time stamp authority returned no time stamp. The code is the reason."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadExports:
    """Destinations of chain heads."""

    file: Path | None = None
    stamp: TimeStamper | None = None

    def write(self, heads: Sequence[ChainHead]) -> None:
        """Writes heads to the log and the file.

        Raises :class:`TimeStampFailed` after writing them unstamped.
        """
        for head in heads:
            log.info("audit head of %s: %d:%s", *head)
        if self.file is None or not heads:
            return
        listed = [head._asdict() for head in heads]
        line: dict[str, Any] = {"exported_at": now().isoformat(), "heads": listed}
        failed: TimeStampFailed | None = None
        if self.stamp is not None:
            try:
                line["time_stamp"] = base64.b64encode(self.stamp(build_stamped_bytes(listed))).decode()
            except TimeStampFailed as error:
                failed = error
        append_line(self.file, json.dumps(line).encode() + b"\n")
        if failed is not None:
            raise failed


def build_stamped_bytes(heads: Sequence[dict[str, Any]]) -> bytes:
    """Returns the data of a time stamp: the heads of an export as JSON with sorted members and no spaces."""
    return json.dumps(heads, sort_keys=True, separators=(",", ":")).encode()


def append_line(path: Path, line: bytes) -> None:
    """Appends a line to a file with owner permissions, completely and durably, or not at all.

    Concurrent processes wait for each other.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        # A line that a power failure has truncated is ended first, so that this one can be read.
        is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        whole = b"\n" + line if is_cut else line
        if os.write(descriptor, whole) != len(whole):
            os.ftruncate(descriptor, size)
            raise OSError(f"there is no space for an export of heads in {path}")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if not size:
        sync_folder(path.absolute().parent)
