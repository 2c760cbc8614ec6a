"""Inventories and records of simulated nodes, in the shapes of the protocol."""

import random
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from service.protocol.leases import BenchmarkLease
from service.protocol.nodes import DeviceKind, NodeAccelerator, NodeHost, NodeInventory, NodeSoftware
from service.protocol.results import (
    BenchmarkMeasurement,
    BenchmarkResultReport,
    CorrectnessCheck,
    DeviceTelemetry,
    MeasurementFailure,
    ReadingSpread,
)
from service.protocol.suites import Benchmark
from service.worker.ids import generate_uuid7

WORKER_VERSION = "1.0"
STARTING_SECONDS = 1.0
FAILED_SHARE = 0.03
_LEAST_SAMPLE_SECONDS = 1e-6
_FEWEST_SAMPLES = {"cpu": 3, "cuda": 10}
_RATES = {("cpu", "flops_per_second"): 8e10, ("cpu", "bytes_per_second"): 1.2e10}
_FLOPS = {"bf16": 7e14, "fp16": 7e14, "fp8_e4m3": 1.3e15, "int8": 1.2e15, "tf32": 4e14}
_BYTES = {"host_link": 5e10, "stream": 2.7e12}
"""Figures of an H100 that pass validation."""
_SECONDS_A_PART = 4e-6
_READINGS = {"bytes": 5.1e8, "watts": 90.0}


def inventory(number: int, device: DeviceKind) -> NodeInventory:
    """Returns the inventory of one host."""
    host = NodeHost(
        operating_system="Linux",
        kernel="6.8.0",
        architecture="x86_64",
        cpu_model="Xeon of the simulation",
        cpu_count=64,
        memory_bytes=2**39,
    )
    accelerator = NodeAccelerator(
        index=0,
        uuid_sha256=sha256(f"device {number}".encode()).hexdigest(),
        name="NVIDIA H100 80GB HBM3",
        compute_capability="9.0",
        memory_bytes=80 * 2**30,
        power_limit_watts=700.0,
    )
    accelerators = [accelerator] if device == "cuda" else []
    software = [NodeSoftware(name="numpy", version="2.3.4"), NodeSoftware(name="python", version="3.11.7")]
    return NodeInventory(device=device, host=host, accelerators=accelerators, software=software)


def repeat_seconds(benchmark: Benchmark) -> float:
    """Returns the time of a repeat: start of its process, warm-up and measurement."""
    sampling, work = benchmark.sampling, benchmark.work
    if work.kind == "power":
        return STARTING_SECONDS + work.settle_seconds + work.window_seconds
    return STARTING_SECONDS + sampling.warmup_seconds + 1.5 * sampling.least_seconds


def _rate(benchmark: Benchmark, device: str) -> float:
    if device == "cpu":
        return _RATES[device, benchmark.metric]
    if benchmark.metric == "flops_per_second":
        return _FLOPS.get(getattr(benchmark.work, "dtype", ""), 5e13)
    return _BYTES.get(benchmark.work.kind, 2.4e12)


def _measurement(
    benchmark: Benchmark, device: str, chance: random.Random, speed: float
) -> BenchmarkMeasurement:
    sampling, amount = benchmark.sampling, benchmark.work.count_work()
    count = min(chance.randint(sampling.least_samples, 6 * sampling.least_samples), sampling.most_samples)
    tail = [1 + chance.lognormvariate(-6, 1) for _ in range(count)]
    values: dict[str, Any] = {"stop_reason": "spread"}
    window = benchmark.work.window_seconds / speed if benchmark.work.kind == "power" else 0.1
    if benchmark.metric in _READINGS:
        values["readings"] = [_READINGS[benchmark.metric] * one for one in tail]
    else:
        work = amount.flops if benchmark.metric == "flops_per_second" else amount.moved_bytes
        seconds = _SECONDS_A_PART * amount.parts
        if benchmark.metric != "seconds":
            seconds = work / _rate(benchmark, device)
        # An accelerated node takes fewer samples of unchanged length.
        there = sampling.least_seconds / speed
        inner = max(round(there / seconds / sampling.most_samples), round(_LEAST_SAMPLE_SECONDS / seconds), 1)
        tail = tail[: max(int(1.2 * there / seconds / inner), _FEWEST_SAMPLES[device])]
        values["inner_iterations"] = inner
        values["samples_ns"] = [round(seconds * inner * 1e9 * one) for one in tail]
        window = 1.1 * sum(values["samples_ns"]) / 1e9
    clock = ReadingSpread(minimum=1.7e9, median=1.75e9, maximum=1.98e9)
    telemetry = (
        DeviceTelemetry(window_seconds=window, sample_count=10, sm_clock_hz=clock)
        if device == "cuda"
        else DeviceTelemetry(window_seconds=window, cpu_clock_hz=clock, load_average=0.7)
    )
    return BenchmarkMeasurement(
        library="own kernel stream_copy" if device == "cuda" else "numpy 2.3.4",
        data="normal(0, 1)",
        timer="cuda_event" if device == "cuda" else "host_clock",
        warmup_seconds=sampling.warmup_seconds / speed,
        warmup_iterations=500,
        working_set_bytes=2**33,
        correctness=CorrectnessCheck(
            method="float64 on sampled tiles",
            largest_error=1e-7,
            tolerance=1e-5,
            passed=True,
            checksum=chance.randbytes(32).hex(),
        ),
        telemetry=telemetry,
        **values,
    )


def measured(
    lease: BenchmarkLease,
    benchmark: Benchmark,
    repeat: int,
    *,
    chance: random.Random,
    speed: float,
    **node: Any,  # noqa: ANN401
) -> BenchmarkResultReport:
    """Returns the record of one repeat that has just ended on a node that is ``speed`` times as fast."""
    device, seconds = lease.suite.device, repeat_seconds(benchmark) / speed
    ended = datetime.now(UTC)
    if chance.random() < FAILED_SHARE:
        outcome: dict[str, Any] = {
            "status": "failed",
            "failure": MeasurementFailure(reason="PROCESS_DIED", detail="the process ended", exit_code=-11),
        }
    else:
        outcome = {"status": "ok", "measurement": _measurement(benchmark, device, chance, speed)}
    accelerator: dict[str, Any] = {}
    if device == "cuda":
        accelerator = {"accelerator_index": 0, "concurrent_accelerators": 1}
    return BenchmarkResultReport(
        result_id=generate_uuid7(),
        run_id=lease.id,
        fencing_token=lease.fencing_token,
        attempt=lease.attempt,
        nonce=lease.nonce,
        worker_version=WORKER_VERSION,
        suite_id=lease.suite.id,
        suite_version=lease.suite.version,
        seed=lease.seed,
        repeat=repeat,
        benchmark=benchmark,
        device=device,
        started_at=ended - timedelta(seconds=seconds),
        finished_at=ended,
        started_monotonic_seconds=1000.0,
        finished_monotonic_seconds=1000.0 + seconds,
        clock_offset_seconds=chance.uniform(-0.01, 0.01),
        software=[NodeSoftware(name="python", version="3.11.7")],
        **accelerator,
        **node,
        **outcome,
    )
