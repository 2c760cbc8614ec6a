"""Products of many experts in one call of cuBLAS, through the bindings of nvmath-python.

Each expert has its own rows, matrix and result, one after the other in memory. Tiles of several experts are
checked against float64 of the same factors.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.products import GroupedGemmWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.bindings import list_versions, load_module
from service.worker.cuda.cublaslt import KINDS, R_16BF, R_16F, WORKSPACE_BYTES
from service.worker.cuda.device import CACHE_SHARE, CudaDevice, run_kernel
from service.worker.cuda.gemm import SPOIL, TILE, TILES, compute_tolerance
from service.worker.errors import get_first_line

_TYPES = {"bf16": R_16BF, "fp16": R_16F}
_WIDTH = 2

Values = np.ndarray[Any, Any]


class GroupedProducts:
    """C = A B^T of each expert, with A of m x k and B of n x k, in one call."""

    def __init__(self, device: CudaDevice, work: GroupedGemmWork, seed: int, stack: ExitStack) -> None:
        if device.capability < KINDS[work.dtype].capability:
            raise Unsupported(f"{work.dtype} needs a newer device")
        self._device, self._work, self._seed = device, work, seed
        self._cublas = cublas = load_module("nvmath.bindings.cublas")
        self._refusals = cublas.cuBLASError, RuntimeError
        self._handle, version = self._open_handle(stack)
        self._matrices = self._allocate_matrices()
        self._arguments = self._build_arguments()
        self._try_products()
        moved = work.count_work().moved_bytes
        self._flushes_each = moved < CACHE_SHARE * device.l2_bytes
        self.facts = MeasurementFacts(
            library=f"cublas {version}",
            algorithm=f"cublasGemmGroupedBatchedEx, {work.groups} groups of one",
            math_mode="CUBLAS_COMPUTE_32F",
            accumulation="fp32",
            data=numbers.NORMAL,
            timer="cuda_event",
            working_set_bytes=moved,
            flush_bytes=device.flush_bytes,
            software=(*device.list_software(), *list_versions("nvmath-python", "nvidia-cublas")),
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` calls after a flush; of few data, each after its own."""
        if self._flushes_each:
            return sum(self._time_calls(1) for _ in range(iterations))
        return self._time_calls(iterations)

    def check(self) -> CorrectnessCheck:
        """Compares tiles of experts of the seed, the first and last one among them, with float64."""
        work, tolerance = self._work, compute_tolerance(self._work.dtype, self._work.k)
        run_kernel(
            self._device, ("flush.cu", "spoil"), self._matrices[2], self._count_result_vectors(), SPOIL
        )
        self._enqueue_products()
        pairs = [self._read_tile(*place) for place in self._select_tiles()]
        found, wanted = (np.concatenate(column) for column in zip(*pairs, strict=True))
        largest = float(np.abs(found - wanted).max() / max(np.sqrt(np.mean(wanted**2)), 1e-300))
        # The error of NaN is reported as the largest number that can be written.
        largest = min(largest, 1e30) if np.isfinite(largest) else 1e30
        return CorrectnessCheck(
            method=f"{len(pairs)} tiles of {TILE} x {TILE} of {work.groups} experts against float64",
            largest_error=largest,
            tolerance=tolerance,
            passed=largest <= tolerance,
        )

    def _open_handle(self, stack: ExitStack) -> tuple[int, str]:
        cublas, device = self._cublas, self._device
        try:
            handle = int(cublas.create())
            number = int(cublas.get_version(handle))
        except self._refusals as error:
            raise Unsupported(f"cuBLAS: {get_first_line(error)}") from None
        stack.callback(cublas.destroy, handle)
        cublas.set_stream(handle, device.stream)
        cublas.set_workspace(handle, device.allocate(WORKSPACE_BYTES), WORKSPACE_BYTES)
        return handle, f"{number // 10_000}.{number // 100 % 100}.{number % 100}"

    def _allocate_matrices(self) -> tuple[int, int, int]:
        """Allocates and fills A and B of all experts, and allocates room for C."""
        device, work = self._device, self._work
        counts = [work.groups * size for size in (work.m * work.k, work.n * work.k, work.m * work.n)]
        device.demand_room(_WIDTH * sum(counts))
        a, b, c = (device.allocate(_WIDTH * count) for count in counts)
        for which, address in enumerate((a, b)):
            of_factor = numbers.derive_seed(self._seed, which)
            run_kernel(device, ("random.cu", numbers.FILLS[work.dtype]), address, counts[which], of_factor)
        return a, b, c

    def _build_arguments(self) -> tuple[Any, ...]:
        """Builds the arguments of the call. cuBLAS counts by columns: C^T = B A^T, with B first."""
        work, operation = self._work, self._cublas.Operation
        a, b, c = self._matrices
        groups = work.groups

        def repeat(value: int) -> list[int]:
            return [int(value)] * groups

        # Factors of sums lie on the host, addresses of matrices on the device.
        self._factors = np.ones(groups, np.float32), np.zeros(groups, np.float32)
        alpha, beta = (int(each.ctypes.data) for each in self._factors)
        kind = _TYPES[work.dtype]
        of_b, of_a, of_c = (
            self._upload_addresses(first, size)
            for first, size in ((b, work.n * work.k), (a, work.m * work.k), (c, work.m * work.n))
        )
        shape = repeat(work.n), repeat(work.m), repeat(work.k)
        return (
            repeat(operation.T), repeat(operation.N), *shape, alpha, of_b, kind, repeat(work.k), of_a, kind,
            repeat(work.k), beta, of_c, kind, repeat(work.n), groups, repeat(1),
            int(self._cublas.ComputeType.COMPUTE_32F),
        )  # fmt: skip

    def _upload_addresses(self, first: int, size: int) -> int:
        addresses = first + _WIDTH * size * np.arange(self._work.groups, dtype=np.uint64)
        address = self._device.allocate(addresses.nbytes)
        self._device.to_device(address, addresses.astype(np.uint64))
        return address

    def _try_products(self) -> None:
        try:
            self._enqueue_products()
            self._device.synchronize()
        except self._refusals as error:
            raise Unsupported(f"cuBLAS: {get_first_line(error)}") from None

    def _enqueue_products(self) -> None:
        self._cublas.gemm_grouped_batched_ex(self._handle, *self._arguments)

    def _time_calls(self, calls: int) -> int:
        def enqueue_calls() -> None:
            for _ in range(calls):
                self._enqueue_products()

        self._device.flush_cache()
        return self._device.time_work(enqueue_calls)

    def _count_result_vectors(self) -> int:
        return self._work.groups * self._work.m * self._work.n * _WIDTH // 16

    def _select_tiles(self) -> list[tuple[int, int, int]]:
        """Selects an expert, a row and a column of each tile: both corners of all, the rest by the seed."""
        work = self._work
        last = work.groups - 1, max(work.m - TILE, 0), max(work.n - TILE, 0)
        bits = numbers.generate_bits(numbers.derive_seed(self._seed, 1_000_000), np.arange(3 * TILES))
        drawn = [
            tuple(int(bit) % (end + 1) for bit, end in zip(three, last, strict=True))
            for three in bits.reshape(-1, 3)
        ]
        return [(0, 0, 0), last, *((group, row, column) for group, row, column in drawn[2:])]

    def _read_tile(self, group: int, row: int, column: int) -> tuple[Values, Values]:
        """Returns the values of a tile of C on the device and the expected ones, as float64."""
        work, rows, columns = self._work, min(TILE, self._work.m), min(TILE, self._work.n)
        held = np.empty((rows, columns), "u2" if work.dtype == "bf16" else "f2")
        for number in range(rows):
            place = (group * work.m + row + number) * work.n + column
            self._device.to_host(held[number], self._matrices[2] + _WIDTH * place)
        left = self._generate_rows(0, group * work.m + row, rows)
        right = self._generate_rows(1, group * work.n + column, columns)
        found = numbers.decode_bf16(held) if work.dtype == "bf16" else held
        return found.astype(np.float64).reshape(-1), (left @ right.T).reshape(-1)

    def _generate_rows(self, which: int, first: int, count: int) -> Values:
        k, seed = self._work.k, numbers.derive_seed(self._seed, which)
        return numbers.generate_normal_run(self._work.dtype, seed, first * k, count * k).reshape(count, k)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares matrices of all experts; raises :class:`Unsupported` if device or library lack something."""
    if not isinstance(benchmark.work, GroupedGemmWork):
        raise Unsupported(f"{benchmark.work.kind} is not a grouped product")
    with devices.open_device(index) as device, ExitStack() as stack:
        yield GroupedProducts(device, benchmark.work, seed, stack)
