"""What the rules look at: one result with everything around it. Pure; what is unknown is None."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log2
from typing import NamedTuple, TypeVar

from pydantic import MISSING

from service.benchmarks.datasheets import Datasheet
from service.benchmarks.validation.limits import ON_HOST, SpreadLimits, resolve_limits
from service.benchmarks.verdicts import RuleFinding, UncheckedRule
from service.protocol.nodes import NodeAccelerator
from service.protocol.results import BenchmarkMeasurement, BenchmarkResultReport, DeviceTelemetry
from service.protocol.summary import SampleStatistics
from service.protocol.work import BenchmarkWork

T = TypeVar("T")
RuleOutcomes = Iterator[RuleFinding | UncheckedRule]
"""What a rule says: nothing where all is well or it does not apply."""

MOVING = frozenset(
    {
        "stream",
        "strided_read",
        "occupancy",
        "optimizer_step",
        "gradient_accumulation",
        "gradient_compression",
    }
)
"""Kinds of work that are bound by the device's memory."""
COMPUTING = frozenset({"gemm", "attention", "fft", "divergence", "training_step", "decode_loop"})
ON_CHIP = frozenset({"cache_stream", "bank_conflict"})
KERNELS = MOVING | COMPUTING | ON_CHIP
"""Kinds of work that kernels do, at the clock of the multiprocessors."""
TIMER_STEP_NS = {"host_clock": 1, "cuda_event": 500, "nvml": 1}
"""Of events about half a microsecond (CUDA Runtime API, cudaEventElapsedTime)."""
LEAST_BITS = 64.0
"""Samples that say less than this may be equal by chance."""


def get_known(value: "T | MISSING") -> T | None:
    """A member of a record; None where it is absent."""
    return None if value is MISSING else value


class SiblingResult(NamedTuple):
    """Another result of the same attempt, of any benchmark."""

    benchmark: str
    repeat: int
    work: BenchmarkWork
    metric: str
    figure: float
    accelerator_index: int | None
    warmup_seconds: float | None
    started_at: datetime
    finished_at: datetime


class EarlierResults(NamedTuple):
    """What is known of other results of the tenant that look like this one."""

    with_these_samples: str | None = None
    """Id of a result with the same samples in the same order."""
    with_this_checksum: str | None = None
    """Id of a result of the same work under another seed that computed the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationCase:
    """One result that has a measurement, and what the service knows around it."""

    result: BenchmarkResultReport
    measurement: BenchmarkMeasurement
    figure: float
    summary: SampleStatistics
    lease: str
    """As it was at receipt: ``current``, ``late`` or ``unknown``."""
    is_displaced: bool = False
    """Whether another result came first for the same repeat."""
    received_at: datetime
    granted_at: datetime | None = None
    """When the lease was granted."""
    is_inventory_known: bool = True
    accelerator: NodeAccelerator | None = None
    """As the inventory describes it."""
    datasheet: Datasheet | None = None
    siblings: Sequence[SiblingResult] = ()
    """The other results of the attempt."""
    peers: Sequence[float] = ()
    """Accepted figures of other nodes with equal hardware for equal work, one a node."""
    earlier: EarlierResults = field(default_factory=EarlierResults)

    @property
    def work(self) -> BenchmarkWork:
        """What one execution does."""
        return self.result.benchmark.work

    @property
    def is_accelerator(self) -> bool:
        """Whether an accelerator was measured: a processor, and the host beside one, are asked less."""
        return self.result.device == "cuda" and self.work.kind not in ON_HOST

    @property
    def limits(self) -> SpreadLimits:
        """How far samples and repeats may spread."""
        return resolve_limits(self.result.device, self.work.kind)

    @property
    def telemetry(self) -> DeviceTelemetry | None:
        """The device over the timed window."""
        return get_known(self.measurement.telemetry)

    @property
    def clock_offset_seconds(self) -> float | None:
        """The service's clock less the node's."""
        return get_known(self.result.clock_offset_seconds)

    @property
    def elapsed_seconds(self) -> float:
        """How long the process measured, by a clock that is never set."""
        return self.result.finished_monotonic_seconds - self.result.started_monotonic_seconds

    @property
    def execution_seconds(self) -> float | None:
        """Middle time of one execution; None of readings."""
        return self.summary.median if self.measurement.samples_ns else None

    @property
    def flops_per_second(self) -> float:
        """FLOP of one execution over its time; 0 where none are counted."""
        return self.work.count_work().flops / self.execution_seconds if self.execution_seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes of one execution over its time; 0 where none are counted."""
        return self.work.count_work().moved_bytes / self.execution_seconds if self.execution_seconds else 0.0

    @property
    def index(self) -> int | None:
        """Which accelerator of the node."""
        return get_known(self.result.accelerator_index)

    @property
    def device_siblings(self) -> list[SiblingResult]:
        """Those that were measured on the same device."""
        return [sibling for sibling in self.siblings if sibling.accelerator_index == self.index]

    @property
    def repeats(self) -> list[SiblingResult]:
        """The other repeats of the same benchmark on the same device."""
        name = self.result.benchmark.name
        return [sibling for sibling in self.device_siblings if sibling.benchmark == name]


def compute_information_bits(measurement: BenchmarkMeasurement, summary: SampleStatistics) -> float:
    """How much the samples say: their number times the bits of each within the interquartile range.

    Times as exact as their timer; two measurements that agree in 64 bits are one.
    """
    steps = (summary.q3 - summary.q1) * measurement.inner_iterations * 1e9 / TIMER_STEP_NS[measurement.timer]
    return summary.size * log2(steps) if measurement.samples_ns and steps > 1 else 0.0
