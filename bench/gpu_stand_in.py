"""`make gpu-stand-in`: every benchmark of one GPU at its real size, against a simulated device.

The host's part is real: a process for each repeat, the compiler, allocations, and every check at the size of
the suite. The device is simulated: kernels, products and copies take no time, and its memory reads as numbers
that nothing computed, so that most checks come to their end with a wrong result. Warm-up and samples are
counted at the most that their rule allows by the clock of the host. Writes `docs/gpu-stand-in.md`.
"""

import argparse
import os
import platform
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import MISSING

from service.protocol.suites import PREPARING_SECONDS, Benchmark, shipped_suites
from service.worker.interrupt import InterruptSignal
from service.worker.process import ChildProcesses
from service.worker.running import SuiteRun, run_task
from tests.worker.cuda import host_kernels

PAGE = Path("docs/gpu-stand-in.md")
CORES = 2
SLOWEST = 12
SAMPLING = {"warmup_seconds": 0.0, "most_warmup_seconds": 0.0, "least_samples": 5, "least_seconds": 0.0}
READING = {"window_seconds": 1.0, "settle_seconds": 0.0}
ENDED = ("ok", "WRONG_RESULT", "UNSUPPORTED")
NOT_WRITTEN = "does not contain the data written to it"
"""Result of the check of the largest block, on memory that no kernel writes."""

INTRODUCTION = """# The suites against a stand-in

Written by `make gpu-stand-in`: a process for each benchmark of one GPU, at the size of the suite, against
stand-ins of the CUDA driver, NVML, cuBLASLt and cuFFT. **The device is simulated, and nothing here is a
figure of a GPU**: kernels, products and copies of the engines take no time and compute nothing, and memory
of the device reads as numbers between 0.25 and 2. **The host is real**: each process from its start to its
end, imports, kernels compiled by NVRTC for a real device, allocations, launches from Python, each check at
its full size, and the record. Warm-up, samples and readings of power are not waited for: they are counted
at the most that their rule allows by the clock of the host. What a GPU adds is the search among proposals
of cuBLASLt, 5 s at most, and the time to create a context.

Seconds of the host are those of its cores, all threads together: the machine does other work at the
same time, which makes more time pass."""


class HostTime(NamedTuple):
    """Seconds that one process of a benchmark took without what is simulated, and its outcome."""

    passed_seconds: float
    seconds: float
    """Seconds of all cores together, which other programs on the machine do not make longer."""
    outcome: str
    detail: str = ""


def list_benchmarks() -> list[Benchmark]:
    """Returns the benchmarks of one GPU of the deepest suite, which holds those of the others."""
    return [one for one in shipped_suites()["gpu-deep"].benchmarks if is_alone(one)]


def is_alone(benchmark: Benchmark) -> bool:
    """Returns true for a benchmark of one accelerator that no other program measures."""
    return not (benchmark.concurrent or benchmark.work.is_joint or benchmark.work.is_reported)


def measure(benchmark: Benchmark, children: ChildProcesses) -> HostTime:
    """Runs one process of a benchmark, and returns what it took."""
    update: dict[str, Any] = {"sampling": benchmark.sampling.model_copy(update=SAMPLING)}
    if benchmark.work.kind == "power":
        update["work"] = benchmark.work.model_copy(update=READING)
    suite = shipped_suites()["gpu-deep"]
    run = SuiteRun(
        run_id="run-1", suite=suite, seed=7, fencing_token=1, attempt=1, nonce="ab" * 16, node_id="node-1",
        boot_id_sha256="0" * 64, inventory_sha256="0" * 64, accelerator_index=0, accelerators=(0,),
    )  # fmt: skip
    task = run.build_task(benchmark.model_copy(update=update), 1, 0)
    began, used = time.monotonic(), count_core_seconds()
    result = run_task(task, children, InterruptSignal())
    taken = (time.monotonic() - began, count_core_seconds() - used)
    if result.failure is MISSING:
        return HostTime(*taken, "ok")
    return HostTime(*taken, result.failure.reason, result.failure.detail)


