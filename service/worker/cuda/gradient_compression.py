"""Compression of gradients before they are sent, with the error kept for the next step, by own kernels."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.training import GradientCompressionWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, KernelLaunch, run_kernel
from service.worker.cuda.stream import read_elements, run_checksum, select_positions
from service.worker.gradients import BLOCK, quantize_int8, quantize_sign

FILE = "compression.cu"
WAVES = 8
BINS = 2048
SELECTION_WORDS = 4
DIGITS = (20, 10, 0)
"""Lowest bit of each digit of a size, from the top: 11, 10 and 10 bits."""
MOST_PLACES = 2**32
UNITS = 2.0**20
"""Units of a size in which sizes are summed without rounding."""
SCALE_TOLERANCE = 1e-6
"""Tolerance of a mean that is summed in fp64 from sums of four in fp32, and rounded to fp32."""
CHECKED_VALUES = 2**20
WRONG_SHIFT = 40
"""Shift of ``select_differences``: bits below count the values that were sent."""


class CompressedGradients:
    """Gradients and errors of fp32; each execution adds the gradients to the errors of the last one."""

    def __init__(self, device: CudaDevice, work: GradientCompressionWork, seed: int) -> None:
        if work.parameters % BLOCK:
            raise Unsupported(f"the number of gradients must be a multiple of {BLOCK}")
        if work.parameters >= MOST_PLACES:
            raise Unsupported(f"fewer than {MOST_PLACES} gradients, whose places and counts have 32 bits")
        self._device, self._work, count = device, work, work.parameters
        self._kept = max(math.ceil(work.kept_share * count), 1)
        sent = {"int8": count + count // 256, "sign": count // 8, "top_k": 8 * self._kept}[work.method]
        needed = 8 * count + sent
        device.demand_room(needed)
        self._seeds = numbers.derive_seed(seed, 0), numbers.derive_seed(seed, 1)
        self._gradient, self._error = device.allocate(4 * count), device.allocate(4 * count)
        self._blocks = device.multiprocessors * WAVES
        run_kernel(device, ("random.cu", "fill_fp32"), self._gradient, count, self._seeds[0])
        self._reset_error()
        self._results: list[tuple[int, int]] = []
        make: dict[str, Callable[[], KernelLaunch]] = {
            "int8": self._build_int8,
            "sign": self._build_sign,
            "top_k": self._build_top_k,
        }
        self._launch = make[work.method]()
        self.facts = MeasurementFacts(
            library=f"own kernels, {work.method}",
            algorithm=f"{self._blocks} blocks of {THREADS} threads",
            accumulation="fp32",
            data=numbers.NORMAL,
            timer="cuda_event",
            working_set_bytes=needed,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` compressions after a flush; of few, each after its own."""
        return self._device.time_launches(self._launch, iterations, self.facts.working_set_bytes)

    def check(self) -> CorrectnessCheck:
        """Checks one compression from the seed: all of it against a plain kernel, a sample against NumPy."""
        self._reset_error()
        self._invalidate_results()
        self._launch()
        wrong: dict[str, Callable[[], int]] = {
            "int8": self._count_int8_errors,
            "sign": self._count_sign_errors,
            "top_k": self._count_top_k_errors,
        }
        found = wrong[self._work.method]()
        return CorrectnessCheck(
            method="everything sent and kept against a plain kernel, a sample against NumPy in fp32",
            largest_error=float(found),
            tolerance=0.0,
            passed=not found,
        )

    def _reset_error(self) -> None:
        run_kernel(
            self._device, ("random.cu", "fill_fp32"), self._error, self._work.parameters, self._seeds[1]
        )

    def _invalidate_results(self) -> None:
        for address, size in self._results:
            self._device.to_device(address, np.full(size, 0xFF, np.uint8))

    def _build_launch(self, name: str, *arguments: int, blocks: int | None = None) -> KernelLaunch:
        return self._device.build_launch(
            self._device.load_kernel(FILE, name), blocks or self._blocks, *arguments
        )

    def _allocate_result(self, size: int) -> int:
        address = self._device.allocate(size)
        self._results.append((address, size))
        return address

    @property
    def _vectors(self) -> int:
        return self._work.parameters // 4

    def _read_sample(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Returns positions in whole blocks, gradient plus error there by NumPy, and the error left there."""
        places = select_positions(self._work.parameters, self._seeds[0], whole_runs=True)
        return places, self._compute_sums(places), read_elements(self._device, self._error, places)

    def _compute_sums(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        gradient, error = (
            numbers.generate_normal("fp32", seed, places).astype(np.float32) for seed in self._seeds
        )
        return np.asarray(gradient + error)

    # 8 bits

    def _build_int8(self) -> KernelLaunch:
        count = self._work.parameters
        self._sent, self._scales = self._allocate_result(count), self._allocate_result(count // BLOCK * 4)
        return self._build_launch(
            "compress_int8", self._gradient, self._error, self._sent, self._scales, count // BLOCK
        )

    def _count_int8_errors(self) -> int:
        places, values, left = self._read_sample()
        sent, scales, lost = quantize_int8(values)
        found = read_elements(self._device, self._sent, places, "i1")
        held = np.empty(self._work.parameters // BLOCK, np.float32)
        self._device.to_host(held, self._scales)
        wrong = sum(
            int(np.count_nonzero(one != other))
            for one, other in [(found, sent), (held[places[::BLOCK] // BLOCK], scales), (left, lost)]
        )
        arguments = (self._error, self._sent, self._scales, held.size, *self._seeds)
        return wrong + run_checksum(self._device, "int8_differences", *arguments, file=FILE)

    # One bit

    def _build_sign(self) -> KernelLaunch:
        count, threads = self._work.parameters, self._blocks * THREADS
        self._sent, self._scale = self._allocate_result(count // 8), self._allocate_result(4)
        sums = self._device.allocate(8 * threads)
        steps = (
            self._build_launch("sign_sizes", self._gradient, self._error, self._vectors, sums),
            self._build_launch("sign_scale", sums, threads, count, self._scale, blocks=1),
            self._build_launch(
                "compress_sign", self._gradient, self._error, self._sent, self._scale, self._vectors
            ),
        )
        return _chain_launches(steps)

    def _count_sign_errors(self) -> int:
        device, count = self._device, self._work.parameters
        scale = np.empty(1, np.float32)
        device.to_host(scale, self._scale)
        units = run_checksum(device, "sizes_in_units", count, *self._seeds, file=FILE)
        mean = units / UNITS / count
        wrong = int(not abs(float(scale[0]) - mean) <= SCALE_TOLERANCE * mean)
        _, values, left = self._read_sample()
        _, lost = quantize_sign(values, scale[0])
        wrong += int(np.count_nonzero(left != lost))
        arguments = (self._error, self._sent, self._scale, count, *self._seeds)
        return wrong + run_checksum(device, "sign_differences", *arguments, file=FILE)

    # The largest

    def _build_top_k(self) -> KernelLaunch:
        device, vectors = self._device, self._vectors
        self._places, self._values = (
            self._allocate_result(4 * self._kept),
            self._allocate_result(4 * self._kept),
        )
        self._selection, histogram = device.allocate(4 * SELECTION_WORDS), device.allocate(4 * BINS)
        steps = [self._build_launch("select_begin", self._selection, histogram, self._kept, blocks=1)]
        steps.append(self._build_launch("select_first", self._gradient, self._error, vectors, histogram))
        for shift in DIGITS:
            if shift != DIGITS[0]:
                arguments = (self._error, vectors, self._selection, histogram, shift)
                steps.append(self._build_launch("select_next", *arguments))
            steps.append(self._build_launch("select_digit", self._selection, histogram, shift, blocks=1))
        arguments = (self._error, vectors, self._selection, self._places, self._values)
        steps.append(self._build_launch("select_take", *arguments))
        return _chain_launches(steps)

    def _count_top_k_errors(self) -> int:
        device, count = self._device, self._work.parameters
        selection = np.empty(SELECTION_WORDS, np.uint32)
        device.to_host(selection, self._selection)
        least = int(selection[0])
        arguments = (self._error, count, *self._seeds, least)
        counted = run_checksum(device, "select_differences", *arguments, file=FILE)
        sent = counted % 2**WRONG_SHIFT
        # Zeros are sent last, and which of them were sent is not visible.
        wrong = (counted >> WRONG_SHIFT) + int(sent != self._kept if least else sent > self._kept)
        chosen, values = np.empty(self._kept, np.uint32), np.empty(self._kept, np.float32)
        device.to_host(chosen, self._places)
        device.to_host(values, self._values)
        wrong += self._kept - np.unique(chosen).size
        some = chosen[:CHECKED_VALUES]
        wrong += int(np.count_nonzero(values[:CHECKED_VALUES] != self._compute_sums(some)))
        sizes = np.abs(values).view(np.uint32)
        wrong += int(np.count_nonzero(sizes < least)) + int(sizes.min() != least)
        _, before, left = self._read_sample()
        large = np.abs(before).view(np.uint32) >= least
        return wrong + int(np.count_nonzero(left != np.where(large & (left == 0), 0, before)))


def _chain_launches(steps: list[KernelLaunch] | tuple[KernelLaunch, ...]) -> KernelLaunch:
    def enqueue_all() -> None:
        for step in steps:
            step()

    return enqueue_all


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares gradients and errors from the seed; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, GradientCompressionWork):
        raise Unsupported(f"{benchmark.work.kind} is not a compression of gradients")
    with devices.open_device(index) as device:
        yield CompressedGradients(device, benchmark.work, seed)
