"""The record of one repeat of one benchmark: what was measured, on what, and under which conditions.

A figure that is unknown is absent, and ``gaps`` says why; nothing is ever written as 0 for want of it.
"""

import hashlib
from typing import Annotated, Literal

from pydantic import MISSING, Field, model_validator

from service.protocol.base import (
    Code,
    Hex,
    Instant,
    Line,
    Lines,
    Message,
    Name,
    NotNegative,
    Number,
    Positive,
    Reply,
    Seconds,
    Sha256,
    Token,
    Uuid,
    Whole,
)
from service.protocol.nodes import DeviceKind, Gap, Software
from service.protocol.suites import Benchmark

MOST_SAMPLES = 20_000
MOST_RESULT_BYTES = 2**20


class Spread(Message):
    """Lowest, middle and highest reading over the timed window."""

    minimum: Number
    """The lowest."""
    median: Number
    """The middle one."""
    maximum: Number
    """The highest."""


class ThrottleSeconds(Message):
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


class Telemetry(Message):
    """The device over the timed window."""

    window_seconds: Seconds
    """How long the readings were taken."""
    sample_period_seconds: Seconds | MISSING = MISSING
    """From one reading to the next."""
    sample_count: Whole = 0
    """Readings of each kind."""
    sm_clock_hz: Spread | MISSING = MISSING
    memory_clock_hz: Spread | MISSING = MISSING
    cpu_clock_hz: Spread | MISSING = MISSING
    """Of the processors that the worker may use, on a node without accelerators."""
    temperature_celsius: Spread | MISSING = MISSING
    memory_temperature_celsius: Spread | MISSING = MISSING
    power_watts: Spread | MISSING = MISSING
    """As the sensor says."""
    energy_joules: NotNegative | MISSING = MISSING
    """By the energy counter."""
    energy_power_watts: NotNegative | MISSING = MISSING
    """Energy by the counter over the time between its readings."""
    throttle_seconds: ThrottleSeconds = ThrottleSeconds()
    throttle_reasons: Annotated[list[Name], Field(max_length=20)] = []
    """Every reason that was seen at a reading."""
    ecc_corrected: Whole | MISSING = MISSING
    """Errors of memory in the window that were corrected."""
    ecc_uncorrected: Whole | MISSING = MISSING
    """Errors of memory in the window that were not."""
    pcie_generation: Positive | MISSING = MISSING
    """Read under load: it drops when idle."""
    pcie_width: Positive | MISSING = MISSING
    """Lanes, read under load."""
    other_processes: Whole | MISSING = MISSING
    """Processes of others on the device."""
    load_average: NotNegative | MISSING = MISSING
    """Of the host, one minute, at the end."""


class Correctness(Message):
    """What was computed, against a reference that depends on the seed of the run."""

    method: Line
    """What it was compared with."""
    largest_error: NotNegative
    """Relative to the scale of the result."""
    tolerance: NotNegative
    """Largest error that passes."""
    passed: bool
    """Whether the error is within the tolerance."""
    checksum: Sha256 | MISSING = MISSING
    """Of the part that was checked."""


class Discarded(Message):
    """Samples that do not count, and why."""

    reason: Name
    """Why they do not count."""
    count: Positive
    """How many."""


