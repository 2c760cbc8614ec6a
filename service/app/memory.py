"""Samples the memory of a process, sheds work while it is short, and gives back what is not needed."""

import asyncio
import logging

from starlette.datastructures import State

from service.evidence.snapshot import SnapshotStore
from service.kit.memory import MemoryWatch, release_memory, trim_heap

log = logging.getLogger(__name__)

SAMPLE_SECONDS = 0.25
IDLE_SECONDS = 60.0
"""Time after which nobody waits for the snapshot of a tenant any more."""


async def watch_memory(state: State) -> None:
    """Samples memory until it is cancelled. Work is shed before caches are emptied, which takes longer."""
    while True:
        await asyncio.sleep(SAMPLE_SECONDS)
        try:
            await _shed_load(state)
        except Exception:
            log.exception("memory was not sampled")


async def _shed_load(state: State) -> None:
    memory: MemoryWatch = state.memory
    memory.sample()
    if memory.is_short:
        for queue in state.work_queues.values():
            queue.shed()
    if memory.is_release_due():
        await asyncio.to_thread(release_idle_memory, state.snapshots)
    if memory.is_trim_due():
        await asyncio.to_thread(trim_heap)


def sample_memory(memory: MemoryWatch | None, snapshots: SnapshotStore) -> None:
    """Samples the memory of a process that answers no requests."""
    if memory is not None:
        memory.sample()
        if memory.is_release_due():
            release_idle_memory(snapshots)
        if memory.is_trim_due():
            trim_heap()


def release_idle_memory(snapshots: SnapshotStore) -> None:
    """Drops the snapshots of idle tenants and empties the caches."""
    snapshots.drop_idle(IDLE_SECONDS)
    release_memory()
