"""One process of a collective: a rank on an accelerator of its own, which answers to lines of its input.

A small collective comes before what is timed, so that every rank begins when all have. The process ends with
its input, and with its parent's group.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import TextIO

from pydantic import MISSING

from service.protocol.work.links import CollectiveWork
from service.worker.benchmark import Unsupported
from service.worker.cuda.bindings import CudaError
from service.worker.cuda.collective import Answer, RankBuffers
from service.worker.cuda.device import CudaDevice, open_device
from service.worker.cuda.nccl import NcclLibrary, join_communicator

TOGETHER = 32
"""Collectives of a graph, so that its own launch is little of them."""


class NcclRank:
    """A rank: its buffers at once, and its communicator once it has joined the others."""

    def __init__(
        self, device: CudaDevice, library: NcclLibrary, work: CollectiveWork, seed: int, rank: int
    ) -> None:
        self._device, self._library, self._work, self._rank = device, library, work, rank
        self._buffers = RankBuffers(device, work, seed, rank)
        self._barrier = device.allocate(16)

    def describe(self) -> Answer:
        """Returns what a record says of the rank."""
        software = [each.model_dump(mode="json") for each in self._device.list_software()]
        together = 1 if self._work.launch is MISSING else TOGETHER
        return {
            "version": self._library.version,
            "size": self._buffers.size,
            "executions_per_launch": together,
            "software": software,
        }

    def join(self, identity: bytes, stack: ExitStack) -> Answer:
        """Joins the other ranks, and builds the graphs; raises :class:`Unsupported` if NCCL refuses."""
        try:
            self._communicator = stack.enter_context(
                join_communicator(self._library, identity, self._rank, self._work.devices)
            )
            # The first collective of a communicator connects the ranks, and reveals what NCCL lacks.
            self._enqueue_collective()
            self._device.synchronize()
        except CudaError as error:
            raise Unsupported(f"{self._work.algorithm}: {error}") from None
        self._once = self._several = self._enqueue_collective
        if self._work.launch is not MISSING:
            self._once = self._device.capture_graph(self._enqueue_collective)
            self._several = self._device.capture_graph(
                lambda: self._repeat(self._enqueue_collective, TOGETHER)
            )
        return {}

    def reset(self) -> Answer:
        """Writes the input anew, and spoils the result."""
        self._buffers.reset()
        return {}

    def execute(self, iterations: int) -> Answer:
        """Runs collectives, and returns their nanoseconds. Sums in place begin with the input."""
        if self._work.in_place is not MISSING:
            self._buffers.reset()
        launches, single = divmod(iterations, 1 if self._work.launch is MISSING else TOGETHER)
        self._enqueue_barrier()

        def enqueue_all() -> None:
            self._repeat(self._several, launches)
            self._repeat(self._once, single)

        return {"ns": self._device.time_work(enqueue_all)}

    def compare(self) -> Answer:
        """Returns the largest error of a sample of the result."""
        return {"error": self._buffers.compute_error()}

    def _repeat(self, launch: Callable[[], object], times: int) -> None:
        for _ in range(times):
            launch()

    def _enqueue_collective(self) -> None:
        buffers = self._buffers
        self._communicator.enqueue_collective(
            self._work.operation, [buffers.sent], [buffers.received], buffers.count, [self._device.stream]
        )

    def _enqueue_barrier(self) -> None:
        one = [self._barrier]
        self._communicator.enqueue_collective("all_reduce", one, one, 1, [self._device.stream])


def answer_lines(rank: NcclRank, library: NcclLibrary, stack: ExitStack) -> Iterator[Answer]:
    """Yields the answer to each line of the input, a description before the first."""
    jobs: Mapping[str, Callable[[str], Answer]] = {
        "identity": lambda _: {"identity": library.create_identity().hex()},
        "join": lambda word: rank.join(bytes.fromhex(word), stack),
        "reset": lambda _: rank.reset(),
        "execute": lambda word: rank.execute(int(word)),
        "once": lambda _: rank.execute(1),
        "compare": lambda _: rank.compare(),
    }
    yield rank.describe()
    for line in sys.stdin:
        job, _, word = line.strip().partition(" ")
        yield jobs[job](word)


def main(words: list[str]) -> None:
    """Serves one rank, named by its place as JSON."""
    number, index, seed, asked = json.loads(words[0])
    work = CollectiveWork.model_validate(asked)
    with _reserve_output() as output, ExitStack() as stack:
        try:
            device = stack.enter_context(open_device(index))
            library = NcclLibrary(work.algorithm)
            rank = NcclRank(device, library, work, seed, number)
            for answer in answer_lines(rank, library, stack):
                output.write(json.dumps(answer) + "\n")
                output.flush()
        except Unsupported as error:
            output.write(json.dumps({"unsupported": str(error)}) + "\n")


def _reserve_output() -> TextIO:
    """Reserves standard output for answers: NCCL writes there too."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(answers, "w")


if __name__ == "__main__":
    main(sys.argv[1:])
