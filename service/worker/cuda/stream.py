"""Memory bandwidth by own kernels: read, write, copy and triad over arrays far larger than the cache.

An access has 16 bytes. A thread has 4 in flight and goes on, or makes one and ends: a trial chooses.
65,536 elements are checked against NumPy, and a sum over all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import STREAM_ARRAYS, StreamWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, KernelLaunch, run_kernel, sum_counts

FILE = "stream.cu"
VECTOR_BYTES = 16
UNROLL = 4
TRIAD_SCALE = 3
WAVES = (8, 16, 32)
"""Blocks for each multiprocessor that are tried with threads that go on."""
TRIALS = 3
CHECKED_ELEMENTS = 65_536
SPOIL = 0xFFFFFFFF
"""Bits that spoil a result before it is checked; no kernel leaves them there."""
CHUNK = 2**22


@dataclass(frozen=True, slots=True)
class _Arrays:
    result: int
    sources: tuple[int, ...]
    count: int
    """Elements of 4 bytes in each array."""
    seeds: tuple[int, ...]
    """Seed of each source, or of the written words if there is no source."""


class _LaunchShape(NamedTuple):
    """A kernel, its blocks, and the accesses that each thread has in flight."""

    kernel: str
    blocks: int
    unroll: int


class StreamBandwidth:
    """One access pattern; the first array of copy and triad is the one that is written."""

    def __init__(self, device: CudaDevice, work: StreamWork, seed: int) -> None:
        self._device, self._pattern = device, work.pattern
        needed = STREAM_ARRAYS[work.pattern] * work.array_bytes
        if work.array_bytes % VECTOR_BYTES:
            raise Unsupported(f"arrays must consist of whole {VECTOR_BYTES}-byte vectors")
        device.demand_room(needed)
        self._arrays = self._build_arrays(work, seed)
        most = device.multiprocessors * max(WAVES)
        self._sums = device.allocate(4 * most * THREADS)
        shape, self._launch = self._select_fastest()
        self._blocks = shape.blocks
        self.facts = MeasurementFacts(
            library=f"own kernel {shape.kernel}",
            algorithm=(
                f"{shape.blocks} blocks of {THREADS} threads,"
                f" {shape.unroll} x {VECTOR_BYTES} bytes in flight each"
            ),
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=needed,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` passes.

        Arrays below 20 times the cache are flushed before each pass, not only before the first.
        """
        return self._device.time_launches(self._launch, iterations, self.facts.working_set_bytes)

    def check(self) -> CorrectnessCheck:
        """Spoils the result, runs the kernel once, and compares sums over all and a sample of elements."""
        wrong = self._count_errors()
        return CorrectnessCheck(
            method=f"{CHECKED_ELEMENTS} elements against NumPy, checksum over all",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )

    def _build_arrays(self, work: StreamWork, seed: int) -> _Arrays:
        device, count = self._device, work.array_bytes // 4
        addresses = [device.allocate(work.array_bytes) for _ in range(STREAM_ARRAYS[work.pattern])]
        seeds = tuple(numbers.derive_seed(seed, number) for number in range(len(addresses)))
        match work.pattern:
            case "read":
                result, sources = 0, addresses
            case "write":
                result, sources = addresses[0], []
            case _:
                result, sources = addresses[0], addresses[1:]
        for address, own in zip(sources, seeds, strict=False):
            run_kernel(device, ("random.cu", "fill_whole"), address, count, own)
        return _Arrays(result, tuple(sources), count, seeds)

    def _build_launch(self, shape: _LaunchShape) -> KernelLaunch:
        arrays, vectors = self._arrays, self._arrays.count // 4
        arguments: tuple[int, ...]
        match self._pattern:
            case "read":
                arguments = (arrays.sources[0], vectors, self._sums)
            case "write":
                arguments = (arrays.result, vectors, arrays.seeds[0])
            case _:
                arguments = (arrays.result, *arrays.sources, vectors)
        kernel = self._device.load_kernel(FILE, shape.kernel)
        return self._device.build_launch(kernel, shape.blocks, *arguments)

    def _list_shapes(self) -> list[_LaunchShape]:
        """Returns the launches that are tried. Threads of a read leave 4 bytes each, so that all go on."""
        name = f"stream_{self._pattern}"
        shapes = [_LaunchShape(name, self._device.multiprocessors * waves, UNROLL) for waves in WAVES]
        if self._pattern != "read":
            vectors = self._arrays.count // 4
            shapes.append(_LaunchShape(f"{name}_once", -(-vectors // THREADS), 1))
        return shapes

    def _select_fastest(self) -> tuple[_LaunchShape, KernelLaunch]:
        """Selects the fastest launch by a short trial, since it differs between devices."""
        launches = {shape: self._build_launch(shape) for shape in self._list_shapes()}
        times = {
            shape: min(self._time_launch(launch) for _ in range(TRIALS)) for shape, launch in launches.items()
        }
        best = min(times, key=times.__getitem__)
        return best, launches[best]

    def _time_launch(self, launch: KernelLaunch) -> int:
        return self._device.time_launches(launch, 1)

    def _count_errors(self) -> int:
        """Counts the comparisons that failed."""
        device, arrays = self._device, self._arrays
        target = arrays.result or self._sums
        size = 4 * (arrays.count if arrays.result else self._blocks * THREADS)
        run_kernel(device, ("flush.cu", "spoil"), target, size // VECTOR_BYTES, SPOIL)
        self._launch()
        places = select_positions(arrays.count, arrays.seeds[0])
        match self._pattern:
            case "read":
                left = np.empty(self._blocks * THREADS, np.uint32)
                device.to_host(left, self._sums)
                sums_differ = sum_counts(left, 32) != self._sum_words(arrays.sources[0]) % 2**32
                expected, found = (
                    numbers.generate_integers(arrays.seeds[0], places),
                    self._read_elements(arrays.sources[0], places),
                )
            case "write":
                sums_differ = self._sum_words(arrays.result) != _sum_written(arrays.seeds[0], arrays.count)
                expected = numbers.generate_written_words(arrays.seeds[0], places).view(np.float32)
                found = self._read_elements(arrays.result, places)
            case _:
                weights = (1, TRIAD_SCALE)[: len(arrays.sources)]
                total = sum(
                    weight * self._sum_weighted(source)
                    for weight, source in zip(weights, arrays.sources, strict=True)
                )
                sums_differ = self._sum_weighted(arrays.result) != total % 2**64
                values = [
                    numbers.generate_integers(own, places) for own in arrays.seeds[: len(arrays.sources)]
                ]
                expected = sum(
                    (np.float32(weight) * value for weight, value in zip(weights, values, strict=True)),
                    start=np.zeros(places.size, np.float32),
                )
                found = self._read_elements(arrays.result, places)
        # As bits, because words need not be numbers.
        return int(np.count_nonzero(found.view(np.uint32) != expected.view(np.uint32))) + sums_differ

    def _read_elements(self, address: int, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return read_elements(self._device, address, places)

    def _sum_words(self, address: int) -> int:
        return self._run_checksum("sum_words", address, self._arrays.count, 1)

    def _sum_weighted(self, address: int) -> int:
        return self._run_checksum("weighted_sum", address, self._arrays.count)

    def _run_checksum(self, name: str, *arguments: int) -> int:
        return run_checksum(self._device, name, *arguments)


def run_checksum(device: CudaDevice, name: str, *arguments: int, file: str = "checksum.cu") -> int:
    """Returns the sum of the threads' counts, each stored in the kernel's last argument, modulo 2^64."""
    sums = np.empty(device.multiprocessors * 8 * THREADS, np.uint64)
    address = device.allocate(sums.nbytes)
    run_kernel(device, (file, name), *arguments, address)
    device.to_host(sums, address)
    return sum_counts(sums, 64)


_RUN = 1024
"""Neighbouring elements that are fetched at once."""


def select_positions(count: int, seed: int, *, whole_runs: bool = False) -> np.ndarray[Any, Any]:
    """Selects positions below ``count`` in runs of 1024: the first, the last, and others by the seed.

    Runs begin anywhere, with ``whole_runs`` at multiples of their length.
    """
    runs = min(CHECKED_ELEMENTS // _RUN, max(count // _RUN, 1))
    if count < _RUN:
        raise Unsupported(f"arrays must have at least {_RUN} elements")
    step = _RUN if whole_runs else 1
    last = (count - _RUN) // step
    drawn = numbers.generate_bits(seed ^ 1, np.arange(runs)) % np.uint64(last + 1)
    drawn[0], drawn[-1] = 0, last
    drawn *= np.uint64(step)
    return np.asarray((drawn[:, None] + np.arange(_RUN, dtype=np.uint64)).reshape(-1))


def read_elements(
    device: CudaDevice, address: int, places: np.ndarray[Any, Any], dtype: str = "f4"
) -> np.ndarray[Any, Any]:
    """Reads elements of a device array at positions of :func:`select_positions`, a run at a time."""
    found = np.empty((places.size // _RUN, _RUN), dtype)
    for row, first in zip(found, places[::_RUN], strict=True):
        device.to_host(row, address + found.itemsize * int(first))
    return found.reshape(-1)


def _sum_written(seed: int, count: int) -> int:
    """Returns the sum of every word that a write leaves, modulo 2^64."""
    total = 0
    for start in range(0, count, CHUNK):
        places = np.arange(start, min(start + CHUNK, count), dtype=np.uint64)
        total += int(numbers.generate_written_words(seed, places).sum(dtype=np.uint64))
    return total % 2**64


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares arrays from the seed; raises :class:`Unsupported` if they do not fit."""
    if not isinstance(benchmark.work, StreamWork):
        raise Unsupported(f"{benchmark.work.kind} is not a stream")
    with devices.open_device(index) as device:
        yield StreamBandwidth(device, benchmark.work, seed)
