"""The largest block of device memory that a process can allocate, found by halving and written to its end."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.suites import Benchmark
from service.protocol.work.memory import CapacityWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, KernelLaunch, sum_counts

GRANULE = 2 * 2**20
"""Granularity in which memory is mapped."""
WAVES = 8


class LargestBlock:
    """Asks the driver for blocks with nothing else allocated than the sums of each thread."""

    def __init__(self, device: CudaDevice, seed: int) -> None:
        self._device, self._seed = device, numbers.derive_seed(seed, 0)
        self._blocks = device.multiprocessors * WAVES
        self._sums = device.allocate(8 * self._blocks * THREADS)
        # Loaded now, because code takes memory too and none is left later.
        self._write = device.load_kernel("stream.cu", "stream_write")
        self._sum = device.load_kernel("checksum.cu", "sum_words")
        with device.scope_allocations():
            self._enqueue_both(device.allocate(GRANULE), GRANULE)
            device.synchronize()
        self.facts = MeasurementFacts(
            library="cuMemAlloc",
            algorithm=f"halving to {GRANULE} bytes, written and added up",
            data="words of the seed, each by its place",
            timer="host_clock",
            software=device.list_software(),
        )

    def read(self) -> list[float]:
        """Returns the size in bytes as one figure; raises if not every word can be written."""
        least, most = 0, self._device.read_free_bytes() // GRANULE
        while least < most:
            middle = (least + most + 1) // 2
            least, most = (middle, most) if self._can_allocate(middle * GRANULE) else (least, middle - 1)
        if not least:
            raise Unsupported(f"no block of {GRANULE} bytes, {self._device.read_free_bytes()} are free")
        self._check_block(least * GRANULE)
        return [float(least * GRANULE)]

    def _can_allocate(self, size: int) -> bool:
        with self._device.scope_allocations():
            try:
                self._device.allocate(size)
            except Unsupported:
                return False
            return True

    def _check_block(self, size: int) -> None:
        sums = np.empty(self._blocks * THREADS, np.uint64)
        with self._device.scope_allocations():
            self._enqueue_both(self._device.allocate(size), size)
            self._device.to_host(sums, self._sums)
        words = size // 4
        wanted = words * (self._seed % 2**32) + words * (words - 1) // 2 * int(numbers.WRITE_STEP)
        if sum_counts(sums, 32) != wanted % 2**32:
            raise RuntimeError(f"a block of {size} bytes does not contain the data written to it")

    def _enqueue_both(self, address: int, size: int) -> None:
        launch = self._device.build_launch
        steps: tuple[KernelLaunch, ...] = (
            launch(self._write, self._blocks, address, size // 16, self._seed),
            launch(self._sum, self._blocks, address, size // 4, 1, self._sums),
        )
        for step in steps:
            step()


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares a context with the kernels that write the block."""
    if not isinstance(benchmark.work, CapacityWork):
        raise Unsupported(f"{benchmark.work.kind} is not a capacity benchmark")
    with devices.open_device(index) as device:
        yield LargestBlock(device, seed)
