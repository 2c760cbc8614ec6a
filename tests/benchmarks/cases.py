"""One result with everything around it, as rules see it: sound unless a test plants a fault."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from service.benchmarks.datasheets import Datasheet
from service.benchmarks.figures import compute_measured
from service.benchmarks.validation.case import SiblingResult, ValidationCase
from service.benchmarks.validation.rules import validate_case
from service.protocol.nodes import NodeAccelerator
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import Benchmark

BEGAN = datetime(2026, 11, 21, 12, tzinfo=UTC)
H100 = Datasheet(
    accelerator_id="h100-sxm",
    peaks={"fp64_tensor": 67e12, "fp32": 67e12, "tf32": 494.5e12, "bf16": 989e12, "fp8": 1979e12},
    memory_bytes_per_second=3.35e12,
    link_bytes_per_second=450e9,
)
PART: dict[str, Any] = {
    "index": 0,
    "uuid_sha256": "d" * 64,
    "name": "NVIDIA H100 80GB HBM3",
    "compute_capability": "9.0",
    "multiprocessor_count": 132,
    "memory_bytes": 85_000_000_000,
    "l2_bytes": 52_428_800,
    "power_limit_watts": 700.0,
    "sm_clock_maximum_hz": 1_980_000_000,
    "mig_mode": False,
    "pcie_generation_maximum": 5,
    "pcie_width_maximum": 16,
}
GEMM = {"kind": "gemm", "dtype": "bf16", "m": 8192, "n": 8192, "k": 8192}
COPY = {"kind": "stream", "pattern": "copy", "array_bytes": 2**32}
READ = {"kind": "stream", "pattern": "read", "array_bytes": 2**32}
HOST_TO_DEVICE = {
    "kind": "host_link",
    "direction": "host_to_device",
    "memory": "pinned",
    "transfer_bytes": 2**29,
}
POWER_GEMM = {"kind": "power", "load": "gemm", "window_seconds": 60.0, "settle_seconds": 30.0}
POWER_IDLE = {**POWER_GEMM, "load": "idle"}
METRICS = {
    "block_scaled_gemm": "flops_per_second",
    "grouped_gemm": "flops_per_second",
    "gemm": "flops_per_second",
    "power": "watts",
    "capacity": "bytes",
    "launch_latency": "seconds",
}
RATES = {"gemm": 700e12, "stream": 2.9e12, "host_link": 53e9}
"""Figures as they are published for an H100 SXM (benchmark-worker.md, 3)."""


def benchmark(work: dict[str, Any], **members: Any) -> Benchmark:
    """A benchmark of some work."""
    metric = METRICS.get(work["kind"], "bytes_per_second")
    given = {
        "name": work["kind"].replace("_", "-"),
        "work": work,
        "metric": metric,
        "direction": "lower" if metric in {"seconds", "watts"} else "higher",
        "formula": "work over time",
        **members,
    }
    return Benchmark.model_validate(given)


def noisy(middle: float, count: int = 30) -> list[float]:
    """Values within half a percent of a middle one, no two of them equal, without a trend."""
    return [middle * (1 + 0.005 * ((7 * place) % count - count / 2) / count) for place in range(count)]


def case(
    work: dict[str, Any] | None = None,
    *,
    rate: float | None = None,
    samples_ns: list[int] | None = None,
    device: str = "cuda",
    asked: dict[str, Any] | None = None,
    measurement: dict[str, Any] | None = None,
    telemetry: dict[str, Any] | None = None,
    part: dict[str, Any] | None = None,
    result: dict[str, Any] | None = None,
    **around: Any,
) -> ValidationCase:
    """A case of some work at a rate; members that are None are left out of the record."""
    work = work or GEMM
    of = benchmark(work, **(asked or {}))
    figure = rate or RATES.get(work["kind"], 500.0)
    if of.metric in {"watts", "bytes"}:
        samples: dict[str, Any] = {"readings": [figure]}
        window = 60.0
    else:
        amount = of.work.count_work()
        seconds = (amount.flops if of.metric == "flops_per_second" else amount.moved_bytes) / figure
        taken = samples_ns or [round(one * 1e9) for one in noisy(seconds)]
        samples, window = {"samples_ns": taken}, 1.3 * sum(taken) / 1e9
    read = {
        "window_seconds": window,
        "sm_clock_hz": {"minimum": 1.7e9, "median": 1.8e9, "maximum": 1.98e9},
        "power_watts": {
            "minimum": 300.0,
            "median": figure if of.metric == "watts" else 600.0,
            "maximum": 700.0,
        },
        "throttle_seconds": dict.fromkeys(
            ("sw_power_cap", "sw_thermal", "hw_thermal", "hw_power_brake", "sync_boost"), 0.0
        ),
        "ecc_uncorrected": 0,
        "pcie_generation": 5,
        "pcie_width": 16,
        "other_processes": 0,
        **(telemetry or {}),
    }
    taken_how = {
        "library": "cublasLt 13.0.2",
        "data": "sum of four uniform numbers, mean 0, deviation 1",
        "timer": "cuda_event",
        "warmup_seconds": 0.0 if "readings" in samples else 3.0,
        "warmup_iterations": 900,
        "working_set_bytes": 2**33,
        "flush_bytes": 2**27,
        "stop_reason": "spread",
        "telemetry": _without_none(read) if device == "cuda" else {"window_seconds": window},
        "correctness": {
            "method": "float64 on tiles",
            "largest_error": 1e-3,
            "tolerance": 1e-2,
            "passed": True,
            "checksum": "c" * 64,
        },
        **samples,
        **(measurement or {}),
    }
    needed = 5.0 + window + taken_how["warmup_seconds"]
    record = BenchmarkResultReport.model_validate(
        {
            "result_id": "01980000-0000-7000-8000-000000000001",
            "run_id": "run",
            "fencing_token": 1,
            "attempt": 1,
            "nonce": "a" * 32,
            "node_id": "node",
            "boot_id_sha256": "2" * 64,
            "inventory_sha256": "1" * 64,
            "worker_version": "0.3.0",
            "suite_id": "tests",
            "suite_version": 1,
            "seed": 42,
            "repeat": 1,
            "benchmark": of,
            "device": device,
            "accelerator_index": 0,
            "concurrent_accelerators": 1,
            "started_at": BEGAN,
            "finished_at": BEGAN + timedelta(seconds=needed),
            "started_monotonic_seconds": 100.0,
            "finished_monotonic_seconds": 100.0 + needed,
            "clock_offset_seconds": 0.1,
            "status": "ok",
            "measurement": _without_none(taken_how),
            **(result or {}),
        }
    )
    found = compute_measured(record)
    assert found is not None
    sound: dict[str, Any] = {
        "lease": "current",
        "received_at": BEGAN + timedelta(seconds=needed + 1),
        "granted_at": BEGAN - timedelta(seconds=30),
        "accelerator": NodeAccelerator.model_validate(_without_none({**PART, **(part or {})})),
        "datasheet": H100,
    }
    if device == "cpu":
        sound |= {"accelerator": None, "datasheet": None}
    return ValidationCase(
        result=record,
        measurement=record.measurement,  # type: ignore[arg-type]
        figure=found.figure,
        summary=found.summary,
        **{**sound, **around},
    )


def recorded(record: BenchmarkResultReport) -> ValidationCase:
    """A record of a processor as it came, under a lease."""
    read = compute_measured(record)
    assert read is not None
    return ValidationCase(
        result=record,
        measurement=record.measurement,  # type: ignore[arg-type]
        figure=read.figure,
        summary=read.summary,
        lease="current",
        received_at=record.finished_at,
        granted_at=record.started_at,
    )


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def sibling(
    of: ValidationCase, *, figure: float | None = None, after_seconds: float = 60.0, **members: Any
) -> SiblingResult:
    """Another result of the attempt, measured after this one."""
    began = of.result.finished_at + timedelta(seconds=after_seconds)
    made = SiblingResult(
        benchmark=of.result.benchmark.name,
        repeat=2,
        work=of.work,
        metric=of.result.benchmark.metric,
        figure=of.figure if figure is None else figure,
        accelerator_index=of.index,
        warmup_seconds=of.measurement.warmup_seconds,
        started_at=began,
        finished_at=began + timedelta(seconds=5),
    )
    return made._replace(**members)


def beside(of: ValidationCase, *others: SiblingResult) -> ValidationCase:
    """The same result with others of its attempt."""
    return replace(of, siblings=others)


def found(of: ValidationCase) -> dict[str, str]:
    """The verdict of every finding, by its rule."""
    return {finding.rule: str(finding.verdict) for finding in validate_case(of).findings}


def unchecked(of: ValidationCase) -> set[str]:
    """The rules that could not be applied."""
    return {one.rule for one in validate_case(of).unchecked}
