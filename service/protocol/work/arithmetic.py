"""Work of arithmetic: products, transforms and attention."""

from collections.abc import Iterable, Mapping
from math import log2
from typing import Annotated, ClassVar, Literal

from pydantic import MISSING, Field, model_validator

from service.protocol.work.base import INT64, DType, MatrixSide, Work, WorkAmount

GEMM_BYTES: dict[DType, tuple[int, int]] = {
    "fp64": (8, 8),
    "fp32": (4, 4),
    "tf32": (4, 4),
    "bf16": (2, 2),
    "fp16": (2, 2),
    "fp8_e4m3": (1, 2),
    "int8": (1, 4),
}
"""Bytes of an element of the factors and of the product. Products of fp8 are kept as bf16."""


class GemmWork(Work):
    """C = A B of random numbers."""

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"
    comparison: ClassVar[Literal["always"]] = "always"
    halved: ClassVar[Mapping[str, int]] = {"m": 1024, "n": 1024, "k": 1024}

    kind: Literal["gemm"]
    dtype: DType
    """Type of the elements."""
    m: MatrixSide
    """Rows of A and C."""
    n: MatrixSide
    """Columns of B and C."""
    k: MatrixSide
    """Columns of A and rows of B."""

    def count_work(self) -> WorkAmount:
        """Returns 2 m n k FLOP and the bytes of each matrix once, which bound a product of few rows.

        cuBLAS and the published tables count so. m n (2 k - 1) is exact and not in use.
        """
        read, written = GEMM_BYTES[self.dtype]
        moved_bytes = (self.m + self.n) * self.k * read + self.m * self.n * written
        return WorkAmount(flops=2 * self.m * self.n * self.k, moved_bytes=moved_bytes)

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


