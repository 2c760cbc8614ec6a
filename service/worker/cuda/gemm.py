"""Matrix products of random numbers, ``C = A B^T``, by cuBLASLt through nvmath-python.

The fastest of up to 16 algorithms that its heuristics propose is measured. Products of less than 0.1 ms run
as a graph of several hundred, as engines replay theirs: one by one, each would count 1 to 2 us of its launch
as its own. 12 tiles of 16 x 16 are checked against float64 of the same factors.
"""

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import GEMM_BYTES, GemmWork
from service.protocol.work.base import DType
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.bindings import list_versions
from service.worker.cuda.cublaslt import (
    KINDS,
    Matmul,
    MatmulAlgorithm,
    describe_proposals,
    time_proposals,
)
from service.worker.cuda.device import CACHE_SHARE, CudaDevice, KernelLaunch, run_kernel

TILE = 16
TILES = 12
SPOIL = 0xFFFFFFFF
"""NaN in every format of a result, and a value that no product of int8 reaches."""
SEARCH_SECONDS = 5.0
TRIALS = 3
FINALISTS = 3
FINAL_TRIALS = 10
MEMORY_SHARE = 0.5
MOST_SETS = 2048
"""Most sets of matrices. Products of 512 x 512 x 512 take 1,700 to exceed a cache of 126 MiB 20 times."""
ALIGNED_BYTES = 256
SMALL_NS = 100_000
"""Time of a product below which its launch would be more than 1 or 2% of it."""
GRAPH_NS = 4_000_000
"""Least time of a graph of products, so that its own launch is less than a thousandth."""
MOST_PRODUCTS = 1024
"""Most products of a graph, but for whole turns of the sets."""

ROUNDING: dict[DType, float] = {
    "fp64": 0.0,
    "fp32": 0.0,
    "tf32": 5e-3,
    "bf16": 1.6e-2,
    "fp16": 4e-3,
    "fp8_e4m3": 1.6e-2,
    "int8": 0.0,
}
"""Error that passes whatever the depth, over the root mean square of the result: of factors and result.

The largest of some thousand normal results is about 4.2 of these. bf16 and fp16 round it to half a unit in
the last of 8 and 11 bits; the result of fp8 is bf16. TF32 keeps 11 bits of each factor, 4e-4 of the result
and 2e-3 at worst: fp32 that went through TF32 unasked does not pass.
"""
SUMMING: dict[DType, float] = {
    "fp64": 1e-14,
    "fp32": 8e-7,
    "tf32": 8e-7,
    "bf16": 8e-7,
    "fp16": 8e-7,
    "fp8_e4m3": 7e-4,
    "int8": 0.0,
}
"""Error of the sums that passes, over the same and over the square root of the depth.

A sum of k terms of deviation 1 grows to sqrt(k), rounded k times. These add up at random to sqrt(k / 6)
roundings of the result (Higham, Accuracy and Stability of Numerical Algorithms, 4.2); 4.2 of these are
1e-7 sqrt(k) of fp32, and eight times that passes. Fast accumulation of fp8 keeps about 14 bits of each sum on
Hopper: nearly 2e-2 at a depth of 4,096 (DeepSeek-V3 Technical Report, 3.3.2), and twice that passes.
"""


def compute_tolerance(dtype: DType, depth: int) -> float:
    """Returns the largest error of a product that passes, over the root mean square of the result."""
    return ROUNDING[dtype] + SUMMING[dtype] * math.sqrt(depth)


