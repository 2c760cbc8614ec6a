"""One update of parameters in mixed precision, by an own kernel."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.base import DType
from service.protocol.work.training import OPTIMIZER_BYTES, OptimizerStepWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, run_kernel
from service.worker.cuda.stream import read_elements, run_checksum, select_positions
from service.worker.gradients import RULES, apply_rule

FILE = "optimizer.cu"
DTYPES: tuple[DType, ...] = ("bf16", "fp32", "fp32", "fp32")
"""Types of the random numbers: gradient, master weight, first state and root of the second."""
VECTOR = 4
"""Parameters that a thread updates at a time."""
WAVES = 16
PARAMETER_BYTES = {"adamw": 16, "sgd_momentum": 12}
"""Bytes of a parameter: gradient and weight of bf16, master weight and states of fp32."""


class OptimizerUpdate:
    """Repeated update by one gradient; the check begins from the seed."""

    def __init__(self, device: CudaDevice, work: OptimizerStepWork, seed: int) -> None:
        if work.parameters % VECTOR:
            raise Unsupported(f"the number of parameters must be a multiple of {VECTOR}")
        needed = PARAMETER_BYTES[work.optimizer] * work.parameters
        device.demand_room(needed)
        self._device, self._work = device, work
        self._rule = RULES[work.optimizer]
        count = work.parameters
        self._gradient, self._weight = device.allocate(2 * count), device.allocate(2 * count)
        self._master, self._m = device.allocate(4 * count), device.allocate(4 * count)
        self._v = device.allocate(4 * count) if work.optimizer == "adamw" else 0
        self._seeds = tuple(numbers.derive_seed(seed, number) for number in range(4))
        self._fill_arrays()
        states = (self._m, self._v) if self._v else (self._m,)
        blocks = device.multiprocessors * WAVES
        self._launch = device.build_launch(
            device.load_kernel(FILE, work.optimizer),
            blocks,
            *(self._gradient, self._master, *states, self._weight, count // VECTOR, *self._rule.to_bits()),
        )
        self.facts = MeasurementFacts(
            library=f"own kernel {work.optimizer}",
            algorithm=f"{blocks} blocks of {THREADS} threads, {VECTOR} parameters at a time",
            accumulation="fp32",
            data=numbers.NORMAL,
            timer="cuda_event",
            working_set_bytes=OPTIMIZER_BYTES[work.optimizer] * count,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` updates after a flush; of few, each after its own."""
        return self._device.time_launches(self._launch, iterations, self.facts.working_set_bytes)

    def check(self) -> CorrectnessCheck:
        """Checks one update from the seed: all against a plain kernel, a sample against NumPy, bitwise."""
        self._fill_arrays()
        self._launch()
        wrong = self._count_errors() + self._count_sample_errors()
        return CorrectnessCheck(
            method="every parameter against a plain kernel, a sample against NumPy in fp32",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _fill_arrays(self) -> None:
        count = self._work.parameters
        fills = [("fill_bf16", self._gradient), ("fill_fp32", self._master), ("fill_fp32", self._m)]
        for (name, address), seed in zip(fills, self._seeds, strict=False):
            run_kernel(self._device, ("random.cu", name), address, count, seed)
        if self._v:
            run_kernel(self._device, (FILE, "fill_squares"), self._v, count, self._seeds[3])

    def _count_errors(self) -> int:
        results = (self._master, self._m, self._v, self._weight)
        rest = (self._work.parameters, *self._seeds, *self._rule.to_bits())
        return run_checksum(self._device, "optimizer_differences", *results, *rest, file=FILE)

    def _count_sample_errors(self) -> int:
        places = select_positions(self._work.parameters, self._seeds[0])
        gradient, weight, m, root = (
            numbers.generate_normal(dtype, seed, places).astype(np.float32)
            for dtype, seed in zip(DTYPES, self._seeds, strict=True)
        )
        wanted = apply_rule(self._rule.to_fp32(), gradient, weight, m, root * root if self._v else None)
        addresses = (self._master, self._m, self._v)
        wrong = sum(
            int(np.count_nonzero(read_elements(self._device, address, places) != values))
            for address, values in zip(addresses, wanted, strict=True)
            if values is not None
        )
        kept = numbers.decode_bf16(read_elements(self._device, self._weight, places, "u2"))
        return wrong + int(np.count_nonzero(kept != numbers.round_to_bf16(wanted[0])))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares parameters, states and gradients; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, OptimizerStepWork):
        raise Unsupported(f"{benchmark.work.kind} is not an optimizer step")
    with devices.open_device(index) as device:
        yield OptimizerUpdate(device, benchmark.work, seed)
