"""Complex transforms of one to three dimensions, by cuFFT through nvmath-python.

In place, the signal is made anew before each. 16 points are checked against the sum that defines them, in
float64.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import FftWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.bindings import list_versions, load_module
from service.worker.cuda.device import CACHE_SHARE, CudaDevice, run_kernel
from service.worker.errors import get_first_line
from service.worker.fourier import compute_points, compute_tolerance

FORWARD = -1
# cudaDataType of library_types.h.
COMPLEX = {"fp32": 4, "fp64": 5, "fp16": 6}
PARTS: dict[str, np.dtype[np.floating[Any]]] = {
    "fp16": np.dtype("f2"),
    "fp32": np.dtype("f4"),
    "fp64": np.dtype("f8"),
}
CHECKED = 16
MOST_SETS = 64
MEMORY_SHARE = 0.5
SPOIL = 0xFFFFFFFF


class FftPlan:
    """A cuFFT plan with its own work area; raises :class:`Unsupported` for work that the library refuses."""

    def __init__(self, device: CudaDevice, work: FftWork, stack: ExitStack) -> None:
        self._cufft = cufft = load_module("nvmath.bindings.cufft")
        try:
            self.version = _format_version(cufft.get_version())
            self._plan = cufft.create()
        except (cufft.cuFFTError, RuntimeError) as error:
            raise Unsupported(f"cuFFT: {get_first_line(error)}") from None
        stack.callback(cufft.destroy, self._plan)
        cufft.set_auto_allocation(self._plan, 0)
        cufft.set_stream(self._plan, device.stream)
        shape, elements, kind = (
            [work.points] * work.dimensions,
            work.points**work.dimensions,
            COMPLEX[work.dtype],
        )
        try:
            self.work_bytes = int(
                cufft.xt_make_plan_many(
                    self._plan, work.dimensions, shape, shape, 1, elements, kind, shape, 1, elements, kind,
                    work.batch, kind,
                )
            )  # fmt: skip
        except (cufft.cuFFTError, RuntimeError) as error:
            raise Unsupported(f"cuFFT: {get_first_line(error)}") from None
        if self.work_bytes:
            cufft.set_work_area(self._plan, device.allocate(self.work_bytes))

    def enqueue_transform(self, source: int, spectrum: int) -> None:
        """Enqueues one forward transform on the device's stream."""
        self._cufft.xt_exec(self._plan, source, spectrum, FORWARD)


