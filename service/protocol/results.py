"""The record of one repeat of one benchmark: its samples, its device and its conditions.

An unknown figure is absent, and ``gaps`` states the reason; no unknown figure is written as 0.
"""

import hashlib
from typing import Annotated, Literal, TypeAlias

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

ResultStatus: TypeAlias = Literal["ok", "failed", "timeout", "unsupported"]
LeaseStanding: TypeAlias = Literal["current", "late", "unknown"]

MOST_SAMPLES = 20_000
MOST_RESULT_BYTES = 2**20
MOST_RESULT_VALUES = 22_000
"""Most members and elements of a result: its samples, and 1,210 of all else that its lists have room for."""


class ReadingSpread(ProtocolMessage):
    """Lowest, middle and highest reading over the timed window."""

    minimum: FiniteNumber
    """Lowest reading."""
    median: FiniteNumber
    """Middle reading."""
    maximum: FiniteNumber
    """Highest reading."""


class ThrottleSeconds(ProtocolMessage):
    """Time in the window at a lowered clock, by the counters of the driver."""

    sw_power_cap: Seconds | MISSING = MISSING
    """Time at a lower clock for the power limit."""
    sw_thermal: Seconds | MISSING = MISSING
    """Time at a lower clock for the temperature."""
    hw_thermal: Seconds | MISSING = MISSING
    """Time at a lower clock for the temperature, by the hardware."""
    hw_power_brake: Seconds | MISSING = MISSING
    """Time at a lower clock for the power supply of the host."""
    sync_boost: Seconds | MISSING = MISSING
    """Time at a lower clock for other devices of a group."""


class DeviceTelemetry(ProtocolMessage):
    """Readings of the device over the timed window."""

    window_seconds: Seconds
    """Duration of the window of the readings."""
    sample_period_seconds: Seconds | MISSING = MISSING
    """Mean time from one reading to the next."""
    sample_count: Int53 = 0
    """Number of readings of each kind."""
    sm_clock_hz: ReadingSpread | MISSING = MISSING
    """Clock of the multiprocessors."""
    memory_clock_hz: ReadingSpread | MISSING = MISSING
    """Clock of the memory."""
    cpu_clock_hz: ReadingSpread | MISSING = MISSING
    """Clock of the processors that the worker may use, on a node without accelerators."""
    temperature_celsius: ReadingSpread | MISSING = MISSING
    """Temperature of the device."""
    memory_temperature_celsius: ReadingSpread | MISSING = MISSING
    """Temperature of the memory of the device."""
    power_watts: ReadingSpread | MISSING = MISSING
    """Power by the sensor, on most devices its average over one second."""
    power_instant_watts: ReadingSpread | MISSING = MISSING
    """Power by the sensor at the moment of each reading."""
    energy_joules: NotNegative | MISSING = MISSING
    """Energy by the energy counter."""
    energy_power_watts: NotNegative | MISSING = MISSING
    """Power by the energy counter, over the time between its readings."""
    throttle_seconds: ThrottleSeconds = ThrottleSeconds()
    throttle_reasons: Annotated[list[Name], Field(max_length=20)] = []
    """Every reason for a lower clock that was seen at a reading."""
    ecc_corrected: Int53 | MISSING = MISSING
    """Number of corrected errors of the memory in the window."""
    ecc_uncorrected: Int53 | MISSING = MISSING
    """Number of uncorrected errors of the memory in the window."""
    pcie_generation: PositiveInt53 | MISSING = MISSING
    """Generation of the bus, read under load: it drops when idle."""
    pcie_width: PositiveInt53 | MISSING = MISSING
    """Number of lanes, read under load."""
    other_processes: Int53 | MISSING = MISSING
    """Number of other processes on the device."""
    load_average: NotNegative | MISSING = MISSING
    """Load average of the host over one minute, at the end of the window."""


class CorrectnessCheck(ProtocolMessage):
    """Comparison of the computed result with a reference that depends on the seed of the run."""

    method: SingleLine
    """Reference of the comparison."""
    largest_error: NotNegative
    """Largest error, relative to the scale of the result."""
    tolerance: NotNegative
    """Largest error that passes."""
    passed: bool
    """True if the largest error is within the tolerance."""
    checksum: Sha256 | MISSING = MISSING
    """Digest of the part of the result that was checked."""


class DiscardedSamples(ProtocolMessage):
    """Samples that do not count, with the reason."""

    reason: Name
    """Reason that they do not count."""
    count: PositiveInt53
    """Number of samples."""


