"""Memory: bandwidth by pattern and level, and what is on the chip."""

from typing import Annotated, Literal

from pydantic import Field

from service.protocol.base import ProtocolMessage
from service.protocol.work.base import INT64, Bytes, WorkAmount

STREAM_ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}
"""Arrays that a pattern moves through memory, each element once."""
WORD_BYTES = 4
WARP_THREADS = 32


class StreamWork(ProtocolMessage):
    """Memory bandwidth of one access pattern over arrays far larger than the cache."""

    kind: Literal["stream"]
    pattern: Literal["read", "write", "copy", "triad"]
    """What happens to the arrays."""
    array_bytes: Bytes
    """Size of each array."""

    def count_work(self) -> WorkAmount:
        """Bytes that the source names (McCalpin, STREAM); fetches before a write are not counted."""
        return WorkAmount(moved_bytes=STREAM_ARRAYS[self.pattern] * self.array_bytes)


class StridedReadWork(ProtocolMessage):
    """Reads of 4 bytes that lie `stride_bytes` apart: what a gather gets of the bandwidth."""

    kind: Literal["strided_read"]
    stride_bytes: Annotated[int, Field(ge=4, le=2**20, multiple_of=4, json_schema_extra=INT64)]
    """Distance between two reads."""
    array_bytes: Bytes
    """Size of the array."""

    def count_work(self) -> WorkAmount:
        """The bytes that are used, not the lines that are fetched for them."""
        return WorkAmount(moved_bytes=self.array_bytes // self.stride_bytes * WORD_BYTES)


class CacheStreamWork(ProtocolMessage):
    """Bandwidth of arrays that stay in the last-level cache: the control for a leak of it into others."""

    kind: Literal["cache_stream"]
    pattern: Literal["read", "copy"]
    """What happens to the array."""
    array_bytes: Bytes
    """Size of each array, far below that of the cache."""
    passes: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=INT64)]
    """Times that one execution goes over it."""

    def count_work(self) -> WorkAmount:
        """Bytes that the source names, of all passes."""
        return WorkAmount(moved_bytes=STREAM_ARRAYS[self.pattern] * self.array_bytes * self.passes)


class HostStreamWork(ProtocolMessage):
    """Bandwidth of the host's memory on a node with accelerators, over arrays far larger than its caches."""

    kind: Literal["host_stream"]
    pattern: Literal["read", "write", "copy", "triad"]
    """What happens to the arrays."""
    array_bytes: Bytes
    """Size of each array."""

    def count_work(self) -> WorkAmount:
        """Bytes that the source names, as of a stream."""
        return WorkAmount(moved_bytes=STREAM_ARRAYS[self.pattern] * self.array_bytes)


class BankConflictWork(ProtocolMessage):
    """Reads of the memory that a multiprocessor shares, words of a warp `stride_words` apart."""

    kind: Literal["bank_conflict"]
    stride_words: Annotated[int, Field(ge=1, le=64, json_schema_extra=INT64)]
    """1 has no conflict, 32 lets every thread of a warp ask the same bank."""
    reads: Annotated[int, Field(ge=1, le=10_000_000, json_schema_extra=INT64)]
    """Reads of each thread."""
    threads: Annotated[int, Field(ge=32, le=2**24, multiple_of=32, json_schema_extra=INT64)]
    """Threads of one execution."""

    def count_work(self) -> WorkAmount:
        """4 bytes a read."""
        return WorkAmount(moved_bytes=WORD_BYTES * self.reads * self.threads)


class DivergenceWork(ProtocolMessage):
    """Multiply-adds of warps whose threads take `paths` different ways."""

    kind: Literal["divergence"]
    paths: Literal[1, 2, 4, 8, 16, 32]
    """Ways among the threads of a warp; one after the other, so that the rate falls with their number."""
    steps: Annotated[int, Field(ge=1, le=10_000_000, json_schema_extra=INT64)]
    """Multiply-adds of each thread."""
    threads: Annotated[int, Field(ge=32, le=2**24, multiple_of=32, json_schema_extra=INT64)]
    """Threads of one execution."""

    def count_work(self) -> WorkAmount:
        """2 a multiply-add that somebody asked for; lanes that wait do none."""
        return WorkAmount(flops=2 * self.steps * self.threads)


class OccupancyWork(ProtocolMessage):
    """A copy by so few warps on each multiprocessor: throughput against occupancy."""

    kind: Literal["occupancy"]
    resident_warps: Annotated[int, Field(ge=1, le=64, json_schema_extra=INT64)]
    """Warps on a multiprocessor at a time; what is larger than the device has room for is unsupported."""
    array_bytes: Bytes
    """Size of each array."""

    def count_work(self) -> WorkAmount:
        """Bytes read and written."""
        return WorkAmount(moved_bytes=2 * self.array_bytes)


class CapacityWork(ProtocolMessage):
    """The largest block of device memory that a process can allocate."""

    kind: Literal["capacity"]

    def count_work(self) -> WorkAmount:
        """Nothing is counted: the figure is read."""
        return WorkAmount()


class ContextMemoryWork(ProtocolMessage):
    """Device memory that a process takes before it allocates anything."""

    kind: Literal["context_memory"]
    with_library: bool
    """Whether the matrix library is initialised too."""

    def count_work(self) -> WorkAmount:
        """Nothing is counted: the figure is read."""
        return WorkAmount()
