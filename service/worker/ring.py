"""One process of a collective: adds and copies parts of its left neighbour's buffer, in shared memory.

Its input gives the number of exchanges, and it answers with the times of start and end. It ends when its
neighbours or its parent are gone: the pipes that it reads from end with them.
"""

import json
import mmap
import os
import sys
import time
from typing import Literal, NamedTuple

import numpy as np

ELEMENT_BYTES = 4
BUFFERS = 3
"""Buffers of each process: its input, and two results that take turns.

A process begins its step t when its left neighbour has ended step t - 1, so its right neighbour has ended
step t - (n - 1): the result before last, which is overwritten now, is no longer read.
"""
Values = np.ndarray
RingOperation = Literal["all_reduce", "all_gather", "reduce_scatter"]


class RingPlace(NamedTuple):
    """Command line of a process."""

    rank: int
    ranks: int
    operation: RingOperation
    size: int
    """Elements of the payload, a multiple of the processes."""
    memory: int
    """Descriptor of the buffers of all processes."""
    token_in: int
    token_out: int
    """Pipes from the left neighbour and to the right one, with a byte for each finished step."""


def map_buffers(memory: mmap.mmap, ranks: int, count: int) -> Values:
    """Returns the shared memory by process, buffer and element."""
    return np.frombuffer(memory, np.float32).reshape(ranks, BUFFERS, count)


class RingRank:
    """A place in the ring: every step works on one part, and signals its end to the right neighbour."""

    def __init__(self, place: RingPlace, shared: Values) -> None:
        self._place = place
        parts = shared.reshape(place.ranks, BUFFERS, place.ranks, place.size // place.ranks)
        self._own, self._left = parts[place.rank], parts[place.rank - 1]
        self._turn = 0
        self._steps = 0

    def wait_for_ranks(self) -> None:
        """Waits until every process is ready: as many tokens go round as there are processes."""
        for _ in range(self._place.ranks):
            os.write(self._place.token_out, b".")
            self._wait_for_token()

    def run_collective(self) -> None:
        """Runs one collective, into the result whose turn it is."""
        self._turn = 1 + self._turn % 2
        match self._place.operation:
            case "all_reduce":
                self._reduce_parts(ahead=1)
                self._gather_parts(self._turn)
            case "reduce_scatter":
                self._reduce_parts(ahead=2)
            case "all_gather":
                rank = self._place.rank
                np.copyto(self._own[self._turn, rank], self._own[0, rank])
                self._gather_parts(0)

    def _reduce_parts(self, *, ahead: int) -> None:
        """Adds parts to the sums of the left neighbour; the first sum is its input."""
        rank, ranks = self._place.rank, self._place.ranks
        for step in range(ranks - 1):
            part = (rank - step - ahead) % ranks
            self._begin_step()
            np.add(
                self._left[self._turn if step else 0, part], self._own[0, part], self._own[self._turn, part]
            )
            self._end_step()

    def _gather_parts(self, first: int) -> None:
        """Copies the results of the left neighbour; the first copy is of its sum, or of its input."""
        rank, ranks = self._place.rank, self._place.ranks
        for step in range(ranks - 1):
            part = (rank - step - (first == 0)) % ranks
            self._begin_step()
            np.copyto(self._own[self._turn, part], self._left[self._turn if step else first, part])
            self._end_step()

    def _begin_step(self) -> None:
        if self._steps:
            self._wait_for_token()

    def _end_step(self) -> None:
        self._steps += 1
        os.write(self._place.token_out, b".")

    def _wait_for_token(self) -> None:
        if not os.read(self._place.token_in, 1):
            raise SystemExit("the left neighbour has ended")


def main(words: list[str]) -> None:
    """Runs as many exchanges as each line of standard input says."""
    place = RingPlace(*json.loads(words[0]))
    shared = map_buffers(mmap.mmap(place.memory, 0), place.ranks, place.size)
    rank = RingRank(place, shared)
    for line in sys.stdin:
        rank.wait_for_ranks()
        begun = time.perf_counter_ns()
        for _ in range(int(line)):
            rank.run_collective()
        sys.stdout.write(f"{begun} {time.perf_counter_ns()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
