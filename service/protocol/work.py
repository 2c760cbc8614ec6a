"""What a benchmark does, by kind: its parameters within bounds, and how much work one execution is."""

from dataclasses import dataclass
from math import log2
from typing import Annotated, Literal

from pydantic import Field

from service.protocol.base import Message

_INT64 = {"format": "int64"}
DType = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "int8"]
Side = Annotated[int, Field(ge=1, le=131_072, json_schema_extra=_INT64)]
Bytes = Annotated[int, Field(ge=4, le=2**40, json_schema_extra=_INT64)]

STREAM_ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}
"""Arrays that a pattern moves through memory, each element once."""
WORD_BYTES = 4
GEMM_BYTES: dict[DType, tuple[int, int]] = {
    "fp64": (8, 8),
    "fp32": (4, 4),
    "tf32": (4, 4),
    "bf16": (2, 2),
    "fp16": (2, 2),
    "fp8_e4m3": (1, 2),
    "int8": (1, 4),
}
"""Bytes of an element that goes in and of one that comes out; products of fp8 are kept as bf16."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Work of one execution; what does not apply is 0."""

    flops: int = 0
    moved_bytes: int = 0
    parts: int = 1
    """Equal parts of which the time of one is the figure, such as launches."""


class Gemm(Message):
    """C = A B of random numbers."""

    kind: Literal["gemm"]
    dtype: DType
    """Type of the elements."""
    m: Side
    """Rows of A and C."""
    n: Side
    """Columns of B and C."""
    k: Side
    """Columns of A and rows of B."""

    def amount(self) -> Amount:
        """2 m n k, as cuBLAS and the published tables count; m n (2 k - 1) is exact and used by nobody.

        Bytes are those of each matrix once: what a product of few rows is bound by.
        """
        read, written = GEMM_BYTES[self.dtype]
        moved_bytes = (self.m + self.n) * self.k * read + self.m * self.n * written
        return Amount(flops=2 * self.m * self.n * self.k, moved_bytes=moved_bytes)


class Stream(Message):
    """Memory bandwidth of one access pattern over arrays far larger than the cache."""

    kind: Literal["stream"]
    pattern: Literal["read", "write", "copy", "triad"]
    """What happens to the arrays."""
    array_bytes: Bytes
    """Size of each array."""

    def amount(self) -> Amount:
        """Bytes that the source names (McCalpin, STREAM); fetches before a write are not counted."""
        return Amount(moved_bytes=STREAM_ARRAYS[self.pattern] * self.array_bytes)


class StridedRead(Message):
    """Reads of 4 bytes that lie `stride_bytes` apart: what a gather gets of the bandwidth."""

    kind: Literal["strided_read"]
    stride_bytes: Annotated[int, Field(ge=4, le=2**20, multiple_of=4, json_schema_extra=_INT64)]
    """Distance between two reads."""
    array_bytes: Bytes
    """Size of the array."""

    def amount(self) -> Amount:
        """The bytes that are used, not the lines that are fetched for them."""
        return Amount(moved_bytes=self.array_bytes // self.stride_bytes * WORD_BYTES)


class HostLink(Message):
    """Copies between host and device."""

    kind: Literal["host_link"]
    direction: Literal["host_to_device", "device_to_host", "both"]
    """Which way, or both at once."""
    memory: Literal["pinned", "pageable"]
    """Kind of memory on the host."""
    transfer_bytes: Bytes
    """Payload of one direction."""

    def amount(self) -> Amount:
        """Payload; both directions at once count twice."""
        return Amount(moved_bytes=self.transfer_bytes * (2 if self.direction == "both" else 1))


class LaunchLatency(Message):
    """Time from one empty kernel to the next, launched one by one or as a graph."""

    kind: Literal["launch_latency"]
    method: Literal["stream", "graph"]
    """How the kernels are launched."""
    launches: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=_INT64)]
    """Kernels of one execution."""

    def amount(self) -> Amount:
        """The launches of one execution."""
        return Amount(parts=self.launches)


class Power(Message):
    """Power of a device, by its energy counter over the window, idle or under a load."""

    kind: Literal["power"]
    load: Literal["idle", "context", "gemm", "stream"]
    """`idle` without any context, `context` with one that does nothing."""
    window_seconds: Annotated[float, Field(ge=1, le=600)]
    """Time over which energy is counted."""
    settle_seconds: Annotated[float, Field(ge=0, le=600)]
    """Time under the load before that."""

    def amount(self) -> Amount:
        """Nothing is counted: the figure is read."""
        return Amount()


class ContextMemory(Message):
    """Device memory that a process takes before it allocates anything."""

    kind: Literal["context_memory"]
    with_library: bool
    """Whether the matrix library is initialised too."""

    def amount(self) -> Amount:
        """Nothing is counted: the figure is read."""
        return Amount()


class Fft(Message):
    """Complex transforms of one dimension."""

    kind: Literal["fft"]
    dtype: Literal["fp32", "fp64"]
    """Precision of the parts of a complex number."""
    points: Annotated[int, Field(ge=2, le=2**26, json_schema_extra=_INT64)]
    """Length of a transform."""
    batch: Annotated[int, Field(ge=1, le=65_536, json_schema_extra=_INT64)]
    """Transforms of one execution."""

    def amount(self) -> Amount:
        """5 n log2 n a transform: the convention of FFTW's benchmarks, whatever the algorithm does."""
        return Amount(flops=round(5 * self.points * log2(self.points)) * self.batch)


class Storage(Message):
    """A file written and flushed to the device, or read back past the page cache where that is possible."""

    kind: Literal["storage"]
    direction: Literal["read", "write"]
    """Whether the file is written or read."""
    file_bytes: Bytes
    """Size of the file."""
    block_bytes: Bytes
    """Size of one call."""

    def amount(self) -> Amount:
        """The bytes of the file."""
        return Amount(moved_bytes=self.file_bytes)


Work = Annotated[
    Gemm | Stream | StridedRead | HostLink | LaunchLatency | Power | ContextMemory | Fft | Storage,
    Field(discriminator="kind"),
]
