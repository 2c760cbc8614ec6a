"""Lets processes on the devices of one host measure at the same time, through memory that they share."""

import mmap
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

READY, SAMPLED, GONE = 1, 2, 255
"""How far a process is; one that has ended is further than all others."""
PREPARING_SECONDS = 60.0
"""For which a process that is ready waits for the others."""
_LOOK_SECONDS = 0.01

RankWork = Callable[[], object]


class RendezvousFailed(Exception):
    """The others were not there in time, or are no more: what is measured would be no measurement of all."""


class RendezvousHost:
    """The worker's side: memory of one byte for each process, which they inherit."""

    def __init__(self, descriptor: int, shared: mmap.mmap) -> None:
        self.descriptor = descriptor
        self._shared = shared

    def format_address(self, place: int) -> str:
        """What the process at a place is told."""
        return f"{self.descriptor}:{place}"

    def mark_ended(self, place: int) -> None:
        """The process at a place has ended: nobody is to wait for it."""
        self._shared[place] = GONE


@contextmanager
def open_meeting(size: int) -> Iterator[RendezvousHost]:
    """Memory for as many processes."""
    descriptor = os.memfd_create("ironlaw-rendezvous")
    try:
        os.ftruncate(descriptor, size)
        with mmap.mmap(descriptor, size) as shared:
            yield RendezvousHost(descriptor, shared)
    finally:
        os.close(descriptor)


class RendezvousClient:
    """A process's side: while it waits it goes on with its work, so that the others have it beside them."""

    def __init__(self, word: str) -> None:
        descriptor, self._place = (int(part) for part in word.split(":"))
        self._shared = mmap.mmap(descriptor, 0)

    def wait_until_ready(self, work: RankWork) -> None:
        """Wait until every process is ready.

        Raises:
            RendezvousFailed: one is not, or has ended.
        """
        self._wait_for_stage(READY, work, PREPARING_SECONDS)
        if self._furthest == GONE:
            raise RendezvousFailed("another accelerator's process has ended")
        if self._least < READY:
            raise RendezvousFailed(f"another accelerator was not ready within {PREPARING_SECONDS:g} s")

    def wait_until_sampled(self, work: RankWork, most_seconds: float) -> None:
        """Wait until every process has its samples, but not for ever: one's own are taken already."""
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
    """The work of a process that only reads."""
    time.sleep(_LOOK_SECONDS)