class BenchmarkMeasurement(ProtocolMessage):
    """Samples, and the method by which they were taken."""

    library: SingleLine
    """Library that ran, such as cublasLt 13.0.2 or own kernel stream_copy."""
    algorithm: SingleLine | MISSING = MISSING
    """Algorithm that the library chose."""
    math_mode: SingleLine | MISSING = MISSING
    """Mode of the multiplications, such as tf32."""
    accumulation: SingleLine | MISSING = MISSING
    """Type of the accumulator."""
    data: SingleLine
    """Distribution of the input, such as normal(0, 1)."""
    timer: Literal["cuda_event", "host_clock", "nvml"]
    """Timer of the samples."""
    warmup_seconds: Seconds
    """Duration of the warm-up: the same work, run before the first sample."""
    warmup_iterations: Int53
    """Number of executions of the warm-up."""
    inner_iterations: PositiveInt53 = 1
    """Number of executions in one sample."""
    samples_ns: Annotated[list[PositiveInt53], Field(max_length=MOST_SAMPLES)] = []
    """Time of each sample, in the order in which they were taken."""
    readings: Annotated[list[NotNegative], Field(max_length=MOST_SAMPLES)] = []
    """Readings of a figure that is no time: bytes or watts."""
    discarded: Annotated[list[DiscardedSamples], Field(max_length=20)] = []
    stop_reason: Literal["spread", "time_limit", "sample_limit", "single"]
    """Reason that there are no more samples."""
    working_set_bytes: Int53 = 0
    """Memory that one execution touches; 0 if it is not counted."""
    flush_bytes: Int53 = 0
    """Bytes that are read before each sample, so that no input is cached."""
    rotated_buffers: PositiveInt53 = 1
    """Number of sets of input that take turns, so that none of them is cached."""
    uses_graph: bool = False
    """True if the executions were launched as a graph."""
    threads: PositiveInt53 | MISSING = MISSING
    """Number of threads of the host that did the work, if the host is measured."""
    first_call_seconds: Seconds | MISSING = MISSING
    """Duration of the first execution, with its preparation."""
    correctness: CorrectnessCheck | MISSING = MISSING
    telemetry: DeviceTelemetry | MISSING = MISSING

    @model_validator(mode="after")
    def _validate_samples(self) -> "BenchmarkMeasurement":
        if bool(self.samples_ns) == bool(self.readings):
            raise ValueError("a measurement has either samples or readings")
        return self

    @property
    def values(self) -> list[float]:
        """Samples in seconds, or readings."""
        return [sample / 1e9 for sample in self.samples_ns] or list(self.readings)


class MeasurementFailure(ProtocolMessage):
    """The reason that there is no measurement."""

    reason: Code
    """Stable name of the reason."""
    detail: SingleLine = ""
    """Reason in words."""
    exit_code: Annotated[int, Field(ge=-1000, le=1000, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Exit code of the process; a code below 0 is the signal that ended it."""
    error_output: MultipleLines | MISSING = MISSING
    """End of the error output of the process."""


class BenchmarkResultReport(ProtocolMessage):
    """One repeat of one benchmark. Never changed once it is stored."""

    schema_version: Literal[1] = 1
    result_id: Uuid
    """UUIDv7 that the node makes."""
    run_id: Name
    """Benchmark run of the lease."""
    fencing_token: FencingToken
    """Fencing token of the lease."""
    attempt: Int53
    """Attempt of the lease."""
    nonce: Hex128
    """Nonce of the lease."""
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
    """Seed of the input data, from the lease."""
    repeat: PositiveInt53
    """Number of the repeat, counted from 1."""
    benchmark: Benchmark
    device: DeviceKind
    """Kind of device that was measured."""
    accelerator_index: Int53 | MISSING = MISSING
    """Index of the accelerator in the inventory; absent on a node without accelerators."""
    concurrent_accelerators: Int53 = 0
    """Number of accelerators that were measured at the same time, this one included."""
    started_at: Instant
    """Start by the clock of the node."""
    finished_at: Instant
    """End by the clock of the node."""
    started_monotonic_seconds: NotNegative
    """Start by a clock of the node that is never set."""
    finished_monotonic_seconds: NotNegative
    """End by the same clock."""
    clock_offset_seconds: FiniteNumber | MISSING = MISSING
    """Clock of the service minus the clock of the node."""
    status: ResultStatus
    """Status of the repeat: `ok` has a measurement, every other status a failure."""
    failure: MeasurementFailure | MISSING = MISSING
    measurement: BenchmarkMeasurement | MISSING = MISSING
    software: Annotated[list[NodeSoftware], Field(max_length=100)] = []
    environment: Annotated[dict[Name, SingleLine], Field(max_length=50)] = {}
    """Environment variables that change a measurement, from a list of known names, in lower case."""
    gaps: Annotated[list[NodeGap], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _validate_measurement(self) -> "BenchmarkResultReport":
        if (self.status == "ok") != (self.measurement is not MISSING):
            raise ValueError("a result has a measurement if its status is ok, and only then")
        if (self.status == "ok") == (self.failure is not MISSING):
            raise ValueError("a result has a failure if its status is not ok, and only then")
        return self

    def to_json(self) -> bytes:
        """Returns the bytes that are stored, sent and digested."""
        return self.model_dump_json().encode()


class BenchmarkResultReceipt(ProtocolReply):
    """Receipt of a stored result. The node may delete the result if the digest matches its own."""

    result_id: Uuid
    """Id of the stored result."""
    content_sha256: Sha256
    """Digest of the stored bytes."""
    lease: LeaseStanding
    """Standing of the lease. A `late` result was measured under a lease that had ended: it is stored, but
    does not count yet."""


def content_sha256(content: bytes) -> str:
    """Returns the digest that names the bytes of a result."""
    return hashlib.sha256(content).hexdigest()
