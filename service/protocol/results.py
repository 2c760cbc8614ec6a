"""The record of one repeat of one benchmark: what was measured, on what, and under which conditions.

A figure that is unknown is absent, and ``gaps`` says why; nothing is ever written as 0 for want of it.
"""

import hashlib
from typing import Annotated, Literal

from pydantic import MISSING, Field, model_validator

from service.protocol.base import (
    Code,
    FencingToken,
    FiniteNumber,
    Hex128,
    Instant,
    Int53,
    MultipleLines,
    Name,
    NotNegative,
    PositiveInt53,
    ProtocolMessage,
    ProtocolReply,
    Seconds,
    Sha256,
    SingleLine,
    Uuid,
)
from service.protocol.nodes import DeviceKind, NodeGap, NodeSoftware
from service.protocol.suites import Benchmark

MOST_SAMPLES = 20_000
MOST_RESULT_BYTES = 2**20


class ReadingSpread(ProtocolMessage):
    """Lowest, middle and highest reading over the timed window."""

    minimum: FiniteNumber
    """The lowest."""
    median: FiniteNumber
    """The middle one."""
    maximum: FiniteNumber
    """The highest."""


class ThrottleSeconds(ProtocolMessage):
    """Time over the window in which the clock was held down, by the driver's counters."""

    sw_power_cap: Seconds | MISSING = MISSING
    """For the power limit."""
    sw_thermal: Seconds | MISSING = MISSING
    """For the temperature."""
    hw_thermal: Seconds | MISSING = MISSING
    """For the temperature, by the hardware itself."""
    hw_power_brake: Seconds | MISSING = MISSING
    """For the power supply of the host."""
    sync_boost: Seconds | MISSING = MISSING
    """For other devices of a group."""


class DeviceTelemetry(ProtocolMessage):
    """The device over the timed window."""

    window_seconds: Seconds
    """How long the readings were taken."""
    sample_period_seconds: Seconds | MISSING = MISSING
    """From one reading to the next."""
    sample_count: Int53 = 0
    """Readings of each kind."""
    sm_clock_hz: ReadingSpread | MISSING = MISSING
    memory_clock_hz: ReadingSpread | MISSING = MISSING
    cpu_clock_hz: ReadingSpread | MISSING = MISSING
    """Of the processors that the worker may use, on a node without accelerators."""
    temperature_celsius: ReadingSpread | MISSING = MISSING
    memory_temperature_celsius: ReadingSpread | MISSING = MISSING
    power_watts: ReadingSpread | MISSING = MISSING
    """As the sensor says."""
    energy_joules: NotNegative | MISSING = MISSING
    """By the energy counter."""
    energy_power_watts: NotNegative | MISSING = MISSING
    """Energy by the counter over the time between its readings."""
    throttle_seconds: ThrottleSeconds = ThrottleSeconds()
    throttle_reasons: Annotated[list[Name], Field(max_length=20)] = []
    """Every reason that was seen at a reading."""
    ecc_corrected: Int53 | MISSING = MISSING
    """Errors of memory in the window that were corrected."""
    ecc_uncorrected: Int53 | MISSING = MISSING
    """Errors of memory in the window that were not."""
    pcie_generation: PositiveInt53 | MISSING = MISSING
    """Read under load: it drops when idle."""
    pcie_width: PositiveInt53 | MISSING = MISSING
    """Lanes, read under load."""
    other_processes: Int53 | MISSING = MISSING
    """Processes of others on the device."""
    load_average: NotNegative | MISSING = MISSING
    """Of the host, one minute, at the end."""


class CorrectnessCheck(ProtocolMessage):
    """What was computed, against a reference that depends on the seed of the run."""

    method: SingleLine
    """What it was compared with."""
    largest_error: NotNegative
    """Relative to the scale of the result."""
    tolerance: NotNegative
    """Largest error that passes."""
    passed: bool
    """Whether the error is within the tolerance."""
    checksum: Sha256 | MISSING = MISSING
    """Of the part that was checked."""


class DiscardedSamples(ProtocolMessage):
    """Samples that do not count, and why."""

    reason: Name
    """Why they do not count."""
    count: PositiveInt53
    """How many."""


