"""Multiply-adds of warps whose threads take different ways, by an own kernel."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import Divergence
from service.worker.benchmark import Facts, Prepared, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, Device, run
from service.worker.cuda.stream import SPOIL

START_BITS = 22


class DivergentWarps:
    """Way ``w`` adds a constant of its own at each step: +-2^(w // 2), exact in fp32 below 2^24 steps."""

    def __init__(self, device: Device, work: Divergence, seed: int) -> None:
        self._device, self._work, self._seed = device, work, numbers.seed_of(seed, 0)
        self._starts = device.allocate(4 * work.threads)
        self._results = device.allocate(4 * work.threads)
        device.to_device(self._starts, self._drawn())
        kernel = device.kernel("divergence.cu", "divergence")
        blocks = -(-work.threads // THREADS)
        arguments = (self._starts, self._results, work.threads, work.steps, work.paths, 1)
        self._launch = device.launcher(kernel, blocks, *arguments)
        self.facts = Facts(
            library="own kernel divergence",
            algorithm=f"{blocks} blocks of {THREADS} threads, {work.paths} ways in a warp",
            accumulation="fp32",
            data=f"whole numbers, uniform below 2^{START_BITS}",
            timer="cuda_event",
            working_set_bytes=8 * work.threads,
            flush_bytes=device.flush_bytes,
            software=device.software(),
        )

    def execute(self, iterations: int) -> int:
        """Nanoseconds of ``iterations`` launches, after a flush."""
        return self._device.repeated(self._launch, iterations)

    def check(self) -> Correctness:
        """Spoils the results, runs the kernel once, compares what every thread has."""
        found = np.empty(self._work.threads, np.float32)
        run(self._device, ("flush.cu", "flush"), self._results, found.nbytes // 16, SPOIL)
        self._launch()
        self._device.to_host(found, self._results)
        ways = np.arange(self._work.threads) % self._work.paths
        constants = np.where(ways % 2, -1.0, 1.0) * 2.0 ** (ways // 2)
        wanted = constants * (self._drawn().astype(np.float64) + self._work.steps)
        wrong = int(np.count_nonzero(found.astype(np.float64) != wanted))
        return Correctness(
            method="every thread against start + steps in whole numbers",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _drawn(self) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        """Where each thread starts."""
        bits = numbers.random_bits(self._seed, np.arange(self._work.threads))
        return (bits >> np.uint64(64 - START_BITS)).astype(np.uint32)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[Prepared]:
    """A start for each thread; raises :class:`Unsupported` where they do not fit."""
    if not isinstance(benchmark.work, Divergence):
        raise Unsupported(f"{benchmark.work.kind} is no divergence")
    with devices.opened(index) as device:
        yield DivergentWarps(device, benchmark.work, seed)