class MatrixProduct:
    """C = A B^T on several sets of matrices in rotation, so that the cache holds none of them."""

    def __init__(self, device: CudaDevice, work: GemmWork, seed: int, stack: ExitStack) -> None:
        self._device, self._work, self._seed = device, work, seed
        self._matmul = self._open_matmul(stack)
        self._sets = self._build_sets()
        self._turn = 0
        tried, self._algorithm = self._select_fastest()
        working_set_bytes = work.count_work().moved_bytes * len(self._sets)
        self._flushes_each = working_set_bytes < CACHE_SHARE * device.l2_bytes
        together = self._count_together()
        self._launch = self._build_launch(together)
        self.facts = MeasurementFacts(
            library=f"cublasLt {self._matmul.version}",
            algorithm=f"{self._algorithm.name}; {tried}" + (f"; graph of {together}" if together > 1 else ""),
            math_mode=self._matmul.mode,
            accumulation=KINDS[work.dtype].accumulation,
            data=numbers.NORMAL_INT8 if work.dtype == "int8" else numbers.NORMAL,
            timer="cuda_event",
            working_set_bytes=working_set_bytes,
            flush_bytes=device.flush_bytes,
            rotated_buffers=len(self._sets),
            uses_graph=together > 1,
            executions_per_launch=together,
            software=(*device.list_software(), *list_versions("nvmath-python", "nvidia-cublas")),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` products, each on the next set of matrices, after a flush.

        If all the sets together are below 20 times the cache, a flush precedes each product. Small products
        run as graphs, and one by one what is left over of them.
        """
        if self._flushes_each:
            return sum(self._time_products(self._algorithm) for _ in range(iterations))
        graphs, single = divmod(iterations, self.facts.executions_per_launch)

        def enqueue_all() -> None:
            for _ in range(graphs):
                self._launch()
            self._enqueue_products(self._algorithm, single)

        self._device.flush_cache()
        return self._device.time_work(enqueue_all)

    def check(self) -> CorrectnessCheck:
        """Compares tiles at the corners and at positions of the seed with float64 of the same factors."""
        a, b, c = self._sets[0]
        work, tolerance = self._work, compute_tolerance(self._work.dtype, self._work.k)
        size = work.m * work.n * GEMM_BYTES[work.dtype][1]
        run_kernel(self._device, ("flush.cu", "spoil"), c, size // 16, SPOIL)
        self._matmul.enqueue_product(self._algorithm, a, b, c)
        found, expected = zip(*(self._read_tile(c, *place) for place in self._select_tiles()), strict=True)
        wanted = np.concatenate(expected)
        error = np.abs(np.concatenate(found) - wanted)
        largest = float(error.max() / max(np.sqrt(np.mean(wanted**2)), 1e-300))
        # The error of NaN is reported as the largest number that can be written.
        largest = min(largest, 1e30) if np.isfinite(largest) else 1e30
        return CorrectnessCheck(
            method=f"{TILES} tiles of {TILE} x {TILE} against float64 of the same factors",
            largest_error=largest,
            tolerance=tolerance,
            passed=largest <= tolerance,
        )

    def _open_matmul(self, stack: ExitStack) -> Matmul:
        return Matmul(self._device, self._work, stack)

    def _build_sets(self) -> list[tuple[int, int, int]]:
        device, work = self._device, self._work
        read, written = GEMM_BYTES[work.dtype]
        sizes = (work.m * work.k * read, work.n * work.k * read, work.m * work.n * written)
        free = device.read_free_bytes()
        device.demand_room(sum(sizes))
        steps = [-(-size // ALIGNED_BYTES) * ALIGNED_BYTES for size in sizes]
        wanted = -(-CACHE_SHARE * device.l2_bytes // sum(sizes))
        count = max(min(wanted, MOST_SETS, int(MEMORY_SHARE * free) // sum(steps)), 1)
        firsts = [device.allocate(step * (count - 1) + size) for step, size in zip(steps, sizes, strict=True)]
        fill = ("random.cu", numbers.FILLS[work.dtype])
        for which in range(2):
            # All sets in a row, so that no two have the same numbers; the check computes the first again.
            held = (steps[which] * (count - 1) + sizes[which]) // read
            run_kernel(device, fill, firsts[which], held, numbers.derive_seed(self._seed, which))
        return [
            (firsts[0] + number * steps[0], firsts[1] + number * steps[1], firsts[2] + number * steps[2])
            for number in range(count)
        ]

    def _count_together(self) -> int:
        """Returns the products of a launch: 1, or of small products whole turns of the sets."""
        took = self._time_products(self._algorithm)
        if self._flushes_each or took >= SMALL_NS:
            return 1
        return -(-min(GRAPH_NS // took, MOST_PRODUCTS) // len(self._sets)) * len(self._sets)

    def _build_launch(self, together: int) -> KernelLaunch:
        def enqueue_products() -> None:
            self._enqueue_products(self._algorithm, together)

        self._turn = 0
        return enqueue_products if together == 1 else self._device.capture_graph(enqueue_products)

    def _enqueue_products(self, algorithm: MatmulAlgorithm, times: int) -> None:
        for _ in range(times):
            self._matmul.enqueue_product(algorithm, *self._sets[self._turn])
            self._turn = (self._turn + 1) % len(self._sets)

    def _select_fastest(self) -> tuple[str, MatmulAlgorithm]:
        """Times each proposal a few times within a limit, then the best again in turns."""
        started = time.monotonic()
        times, refused = time_proposals(self._device, self._matmul, self._run_trials, SEARCH_SECONDS)
        tried = describe_proposals(len(times), refused)
        finalists = [algorithm for _, algorithm in sorted(times, key=lambda pair: pair[0])[:FINALISTS]]
        if len(finalists) == 1 or time.monotonic() - started > SEARCH_SECONDS:
            return tried, finalists[0]
        rounds = [[self._time_products(algorithm) for algorithm in finalists] for _ in range(FINAL_TRIALS)]
        middles = np.median(np.array(rounds), axis=0)
        return tried, finalists[int(np.argmin(middles))]

    def _run_trials(self, algorithm: MatmulAlgorithm) -> int:
        self._time_products(algorithm)
        return min(self._time_products(algorithm) for _ in range(TRIALS))

    def _time_products(self, algorithm: MatmulAlgorithm, products: int = 1) -> int:
        # The products are queued during the flush, so that the first does not wait for the host.
        self._device.flush_cache()
        return self._device.time_work(lambda: self._enqueue_products(algorithm, products))

    def _select_tiles(self) -> list[tuple[int, int]]:
        """Selects the first row and column of each tile: two corners, the rest by the seed."""
        last = max(self._work.m - TILE, 0), max(self._work.n - TILE, 0)
        bits = numbers.generate_bits(numbers.derive_seed(self._seed, 1_000_000), np.arange(2 * TILES))
        drawn = [
            (int(row) % (last[0] + 1), int(column) % (last[1] + 1)) for row, column in bits.reshape(-1, 2)
        ]
        return [(0, 0), last, *drawn[2:]]

    def _read_tile(self, c: int, row: int, column: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Returns the values of a tile of C on the device and the expected ones, as float64."""
        work, rows, columns = self._work, min(TILE, self._work.m), min(TILE, self._work.n)
        stored = np.dtype(_STORED[work.dtype])
        held = np.empty((rows, columns), stored)
        for number in range(rows):
            place = (row + number) * work.n + column
            self._device.to_host(held[number], c + place * stored.itemsize)
        left = self._generate_factor(0, row, rows)
        right = self._generate_factor(1, column, columns)
        return _decode_values(work.dtype, held).reshape(-1), (left @ right.T).reshape(-1)

    def _generate_factor(self, which: int, first: int, count: int) -> np.ndarray[Any, Any]:
        """Generates rows of A or B of the first set."""
        k = self._work.k
        places = first * k + np.arange(count * k, dtype=np.int64)
        seed = numbers.derive_seed(self._seed, which)
        return np.asarray(numbers.generate_normal(self._work.dtype, seed, places)).reshape(count, k)


_STORED: dict[DType, str] = {
    "fp64": "f8",
    "fp32": "f4",
    "tf32": "f4",
    "bf16": "u2",
    "fp16": "f2",
    "fp8_e4m3": "u2",
    "int8": "i4",
}


def _decode_values(dtype: DType, held: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if dtype in ("bf16", "fp8_e4m3"):
        held = numbers.decode_bf16(held)
    return held.astype(np.float64)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares matrices from the seed, and the fastest algorithm for them.

    Raises :class:`Unsupported` if the device lacks the format or the memory, or a library is missing.
    """
    if not isinstance(benchmark.work, GemmWork):
        raise Unsupported(f"{benchmark.work.kind} is not a matrix product")
    with devices.open_device(index) as device, ExitStack() as stack:
        yield MatrixProduct(device, benchmark.work, seed, stack)
