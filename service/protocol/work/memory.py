"""Work of memory: bandwidth by pattern and level, resources on the chip, and capacity."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from service.protocol.work.base import INT64, Bytes, Work, WorkAmount

STREAM_ARRAYS = {"read": 1, "write": 1, "copy": 2, "triad": 3}
"""Arrays that a pattern moves through memory, each element once."""
WORD_BYTES = 4
SECTOR_BYTES = 32
"""Bytes that are fetched of memory at least (CUDA C++ Best Practices Guide, coalesced access)."""


class StreamWork(Work):
    """Memory bandwidth of one access pattern over arrays far larger than the cache."""

    kernel_bound: ClassVar[Literal["memory"]] = "memory"
    comparison: ClassVar[Literal["always"]] = "always"
    halved: ClassVar[Mapping[str, int]] = {"array_bytes": 2**24}

    kind: Literal["stream"]
    pattern: Literal["read", "write", "copy", "triad"]
    """Access to the arrays."""
    array_bytes: Bytes
    """Size of each array."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes that the source names (McCalpin, STREAM), without fetches before a write."""
        return WorkAmount(moved_bytes=STREAM_ARRAYS[self.pattern] * self.array_bytes)


class StridedReadWork(Work):
    """Reads of 4 bytes that lie `stride_bytes` apart: the share of the bandwidth that a gather gets."""

    kernel_bound: ClassVar[Literal["memory"]] = "memory"
    comparison: ClassVar[Literal["always"]] = "always"
    halved: ClassVar[Mapping[str, int]] = {"array_bytes": 2**24}

    kind: Literal["strided_read"]
    stride_bytes: Annotated[int, Field(ge=4, le=2**20, multiple_of=4, json_schema_extra=INT64)]
    """Distance between two reads."""
    array_bytes: Bytes
    """Size of the array."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes that are used, not the lines that are fetched for them."""
        return WorkAmount(moved_bytes=self.array_bytes // self.stride_bytes * WORD_BYTES)

    @property
    def fetched_bytes_per_moved_byte(self) -> float:
        """Bytes that are fetched for each byte that is used: sectors, or the stride where it is shorter."""
        return min(self.stride_bytes, SECTOR_BYTES) / WORD_BYTES


class CacheStreamWork(Work):
    """Bandwidth of arrays that stay in the last-level cache: the control for a leak of it into others."""

    kernel_bound: ClassVar[Literal["on_chip"]] = "on_chip"

    kind: Literal["cache_stream"]
    pattern: Literal["read", "copy"]
    """Access to the array."""
    array_bytes: Bytes
    """Size of each array, far below that of the cache."""
    passes: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=INT64)]
    """Times that one execution goes over it."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes that the source names, of all passes."""
        return WorkAmount(moved_bytes=STREAM_ARRAYS[self.pattern] * self.array_bytes * self.passes)


class DeviceCopyWork(Work):
    """A copy within device memory by the driver, which takes a copy engine or a kernel of its own."""

    kind: Literal["device_copy"]
    array_bytes: Bytes
    """Size of the source and of the target."""

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    def count_work(self) -> WorkAmount:
        """Returns the bytes read and written."""
        return WorkAmount(moved_bytes=2 * self.array_bytes)

    @property
    def fetched_bytes_per_moved_byte(self) -> float:
        """1, because every byte is read from memory or written to it."""
        return 1.0


class PointerChaseWork(Work):
    """Loads of one thread, each at the place that the one before it has read: the latency of memory."""

    kernel_bound: ClassVar[Literal["on_chip"]] = "on_chip"
    comparison: ClassVar[Literal["always"]] = "always"

    kind: Literal["pointer_chase"]
    array_bytes: Annotated[int, Field(ge=2**12, le=2**38, json_schema_extra=INT64)]
    """Size of the array, a power of two, of which every line of 128 bytes is visited in turn."""
    hops: Annotated[int, Field(ge=1, le=2**24, json_schema_extra=INT64)]
    """Loads of one execution."""

    @model_validator(mode="after")
    def _validate_size(self) -> "PointerChaseWork":
        if self.array_bytes & (self.array_bytes - 1):
            raise ValueError("the size of the array is a power of two")
        return self

    @property
    def suite_form(self) -> int:
        """2."""
        return 2

    def count_work(self) -> WorkAmount:
        """Returns the loads, of which the time of one is the figure."""
        return WorkAmount(parts=self.hops)


