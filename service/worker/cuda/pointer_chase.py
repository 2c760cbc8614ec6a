"""Latency of a load that waits for the one before it, by an own kernel of one thread.

The place after all loads is checked: the cycle is an affine map, which the host computes in a few steps.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import PointerChaseWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import CudaDevice, run_kernel

LINE_BYTES = 128
THREADS = 32


class PointerChase:
    """A cycle through all lines of an array, in an order of the seed."""

    def __init__(self, device: CudaDevice, work: PointerChaseWork, seed: int) -> None:
        device.demand_room(work.array_bytes)
        self._device, self._work = device, work
        self._lines = work.array_bytes // LINE_BYTES
        drawn = [int(bits) % self._lines for bits in numbers.generate_bits(seed, np.arange(2))]
        # Of a full period: the factor is 1 modulo 4, the increment odd.
        self._factor, self._increment = drawn[0] // 4 * 4 + 1, drawn[1] | 1
        self._array, self._place = device.allocate(work.array_bytes), device.allocate(16)
        fill = "chase.cu", "chase_fill"
        run_kernel(device, fill, self._array, self._lines, self._factor, self._increment)
        device.to_device(self._place, np.zeros(4, np.uint32))
        kernel = device.load_kernel("chase.cu", "chase")
        self._launch = device.build_launch(kernel, 1, self._array, self._place, work.hops, threads=THREADS)
        self.facts = MeasurementFacts(
            library="own kernel chase",
            algorithm=f"one thread, {self._lines} lines of {LINE_BYTES} bytes in one cycle",
            data="places of the next line",
            timer="cuda_event",
            working_set_bytes=work.array_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` launches, each from where the last one ended.

        An untimed launch before them loads an array that a cache holds.
        """
        return self._device.time_warm_launches(self._launch, iterations)

    def check(self) -> CorrectnessCheck:
        """Compares the place after one launch from the first line with that of the affine map."""
        self._device.to_device(self._place, np.zeros(4, np.uint32))
        self._launch()
        wanted = compute_place(self._factor, self._increment, self._lines, self._work.hops)
        wrong = int(self._read_place() != wanted)
        return CorrectnessCheck(
            method=f"place after {self._work.hops} loads",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _read_place(self) -> int:
        found = np.empty(1, np.uint32)
        self._device.to_host(found, self._place)
        return int(found[0])


def compute_place(factor: int, increment: int, lines: int, hops: int) -> int:
    """Returns the place that is reached from 0 by repeated ``factor * place + increment`` modulo ``lines``.

    The map is squared for each bit of ``hops``.
    """
    place, scale, shift = 0, factor, increment
    while hops:
        if hops & 1:
            place = (scale * place + shift) % lines
        shift, scale = (scale * shift + shift) % lines, scale * scale % lines
        hops >>= 1
    return place


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares a cycle from the seed; raises :class:`Unsupported` if the array does not fit."""
    if not isinstance(benchmark.work, PointerChaseWork):
        raise Unsupported(f"{benchmark.work.kind} is not a chase of pointers")
    with devices.open_device(index) as device:
        yield PointerChase(device, benchmark.work, seed)
