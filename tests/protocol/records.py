"""Records of every shape that a node can write, and messages in all their members."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st
from pydantic import MISSING

from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.results import (
    BenchmarkMeasurement,
    BenchmarkResultReport,
    CorrectnessCheck,
    DeviceTelemetry,
    DiscardedSamples,
    MeasurementFailure,
    ReadingSpread,
    ThrottleSeconds,
)
from service.protocol.suites import shipped_suites

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=3))])
TIMES = st.datetimes(datetime(2026, 1, 1), datetime(2099, 12, 31), timezones=ZONES)  # noqa: DTZ001
NUMBERS = st.floats(-1e30, 1e30)
AMOUNTS = st.floats(0, 1e30)
SECONDS = st.floats(0, 1e9)
WHOLES = st.integers(0, 2**53 - 1)
POSITIVES = st.integers(1, 2**53 - 1)
LINES = st.text(st.characters(min_codepoint=32, exclude_characters="\x7f", codec="utf-8"), max_size=40)
TEXTS = st.text(st.sampled_from("a b\n\t{}\"\\'é✓\U0001f600"), max_size=40)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
CODES = st.from_regex(r"[A-Z][A-Z0-9_]{0,20}", fullmatch=True)


def hexadecimal(digits):
    return st.text("0123456789abcdef", min_size=digits, max_size=digits)


def perhaps(values):
    return st.just(MISSING) | values


UUIDS = st.uuids().map(str)
SPREADS = st.builds(ReadingSpread, minimum=NUMBERS, median=NUMBERS, maximum=NUMBERS)
THROTTLED = st.builds(ThrottleSeconds, **dict.fromkeys(ThrottleSeconds.model_fields, perhaps(SECONDS)))
TELEMETRY = st.builds(
    DeviceTelemetry,
    window_seconds=SECONDS,
    sample_period_seconds=perhaps(SECONDS),
    sample_count=WHOLES,
    **dict.fromkeys(
        (
            "sm_clock_hz",
            "memory_clock_hz",
            "cpu_clock_hz",
            "temperature_celsius",
            "memory_temperature_celsius",
            "power_watts",
            "power_instant_watts",
        ),
        perhaps(SPREADS),
    ),
    **dict.fromkeys(("energy_joules", "energy_power_watts", "load_average"), perhaps(AMOUNTS)),
    **dict.fromkeys(("ecc_corrected", "ecc_uncorrected", "other_processes"), perhaps(WHOLES)),
    **dict.fromkeys(("pcie_generation", "pcie_width"), perhaps(POSITIVES)),
    throttle_seconds=THROTTLED,
    throttle_reasons=st.lists(NAMES, max_size=3),
)
CORRECTNESS = st.builds(
    CorrectnessCheck,
    method=LINES,
    largest_error=AMOUNTS,
    tolerance=AMOUNTS,
    passed=st.booleans(),
    checksum=perhaps(hexadecimal(64)),
)
MEASUREMENT = {
    "library": LINES,
    "algorithm": perhaps(LINES),
    "math_mode": perhaps(LINES),
    "accumulation": perhaps(LINES),
    "data": LINES,
    "timer": st.sampled_from(["cuda_event", "host_clock", "nvml"]),
    "warmup_seconds": SECONDS,
    "warmup_iterations": WHOLES,
    "inner_iterations": POSITIVES,
    "discarded": st.lists(st.builds(DiscardedSamples, reason=NAMES, count=POSITIVES), max_size=3),
    "stop_reason": st.sampled_from(["spread", "time_limit", "sample_limit", "single"]),
    "working_set_bytes": WHOLES,
    "flush_bytes": WHOLES,
    "rotated_buffers": POSITIVES,
    "uses_graph": st.booleans(),
    "threads": perhaps(POSITIVES),
    "first_call_seconds": perhaps(SECONDS),
    "correctness": perhaps(CORRECTNESS),
    "telemetry": perhaps(TELEMETRY),
}
MEASUREMENTS = st.builds(
    BenchmarkMeasurement, samples_ns=st.lists(POSITIVES, min_size=1, max_size=20), **MEASUREMENT
) | st.builds(BenchmarkMeasurement, readings=st.lists(AMOUNTS, min_size=1, max_size=20), **MEASUREMENT)
FAILURES = st.builds(
    MeasurementFailure,
    reason=CODES,
    detail=LINES,
    exit_code=perhaps(st.integers(-1000, 1000)),
    error_output=perhaps(TEXTS),
)
RECORD = {
    "result_id": UUIDS,
    "run_id": NAMES,
    "fencing_token": POSITIVES,
    "attempt": WHOLES,
    "nonce": hexadecimal(32),
    "node_id": NAMES,
    "boot_id_sha256": hexadecimal(64),
    "inventory_sha256": hexadecimal(64),
    "worker_version": LINES,
    "suite_id": NAMES,
    "suite_version": POSITIVES,
    "seed": WHOLES,
    "repeat": POSITIVES,
    "benchmark": st.sampled_from([one for suite in shipped_suites().values() for one in suite.benchmarks]),
    "device": st.sampled_from(["cuda", "cpu"]),
    "accelerator_index": perhaps(WHOLES),
    "concurrent_accelerators": WHOLES,
    "started_at": TIMES,
    "finished_at": TIMES,
    "started_monotonic_seconds": AMOUNTS,
    "finished_monotonic_seconds": AMOUNTS,
    "clock_offset_seconds": perhaps(NUMBERS),
    "software": st.lists(st.builds(NodeSoftware, name=NAMES, version=LINES), max_size=3),
    "environment": st.dictionaries(NAMES, LINES, max_size=3),
    "gaps": st.lists(st.builds(NodeGap, pointer=LINES, code=NAMES, detail=LINES), max_size=3),
}
RESULTS = st.builds(
    BenchmarkResultReport, status=st.just("ok"), measurement=MEASUREMENTS, **RECORD
) | st.builds(
    BenchmarkResultReport,
    status=st.sampled_from(["failed", "timeout", "unsupported"]),
    failure=FAILURES,
    **RECORD,
)