class HostStreamWork(Work):
    """Bandwidth of the host's memory on a node with accelerators, over arrays far larger than its caches."""

    is_on_host: ClassVar[bool] = True

    kind: Literal["host_stream"]
    pattern: Literal["read", "write", "copy", "triad"]
    """Access to the arrays."""
    array_bytes: Bytes
    """Size of each array."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes that the source names, as of a stream."""
        return WorkAmount(moved_bytes=STREAM_ARRAYS[self.pattern] * self.array_bytes)


class BankConflictWork(Work):
    """Reads of the memory that a multiprocessor shares, words of a warp `stride_words` apart."""

    kernel_bound: ClassVar[Literal["on_chip"]] = "on_chip"

    kind: Literal["bank_conflict"]
    stride_words: Annotated[int, Field(ge=1, le=64, json_schema_extra=INT64)]
    """1 has no conflict, 32 lets every thread of a warp ask the same bank."""
    reads: Annotated[int, Field(ge=1, le=10_000_000, json_schema_extra=INT64)]
    """Reads of each thread."""
    threads: Annotated[int, Field(ge=32, le=2**24, multiple_of=32, json_schema_extra=INT64)]
    """Threads of one execution."""

    def count_work(self) -> WorkAmount:
        """Returns 4 bytes a read."""
        return WorkAmount(moved_bytes=WORD_BYTES * self.reads * self.threads)


class DivergenceWork(Work):
    """Multiply-adds of warps whose threads take `paths` different ways."""

    kernel_bound: ClassVar[Literal["arithmetic"]] = "arithmetic"

    kind: Literal["divergence"]
    paths: Literal[1, 2, 4, 8, 16, 32]
    """Ways among the threads of a warp. They run one after the other, so the rate falls with their number."""
    steps: Annotated[int, Field(ge=1, le=10_000_000, json_schema_extra=INT64)]
    """Multiply-adds of each thread."""
    threads: Annotated[int, Field(ge=32, le=2**24, multiple_of=32, json_schema_extra=INT64)]
    """Threads of one execution."""

    def count_work(self) -> WorkAmount:
        """Returns 2 FLOP for each multiply-add that was asked for. Lanes that wait do none."""
        return WorkAmount(flops=2 * self.steps * self.threads)


class OccupancyWork(Work):
    """A copy by so few warps on each multiprocessor: throughput against occupancy."""

    kernel_bound: ClassVar[Literal["memory"]] = "memory"
    halved: ClassVar[Mapping[str, int]] = {"array_bytes": 2**24}

    kind: Literal["occupancy"]
    resident_warps: Annotated[int, Field(ge=1, le=64, json_schema_extra=INT64)]
    """Warps on a multiprocessor at a time. More than the device has room for are unsupported."""
    array_bytes: Bytes
    """Size of each array."""

    def count_work(self) -> WorkAmount:
        """Returns the bytes read and written."""
        return WorkAmount(moved_bytes=2 * self.array_bytes)

    @property
    def needs_random_data(self) -> bool:
        """False, because no rule asks for random data of a copy by few warps."""
        return False


class CapacityWork(Work):
    """The largest block of device memory that a process can allocate."""

    comparison: ClassVar[Literal["never"]] = "never"

    kind: Literal["capacity"]

    def count_work(self) -> WorkAmount:
        """Returns no work, because the figure is read."""
        return WorkAmount()

    @property
    def reading_seconds(self) -> float:
        """0, because a reading takes no longer than to prepare it."""
        return 0.0


class ContextMemoryWork(Work):
    """Device memory that a process takes before it allocates anything."""

    comparison: ClassVar[Literal["never"]] = "never"

    kind: Literal["context_memory"]
    with_library: bool
    """True if the matrix library is initialised too."""

    def count_work(self) -> WorkAmount:
        """Returns no work, because the figure is read."""
        return WorkAmount()

    @property
    def reading_seconds(self) -> float:
        """0, because a reading takes no longer than to prepare it."""
        return 0.0


MemoryWork = (
    StreamWork
    | StridedReadWork
    | CacheStreamWork
    | DeviceCopyWork
    | PointerChaseWork
    | HostStreamWork
    | BankConflictWork
    | DivergenceWork
    | OccupancyWork
    | CapacityWork
    | ContextMemoryWork
)
