"""Products of 8 or 4 bits with a scale for each block, by cuBLASLt; searched and checked as plain ones are.

Scales of MXFP8 and NVFP4 lie in tiles of 128 rows and 4 blocks; those of 1 x 128 blocks lie row beside row,
those of 128 x 128 blocks one after the other along the depth (cuBLAS Library, 3.1.5).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import GemmWork
from service.protocol.work.products import SCALES, BlockScaledGemmWork
from service.worker.benchmark import PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import gemm, numbers
from service.worker.cuda.cublaslt import (
    R_4F_E2M1,
    R_8F_E4M3,
    R_16BF,
    R_32F,
    Matmul,
    MatmulAlgorithm,
    MatrixProduct,
    MultiplyMode,
)
from service.worker.cuda.device import CACHE_SHARE, CudaDevice, run_kernel

Values = np.ndarray[Any, Any]
TILE_ROWS, TILE_BLOCKS = 128, 4
"""Rows and blocks of a tile of scales."""
_DEPTH_ALIGNMENT = 4
"""Blocks of the depth are padded to a multiple of this where blocks are square."""


class ScaleLayout(NamedTuple):
    """Scales of a factor in memory."""

    mode: str
    """Name of the mode of the library."""
    rows: int
    """Rows of a block."""
    depth: int
    """Elements of a block along the depth."""
    width: int
    """Bytes of a scale."""
    fill: str
    """Kernel that generates them."""
    count_scales: Callable[[int, int], int]
    """Returns the number of scales in memory, for rows of blocks and blocks of a row."""
    find_place: Callable[[Values, Values, int, int], Values]
    """Returns the place of a scale by row and block, for rows of blocks and blocks of a row."""


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _count_tiled(rows: int, blocks: int) -> int:
    return _round_up(rows, TILE_ROWS) * _round_up(blocks, TILE_BLOCKS)


def _find_tiled(row: Values, block: Values, rows: int, blocks: int) -> Values:
    """Within a tile, row r and block b are at 16 (r mod 32) + 4 (r div 32) + b."""
    del rows
    tile = row // TILE_ROWS * (_round_up(blocks, TILE_BLOCKS) // TILE_BLOCKS) + block // TILE_BLOCKS
    within = row % TILE_ROWS
    return np.asarray(512 * tile + 16 * (within % 32) + 4 * (within // 32) + block % TILE_BLOCKS)


def _count_by_row(rows: int, blocks: int) -> int:
    return rows * blocks


def _find_by_row(row: Values, block: Values, rows: int, blocks: int) -> Values:
    del blocks
    return np.asarray(block * rows + row)


def _count_by_depth(rows: int, blocks: int) -> int:
    return rows * _round_up(blocks, _DEPTH_ALIGNMENT)


def _find_by_depth(row: Values, block: Values, rows: int, blocks: int) -> Values:
    del rows
    return np.asarray(row * _round_up(blocks, _DEPTH_ALIGNMENT) + block)


_TILED = (_count_tiled, _find_tiled)
_MX = ScaleLayout("VEC32_UE8M0", 1, 32, 1, "fill_ue8m0", *_TILED)
_NV = ScaleLayout("VEC16_UE4M3", 1, 16, 1, "fill_ue4m3", *_TILED)
_ROWS = ScaleLayout("VEC128_32F", 1, 128, 4, "fill_scale", _count_by_row, _find_by_row)
_SQUARES = ScaleLayout("BLK128x128_32F", 128, 128, 4, "fill_scale", _count_by_depth, _find_by_depth)


class ScaledFormat(NamedTuple):
    """A format: the elements of both factors, the scales of A and of B, and how it is multiplied."""

    fill: str
    a: ScaleLayout
    b: ScaleLayout
    mode: MultiplyMode


def _build_mode(operand: int, accumulation: str, capability: tuple[int, int]) -> MultiplyMode:
    return MultiplyMode(operand, R_16BF, R_32F, "COMPUTE_32F", accumulation, capability)


FORMATS = {
    "mxfp8": ScaledFormat("fill_fp8_e4m3", _MX, _MX, _build_mode(R_8F_E4M3, "fp32", (10, 0))),
    "nvfp4": ScaledFormat("fill_fp4_e2m1", _NV, _NV, _build_mode(R_4F_E2M1, "fp32", (10, 0))),
    "fp8_blocks": ScaledFormat("fill_fp8_e4m3", _ROWS, _SQUARES, _build_mode(R_8F_E4M3, "fp32", (9, 0))),
}


class FactorScales(NamedTuple):
    """Scales of one factor on the device, and the seed that they come from."""

    address: int
    layout: ScaleLayout
    rows: int
    blocks: int
    seed: int

    def generate(self, row: Values, block: Values) -> Values:
        """Returns the scales of rows and blocks as the device holds them."""
        at = self.layout.find_place(row // self.layout.rows, block, self.rows, self.blocks)
        return numbers.generate_scales(self.layout.fill, self.seed, at)


class ScaledMatmul(Matmul):
    """A product whose scales follow its factors: each address of a factor has scales of its own."""

    def __init__(self, device: CudaDevice, work: BlockScaledGemmWork, stack: ExitStack) -> None:
        found = FORMATS[work.number_format]
        if device.capability < found.mode.capability:
            major, minor = found.mode.capability
            raise Unsupported(f"{work.number_format} needs compute capability {major}.{minor} or newer")
        super().__init__(device, MatrixProduct("fp8_e4m3", work.m, work.n, work.k, mode=found.mode), stack)
        self.scales: dict[int, int] = {}
        attribute, mode = self._lt.MatmulDescAttribute, self._lt.MatmulMatrixScale
        # B comes first for cuBLAS, which multiplies the transposed matrices.
        self._set_attribute(attribute.A_SCALE_MODE, np.int32(getattr(mode, found.b.mode)))
        self._set_attribute(attribute.B_SCALE_MODE, np.int32(getattr(mode, found.a.mode)))

    def point_scales(self, a: int, b: int) -> None:
        """Lets the product use the scales of these factors."""
        attribute = self._lt.MatmulDescAttribute
        self._set_attribute(attribute.A_SCALE_POINTER, np.uint64(self.scales[b]))
        self._set_attribute(attribute.B_SCALE_POINTER, np.uint64(self.scales[a]))

    def enqueue_product(
        self, algorithm: MatmulAlgorithm, a: int, b: int, c: int, added: int | None = None
    ) -> None:
        """Enqueues one product of the matrices at these addresses, with their scales."""
        self.point_scales(a, b)
        super().enqueue_product(algorithm, a, b, c, added)


class BlockScaledProduct(gemm.MatrixProduct):
    """C = A B^T of scaled factors, on several sets of them in rotation."""

    def __init__(self, device: CudaDevice, work: BlockScaledGemmWork, seed: int, stack: ExitStack) -> None:
        self._scaled, self._format = work, FORMATS[work.number_format]
        # The result, its tolerance and its tiles are those of a product of fp8.
        plain = GemmWork(kind="gemm", dtype="fp8_e4m3", m=work.m, n=work.n, k=work.k)
        super().__init__(device, plain, seed, stack)
        self.facts = replace(
            self.facts,
            accumulation=self._format.mode.accumulation,
            math_mode=f"{self.facts.math_mode}, {self._format.a.mode} and {self._format.b.mode}",
            data=f"{numbers.NORMAL}, scales of {work.number_format} from 0.5 to 2",
            working_set_bytes=work.count_work().moved_bytes * len(self._sets),
        )

    def _open_matmul(self, stack: ExitStack) -> Matmul:
        self._with_scales = ScaledMatmul(self._device, self._scaled, stack)
        return self._with_scales

    def _build_sets(self) -> list[tuple[int, int, int]]:
        device, work = self._device, self._scaled
        element, free = SCALES[work.number_format].element_bits / 8, device.read_free_bytes()
        sizes = [round(side * work.k * element) for side in (work.m, work.n)]
        needed = sum(sizes) + 2 * work.m * work.n
        device.demand_room(work.count_work().moved_bytes)
        wanted = -(-CACHE_SHARE * device.l2_bytes // needed)
        count = max(min(wanted, gemm.MOST_SETS, int(gemm.MEMORY_SHARE * free) // needed), 1)
        self._first: list[FactorScales] = []
        sets = []
        for number in range(count):
            a, b = device.allocate(sizes[0]), device.allocate(sizes[1])
            for which, (address, side) in enumerate(((a, work.m), (b, work.n))):
                of_factor = numbers.derive_seed(self._seed, 2 * number + which)
                run_kernel(device, ("random.cu", self._format.fill), address, sizes[which], of_factor)
                scales = self._add_scales(which, side, number)
                self._with_scales.scales[address] = scales.address
                self._first += [scales] if not number else []
            sets.append((a, b, device.allocate(2 * work.m * work.n)))
        self._with_scales.point_scales(*sets[0][:2])
        return sets

    def _add_scales(self, which: int, side: int, number: int) -> FactorScales:
        layout = self._format.b if which else self._format.a
        rows, blocks = -(-side // layout.rows), self._scaled.k // layout.depth
        count = layout.count_scales(rows, blocks)
        address = self._device.allocate(layout.width * count)
        seed = numbers.derive_seed(self._seed, 10_000 + 2 * number + which)
        run_kernel(self._device, ("random.cu", layout.fill), address, count, seed)
        return FactorScales(address, layout, rows, blocks, seed)

    def _generate_factor(self, which: int, first: int, count: int) -> Values:
        """Generates rows of A or B of the first set, multiplied by their scales."""
        k, scales = self._scaled.k, self._first[which]
        places = first * k + np.arange(count * k, dtype=np.int64)
        seed = numbers.derive_seed(self._seed, which)
        held = numbers.generate_elements(self._format.fill, seed, places).reshape(count, k)
        rows, blocks = np.arange(first, first + count)[:, None], np.arange(k)[None] // scales.layout.depth
        return np.asarray(held * scales.generate(rows, blocks))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares scaled matrices from the seed, and the fastest algorithm for them.

    Raises :class:`Unsupported` if the device lacks the format or the memory, or a library is missing.
    """
    if not isinstance(benchmark.work, BlockScaledGemmWork):
        raise Unsupported(f"{benchmark.work.kind} is not a product of scaled blocks")
    with devices.open_device(index) as device, ExitStack() as stack:
        yield BlockScaledProduct(device, benchmark.work, seed, stack)
