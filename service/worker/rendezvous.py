"""Simultaneous measurement by processes on the devices of one host, through shared memory."""

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

READY, SAMPLED, GONE = 1, 2, 255
"""Stages of a process; one that has ended is further than all others."""
PREPARING_SECONDS = 60.0
"""Seconds that a process that is ready waits for the others."""
_LOOK_SECONDS = 0.01

RankWork = Callable[[], object]


class RendezvousFailed(Exception):
    """The others were not ready in time, or have ended, so that no joint measurement is possible."""


class RendezvousHost:
    """The worker's side: memory of one byte for each process, which they inherit."""

    def __init__(self, descriptor: int, shared: mmap.mmap) -> None:
        self.descriptor = descriptor
        self._shared = shared

    def format_address(self, place: int) -> str:
        """Returns the address for the process at a place."""
        return f"{self.descriptor}:{place}"

    def mark_ended(self, place: int) -> None:
        """Marks the process at a place as ended, so that no other waits for it."""
        self._shared[place] = GONE


@contextmanager
def open_meeting(size: int) -> Iterator[RendezvousHost]:
    """Creates shared memory for ``size`` processes."""
    descriptor = os.memfd_create("ironlaw-rendezvous")
    try:
        os.ftruncate(descriptor, size)
        with mmap.mmap(descriptor, size) as shared:
            yield RendezvousHost(descriptor, shared)
    finally:
        os.close(descriptor)


class RendezvousClient:
    """A process's side: it continues its work while it waits, so that the others run beside it."""

    def __init__(self, word: str) -> None:
        descriptor, self._place = (int(part) for part in word.split(":"))
        self._shared = mmap.mmap(descriptor, 0)

    def wait_until_ready(self, work: RankWork) -> None:
        """Waits until every process is ready.

        Raises:
            RendezvousFailed: One is not, or has ended.
        """
        self._wait_for_stage(READY, work, PREPARING_SECONDS)
        if self._furthest == GONE:
            raise RendezvousFailed("another accelerator's process has ended")
        if self._least < READY:
            raise RendezvousFailed(f"another accelerator was not ready within {PREPARING_SECONDS:g} s")

    def wait_until_sampled(self, work: RankWork, most_seconds: float) -> None:
        """Waits until every process has its samples, for a limited time, since its own are taken already."""
        self._wait_for_stage(SAMPLED, work, most_seconds)

    def _wait_for_stage(self, stage: int, work: RankWork, most_seconds: float) -> None:
        self._shared[self._place] = stage
        until = time.monotonic() + most_seconds
        while self._least < stage and time.monotonic() < until:
            work()

    @property
    def _least(self) -> int:
        return min(self._shared[:])

    @property
    def _furthest(self) -> int:
        return max(self._shared[:])


def wait_idle() -> None:
    """Work of a process that only reads: sleeps."""
    time.sleep(_LOOK_SECONDS)
