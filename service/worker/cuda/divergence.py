"""Multiply-adds of warps whose threads diverge, by an own kernel."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import DivergenceWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, run_kernel
from service.worker.cuda.stream import SPOIL

START_BITS = 22


class DivergentWarps:
    """Path ``w`` adds a constant of its own at each step: +-2^(w // 2), exact in fp32 below 2^24 steps."""

    def __init__(self, device: CudaDevice, work: DivergenceWork, seed: int) -> None:
        self._device, self._work, self._seed = device, work, numbers.derive_seed(seed, 0)
        self._starts = device.allocate(4 * work.threads)
        self._results = device.allocate(4 * work.threads)
        device.to_device(self._starts, self._generate_starts())
        kernel = device.load_kernel("divergence.cu", "divergence")
        blocks = -(-work.threads // THREADS)
        arguments = (self._starts, self._results, work.threads, work.steps, work.paths, 1)
        self._launch = device.build_launch(kernel, blocks, *arguments)
        self.facts = MeasurementFacts(
            library="own kernel divergence",
            algorithm=f"{blocks} blocks of {THREADS} threads, {work.paths} ways in a warp",
            accumulation="fp32",
            data=f"whole numbers, uniform below 2^{START_BITS}",
            timer="cuda_event",
            working_set_bytes=8 * work.threads,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` launches after a flush."""
        return self._device.time_launches(self._launch, iterations)

    def check(self) -> CorrectnessCheck:
        """Spoils the results, runs the kernel once, and compares the result of every thread."""
        found = np.empty(self._work.threads, np.float32)
        run_kernel(self._device, ("flush.cu", "spoil"), self._results, found.nbytes // 16, SPOIL)
        self._launch()
        self._device.to_host(found, self._results)
        ways = np.arange(self._work.threads) % self._work.paths
        constants = np.where(ways % 2, -1.0, 1.0) * 2.0 ** (ways // 2)
        wanted = constants * (self._generate_starts().astype(np.float64) + self._work.steps)
        wrong = int(np.count_nonzero(found.astype(np.float64) != wanted))
        return CorrectnessCheck(
            method="every thread against start + steps in whole numbers",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _generate_starts(self) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """Generates the start of each thread."""
        bits = numbers.generate_bits(self._seed, np.arange(self._work.threads))
        return (bits >> np.uint64(64 - START_BITS)).astype(np.uint32)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares a start for each thread; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, DivergenceWork):
        raise Unsupported(f"{benchmark.work.kind} is not a divergence benchmark")
    with devices.open_device(index) as device:
        yield DivergentWarps(device, benchmark.work, seed)
