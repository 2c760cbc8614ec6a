"""Shared parts of the processor's benchmarks: data from the seed, rotated buffers, the host's clock."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.worker.benchmark import MeasurementFacts, Unsupported
from service.worker.host import available_memory_bytes, last_level_cache_bytes

CACHE_MULTIPLE = 4
"""Buffers together are this many times the last-level cache (McCalpin, STREAM: at least four times)."""
MEMORY_SHARE = 0.25
"""Share of the available memory that buffers may take, unless one set of them is larger."""
MOST_SETS = 4096
NUMPY = NodeSoftware(name="numpy", version=np.__version__)


@dataclass(slots=True)
class HostTimed:
    """Work on sets of buffers in rotation, so that a set has left the cache before it is used again."""

    facts: MeasurementFacts
    run: Callable[[int], object]
    """Runs the work on the set with this number."""
    verify: Callable[[int], CorrectnessCheck]
    """Checks the result of the work on the set with this number."""
    turn: int = -1

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` executions by the host's clock."""
        run, sets, turn = self.run, self.facts.rotated_buffers, self.turn
        start = time.perf_counter_ns()
        for turn in range(self.turn + 1, self.turn + 1 + iterations):
            run(turn % sets)
        took = time.perf_counter_ns() - start
        self.turn = turn
        return took

    def check(self) -> CorrectnessCheck:
        """Checks the last execution against a reference from the seed."""
        return self.verify(self.turn % self.facts.rotated_buffers)


@dataclass(frozen=True, slots=True)
class BufferRotation:
    """Number of sets of buffers, their size, and gaps in what is known."""

    count: int
    set_bytes: int
    gaps: tuple[NodeGap, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Bytes of all sets together."""
        return self.count * self.set_bytes


def build_rotation(set_bytes: int) -> BufferRotation:
    """Sizes sets of ``set_bytes`` to four times the last-level cache together, as far as memory allows.

    If they are smaller, or the cache is unknown, that is recorded as a gap. Raises :class:`Unsupported` if
    not even one set and its source data fit into the available memory.
    """
    cache, room = last_level_cache_bytes(), available_memory_bytes()
    if room is not None and 2 * set_bytes > room:
        raise Unsupported(f"twice {set_bytes} bytes of buffers, and {room} bytes of memory are available")
    if cache is None:
        return BufferRotation(
            1, set_bytes, (_build_gap("cache-unknown", "the system does not report the size of its cache"),)
        )
    wanted = ceil(CACHE_MULTIPLE * cache / set_bytes)
    most = MOST_SETS if room is None else min(int(room * MEMORY_SHARE) // set_bytes, MOST_SETS)
    count = max(min(wanted, most), 1)
    if count == wanted:
        return BufferRotation(count, set_bytes)
    detail = f"{count * set_bytes} bytes of buffers, not {CACHE_MULTIPLE} times the cache of {cache} bytes"
    return BufferRotation(count, set_bytes, (_build_gap("within-cache", detail),))


def _build_gap(code: str, detail: str) -> NodeGap:
    return NodeGap(pointer="/measurement/rotated_buffers", code=code, detail=detail)


def build_generator(benchmark: Benchmark, seed: int) -> np.random.Generator:
    """Returns the random numbers of a run for one benchmark: the same for each repeat."""
    name = hashlib.sha256(benchmark.name.encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(name[:8], "big")])


def compute_checksum(*arrays: np.ndarray) -> str:
    """Returns the SHA-256 of the bytes of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()


def build_correctness(method: str, error: float, tolerance: float, checked: str) -> CorrectnessCheck:
    """Builds the outcome of a comparison; an error that is not a number does not pass."""
    passed = bool(error <= tolerance)
    largest = float(min(error, 1e30)) if error == error else 1e30  # noqa: PLR0124  # NaN differs from itself
    return CorrectnessCheck(
        method=method, largest_error=largest, tolerance=tolerance, passed=passed, checksum=checked
    )
