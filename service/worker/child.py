"""A process that measures: reads a task, writes its result, and does not outlive the worker.

It is started anew for every repeat, so that neither caches, clocks nor a broken context carry over, and so
that a hanging driver call can be killed.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import BinaryIO

from pydantic import TypeAdapter

from service.protocol.nodes import DeviceKind
from service.worker.rendezvous import RendezvousClient
from service.worker.task import RepeatTask

_PR_SET_PDEATHSIG = 1
"""Option of prctl(2)."""


def measure_task(given: bytes, words: list[str]) -> bytes:
    """Measures a task given as JSON and returns its record; a word names a rendezvous with other tasks."""
    task = RepeatTask.model_validate_json(given)
    if task.device == "cuda":
        # Checks multiply small pieces, for which threads of OpenBLAS wait longer than they work.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Libraries of the device take seconds to import, or fail; the worker itself must not.
    from service.worker.measure import measure_repeat  # noqa: PLC0415

    together = RendezvousClient(words[0]) if words else None
    return measure_repeat(task, together=together).to_json()


def list_devices(_: bytes, words: list[str]) -> bytes:
    """Returns the inventory of this host as JSON, for the kind of device in the words."""
    from service.worker.inventory import collect_inventory  # noqa: PLC0415

    device: DeviceKind = TypeAdapter(DeviceKind).validate_python(words[0])
    return collect_inventory(device).model_dump_json().encode()


ChildJob = Callable[[bytes, list[str]], bytes]
JOBS: Mapping[str, ChildJob] = {"measure": measure_task, "inventory": list_devices}


def main(words: list[str], jobs: Mapping[str, ChildJob] = JOBS) -> None:
    """Runs the job named by ``JOB PARENT [WORD...]`` on standard input, as long as the parent lives."""
    job, parent, *rest = words
    _bind_to_parent(int(parent))
    with _reserve_output() as answer:
        answer.write(jobs[job](sys.stdin.buffer.read(), rest))


def _bind_to_parent(parent: int) -> None:
    """Makes the kernel kill this process when the worker ends in any way.

    The kernel watches the thread that started this process: the worker's main thread, or one of those that
    wait for the processes of several accelerators.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:  # it ended before this call
        os.kill(os.getpid(), signal.SIGKILL)


def _reserve_output() -> BinaryIO:
    """Reserves standard output for the answer: output of libraries goes to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(answer, "wb")


if __name__ == "__main__":
    main(sys.argv[1:])
