"""Case of validation: one result with everything that rules read of it. What is unknown is None."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import log2
from typing import NamedTuple, TypeVar

from pydantic import MISSING

from service.benchmarks.datasheets import Datasheet
from service.benchmarks.validation.limits import SpreadLimits, resolve_limits
from service.benchmarks.verdicts import RuleFinding, UncheckedRule
from service.protocol.nodes import NodeAccelerator
from service.protocol.results import BenchmarkMeasurement, BenchmarkResultReport, DeviceTelemetry
from service.protocol.summary import SampleStatistics
from service.protocol.work import BenchmarkWork

T = TypeVar("T")
RuleOutcomes = Iterator[RuleFinding | UncheckedRule]
"""Findings of a rule. There are none if all is well or the rule does not apply."""

TIMER_STEP_NS = {"host_clock": 1, "cuda_event": 500, "nvml": 1}
"""Resolution of each timer, of events about half a microsecond (CUDA Runtime API, cudaEventElapsedTime)."""
THROTTLED_SHARE = 0.01
"""Share of the window above which a reason for a lower clock counts (benchmark-worker.md, 10.5, stage 4)."""
LEAST_BITS = 64.0
"""Bits of samples below which they may be equal by chance."""


def get_known(value: "T | MISSING") -> T | None:
    """Returns a member of a record, or None if it is absent."""
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
    """Other results of the tenant that are equal to this one."""

    with_these_samples: str | None = None
    """Id of a result with the same samples in the same order."""
    with_this_checksum: str | None = None
    """Id of a result of the same work under another seed that computed the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationCase:
    """One result that has a measurement, and all that the service knows around it."""

    result: BenchmarkResultReport
    measurement: BenchmarkMeasurement
    figure: float
    summary: SampleStatistics
    lease: str
    """State of the lease at receipt: ``current``, ``late`` or ``unknown``."""
    is_displaced: bool = False
    """True if another result came first for the same repeat."""
    received_at: datetime
    granted_at: datetime | None = None
    """Time at which the lease was granted."""
    is_inventory_known: bool = True
    accelerator: NodeAccelerator | None = None
    """Accelerator as the inventory describes it."""
    datasheet: Datasheet | None = None
    siblings: Sequence[SiblingResult] = ()
    """Other results of the attempt."""
    peers: Sequence[float] = ()
    """Accepted figures of other nodes with equal hardware for equal work, one for each node."""
    earlier: EarlierResults = field(default_factory=EarlierResults)

    @property
    def work(self) -> BenchmarkWork:
        """Work of one execution."""
        return self.result.benchmark.work

    @property
    def is_accelerator(self) -> bool:
        """True if an accelerator was measured. Fewer rules apply to a processor, or to the host of one."""
        return self.result.device == "cuda" and not self.work.is_on_host

    @property
    def limits(self) -> SpreadLimits:
        """Limits of the spread of samples and repeats."""
        return resolve_limits(
            self.result.device,
            is_on_host=self.work.is_on_host,
            is_power_limited=self.power_limited_share > THROTTLED_SHARE,
        )

    @property
    def power_limited_share(self) -> float:
        """Share of the window at a lower clock for the power limit; 0 if it is not counted."""
        telemetry = self.telemetry
        seconds = get_known(telemetry.throttle_seconds.sw_power_cap) if telemetry else None
        return (
            seconds / telemetry.window_seconds if telemetry and seconds and telemetry.window_seconds else 0.0
        )

    @property
    def telemetry(self) -> DeviceTelemetry | None:
        """Readings of the device over the timed window."""
        return get_known(self.measurement.telemetry)

    @property
    def clock_offset_seconds(self) -> float | None:
        """Clock of the service less the clock of the node."""
        return get_known(self.result.clock_offset_seconds)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds that the process measured, by a clock that is never set."""
        return self.result.finished_monotonic_seconds - self.result.started_monotonic_seconds

    @property
    def execution_seconds(self) -> float | None:
        """Median seconds of one execution. None of readings."""
        return self.summary.median if self.measurement.samples_ns else None

    @property
    def flops_per_second(self) -> float:
        """FLOP of one execution over its time. 0 if none are counted."""
        return self.work.count_work().flops / self.execution_seconds if self.execution_seconds else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes of one execution over its time. 0 if none are counted."""
        return self.work.count_work().moved_bytes / self.execution_seconds if self.execution_seconds else 0.0

    @property
    def index(self) -> int | None:
        """Index of the accelerator within the node."""
        return get_known(self.result.accelerator_index)

    @property
    def device_siblings(self) -> list[SiblingResult]:
        """Siblings that were measured on the same device."""
        return [sibling for sibling in self.siblings if sibling.accelerator_index == self.index]

    @property
    def repeats(self) -> list[SiblingResult]:
        """Other repeats of the same benchmark on the same device."""
        name = self.result.benchmark.name
        return [sibling for sibling in self.device_siblings if sibling.benchmark == name]


def compute_information_bits(measurement: BenchmarkMeasurement, summary: SampleStatistics) -> float:
    """Returns the bits of all samples: their number times the bits of each within the interquartile range.

    Times are as exact as their timer. Two measurements that agree in 64 bits are the same one.
    """
    steps = (summary.q3 - summary.q1) * measurement.inner_iterations * 1e9 / TIMER_STEP_NS[measurement.timer]
    return summary.size * log2(steps) if measurement.samples_ns and steps > 1 else 0.0
