"""Reads of 4 bytes a stride apart, by an own kernel: the share of the bandwidth that a gather gets.

The sum of all words that are read is checked.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import WORD_BYTES, StridedReadWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, run_kernel, sum_counts
from service.worker.cuda.stream import SPOIL, run_checksum

WAVES = 8
FIRST_ELEMENTS = 65_536


class StridedBandwidth:
    """Reads of one word of every stride; neighbouring threads read neighbouring strides."""

    def __init__(self, device: CudaDevice, work: StridedReadWork, seed: int) -> None:
        self._device = device
        self._count = work.array_bytes // work.stride_bytes
        self._stride = work.stride_bytes // WORD_BYTES
        if not self._count:
            raise Unsupported("the stride is longer than the array")
        device.demand_room(work.array_bytes)
        self._array = device.allocate(work.array_bytes)
        self._seed = numbers.derive_seed(seed, 0)
        run_kernel(
            device, ("random.cu", "fill_whole"), self._array, work.array_bytes // WORD_BYTES, self._seed
        )
        self._blocks = device.multiprocessors * WAVES
        self._sums = device.allocate(4 * self._blocks * THREADS)
        kernel = device.load_kernel("strided.cu", "strided_read")
        self._launch = device.build_launch(
            kernel, self._blocks, self._array, self._count, self._stride, self._sums
        )
        # Bytes fetched, not bytes used: at most a line of 128 bytes for each word.
        self._fetched = min(work.array_bytes, self._count * 128)
        self.facts = MeasurementFacts(
            library="own kernel strided_read",
            algorithm=f"{self._blocks} blocks of {THREADS} threads",
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=work.array_bytes,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` passes after a flush."""
        return self._device.time_launches(self._launch, iterations, self._fetched)

    def check(self) -> CorrectnessCheck:
        """Compares the sum with that of a plain kernel, whose array is compared with NumPy."""
        left = np.empty(self._blocks * THREADS, np.uint32)
        run_kernel(self._device, ("flush.cu", "spoil"), self._sums, left.nbytes // 16, SPOIL)
        self._launch()
        self._device.to_host(left, self._sums)
        whole = run_checksum(self._device, "sum_words", self._array, self._count, self._stride)
        places = np.arange(min(FIRST_ELEMENTS, self._count * self._stride))
        found = np.empty(places.size, np.float32)
        self._device.to_host(found, self._array)
        wrong = int(np.count_nonzero(found != numbers.generate_integers(self._seed, places)))
        wrong += sum_counts(left, 32) != whole % 2**32
        return CorrectnessCheck(
            method=f"sum of all words, and {places.size} elements against NumPy",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares an array from the seed; raises :class:`Unsupported` if it does not fit."""
    if not isinstance(benchmark.work, StridedReadWork):
        raise Unsupported(f"{benchmark.work.kind} is not a strided read")
    with devices.open_device(index) as device:
        yield StridedBandwidth(device, benchmark.work, seed)
