"""Measurement of a suite without a service, by the same processes and tasks as under a lease."""

import json
import secrets
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import MISSING

from service.protocol.canonical import compute_digest
from service.protocol.nodes import NodeInventory
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import Benchmark, BenchmarkSuite
from service.protocol.summary import summarize_samples
from service.worker.errors import WorkerError
from service.worker.files import write_file
from service.worker.ids import generate_hex_128
from service.worker.interrupt import InterruptSignal
from service.worker.process import ChildProcesses
from service.worker.running import (
    SuiteRun,
    request_inventory,
    resolve_accelerator_index,
    run_suite,
    select_slowest,
)
from service.worker.state_directory import boot_id_sha256
from service.worker.status import WorkerStatus

NODE = "local"
_SEED_BITS = 32


def measure_locally(
    suite: BenchmarkSuite,
    folder: Path,
    children: ChildProcesses,
    interrupt: InterruptSignal,
    board: WorkerStatus,
    *,
    seed: int | None,
    accelerator: int,
) -> dict[str, Any]:
    """Runs a suite, and writes its records and ``summary.json`` to a folder.

    Args:
        suite: Suite to run.
        folder: Folder for ``records/BENCHMARK-REPEAT.json``, with ``@INDEX`` if several accelerators measured
            at once, and for the summary; it must not contain one yet.
        children: Starts the processes.
        interrupt: Ends the run; finished measurements are summarized.
        board: Receives the progress of every step.
        seed: Seed of the input data; None draws a random one.
        accelerator: Index of the accelerator, if there are any.

    Returns:
        The summary: inventory, and for each benchmark its figure with the unit in the name of the metric.

    Raises:
        WorkerError: The folder contains a summary, or the devices cannot be listed.
        Interrupted: The run was interrupted; the summary is written.
    """
    if (folder / "summary.json").exists():
        raise WorkerError(f"{folder} contains the results of another run; name another folder")
    records = folder / "records"
    records.mkdir(parents=True, exist_ok=True)
    began = datetime.now(UTC)
    listed = request_inventory(suite.device, children, interrupt)
    run = SuiteRun(
        run_id=f"local-{began:%Y%m%dt%H%M%S}",
        suite=suite,
        seed=secrets.randbits(_SEED_BITS) if seed is None else seed,
        fencing_token=1,
        attempt=1,
        nonce=generate_hex_128(),
        node_id=NODE,
        boot_id_sha256=boot_id_sha256(),
        inventory_sha256=compute_digest(listed),
        accelerator_index=resolve_accelerator_index(listed, accelerator),
        accelerators=tuple(accelerator.index for accelerator in listed.accelerators),
    )
    results: list[BenchmarkResultReport] = []

    def save_result(result: BenchmarkResultReport) -> None:
        at = f"@{result.accelerator_index}" if result.concurrent_accelerators > 1 else ""
        write_file(records / f"{result.benchmark.name}-{result.repeat}{at}.json", result.to_json())
        results.append(result)

    try:
        run_suite(run, children, interrupt, board, save_result)
    finally:
        summary = _build_summary(run, began, listed, results)
        write_file(folder / "summary.json", json.dumps(summary, indent=2).encode())
    return summary


def _build_summary(
    run: SuiteRun, began: datetime, listed: NodeInventory, results: list[BenchmarkResultReport]
) -> dict[str, Any]:
    benchmarks = [
        _build_entry(benchmark, [result for result in results if result.benchmark.name == benchmark.name])
        for benchmark in run.suite.benchmarks
    ]
    return {
        "suite_id": run.suite.id,
        "suite_version": run.suite.version,
        "run_id": run.run_id,
        "seed": run.seed,
        "began_at": f"{began:%Y-%m-%dT%H:%M:%SZ}",
        "seconds": round((datetime.now(UTC) - began).total_seconds(), 3),
        "inventory": listed.model_dump(mode="json"),
        "benchmarks": benchmarks,
    }


def _build_entry(benchmark: Benchmark, results: list[BenchmarkResultReport]) -> dict[str, Any]:
    """Builds one benchmark: figures of its repeats, statistics of their samples, and failures."""
    entry: dict[str, Any] = {
        "name": benchmark.name,
        "metric": benchmark.metric,
        "direction": benchmark.direction,
        "formula": benchmark.formula,
        "work": (results[-1].benchmark if results else benchmark).work.model_dump(mode="json"),
        "repeats": [_build_repeat(benchmark, result) for result in results],
    }
    by_repeat: dict[int, list[BenchmarkResultReport]] = {}
    for result in results:
        by_repeat.setdefault(result.repeat, []).append(result)
    of_node = [_build_repeat(benchmark, select_slowest(beside)) for beside in by_repeat.values()]
    figures = [repeat["figure"] for repeat in of_node if "figure" in repeat]
    if figures:
        entry |= {"figure": median(figures), "lowest": min(figures), "highest": max(figures)}
    return entry


def _build_repeat(benchmark: Benchmark, result: BenchmarkResultReport) -> dict[str, Any]:
    measurement, failure = result.measurement, result.failure
    said: dict[str, Any] = {"repeat": result.repeat, "status": result.status}
    if result.concurrent_accelerators > 1:
        said["accelerator_index"] = result.accelerator_index
    if measurement is not MISSING:
        values = measurement.values
        figure = benchmark.compute_figure(values, inner_iterations=measurement.inner_iterations)
        said |= {"figure": figure, "stop_reason": measurement.stop_reason}
        said["samples"] = asdict(summarize_samples(values))
    if failure is not MISSING:
        said |= {"reason": failure.reason, "detail": failure.detail}
    return said
