"""Where chains end, told outside the database by the service: in its log, a file, and under a time stamp.

Whoever can write the database and holds an earlier head of it can cut the newest events off; a head that was
exported later shows it.
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

TimeStamper = Callable[[bytes], bytes]
"""The answer of a time stamp authority to some data (RFC 3161)."""
log = logging.getLogger(__name__)


class TimeStampFailed(Exception):
    """A time stamp authority gave no time stamp; the code says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadExports:
    """Where the heads of chains go."""

    file: Path | None = None
    stamp: TimeStamper | None = None

    def write(self, heads: Sequence[ChainHead]) -> None:
        """Write heads to the log and the file; :class:`TimeStampFailed` once they stand there unstamped."""
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
    """What a time stamp is of: the heads of an export as JSON with sorted members and without blanks."""
    return json.dumps(heads, sort_keys=True, separators=(",", ":")).encode()


def append_line(path: Path, line: bytes) -> None:
    """Add a whole line to a file for its owner alone, on disk, or nothing; several processes take turns."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        # A line that a loss of power has cut stays alone, so that this one can be read.
        is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        whole = b"\n" + line if is_cut else line
        if os.write(descriptor, whole) != len(whole):
            os.ftruncate(descriptor, size)
            raise OSError(f"{path} has no room for an export of heads")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if not size:
        _sync_folder(path.absolute().parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
