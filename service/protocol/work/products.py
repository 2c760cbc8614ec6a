"""Work of further products: of factors with a scale for each block, and of groups of experts."""

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Final, Literal, NamedTuple

from pydantic import Field, model_validator

from service.protocol.work.base import INT64, MatrixSide, Work, WorkAmount

BLOCK_SIDE: Final = 128
"""Sides of factors are multiples of this, which every format of scales divides."""


class BlockScales(NamedTuple):
    """Storage of a format: bits of an element, and bytes of the scales of A and of B for an element."""

    element_bits: int
    of_a: float
    of_b: float


SCALES: Final = {
    "mxfp8": BlockScales(8, 1 / 32, 1 / 32),
    "nvfp4": BlockScales(4, 1 / 16, 1 / 16),
    "fp8_blocks": BlockScales(8, 4 / 128, 4 / 128**2),
}


class BlockScaledGemmWork(Work):
    """C = A B of random numbers of 8 or 4 bits with a scale for each block, and a result of bf16."""

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"
    comparison: ClassVar[Literal["always"]] = "always"
    halved: ClassVar[Mapping[str, int]] = {"m": 1024, "n": 1024, "k": 1024}
    halved_multiple: ClassVar[int] = BLOCK_SIDE

    kind: Literal["block_scaled_gemm"]
    number_format: Literal["mxfp8", "nvfp4", "fp8_blocks"]
    """`mxfp8`: 8 bits, and a power of two for each 32 elements. `nvfp4`: 4 bits, and a number of 8 bits for
    each 16 elements. `fp8_blocks`: 8 bits, and a number of 32 bits for each 128 elements of A and each block
    of 128 x 128 of B, as DeepSeek-V3 has them."""
    m: MatrixSide
    """Rows of A and C."""
    n: MatrixSide
    """Columns of B and C."""
    k: MatrixSide
    """Columns of A and rows of B."""

    @model_validator(mode="after")
    def _validate_sides(self) -> "BlockScaledGemmWork":
        if self.n % BLOCK_SIDE or self.k % BLOCK_SIDE or self.m % 16:
            raise ValueError(f"n and k are multiples of {BLOCK_SIDE}, m is a multiple of 16")
        return self

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    @property
    def dtype(self) -> Literal["fp8_e4m3", "fp4_e2m1"]:
        """Type of the elements."""
        return "fp4_e2m1" if self.number_format == "nvfp4" else "fp8_e4m3"

    def count_work(self) -> WorkAmount:
        """Returns 2 m n k FLOP, and the bytes of each matrix and of its scales once."""
        bits, of_a, of_b = SCALES[self.number_format]
        read = self.m * self.k * (bits / 8 + of_a) + self.n * self.k * (bits / 8 + of_b)
        return WorkAmount(flops=2 * self.m * self.n * self.k, moved_bytes=round(read) + 2 * self.m * self.n)

    @property
    def halving_order(self) -> Iterable[str]:
        """Sides of the product, the longest one first."""
        return sorted(self.halved, key=lambda side: -getattr(self, side))

    @property
    def fetched_bytes_per_moved_byte(self) -> float:
        """1, because each matrix is read from memory or written to it once."""
        return 1.0

    def is_memory_bound(self, metric: str) -> bool:
        """Returns true if the figure of the product is bytes per second, as of few rows."""
        return metric == "bytes_per_second"


class GroupedGemmWork(Work):
    """Products of one call, of the rows of each expert with its own matrix, as in a mixture of experts."""

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"
    comparison: ClassVar[Literal["always"]] = "always"
    halved: ClassVar[Mapping[str, int]] = {"groups": 8, "m": 1024, "n": 1024, "k": 1024}

    kind: Literal["grouped_gemm"]
    dtype: Literal["bf16", "fp16"]
    """Type of the elements."""
    groups: Annotated[int, Field(ge=1, le=1024, json_schema_extra=INT64)]
    """Experts, each with a matrix of its own."""
    m: MatrixSide
    """Rows of each expert."""
    n: MatrixSide
    """Columns of the matrices of experts."""
    k: MatrixSide
    """Rows of the matrices of experts."""

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    def count_work(self) -> WorkAmount:
        """Returns 2 g m n k FLOP and the bytes of each matrix once."""
        elements = (self.m + self.n) * self.k + self.m * self.n
        return WorkAmount(
            flops=2 * self.groups * self.m * self.n * self.k, moved_bytes=2 * self.groups * elements
        )

    @property
    def fetched_bytes_per_moved_byte(self) -> float:
        """1, because each matrix is read from memory or written to it once."""
        return 1.0

    def is_memory_bound(self, metric: str) -> bool:
        """Returns true if the figure is bytes per second, as of few rows."""
        return metric == "bytes_per_second"


MOST_ROWS: Final = 16
"""Most rows of a product with weights of 4 bits: those of decoding, in which the weights bound it."""
GROUP_SIDE: Final = 128
"""Weights of a column that share a scale."""


class WeightOnlyGemmWork(Work):
    """C = A B of few rows of bf16 and weights of 4 bits, which are widened before they multiply.

    As in checkpoints of GPTQ and AWQ: a scale of bf16 for each 128 weights of a column.
    """

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"
    comparison: ClassVar[Literal["always"]] = "always"
    halved: ClassVar[Mapping[str, int]] = {"n": 1024, "k": 1024}
    halved_multiple: ClassVar[int] = GROUP_SIDE

    kind: Literal["weight_only_gemm"]
    dtype: Literal["bf16"]
    """Type of A and C, in which the weights multiply."""
    has_zero_points: bool
    """True if each group has a zero point of 4 bits; without them it is 8, in the middle."""
    m: Annotated[int, Field(ge=1, le=MOST_ROWS, json_schema_extra=INT64)]
    """Rows of A and C."""
    n: MatrixSide
    """Columns of B and C."""
    k: MatrixSide
    """Columns of A and rows of B."""

    @model_validator(mode="after")
    def _validate_sides(self) -> "WeightOnlyGemmWork":
        if self.n % GROUP_SIDE or self.k % GROUP_SIDE:
            raise ValueError(f"n and k are multiples of {GROUP_SIDE}")
        return self

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    def count_work(self) -> WorkAmount:
        """Returns 2 m n k FLOP, and the bytes of each matrix, of the scales and of the zero points once."""
        groups = self.n * self.k // GROUP_SIDE
        weights = self.n * self.k // 2 + 2 * groups + (groups // 2 if self.has_zero_points else 0)
        moved = weights + 2 * self.m * (self.n + self.k)
        return WorkAmount(flops=2 * self.m * self.n * self.k, moved_bytes=moved)

    @property
    def fetched_bytes_per_moved_byte(self) -> float:
        """1, because each matrix is read from memory or written to it once."""
        return 1.0

    def is_memory_bound(self, metric: str) -> bool:
        """Returns true if the figure of the product is bytes per second."""
        return metric == "bytes_per_second"


ProductWork = BlockScaledGemmWork | GroupedGemmWork | WeightOnlyGemmWork
