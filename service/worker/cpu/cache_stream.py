"""Arrays that stay in the last-level cache, gone over many times by every usable processor."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import STREAM_ARRAYS, CacheStreamWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.host_timed import (
    NUMPY,
    HostTimed,
    build_correctness,
    build_generator,
    compute_checksum,
)
from service.worker.cpu.stream import ELEMENT_BYTES, open_task_pool, split_elements
from service.worker.host import last_level_cache_bytes, usable_processors

SHARE_OF_CACHE = 0.5


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """Passes over arrays of fp64: read adds up all that it reads, copy leaves a = b.

    Each processor goes over its own part, so a part that fits into a cache of its own stays there. Raises
    :class:`Unsupported` where the arrays are more than half of the last-level cache, or its size is unknown.
    """
    del accelerator_index
    work = benchmark.get_work(CacheStreamWork)
    needed, cache = STREAM_ARRAYS[work.pattern] * work.array_bytes, last_level_cache_bytes()
    if cache is None:
        raise Unsupported("the system does not report the size of its cache")
    if needed > SHARE_OF_CACHE * cache:
        raise Unsupported(f"{needed} bytes in a cache of {cache} bytes")
    if work.array_bytes % ELEMENT_BYTES:
        raise Unsupported(f"arrays of fp64, and {work.array_bytes} bytes are no multiple of {ELEMENT_BYTES}")
    source = build_generator(benchmark, seed).random(work.array_bytes // ELEMENT_BYTES)
    target = np.full_like(source, np.nan)
    parts = split_elements(source.size, len(usable_processors()))
    tasks = [_build_task(work, source[part], target[part]) for part in parts]
    operation = "add.reduce" if work.pattern == "read" else "copyto"
    facts = MeasurementFacts(
        library=f"numpy {np.__version__} {operation} of fp64",
        algorithm=f"{work.passes} passes",
        data="uniform(0, 1)",
        timer="host_clock",
        working_set_bytes=needed,
        threads=len(parts),
        software=(NUMPY,),
    )
    with open_task_pool([tasks]) as run:
        found: list[object] = []

        def run_passes(_index: int) -> None:
            found[:] = run(0)

        yield HostTimed(facts, run_passes, lambda _: _verify_result(work, source, target, found))


def _build_task(work: CacheStreamWork, source: np.ndarray, target: np.ndarray) -> Callable[[], object]:
    def read_source() -> float:
        total = 0.0
        for _ in range(work.passes):
            total += np.add.reduce(source)
        return total

    def copy_source() -> None:
        for _ in range(work.passes):
            np.copyto(target, source)

    return read_source if work.pattern == "read" else copy_source


def _verify_result(
    work: CacheStreamWork, source: np.ndarray, target: np.ndarray, found: list[object]
) -> CorrectnessCheck:
    """Every element of a copy; of reads the sum of all passes, each off by (16 + log2 n) u at most.

    Adding the passes up rounds once for each (Higham, Accuracy and Stability, 4.2).
    """
    if work.pattern == "copy":
        wrong = float(np.count_nonzero(target != source))
        return build_correctness("every element of the copy", wrong, 0.0, compute_checksum(target))
    wanted, rounding = math.fsum(source.tolist()) * work.passes, float(np.finfo(np.float64).eps) / 2
    sums = np.array(found, np.float64)
    return build_correctness(
        "sum of all passes against an exact sum",
        abs(math.fsum(sums) - wanted) / wanted,
        (16 + math.log2(source.size) + work.passes) * 2 * rounding,
        compute_checksum(sums),
    )
