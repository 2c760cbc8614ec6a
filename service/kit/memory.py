"""Memory of a process beside its limit, so that it sheds work before the system kills it.

The limit is that of the cgroup, of version 2 or 1, or one that the operator sets. What counts against it are
pages that the system cannot take back: the anonymous memory of all processes of the cgroup, or the resident
set of this process alone.
"""

import ctypes
import gc
import logging
import os
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from service.kit.metrics import MEMORY_LIMIT_BYTES, MEMORY_PRESSURE, MEMORY_USED_BYTES

HIGH_SHARE = 0.9
"""Share of the limit from which memory is short."""
LOW_SHARE = 0.8
"""Share of the limit below which it is no longer short."""
CRITICAL_SHARE = 0.95
"""Share of the limit from which work that runs is ended."""
RELEASE_SECONDS = 10.0
"""Least time between two releases of memory, each of which stops the process for a moment."""
TRIM_SECONDS = 60.0
"""Time between two returns of free pages to the system."""
MOST_HEAPS = 2
MAPPED_BYTES = 2**18
"""Size from which a block is mapped by itself and goes back to the system once it is freed."""
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
_UNLIMITED_BYTES = 2**60
_CGROUPS = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self")
_Cache = type(lru_cache(lambda: None))
log = logging.getLogger(__name__)


class MemoryBudget(NamedTuple):
    """A limit, and a reader of what is used of it."""

    limit_bytes: int
    read_used_bytes: Callable[[], int]


def read_resident_bytes() -> int:
    """Returns the resident set of this process."""
    return int((_OWN / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def find_budget(
    limit_bytes: int | None, *, own: Path = _OWN, cgroups: Path = _CGROUPS
) -> MemoryBudget | None:
    """Returns the budget of this process, or None without a limit. ``limit_bytes`` 0 asks for none."""
    if limit_bytes:
        read_resident_bytes()  # fails at the start where the system does not tell
        return MemoryBudget(limit_bytes, read_resident_bytes)
    return None if limit_bytes == 0 else _find_cgroup_budget(own, cgroups)


def _find_cgroup_budget(own: Path, cgroups: Path) -> MemoryBudget | None:
    """Returns the tightest limit of the cgroup of this process and of those around it."""
    try:
        lines = (own / "cgroup").read_text().splitlines()
    except OSError:
        return None
    found = []
    for number, controllers, path in (line.split(":", 2) for line in lines):
        if number == "0" and not controllers:
            found += _list_limits(cgroups, path, "memory.max", "anon")
        elif "memory" in controllers.split(","):
            found += _list_limits(cgroups / "memory", path, "memory.limit_in_bytes", "total_rss")
    return min(found, default=None, key=lambda budget: budget.limit_bytes)


def _list_limits(root: Path, path: str, name: str, used: str) -> list[MemoryBudget]:
    # Inside a container the path is often that of the host, and the root is the cgroup itself.
    inner = root / path.lstrip("/")
    folders = [folder for folder in (inner, *inner.parents) if folder.is_relative_to(root)]
    found = []
    for folder in folders:
        try:
            said = (folder / name).read_text().strip()
        except OSError:
            continue
        if said.isdigit() and int(said) < _UNLIMITED_BYTES:
            found.append(MemoryBudget(int(said), _build_reader(folder / "memory.stat", used)))
    return found


def _build_reader(stat: Path, name: str) -> Callable[[], int]:
    def read() -> int:
        figures = dict(line.split() for line in stat.read_text().splitlines())
        return int(figures[name])

    return read


class MemoryWatch:
    """Says whether memory is short. It is from a high mark until a lower one."""

    def __init__(self, budget: MemoryBudget | None) -> None:
        self._budget = budget
        self._released_at = -RELEASE_SECONDS
        self._trimmed_at = time.monotonic()
        self._used_bytes = self._reserved_bytes = 0
        self.is_short = False
        self.is_critical = False
        """True if work that runs must end as well."""
        MEMORY_LIMIT_BYTES.set(budget.limit_bytes if budget else 0)
        MEMORY_PRESSURE.set(0)

    def sample(self) -> None:
        """Reads the memory that is used; takes some 20 microseconds."""
        if self._budget is None:
            return
        used = self._used_bytes = self._budget.read_used_bytes()
        share = used / self._budget.limit_bytes
        was_short = self.is_short
        self.is_short = share >= (LOW_SHARE if was_short else HIGH_SHARE)
        self.is_critical = share >= CRITICAL_SHARE
        MEMORY_USED_BYTES.set(used)
        MEMORY_PRESSURE.set(self.is_short)
        if self.is_short and not was_short:
            log.warning(
                "memory is short: %d of %d bytes, long work is refused", used, self._budget.limit_bytes
            )
        elif was_short and not self.is_short:
            log.info("memory is no longer short: %d of %d bytes", used, self._budget.limit_bytes)

    def reserve(self, size_bytes: int) -> bool:
        """Returns true if there is memory for a body, which counts until :meth:`give_back`.

        Bodies of many callers may arrive between two samples. What has arrived counts twice, to be safe.
        """
        if self._budget is None:
            return True
        high = HIGH_SHARE * self._budget.limit_bytes
        if self.is_short or self._used_bytes + self._reserved_bytes + size_bytes > high:
            return False
        self._reserved_bytes += size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        """Ends a reservation."""
        if self._budget is not None:
            self._reserved_bytes -= size_bytes

    def is_release_due(self) -> bool:
        """Returns true if memory is short and was not released a moment ago."""
        if not self.is_short or time.monotonic() < self._released_at + RELEASE_SECONDS:
            return False
        self._released_at = time.monotonic()
        return True

    def is_trim_due(self) -> bool:
        """Returns true once a minute."""
        if time.monotonic() < self._trimmed_at + TRIM_SECONDS:
            return False
        self._trimmed_at = time.monotonic()
        return True


def bound_heap() -> None:
    """Keeps the heap in few pieces, so that what long work frees is used again or goes back to the system.

    Long work runs in threads that start and end. The C library of GNU gives them up to eight heaps for each
    processor, each of which keeps what was once needed, and takes larger and larger blocks from them.
    """
    if sys.platform == "linux":
        configure = getattr(ctypes.CDLL(None), "mallopt", None)
        if configure is not None:
            configure(_M_ARENA_MAX, MOST_HEAPS)
            configure(_M_MMAP_THRESHOLD, MAPPED_BYTES)


def release_memory() -> None:
    """Empties the bounded caches of the service and returns free memory to the system."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "service":
            for value in list(vars(module).values()):
                if _is_bounded_cache(value):
                    value.cache_clear()
    gc.collect()
    trim_heap()


def _is_bounded_cache(value: object) -> bool:
    """Returns true for a cache of answers. One without a bound holds what the process needs once."""
    return isinstance(value, _Cache) and (value.cache_parameters()["maxsize"] or 0) > 1


def trim_heap() -> None:
    """Returns free pages between the blocks of the heap to the system, which takes some milliseconds.

    The C library returns by itself only those behind the last block.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the C library of GNU
        if trim is not None:
            trim(0)
