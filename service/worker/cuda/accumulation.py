"""Gradients of a micro-batch added to the sum of those before it, by an own kernel."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import GradientAccumulation
from service.worker.benchmark import Facts, Prepared, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, Device, run
from service.worker.cuda.stream import checksum, elements, sample

FILE = "accumulation.cu"
VECTOR = 4
WAVES = 16


class Accumulated:
    """The same gradient again and again; the check begins from the seed."""

    def __init__(self, device: Device, work: GradientAccumulation, seed: int) -> None:
        if work.parameters % VECTOR:
            raise Unsupported(f"a multiple of {VECTOR} gradients only")
        width = 2 if work.gradient_dtype == "bf16" else 4
        needed = (4 + width) * work.parameters
        if needed > device.free_bytes():
            raise Unsupported(f"needs {needed} bytes, {device.free_bytes()} are free")
        self._device, self._work = device, work
        self._sum, self._gradient = (
            device.allocate(4 * work.parameters),
            device.allocate(width * work.parameters),
        )
        self._seeds = numbers.seed_of(seed, 0), numbers.seed_of(seed, 1)
        fill = ("random.cu", numbers.FILLS[work.gradient_dtype])
        run(device, fill, self._gradient, work.parameters, self._seeds[1])
        self._begin()
        blocks = device.multiprocessors * WAVES
        kernel = device.kernel(FILE, f"accumulate_{work.gradient_dtype}")
        self._launch = device.launcher(kernel, blocks, self._sum, self._gradient, work.parameters // VECTOR)
        self.facts = Facts(
            library=f"own kernel accumulate_{work.gradient_dtype}",
            algorithm=f"{blocks} blocks of {THREADS} threads, {VECTOR} gradients at a time",
            accumulation="fp32",
            data=numbers.NORMAL,
            timer="cuda_event",
            working_set_bytes=needed,
            flush_bytes=device.flush_bytes,
            software=device.software(),
        )

    def execute(self, iterations: int) -> int:
        """Nanoseconds of ``iterations`` additions, after a flush; of few gradients each after its own."""
        return self._device.repeated(self._launch, iterations, self.facts.working_set_bytes)

    def check(self) -> Correctness:
        """One addition from the seed: all of it against a plain kernel, a sample against NumPy."""
        self._begin()
        self._launch()
        count, dtype = self._work.parameters, self._work.gradient_dtype
        rest = (count, *self._seeds, int(dtype == "bf16"))
        wrong = checksum(self._device, "accumulation_differences", self._sum, *rest, file=FILE)
        places = sample(count, self._seeds[0])
        before = numbers.normal("fp32", self._seeds[0], places).astype(np.float32)
        wanted = before + numbers.normal(dtype, self._seeds[1], places).astype(np.float32)
        wrong += int(np.count_nonzero(elements(self._device, self._sum, places) != wanted))
        return Correctness(
            method="every sum against a plain kernel, a sample against NumPy in fp32",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _begin(self) -> None:
        run(self._device, ("random.cu", "fill_fp32"), self._sum, self._work.parameters, self._seeds[0])


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[Prepared]:
    """Sums and gradients from the seed; raises :class:`Unsupported` where they do not fit."""
    if not isinstance(benchmark.work, GradientAccumulation):
        raise Unsupported(f"{benchmark.work.kind} is no accumulation of gradients")
    with devices.opened(index) as device:
        yield Accumulated(device, benchmark.work, seed)
