"""Products of few rows of bf16 with weights of 4 bits, by the worker's own kernel.

No library has such a product that comes without an engine. The kernel widens weights on their way to tensor
cores, as those of engines do (``kernels/weight_only.cu`` has the order of the weights). Whole columns are
checked against float64 of the same weights.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.products import GROUP_SIDE, WeightOnlyGemmWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import CACHE_SHARE, CudaDevice, KernelLaunch, run_kernel
from service.worker.cuda.gemm import (
    GRAPH_NS,
    MEMORY_SHARE,
    MOST_PRODUCTS,
    MOST_SETS,
    SMALL_NS,
    SPOIL,
    compute_tolerance,
)

CAPABILITY = (8, 0)
BLOCK_COLUMNS = 32
COLUMNS = 48
"""Columns of the result that are checked, the first and the last among them."""
MIDDLE = 8
"""Zero point of weights without one of their own."""
_ALIGNED_BYTES = 256

Values = np.ndarray[Any, Any]


class Part(NamedTuple):
    """One array of every set: the kernel that fills it, its elements, and bytes of each."""

    fill: str
    elements: int
    width: int

    @property
    def step(self) -> int:
        """Bytes from one set to the next."""
        return -(-self.elements * self.width // _ALIGNED_BYTES) * _ALIGNED_BYTES


class WeightOnlyProduct:
    """C = A B on several sets of matrices in rotation, so that the cache holds none of them."""

    def __init__(self, device: CudaDevice, work: WeightOnlyGemmWork, seed: int) -> None:
        if device.capability < CAPABILITY:
            raise Unsupported("weights of 4 bits need compute capability 8.0 or newer")
        self._device, self._work, self._seed = device, work, seed
        groups = work.n * work.k // GROUP_SIDE
        self._parts = (
            Part("fill_words", work.n * work.k // 8, 4),
            Part("fill_group_scale", groups, 2),
            Part("fill_words", groups // 8 if work.has_zero_points else 0, 4),
            Part("fill_bf16", work.m * work.k, 2),
        )
        self._sets = self._build_sets()
        self._products = [self._build_product(addresses) for addresses in self._sets]
        self._turn = 0
        data = work.count_work().moved_bytes * len(self._sets)
        self._flushes_each = data < CACHE_SHARE * device.l2_bytes
        together = self._count_together()
        self._launch = self._build_launch(together)
        self.facts = MeasurementFacts(
            library="ironlaw weight_only",
            algorithm=f"m16n8k16 of bf16, {BLOCK_COLUMNS} columns a block"
            + (f"; graph of {together}" if together > 1 else ""),
            accumulation="fp32",
            data=f"{numbers.NORMAL}; weights uniform of 4 bits, scales from 2^-7 to 2^-5",
            timer="cuda_event",
            working_set_bytes=data,
            flush_bytes=device.flush_bytes,
            rotated_buffers=len(self._sets),
            uses_graph=together > 1,
            executions_per_launch=together,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` products, each on the next set of matrices, after a flush."""
        if self._flushes_each:
            return sum(self._time_products(1) for _ in range(iterations))
        launches, single = divmod(iterations, self.facts.executions_per_launch)

        def enqueue_all() -> None:
            for _ in range(launches):
                self._launch()
            self._enqueue_products(single)

        self._device.flush_cache()
        return self._device.time_work(enqueue_all)

    def check(self) -> CorrectnessCheck:
        """Compares columns of the first set, of every row, with float64 of the same numbers."""
        work, tolerance = self._work, compute_tolerance("bf16", self._work.k)
        run_kernel(self._device, ("flush.cu", "spoil"), self._sets[0][-1], 2 * work.m * work.n // 16, SPOIL)
        self._products[0]()
        held = np.empty((work.m, work.n), np.uint16)
        self._device.to_host(held, self._sets[0][-1])
        columns = self._select_columns()
        rows = numbers.generate_normal_run("bf16", self._derive_seed(3), 0, work.m * work.k)
        wanted = rows.reshape(work.m, work.k) @ self.generate_columns(columns).T
        error = np.abs(numbers.decode_bf16(held[:, columns]).astype(np.float64) - wanted)
        largest = float(error.max() / max(np.sqrt(np.mean(wanted**2)), 1e-300))
        # The error of NaN is reported as the largest number that can be written.
        largest = min(largest, 1e30) if np.isfinite(largest) else 1e30
        return CorrectnessCheck(
            method=f"{len(columns)} columns of {work.m} rows against float64 of the same weights",
            largest_error=largest,
            tolerance=tolerance,
            passed=largest <= tolerance,
        )

    def generate_columns(self, columns: Values) -> Values:
        """Generates the widened weights of some columns of the first set, by column and depth."""
        work, depth = self._work, np.arange(self._work.k)
        column, at = columns[:, None], depth[None]
        # The lane has the column modulo 8 and 16 neighbours of the depth, four in each of its words.
        lane = column % 8 * 4 + at % 64 // 16
        word = ((column // 16 * (work.k // 64) + at // 64) * 32 + lane) * 4 + at % 16 // 4
        nibble = column % 16 // 8 + at % 4 // 2 * 2
        words = numbers.generate_words(self._derive_seed(0), word)
        elements = words >> (4 * nibble + 16 * (at % 2)).astype(np.uint32) & np.uint32(15)
        group = at // GROUP_SIDE * work.n + column
        zeros: Values | int = MIDDLE
        if work.has_zero_points:
            packed = numbers.generate_words(self._derive_seed(2), group // 8)
            zeros = (packed >> (4 * (column % 8)).astype(np.uint32) & np.uint32(15)).astype(np.int64)
        scales = numbers.generate_group_scales(self._derive_seed(1), group)
        return np.asarray(scales * (elements.astype(np.int64) - zeros))

    def _derive_seed(self, part: int) -> int:
        return numbers.derive_seed(self._seed, part)

    def _build_sets(self) -> list[tuple[int, ...]]:
        """Allocates and fills all sets, each part of all of them in a row; the result is the last part."""
        device, moved = self._device, self._work.count_work().moved_bytes
        device.demand_room(moved)
        result = Part("", self._work.m * self._work.n, 2)
        wanted = -(-CACHE_SHARE * device.l2_bytes // moved)
        room = int(MEMORY_SHARE * device.read_free_bytes()) // sum(
            part.step for part in (*self._parts, result)
        )
        count = max(min(wanted, MOST_SETS, room), 1)
        firsts = [device.allocate(max(part.step * count, 16)) for part in (*self._parts, result)]
        for which, part in enumerate(self._parts):
            if part.elements:
                held = (part.step * (count - 1)) // part.width + part.elements
                run_kernel(device, ("random.cu", part.fill), firsts[which], held, self._derive_seed(which))
        steps = [part.step for part in (*self._parts, result)]
        return [
            tuple(first + number * step for first, step in zip(firsts, steps, strict=True))
            for number in range(count)
        ]

    def _build_product(self, addresses: tuple[int, ...]) -> KernelLaunch:
        work, device = self._work, self._device
        weights, scales, zeros, rows, result = addresses
        parts = 1 if work.m <= 8 else 2  # noqa: PLR2004  # rows of a fragment
        name = f"weight_only_{'zeros' if work.has_zero_points else 'symmetric'}_{8 * parts}"
        kernel = device.load_kernel("weight_only.cu", name)
        shape = (work.m, work.n, work.k)
        blocks = work.n // BLOCK_COLUMNS
        return device.build_launch(kernel, blocks, weights, scales, zeros, rows, result, *shape)

    def _count_together(self) -> int:
        """Returns the products of a launch: 1, or of small products whole turns of the sets."""
        took = self._time_products(1)
        if self._flushes_each or took >= SMALL_NS:
            return 1
        return -(-min(GRAPH_NS // took, MOST_PRODUCTS) // len(self._sets)) * len(self._sets)

    def _build_launch(self, together: int) -> KernelLaunch:
        def enqueue_products() -> None:
            self._enqueue_products(together)

        self._turn = 0
        return enqueue_products if together == 1 else self._device.capture_graph(enqueue_products)

    def _enqueue_products(self, times: int) -> None:
        for _ in range(times):
            self._products[self._turn]()
            self._turn = (self._turn + 1) % len(self._products)

    def _time_products(self, products: int) -> int:
        self._device.flush_cache()
        return self._device.time_work(lambda: self._enqueue_products(products))

    def _select_columns(self) -> Values:
        """Selects whole fragments of neighbours: the first, the last, and others by the seed."""
        bits = numbers.generate_bits(numbers.derive_seed(self._seed, 1_000_000), np.arange(COLUMNS // 16))
        tiles = (bits % np.uint64(self._work.n // 16)).astype(np.int64)
        tiles[0], tiles[-1] = 0, self._work.n // 16 - 1
        return np.asarray((16 * tiles[:, None] + np.arange(16)).reshape(-1))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares weights and rows from the seed; :class:`Unsupported` if the device lacks something."""
    if not isinstance(benchmark.work, WeightOnlyGemmWork):
        raise Unsupported(f"{benchmark.work.kind} is not a product with weights of 4 bits")
    with devices.open_device(index) as device:
        yield WeightOnlyProduct(device, benchmark.work, seed)
