"""Accumulation of the gradients of a micro-batch into their sum, by an own kernel."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.training import GradientAccumulationWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, run_kernel
from service.worker.cuda.stream import read_elements, run_checksum, select_positions

FILE = "accumulation.cu"
VECTOR = 4
WAVES = 16


class AccumulationBenchmark:
    """Repeated addition of one gradient; the check begins from the seed."""

    def __init__(self, device: CudaDevice, work: GradientAccumulationWork, seed: int) -> None:
        if work.parameters % VECTOR:
            raise Unsupported(f"the number of gradients must be a multiple of {VECTOR}")
        width = 2 if work.gradient_dtype == "bf16" else 4
        needed = (4 + width) * work.parameters
        device.demand_room(needed)
        self._device, self._work = device, work
        self._sum, self._gradient = (
            device.allocate(4 * work.parameters),
            device.allocate(width * work.parameters),
        )
        self._seeds = numbers.derive_seed(seed, 0), numbers.derive_seed(seed, 1)
        fill = ("random.cu", numbers.FILLS[work.gradient_dtype])
        run_kernel(device, fill, self._gradient, work.parameters, self._seeds[1])
        self._reset_sum()
        blocks = device.multiprocessors * WAVES
        kernel = device.load_kernel(FILE, f"accumulate_{work.gradient_dtype}")
        self._launch = device.build_launch(
            kernel, blocks, self._sum, self._gradient, work.parameters // VECTOR
        )
        self.facts = MeasurementFacts(
            library=f"own kernel accumulate_{work.gradient_dtype}",
            algorithm=f"{blocks} blocks of {THREADS} threads, {VECTOR} gradients at a time",
            accumulation="fp32",
            data=numbers.NORMAL,
            timer="cuda_event",
            working_set_bytes=needed,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` additions after a flush; of few, each after its own."""
        return self._device.time_launches(self._launch, iterations, self.facts.working_set_bytes)

    def check(self) -> CorrectnessCheck:
        """Checks one addition from the seed: all of it against a plain kernel, a sample against NumPy."""
        self._reset_sum()
        self._launch()
        count, dtype = self._work.parameters, self._work.gradient_dtype
        rest = (count, *self._seeds, int(dtype == "bf16"))
        wrong = run_checksum(self._device, "accumulation_differences", self._sum, *rest, file=FILE)
        places = select_positions(count, self._seeds[0])
        before = numbers.generate_normal("fp32", self._seeds[0], places).astype(np.float32)
        wanted = before + numbers.generate_normal(dtype, self._seeds[1], places).astype(np.float32)
        wrong += int(np.count_nonzero(read_elements(self._device, self._sum, places) != wanted))
        return CorrectnessCheck(
            method="every sum against a plain kernel, a sample against NumPy in fp32",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _reset_sum(self) -> None:
        run_kernel(self._device, ("random.cu", "fill_fp32"), self._sum, self._work.parameters, self._seeds[0])


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares sums and gradients from the seed; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, GradientAccumulationWork):
        raise Unsupported(f"{benchmark.work.kind} is not an accumulation of gradients")
    with devices.open_device(index) as device:
        yield AccumulationBenchmark(device, benchmark.work, seed)