class BenchmarkMeasurement(ProtocolMessage):
    """The samples and how they were taken."""

    library: SingleLine
    """What ran, such as cublasLt 13.0.2 or own kernel stream_copy."""
    algorithm: SingleLine | MISSING = MISSING
    """What the library chose."""
    math_mode: SingleLine | MISSING = MISSING
    """How it multiplies, such as with tf32."""
    accumulation: SingleLine | MISSING = MISSING
    """Type that it adds in."""
    data: SingleLine
    """Distribution of the input, such as normal(0, 1)."""
    timer: Literal["cuda_event", "host_clock", "nvml"]
    """What took the time."""
    warmup_seconds: Seconds
    """The same work, run before the first sample."""
    warmup_iterations: Int53
    """Executions of the warm-up."""
    inner_iterations: PositiveInt53 = 1
    """Executions in one sample."""
    samples_ns: Annotated[list[PositiveInt53], Field(max_length=MOST_SAMPLES)] = []
    """Time of each sample, in the order in which they were taken."""
    readings: Annotated[list[NotNegative], Field(max_length=MOST_SAMPLES)] = []
    """Of a figure that is no time: bytes or watts."""
    discarded: Annotated[list[DiscardedSamples], Field(max_length=20)] = []
    stop_reason: Literal["spread", "time_limit", "sample_limit", "single"]
    """Why there are no more samples."""
    working_set_bytes: Int53 = 0
    """Memory that one execution touches; 0 where nobody counts it."""
    flush_bytes: Int53 = 0
    """Overwritten before each sample, so that nothing of it is cached."""
    rotated_buffers: PositiveInt53 = 1
    """Sets of input that take turns, so that none of them is cached."""
    uses_graph: bool = False
    """Whether the executions were launched as a graph."""
    threads: PositiveInt53 | MISSING = MISSING
    """Threads of the host that did the work, where it is the host that works."""
    first_call_seconds: Seconds | MISSING = MISSING
    """The first execution, with all that is prepared in it."""
    correctness: CorrectnessCheck | MISSING = MISSING
    telemetry: DeviceTelemetry | MISSING = MISSING

    @model_validator(mode="after")
    def _validate_samples(self) -> "BenchmarkMeasurement":
        if bool(self.samples_ns) == bool(self.readings):
            raise ValueError("either samples or readings")
        return self

    @property
    def values(self) -> list[float]:
        """Samples in seconds, or readings."""
        return [sample / 1e9 for sample in self.samples_ns] or list(self.readings)


class MeasurementFailure(ProtocolMessage):
    """Why there is no measurement."""

    reason: Code
    """Stable name of what went wrong."""
    detail: SingleLine = ""
    """What went wrong, in words."""
    exit_code: Annotated[int, Field(ge=-1000, le=1000, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Of the process; below 0 the signal that ended it."""
    error_output: MultipleLines | MISSING = MISSING
    """The end of what the process wrote."""


class BenchmarkResultReport(ProtocolMessage):
    """One repeat of one benchmark. Never changed once it is stored."""

    schema_version: Literal[1] = 1
    result_id: Uuid
    """UUIDv7, made by the node."""
    run_id: Name
    """Benchmark run that the lease was for."""
    fencing_token: FencingToken
    """Of the lease."""
    attempt: Int53
    """Of the lease."""
    nonce: Hex128
    """Of the lease."""
    node_id: Name
    """Node that measured it."""
    boot_id_sha256: Sha256
    """Digest of the id of the boot of the host."""
    inventory_sha256: Sha256
    """Digest of the inventory of the node."""
    worker_version: SingleLine
    """Version of the worker."""
    suite_id: Name
    """Suite of the benchmark."""
    suite_version: PositiveInt53
    """Version of the suite."""
    seed: Int53
    """What the input data were made from; of the lease."""
    repeat: PositiveInt53
    """Counted from 1."""
    benchmark: Benchmark
    device: DeviceKind
    """What was measured."""
    accelerator_index: Int53 | MISSING = MISSING
    """In the inventory; absent on a node without accelerators."""
    concurrent_accelerators: Int53 = 0
    """How many were measured at the same time, this one included."""
    started_at: Instant
    """By the node's clock."""
    finished_at: Instant
    """By the node's clock."""
    started_monotonic_seconds: NotNegative
    """By a clock of the node that is never set."""
    finished_monotonic_seconds: NotNegative
    """By the same clock."""
    clock_offset_seconds: FiniteNumber | MISSING = MISSING
    """The service's clock less the node's."""
    status: Literal["ok", "failed", "timeout", "unsupported"]
    """`ok` has a measurement, all others a failure."""
    failure: MeasurementFailure | MISSING = MISSING
    measurement: BenchmarkMeasurement | MISSING = MISSING
    software: Annotated[list[NodeSoftware], Field(max_length=100)] = []
    environment: Annotated[dict[Name, SingleLine], Field(max_length=50)] = {}
    """Variables that change what is measured, from a list of known names, in lower case."""
    gaps: Annotated[list[NodeGap], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _validate_measurement(self) -> "BenchmarkResultReport":
        if (self.status == "ok") != (self.measurement is not MISSING):
            raise ValueError("a measurement where the status is ok, and only there")
        if (self.status == "ok") == (self.failure is not MISSING):
            raise ValueError("a failure where the status is not ok, and only there")
        return self

    def to_json(self) -> bytes:
        """The bytes that are kept, sent and digested."""
        return self.model_dump_json().encode()


class BenchmarkResultReceipt(ProtocolReply):
    """A result is stored; the node may forget it once the digest is its own."""

    result_id: Uuid
    """Of the result that is stored."""
    content_sha256: Sha256
    """Digest of what is stored."""
    lease: Literal["current", "late", "unknown"]
    """`late` was measured under a lease that had ended: it is kept, but counts for nothing yet."""


def content_sha256(content: bytes) -> str:
    """The digest that names the bytes of a result."""
    return hashlib.sha256(content).hexdigest()
