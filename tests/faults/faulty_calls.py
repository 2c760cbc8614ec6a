"""Calls of the operating system that fail: what is loaded before the C library, and how it is armed."""

import errno
import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

COMPILER = shutil.which("cc")
SOURCE = Path(__file__).with_name("faulty_calls.c")
_VIEW = struct.Struct("6q120s")


class Fault(NamedTuple):
    """What happens at a call: its kind and error, as faulty_calls.c has them, and whether it lasts."""

    kind: int
    number: int = 0
    lasting: bool = False


FAULTS = {
    "input/output error": Fault(1, errno.EIO),
    "input/output errors from there on": Fault(1, errno.EIO, lasting=True),
    "disk full": Fault(1, errno.ENOSPC),
    "disk full from there on": Fault(1, errno.ENOSPC, lasting=True),
    "short write": Fault(2),
    "half a write, then an error": Fault(3, errno.EIO),
    "half a write, then errors": Fault(3, errno.EIO, lasting=True),
}
"""After these a process goes on."""
KILLS = {"half a write, then killed": Fault(4), "killed after the call": Fault(5)}


def build(folder):
    """The library, compiled from its source."""
    path = folder / "faulty_calls.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-o", path, SOURCE, "-ldl"], check=True)
    return path


class FaultyCalls:
    """Arms one call of the processes that have :attr:`variables`."""

    def __init__(self, folder, part):
        path = folder / "faulty_calls"
        path.write_bytes(bytes(_VIEW.size))
        self.variables = {
            "LD_PRELOAD": str(build(folder)),
            "FAULTY_CALLS": str(path),
            "FAULTY_FILES": part,
        }
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._view = mmap.mmap(descriptor, _VIEW.size)
        os.close(descriptor)

    def arm(self, call, fault):
        """Have the ``call``-th call from now on fail."""
        # The number of the call is written last, and the calls are counted from then on.
        self._view[8:] = _VIEW.pack(0, *fault, 0, 0, b"")[8:]
        self._view[:8] = struct.pack("q", call)

    def heal(self):
        """Have no more calls fail; the name of the first that failed and of its file, empty for none."""
        self._view[:8] = bytes(8)
        *_, what = _VIEW.unpack(self._view[:])
        return what.rstrip(b"\0").decode()
