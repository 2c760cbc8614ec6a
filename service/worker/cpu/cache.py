"""Arrays that stay in the last-level cache, gone over many times by every usable processor."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import STREAM_ARRAYS, CacheStream
from service.worker.benchmark import Facts, Prepared, Unsupported
from service.worker.cpu.host_timed import NUMPY, HostTimed, checksum, correctness, generator
from service.worker.cpu.stream import ELEMENT_BYTES, side_by_side, split
from service.worker.host import last_level_cache_bytes, usable_processors

SHARE_OF_CACHE = 0.5


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[Prepared]:
    """Passes over arrays of fp64: read adds up all that it reads, copy leaves a = b.

    Each processor goes over its own part, so a part that fits into a cache of its own stays there. Raises
    :class:`Unsupported` where the arrays are more than half of the last-level cache, or its size is unknown.
    """
    del accelerator_index
    work = benchmark.get_work(CacheStream)
    needed, cache = STREAM_ARRAYS[work.pattern] * work.array_bytes, last_level_cache_bytes()
    if cache is None:
        raise Unsupported("the system does not say how large its cache is")
    if needed > SHARE_OF_CACHE * cache:
        raise Unsupported(f"{needed} bytes in a cache of {cache} bytes")
    if work.array_bytes % ELEMENT_BYTES:
        raise Unsupported(f"arrays of fp64, and {work.array_bytes} bytes are no multiple of {ELEMENT_BYTES}")
    source = generator(benchmark, seed).random(work.array_bytes // ELEMENT_BYTES)
    target = np.full_like(source, np.nan)
    parts = split(source.size, len(usable_processors()))
    tasks = [_passes(work, source[part], target[part]) for part in parts]
    operation = "add.reduce" if work.pattern == "read" else "copyto"
    facts = Facts(
        library=f"numpy {np.__version__} {operation} of fp64",
        algorithm=f"{work.passes} passes",
        data="uniform(0, 1)",
        timer="host_clock",
        working_set_bytes=needed,
        threads=len(parts),
        software=(NUMPY,),
    )
    with side_by_side([tasks]) as run:
        found: list[object] = []

        def passes(_index: int) -> None:
            found[:] = run(0)

        yield HostTimed(facts, passes, lambda _: _verified(work, source, target, found))


def _passes(work: CacheStream, source: np.ndarray, target: np.ndarray) -> Callable[[], object]:
    def read() -> float:
        total = 0.0
        for _ in range(work.passes):
            total += np.add.reduce(source)
        return total

    def copy() -> None:
        for _ in range(work.passes):
            np.copyto(target, source)

    return read if work.pattern == "read" else copy


def _verified(work: CacheStream, source: np.ndarray, target: np.ndarray, found: list[object]) -> Correctness:
    """Every element of a copy; of reads the sum of all passes, each off by (16 + log2 n) u at most.

    Adding the passes up rounds once for each (Higham, Accuracy and Stability, 4.2).
    """
    if work.pattern == "copy":
        wrong = float(np.count_nonzero(target != source))
        return correctness("every element of the copy", wrong, 0.0, checksum(target))
    wanted, rounding = math.fsum(source.tolist()) * work.passes, float(np.finfo(np.float64).eps) / 2
    sums = np.array(found, np.float64)
    return correctness(
        "sum of all passes against an exact sum",
        abs(math.fsum(sums) - wanted) / wanted,
        (16 + math.log2(source.size) + work.passes) * 2 * rounding,
        checksum(sums),
    )
