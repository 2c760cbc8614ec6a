"""Interfaces of a benchmark on any device, so that one loop can sample all of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark


class Unsupported(Exception):
    """The device or its libraries cannot run this benchmark; the message names the missing part."""


class NoRoom(Unsupported):
    """The free memory of the device does not hold the data of this benchmark; it may hold fewer."""

    def __init__(self, text: str, uncached_bytes: int) -> None:
        """``uncached_bytes`` is the least size of data that the cache of the device does not speed up."""
        super().__init__(text)
        self.uncached_bytes = uncached_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementFacts:
    """Facts about the execution of a benchmark, for its record."""

    library: str
    """Library or kernel that ran, such as cublasLt 13.0.2 or own kernel stream_copy."""
    data: str
    """Distribution of the input, such as normal(0, 1)."""
    timer: Literal["cuda_event", "host_clock", "nvml"]
    algorithm: str | None = None
    math_mode: str | None = None
    accumulation: str | None = None
    working_set_bytes: int = 0
    flush_bytes: int = 0
    """Bytes that are read before each sample, so that no data are cached."""
    rotated_buffers: int = 1
    uses_graph: bool = False
    executions_per_launch: int = 1
    """Executions that are launched together, as one graph; a sample has a multiple of them."""
    threads: int | None = None
    """Threads of the host that do the work, if the host does it."""
    software: tuple[NodeSoftware, ...] = ()
    gaps: tuple[NodeGap, ...] = field(default=())


@runtime_checkable
class TimedBenchmark(Protocol):
    """A benchmark whose figure is a time, or work over a time. Its input data are ready on the device."""

    facts: MeasurementFacts

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` executions by the timer of the facts, without flushes."""
        ...

    def check(self) -> CorrectnessCheck | None:
        """Checks the result against a reference from the seed; None if nothing is computed."""
        ...


class ReadBenchmark(Protocol):
    """A benchmark whose figure is read, such as watts or bytes."""

    facts: MeasurementFacts

    def read(self) -> list[float]:
        """Returns readings in the unit of the metric, one for each measurement."""
        ...


@runtime_checkable
class ReportedBenchmark(Protocol):
    """A benchmark that another program carries out: the times that it reports are the samples."""

    facts: MeasurementFacts
    """Facts, complete once the times are available."""

    def times_ns(self) -> list[int]:
        """Returns the nanoseconds of each execution."""
        ...


PreparedBenchmark = TimedBenchmark | ReadBenchmark | ReportedBenchmark
BenchmarkPreparer = Callable[[Benchmark, int, int | None], AbstractContextManager[PreparedBenchmark]]
"""Prepares a benchmark with a seed on an accelerator (None without one); raises :class:`Unsupported`."""
