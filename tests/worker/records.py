"""Suites, tasks and records for the tests of the worker."""

from service.protocol.nodes import NodeHost, NodeInventory
from service.protocol.results import BenchmarkMeasurement, BenchmarkResultReport, MeasurementFailure
from service.protocol.suites import BenchmarkSuite
from service.worker.ids import generate_hex_128, generate_uuid7
from service.worker.task import RepeatTask

INVENTORY = NodeInventory(
    device="cpu", host=NodeHost(operating_system="Linux", kernel="6.1", architecture="x86_64", cpu_count=2)
)

SAMPLING = {
    "warmup_seconds": 0.01,
    "least_samples": 5,
    "least_seconds": 0.01,
    "relative_spread": 1.0,
    "most_seconds": 0.2,
}
"""Quick, and so worth nothing."""


def suite(*, repeats=2, benchmarks=2, timeout_seconds=60.0):
    gemm = {"kind": "gemm", "dtype": "fp32", "m": 64, "n": 64, "k": 64}
    return BenchmarkSuite.model_validate(
        {
            "id": "tiny",
            "version": 1,
            "title": "A suite for tests",
            "device": "cpu",
            "benchmarks": [
                {
                    "name": f"gemm.{number}",
                    "work": gemm,
                    "metric": "flops_per_second",
                    "direction": "higher",
                    "formula": "2 m n k",
                    "repeats": repeats,
                    "timeout_seconds": timeout_seconds,
                    "sampling": SAMPLING,
                }
                for number in range(benchmarks)
            ],
        }
    )


def task(**changed):
    made = suite()
    told = {
        "benchmark": made.benchmarks[0],
        "suite_id": made.id,
        "suite_version": made.version,
        "run_id": "run-1",
        "fencing_token": 1,
        "attempt": 1,
        "nonce": generate_hex_128(),
        "node_id": "node-1",
        "boot_id_sha256": "0" * 64,
        "inventory_sha256": "0" * 64,
        "seed": 7,
        "repeat": 1,
        "device": "cpu",
        "worker_version": "0.1.0",
    }
    return RepeatTask(**{**told, **changed})


def record(task, **outcome):
    return BenchmarkResultReport(
        result_id=generate_uuid7(),
        started_at="2026-11-21T12:00:00Z",
        finished_at="2026-11-21T12:00:01Z",
        started_monotonic_seconds=1.0,
        finished_monotonic_seconds=2.0,
        **{name: getattr(task, name) for name in task.model_fields_set},
        **outcome,
    )


def measured(task):
    """What a process that measures hands back."""
    measurement = BenchmarkMeasurement(
        library="numpy", data="normal(0, 1)", timer="host_clock", warmup_seconds=0.1, warmup_iterations=3,
        samples_ns=[1000, 1100, 1200], stop_reason="sample_limit",
    )  # fmt: skip
    return record(task, status="ok", measurement=measurement)


def failed(task, status="failed", reason="BENCHMARK_ERROR"):
    return record(task, status=status, failure=MeasurementFailure(reason=reason))
