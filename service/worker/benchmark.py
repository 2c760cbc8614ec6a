"""What a kind of benchmark has to offer, on any device, so that one loop can sample it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark


class Unsupported(Exception):
    """The device or its libraries cannot do this benchmark; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementFacts:
    """How a benchmark is carried out, for its record."""

    library: str
    """What ran, such as cublasLt 13.0.2 or own kernel stream_copy."""
    data: str
    """Distribution of the input, such as normal(0, 1)."""
    timer: Literal["cuda_event", "host_clock", "nvml"]
    algorithm: str | None = None
    math_mode: str | None = None
    accumulation: str | None = None
    working_set_bytes: int = 0
    flush_bytes: int = 0
    """Overwritten before each sample, so that nothing of it is cached."""
    rotated_buffers: int = 1
    uses_graph: bool = False
    threads: int | None = None
    """Threads of the host that do the work, where it is the host that works."""
    software: tuple[NodeSoftware, ...] = ()
    gaps: tuple[NodeGap, ...] = field(default=())


@runtime_checkable
class TimedBenchmark(Protocol):
    """A benchmark whose figure is a time, or work over a time. Input data stand ready on the device."""

    facts: MeasurementFacts

    def execute(self, iterations: int) -> int:
        """Nanoseconds that ``iterations`` executions took, by the timer of the facts; flushes come before."""
        ...

    def check(self) -> CorrectnessCheck | None:
        """What was computed, against a reference from the seed; None where nothing is computed."""
        ...


class ReadBenchmark(Protocol):
    """A benchmark whose figure is read, such as watts or bytes."""

    facts: MeasurementFacts

    def read(self) -> list[float]:
        """Readings in the unit of the metric, one for each time that it was measured."""
        ...


@runtime_checkable
class ReportedBenchmark(Protocol):
    """A benchmark that somebody else carries out: its times are what is reported."""

    facts: MeasurementFacts
    """Complete once the times are there."""

    def times_ns(self) -> list[int]:
        """Nanoseconds of one execution each."""
        ...


PreparedBenchmark = TimedBenchmark | ReadBenchmark | ReportedBenchmark
BenchmarkPreparer = Callable[[Benchmark, int, int | None], AbstractContextManager[PreparedBenchmark]]
"""Benchmark, seed and index of the accelerator, None without one; raises :class:`Unsupported`."""