def count_core_seconds() -> float:
    """Returns the seconds of cores that ended child processes have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def planned_seconds(benchmark: Benchmark) -> float:
    """Returns the seconds that a process may take for all but warm-up, samples and readings."""
    return PREPARING_SECONDS["cuda"] + benchmark.work.checking_seconds


def suite_lines(taken: dict[str, HostTime]) -> Iterator[str]:
    """Yields a row for each suite: what was planned for its host, and what it took."""
    yield "| suite | processes | sampling at most | host, planned | host, measured | planned | measured |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for suite, parts in sorted(totals(taken).items()):
        sampled, planned, measured = parts.sampled, parts.planned, parts.measured
        yield (
            f"| `{suite}` | {parts.processes} | {sampled:.0f} s | {planned:.0f} s | {measured:.0f} s |"
            f" {sampled + planned:.0f} s | {sampled + measured:.0f} s |"
        )


class SuiteTotal(NamedTuple):
    """Seconds of a suite: by the rules of sampling, and of the host as planned and as measured."""

    processes: int
    sampled: float
    planned: float
    measured: float


def totals(taken: dict[str, HostTime]) -> dict[str, SuiteTotal]:
    """Returns the seconds of each suite for accelerators, of those of its benchmarks that were run."""
    found = {}
    for suite in shipped_suites().values():
        run = [one for one in suite.benchmarks if one.name in taken and is_alone(one)]
        if suite.device == "cuda" and run:
            planned = sum(one.repeats * planned_seconds(one) for one in run)
            found[suite.id] = SuiteTotal(
                sum(one.repeats for one in run),
                sum(one.planned_seconds("cuda") for one in run) - planned,
                planned,
                sum(one.repeats * taken[one.name].seconds for one in run),
            )
    return found


def process_lines(benchmarks: Sequence[Benchmark], taken: dict[str, HostTime]) -> Iterator[str]:
    """Yields a row for each of the processes that took most."""
    yield "| benchmark | planned | of cores | passed | outcome |"
    yield "|---|---:|---:|---:|---|"
    for one in sorted(benchmarks, key=lambda one: -taken[one.name].seconds)[:SLOWEST]:
        found = taken[one.name]
        yield (
            f"| `{one.name}` | {planned_seconds(one):.1f} s | {found.seconds:.1f} s |"
            f" {found.passed_seconds:.1f} s | {found.outcome} |"
        )


def find_faults(taken: dict[str, HostTime]) -> list[str]:
    """Returns what is not as planned: a suite that takes longer, or a process without an end."""
    late = [name for name, parts in totals(taken).items() if parts.measured > parts.planned]
    broken = [
        f"{name}: {one.outcome}: {one.detail}"
        for name, one in taken.items()
        if one.outcome not in ENDED and NOT_WRITTEN not in one.detail
    ]
    return [*(f"{name} takes longer than planned" for name in late), *broken]


def page(benchmarks: Sequence[Benchmark], taken: dict[str, HostTime], load: float) -> Iterator[str]:
    """Yields the lines of the page."""
    outcomes = [one.outcome for one in taken.values()]
    yield from INTRODUCTION.splitlines()
    yield ""
    wrong = sum(outcome not in ("ok", "UNSUPPORTED") for outcome in outcomes)
    cores = len(os.sched_getaffinity(0))
    yield f"{cores} cores, load {load:.1f} at the end; Python {platform.python_version()};"
    yield f"{datetime.now(UTC):%Y-%m-%d}."
    yield f"{len(outcomes)} benchmarks: the check of {wrong} came to its end and found what nothing computed,"
    yield f"{outcomes.count('ok')} check no values or passed, {outcomes.count('UNSUPPORTED')} are unsupported"
    yield "here, as back ends of PyTorch are."
    yield ""
    yield from suite_lines(taken)
    yield ""
    yield "The processes that took most, without what is simulated; `host.*` measure the host itself, and so"
    yield "are real throughout, samples included:"
    yield ""
    yield from process_lines(benchmarks, taken)


def main() -> int:
    """Runs every benchmark and writes the page. Returns 1, without a page, if something is not as planned."""
    parser = argparse.ArgumentParser(prog="gpu-stand-in", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    os.environ |= {"FAKE_FAULT": "simulated", "OPENBLAS_NUM_THREADS": "1"}
    host_kernels.driver()  # built once, before a time is taken
    children = ChildProcesses(module="tests.worker.cuda.failing")
    benchmarks, taken = list_benchmarks(), {}
    for one in benchmarks:
        taken[one.name] = measure(one, children)
        print(f"{one.name}: {taken[one.name].seconds:.1f} s, {taken[one.name].outcome}", flush=True)
    faults = find_faults(taken)
    if faults:
        print("\n".join(faults))
        return 1
    options.out.write_text("\n".join(page(benchmarks, taken, os.getloadavg()[0])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
