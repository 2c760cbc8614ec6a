"""Arrays that stay in the last-level cache, by own kernels: the control for leaks of it into others."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import STREAM_ARRAYS, CacheStreamWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.copies import VECTOR_BYTES, CopyArrays
from service.worker.cuda.device import THREADS, CudaDevice, KernelLaunch, run_kernel, sum_counts
from service.worker.cuda.stream import SPOIL, run_checksum

UNROLL = 4
TILE = UNROLL * THREADS
"""Vectors that a block moves at a time; arrays consist of whole tiles."""
WAVES = 8
SHARE_OF_CACHE = 0.5
"""Largest share of the cache. A larger set is partly evicted: on some devices each half has its side."""


class CachedArrays:
    """Passes within one launch, each starting elsewhere, so that no smaller cache serves them."""

    def __init__(self, device: CudaDevice, work: CacheStreamWork, seed: int) -> None:
        self._device, self._work = device, work
        needed = STREAM_ARRAYS[work.pattern] * work.array_bytes
        if needed > SHARE_OF_CACHE * device.l2_bytes:
            raise Unsupported(f"{needed} bytes in a cache of {device.l2_bytes} bytes")
        if work.array_bytes % (TILE * VECTOR_BYTES):
            raise Unsupported(f"arrays must consist of whole {TILE * VECTOR_BYTES}-byte tiles")
        self._arrays = CopyArrays(device, work.array_bytes, seed)
        self._blocks = device.multiprocessors * WAVES
        self._sums = device.allocate(4 * self._blocks * THREADS)
        # Shifting by three eighths of the array reaches another multiprocessor's part, and every tile in
        # turn.
        shift = self._arrays.vectors // TILE * 3 // 8 * TILE
        self._launch = self._build_launch(shift)
        self.facts = MeasurementFacts(
            library=f"own kernel cache_{work.pattern}",
            algorithm=f"{self._blocks} blocks of {THREADS} threads, {work.passes} passes in a launch",
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=needed,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` launches; an untimed one before them loads the arrays."""
        return self._device.time_warm_launches(self._launch, iterations)

    def check(self) -> CorrectnessCheck:
        """Spoils the result, runs once, and compares sums over all; of a copy also a sample of elements."""
        if self._work.pattern == "copy":
            return self._arrays.check_copy(self._launch)
        wrong = self._count_sum_errors()
        return CorrectnessCheck(
            method="sum of all words of all passes",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _build_launch(self, shift: int) -> KernelLaunch:
        arrays, passes = self._arrays, self._work.passes
        kernel = self._device.load_kernel("cache.cu", f"cache_{self._work.pattern}")
        if self._work.pattern == "copy":
            arguments: tuple[int, ...] = (arrays.target, arrays.source, arrays.vectors, passes, shift)
        else:
            arguments = (arrays.source, arrays.vectors, passes, shift, self._sums)
        return self._device.build_launch(kernel, self._blocks, *arguments)

    def _count_sum_errors(self) -> int:
        """Returns 1 if the threads' sum differs from that of the array times the passes, else 0."""
        left = np.empty(self._blocks * THREADS, np.uint32)
        run_kernel(self._device, ("flush.cu", "spoil"), self._sums, left.nbytes // VECTOR_BYTES, SPOIL)
        self._launch()
        self._device.to_host(left, self._sums)
        whole = run_checksum(self._device, "sum_words", self._arrays.source, self._arrays.count, 1)
        return int(sum_counts(left, 32) != whole * self._work.passes % 2**32)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares arrays from the seed; raises :class:`Unsupported` if the cache does not hold them."""
    if not isinstance(benchmark.work, CacheStreamWork):
        raise Unsupported(f"{benchmark.work.kind} is not a cache stream")
    with devices.open_device(index) as device:
        yield CachedArrays(device, benchmark.work, seed)