class Measurement(Message):
    """The samples and how they were taken."""

    library: Line
    """What ran, such as cublasLt 13.0.2 or own kernel stream_copy."""
    algorithm: Line | MISSING = MISSING
    """What the library chose."""
    math_mode: Line | MISSING = MISSING
    """How it multiplies, such as with tf32."""
    accumulation: Line | MISSING = MISSING
    """Type that it adds in."""
    data: Line
    """Distribution of the input, such as normal(0, 1)."""
    timer: Literal["cuda_event", "host_clock", "nvml"]
    """What took the time."""
    warmup_seconds: Seconds
    """The same work, run before the first sample."""
    warmup_iterations: Whole
    """Executions of the warm-up."""
    inner_iterations: Positive = 1
    """Executions in one sample."""
    samples_ns: Annotated[list[Positive], Field(max_length=MOST_SAMPLES)] = []
    """Time of each sample, in the order in which they were taken."""
    readings: Annotated[list[NotNegative], Field(max_length=MOST_SAMPLES)] = []
    """Of a figure that is no time: bytes or watts."""
    discarded: Annotated[list[Discarded], Field(max_length=20)] = []
    stop_reason: Literal["spread", "time_limit", "sample_limit", "single"]
    """Why there are no more samples."""
    working_set_bytes: Whole = 0
    """Memory that one execution touches; 0 where nobody counts it."""
    flush_bytes: Whole = 0
    """Overwritten before each sample, so that nothing of it is cached."""
    rotated_buffers: Positive = 1
    """Sets of input that take turns, so that none of them is cached."""
    uses_graph: bool = False
    """Whether the executions were launched as a graph."""
    threads: Positive | MISSING = MISSING
    """Threads of the host that did the work, where it is the host that works."""
    first_call_seconds: Seconds | MISSING = MISSING
    """The first execution, with all that is prepared in it."""
    correctness: Correctness | MISSING = MISSING
    telemetry: Telemetry | MISSING = MISSING

    @model_validator(mode="after")
    def _has_one_kind_of_sample(self) -> "Measurement":
        if bool(self.samples_ns) == bool(self.readings):
            raise ValueError("either samples or readings")
        return self

    @property
    def values(self) -> list[float]:
        """Samples in seconds, or readings."""
        return [sample / 1e9 for sample in self.samples_ns] or list(self.readings)


class Failure(Message):
    """Why there is no measurement."""

    reason: Code
    """Stable name of what went wrong."""
    detail: Line = ""
    """What went wrong, in words."""
    exit_code: Annotated[int, Field(ge=-1000, le=1000, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Of the process; below 0 the signal that ended it."""
    error_output: Lines | MISSING = MISSING
    """The end of what the process wrote."""


class Result(Message):
    """One repeat of one benchmark. Never changed once it is stored."""

    schema_version: Literal[1] = 1
    result_id: Uuid
    """UUIDv7, made by the node."""
    run_id: Name
    """Benchmark run that the lease was for."""
    fencing_token: Token
    """Of the lease."""
    attempt: Whole
    """Of the lease."""
    nonce: Hex
    """Of the lease."""
    node_id: Name
    """Node that measured it."""
    boot_id_sha256: Sha256
    """Digest of the id of the boot of the host."""
    inventory_sha256: Sha256
    """Digest of the inventory of the node."""
    worker_version: Line
    """Version of the worker."""
    suite_id: Name
    """Suite of the benchmark."""
    suite_version: Positive
    """Version of the suite."""
    seed: Whole
    """What the input data were made from; of the lease."""
    repeat: Positive
    """Counted from 1."""
    benchmark: Benchmark
    device: DeviceKind
    """What was measured."""
    accelerator_index: Whole | MISSING = MISSING
    """In the inventory; absent on a node without accelerators."""
    concurrent_accelerators: Whole = 0
    """How many were measured at the same time, this one included."""
    started_at: Instant
    """By the node's clock."""
    finished_at: Instant
    """By the node's clock."""
    started_monotonic_seconds: NotNegative
    """By a clock of the node that is never set."""
    finished_monotonic_seconds: NotNegative
    """By the same clock."""
    clock_offset_seconds: Number | MISSING = MISSING
    """The service's clock less the node's."""
    status: Literal["ok", "failed", "timeout", "unsupported"]
    """`ok` has a measurement, all others a failure."""
    failure: Failure | MISSING = MISSING
    measurement: Measurement | MISSING = MISSING
    software: Annotated[list[Software], Field(max_length=100)] = []
    environment: Annotated[dict[Name, Line], Field(max_length=50)] = {}
    """Variables that change what is measured, from a list of known names, in lower case."""
    gaps: Annotated[list[Gap], Field(max_length=100)] = []

    @model_validator(mode="after")
    def _is_a_measurement_or_nothing(self) -> "Result":
        if (self.status == "ok") != (self.measurement is not MISSING):
            raise ValueError("a measurement where the status is ok, and only there")
        if (self.status == "ok") == (self.failure is not MISSING):
            raise ValueError("a failure where the status is not ok, and only there")
        return self

    def to_json(self) -> bytes:
        """The bytes that are kept, sent and digested."""
        return self.model_dump_json().encode()


class Receipt(Reply):
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