class AttentionWork(Work):
    """Softmax(Q K^T / sqrt(d)) V of random numbers, or its gradients.

    A prompt, one query a sequence over a cache, or the backward pass of a prompt.
    """

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"
    halved: ClassVar[Mapping[str, int]] = {"batch": 1, "context_tokens": 2048}

    kind: Literal["attention"]
    phase: Literal["prefill", "decode", "backward"]
    """`prefill` is causal and its queries are as many as the context, `decode` has one query a sequence,
    `backward` computes the gradients of `prefill`."""
    back_end: Literal["own", "flash", "efficient", "cudnn", "math", "flashinfer", "flash3"]
    """The worker's own kernel, cuDNN, FlashInfer, flash-attn 3, or one of PyTorch's
    scaled_dot_product_attention."""
    dtype: Literal["fp32", "bf16", "fp16", "fp8_e4m3"]
    """Type of the elements."""
    batch: Annotated[int, Field(ge=1, le=4096, json_schema_extra=INT64)]
    """Sequences."""
    query_heads: Annotated[int, Field(ge=1, le=1024, json_schema_extra=INT64)]
    """Heads of a query."""
    kv_heads: Annotated[int, Field(ge=1, le=1024, json_schema_extra=INT64)]
    """Heads of keys and values; each serves query_heads / kv_heads heads of a query."""
    head_size: Literal[64, 128, 192, 256, 576]
    """Elements of a head of queries and keys."""
    value_size: Literal[64, 128, 256, 512] | MISSING = MISSING
    """Elements of a head of values, if they are not as many as those of a key. In decoding, values are the
    first elements of the keys, as in the latent cache of DeepSeek-V3."""
    context_tokens: Annotated[int, Field(ge=1, le=2**20, json_schema_extra=INT64)]
    """Keys of a sequence."""
    page_tokens: Literal[16, 32, 64, 128] | MISSING = MISSING
    """Tokens of a page of the cache. Without it the cache of a sequence is in one piece."""

    @model_validator(mode="after")
    def _validate_shape(self) -> "AttentionWork":
        if self.query_heads % self.kv_heads:
            raise ValueError("kv_heads must divide query_heads")
        if self.page_tokens is not MISSING and (
            self.phase != "decode" or self.context_tokens % self.page_tokens
        ):
            raise ValueError("pages are whole, and those of a cache that is decoded")
        if self.shares_latent and (self.kv_heads != 1 or self.values > self.head_size):
            raise ValueError("values are part of the keys of one head")
        return self

    @property
    def suite_form(self) -> int:
        """2 of what the first release did not have."""
        is_first = (
            self.phase != "backward"
            and self.back_end not in ("flashinfer", "flash3")
            and self.dtype != "fp8_e4m3"
            and self.head_size in (64, 128, 256)
            and self.value_size is MISSING
            and self.page_tokens is MISSING
        )
        return 1 if is_first else 2

    @property
    def queries(self) -> int:
        """Queries of a sequence."""
        return 1 if self.phase == "decode" else self.context_tokens

    @property
    def values(self) -> int:
        """Elements of a head of values."""
        return self.head_size if self.value_size is MISSING else self.value_size

    @property
    def shares_latent(self) -> bool:
        """True if values are the first elements of the keys."""
        return self.phase == "decode" and self.value_size is not MISSING

    def count_work(self) -> WorkAmount:
        """Returns 2 b h q c (d + v) FLOP, half where causal, and bytes of all operands.

        The backward pass has 2.5 times as many (FlashAttention-2, 4.1), of five products where the forward
        pass has two. Bytes are those of Q, K, V and the result; backward, those and their gradients. Keys and
        values count once for each sequence and head of their own, which is what bounds decoding.
        """
        size, values = self.head_size, self.values
        flops = 2 * self.batch * self.query_heads * self.queries * self.context_tokens * (size + values)
        cached = size if self.shares_latent else size + values
        elements = self.batch * (
            self.query_heads * self.queries * (size + values) + self.kv_heads * self.context_tokens * cached
        )
        moved = elements * {"fp32": 4, "fp8_e4m3": 1}.get(self.dtype, 2)
        match self.phase:
            case "prefill":
                return WorkAmount(flops=flops // 2, moved_bytes=moved)
            case "decode":
                return WorkAmount(flops=flops, moved_bytes=moved)
            case "backward":
                return WorkAmount(flops=flops * 5 // 4, moved_bytes=2 * moved)

    @property
    def fetched_bytes_per_moved_byte(self) -> float:
        """1 of decoding, which reads the whole cache of keys and values from memory."""
        return 1.0 if self.phase == "decode" else 0.0

    def is_memory_bound(self, metric: str) -> bool:
        """Returns true of decoding whose figure is bytes."""
        return self.phase == "decode" and metric == "bytes_per_second"


class FftWork(Work):
    """Complex transforms, of as many points in each dimension."""

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"
    comparison: ClassVar[Literal["always"]] = "always"

    kind: Literal["fft"]
    dtype: Literal["fp16", "fp32", "fp64"]
    """Precision of the parts of a complex number."""
    points: Annotated[int, Field(ge=2, le=2**26, json_schema_extra=INT64)]
    """Length of a transform in each dimension."""
    batch: Annotated[int, Field(ge=1, le=65_536, json_schema_extra=INT64)]
    """Transforms of one execution."""
    dimensions: Annotated[int, Field(ge=1, le=3, json_schema_extra=INT64)] = 1
    """1 for a row, 2 for a square, 3 for a cube."""
    in_place: bool = False
    """True if the result takes the place of the input."""

    def count_work(self) -> WorkAmount:
        """Returns 5 N log2 N FLOP for each transform of N elements, FFTW's convention for every algorithm.

        Bytes are one read and one write of each element, as of a transform that fits on the chip.
        """
        elements = self.points**self.dimensions
        width = {"fp16": 4, "fp32": 8, "fp64": 16}[self.dtype]
        return WorkAmount(
            flops=round(5 * elements * log2(elements)) * self.batch,
            moved_bytes=2 * width * elements * self.batch,
        )


ArithmeticWork = GemmWork | AttentionWork | FftWork
