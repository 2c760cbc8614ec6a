"""Suites and records as nodes make them: a GEMM, a copy, launches and watts, with believable samples."""

import json
import random
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from service.protocol.results import BenchmarkResultReport, content_sha256
from service.protocol.suites import BenchmarkSuite

SUITE = BenchmarkSuite.model_validate_json(
    json.dumps(
        {
            "id": "tests-cpu",
            "version": 3,
            "title": "Three benchmarks for the tests",
            "device": "cpu",
            "benchmarks": [
                {
                    "name": "gemm.fp32",
                    "work": {"kind": "gemm", "dtype": "fp32", "m": 512, "n": 512, "k": 512},
                    "metric": "flops_per_second",
                    "direction": "higher",
                    "formula": "2 m n k",
                    "repeats": 10,
                },
                {
                    "name": "stream.copy",
                    "work": {"kind": "stream", "pattern": "copy", "array_bytes": 2**28},
                    "metric": "bytes_per_second",
                    "direction": "higher",
                    "formula": "2 arrays",
                    "repeats": 10,
                },
                {
                    "name": "power.idle",
                    "work": {"kind": "power", "load": "idle", "window_seconds": 10, "settle_seconds": 1},
                    "metric": "watts",
                    "direction": "lower",
                    "formula": "energy over time",
                    "repeats": 1,
                },
            ],
        }
    )
)
GEMM, COPY, POWER = (benchmark.name for benchmark in SUITE.benchmarks)
INVENTORY_SHA256 = "1" * 64
BEGAN = datetime(2026, 11, 21, 12, tzinfo=UTC)


def uuid(number: int) -> str:
    """The id of a result."""
    return str(UUID(int=(0x0198_0000_0000_7000_8000 << 48) + number))


def samples_ns(middle_ns: int, *, count: int = 30, seed: int = 1) -> list[int]:
    """Samples with a long tail above their middle, within some 2% of it."""
    chance = random.Random(seed)  # noqa: S311
    return [round(middle_ns * (1 + chance.lognormvariate(-6, 1))) for _ in range(count)]


def record(
    number: int,
    *,
    suite: BenchmarkSuite = SUITE,
    benchmark: str = GEMM,
    repeat: int = 1,
    samples: list[int] | None = None,
    readings: list[float] | None = None,
    inner_iterations: int = 1,
    clock_hz: float | None = None,
    checksum: str | None = None,
    **members: Any,
) -> BenchmarkResultReport:
    """The record of one repeat, measured unless ``members`` say other."""
    asked = suite.find_benchmark(benchmark)
    assert asked is not None
    measurement: dict[str, Any] = {
        "library": "numpy 2.4.1",
        "data": "normal(0, 1)",
        "timer": "host_clock",
        "warmup_seconds": 3.0,
        "warmup_iterations": 900,
        "inner_iterations": inner_iterations,
        "stop_reason": "spread",
        "telemetry": {"window_seconds": 0.6, "load_average": 0.7},
        "correctness": {
            "method": "float64 on sampled tiles",
            "largest_error": 1e-7,
            "tolerance": 1e-5,
            "passed": True,
        },
    }
    if readings is not None:
        measurement["readings"] = readings
    else:
        taken = samples or samples_ns(3_000_000, seed=number)
        measurement["samples_ns"] = taken
        measurement["telemetry"]["window_seconds"] = max(0.6, 1.1 * sum(taken) / 1e9)
    if checksum is not None:
        measurement["correctness"]["checksum"] = checksum
    if clock_hz is not None:
        measurement["telemetry"]["sm_clock_hz"] = dict.fromkeys(("minimum", "median", "maximum"), clock_hz)
    document = {
        "result_id": uuid(number),
        "run_id": "run",
        "fencing_token": 1,
        "attempt": 1,
        "nonce": "a" * 32,
        "node_id": "node",
        "boot_id_sha256": "2" * 64,
        "inventory_sha256": INVENTORY_SHA256,
        "worker_version": "0.3.0",
        "suite_id": suite.id,
        "suite_version": suite.version,
        "seed": 42,
        "repeat": repeat,
        "benchmark": asked.model_dump(mode="json"),
        "device": suite.device,
        # One after the other, as one process at a time measures.
        "started_at": (BEGAN + timedelta(seconds=10 * number)).isoformat(),
        "finished_at": (BEGAN + timedelta(seconds=10 * number + 9.5)).isoformat(),
        "started_monotonic_seconds": 100.0 + 10 * number,
        "finished_monotonic_seconds": 109.5 + 10 * number,
        "status": "ok",
        **members,
    }
    if document["status"] == "ok":
        document["measurement"] = measurement
    return BenchmarkResultReport.model_validate_json(json.dumps(document))


def sha(content: bytes) -> str:
    """Digest of what is sent."""
    assert content_sha256(content) == sha256(content).hexdigest()
    return content_sha256(content)