class FourierTransform:
    """Forward transforms on several sets of buffers in rotation, or repeatedly in place.

    Data in place grow with each transform, so they are regenerated before each.
    """

    def __init__(self, device: CudaDevice, work: FftWork, seed: int, stack: ExitStack) -> None:
        self._device, self._work = device, work
        self._seed = numbers.derive_seed(seed, 0)
        self._plan = FftPlan(device, work, stack)
        self._reals = 2 * work.points**work.dimensions * work.batch
        self._size = self._reals * PARTS[work.dtype].itemsize
        self._sets = self._build_sets()
        self._turn = 0
        total = self._size * len(set(self._sets[0])) * len(self._sets)
        self._flushes_each = work.in_place or total < CACHE_SHARE * device.l2_bytes
        self.facts = MeasurementFacts(
            library=f"cuFFT {self._plan.version}",
            algorithm=f"{format_factors(work.points)}; work area {self._plan.work_bytes} bytes",
            accumulation=work.dtype,
            data=f"{numbers.NORMAL}, real and imaginary",
            timer="cuda_event",
            working_set_bytes=total,
            flush_bytes=device.flush_bytes,
            rotated_buffers=len(self._sets),
            software=(*device.list_software(), *list_versions("nvmath-python", "nvidia-cufft")),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` executions of the whole batch, after a flush."""
        if self._flushes_each:
            return sum(self._time_transforms(1) for _ in range(iterations))
        return self._time_transforms(iterations)

    def check(self) -> CorrectnessCheck:
        """Compares points of one transform, chosen by the seed, with float64 of the same numbers."""
        work, elements = self._work, self._work.points**self._work.dimensions
        source, spectrum = self._sets[0]
        self._fill_signal(source)
        if not work.in_place:
            run_kernel(self._device, ("flush.cu", "spoil"), spectrum, self._size // 16, SPOIL)
        self._plan.enqueue_transform(source, spectrum)
        drawn = numbers.generate_bits(self._seed ^ 1, np.arange(CHECKED * work.dimensions + 1))
        which = int(drawn[0]) % work.batch
        wanted = (drawn[1:] % np.uint64(work.points)).astype(np.int64).reshape(CHECKED, work.dimensions)
        wanted[0] = 0
        places = wanted @ work.points ** np.arange(work.dimensions - 1, -1, -1)
        held = np.empty((CHECKED, 2), PARTS[work.dtype])
        for number, place in enumerate(places.tolist()):
            at = (which * elements + place) * 2 * held.itemsize
            self._device.to_host(held[number], spectrum + at)
        found = held[:, 0].astype(np.float64) + 1j * held[:, 1].astype(np.float64)
        expected, scale = compute_points(
            lambda first, count: self._generate_signal(which * elements + first, count),
            work.points,
            work.dimensions,
            wanted,
        )
        limit = compute_tolerance(float(np.finfo(PARTS[work.dtype]).eps) / 2, elements)
        largest = float(np.abs(found - expected).max() / scale)
        largest = min(largest, 1e30) if np.isfinite(largest) else 1e30
        return CorrectnessCheck(
            method=f"{CHECKED} points against the defining sum in float64",
            largest_error=largest,
            tolerance=limit,
            passed=largest <= limit,
        )

    def _build_sets(self) -> list[tuple[int, int]]:
        device, each = self._device, self._size * (1 if self._work.in_place else 2)
        free = device.read_free_bytes()
        device.demand_room(each)
        wanted = 1 if self._work.in_place else -(-CACHE_SHARE * device.l2_bytes // each)
        count = max(min(wanted, MOST_SETS, int(MEMORY_SHARE * free) // each), 1)
        sets = []
        for _ in range(count):
            source = device.allocate(self._size)
            sets.append((source, source if self._work.in_place else device.allocate(self._size)))
            self._fill_signal(source)
        return sets

    def _fill_signal(self, address: int) -> None:
        run_kernel(
            self._device, ("random.cu", numbers.FILLS[self._work.dtype]), address, self._reals, self._seed
        )

    def _time_transforms(self, iterations: int) -> int:
        if self._work.in_place:
            self._fill_signal(self._sets[0][0])
        self._device.flush_cache()
        return self._device.time_work(lambda: self._enqueue_transforms(iterations))

    def _enqueue_transforms(self, times: int) -> None:
        for _ in range(times):
            self._plan.enqueue_transform(*self._sets[self._turn])
            self._turn = (self._turn + 1) % len(self._sets)

    def _generate_signal(self, first: int, count: int) -> np.ndarray[Any, np.dtype[np.complex128]]:
        return numbers.generate_normal_run(self._work.dtype, self._seed, 2 * first, 2 * count).view(
            np.complex128
        )


def format_factors(points: int) -> str:
    """Formats the prime factors of a length, which decide the algorithm of a library."""
    left, found = points, list[int]()
    divisor = 2
    while divisor * divisor <= left:
        while left % divisor == 0:
            found.append(divisor)
            left //= divisor
        divisor += 1
    if left > 1:
        found.append(left)
    if len(found) == 1:
        return f"prime length {points}"
    powers = [f"{prime}^{found.count(prime)}" for prime in sorted(set(found))]
    return f"length {points} = {' x '.join(powers)}"


def _format_version(number: int) -> str:
    return f"{number // 1000}.{number // 100 % 10}.{number % 100}"


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares signals from the seed, and a plan; raises :class:`Unsupported` if cuFFT has none."""
    if not isinstance(benchmark.work, FftWork):
        raise Unsupported(f"{benchmark.work.kind} is not a transform")
    with devices.open_device(index) as device, ExitStack() as stack:
        yield FourierTransform(device, benchmark.work, seed, stack)
