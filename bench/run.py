"""Measures speed and memory of the service on loopback and writes docs/benchmarks.md.

The server runs on one core and wrk on another. Every rate stands beside the rate of the same server's
empty route (`GET /livez`), measured before and after it.
"""

import contextlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from pydantic_core import to_json

from bench import frontier, operators, plans, tariff
from bench.questions import COUNT, catalog_questions, parameter_count_questions
from service.estimates.service import ESTIMATES
from service.evidence.snapshot import build_shipped_snapshot
from service.resolve.catalog import CatalogView

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 4
BATCH_SECONDS = 12
BATCH_CONNECTIONS = 4
"""A batch of modelled estimates with advice takes a second; more of them would only wait for each other."""
CONNECTIONS = 32
SERVER_CORE, LOAD_CORE = "0", "1"
WRK, TASKSET = shutil.which("wrk") or "", shutil.which("taskset") or ""
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


HEADING = f"""\
Written by `make bench`. The server has one core, wrk another, {CONNECTIONS} connections, {SECONDS} s for each
line (the run with the median p99 of three), 200 different bodies in turn: back-of-the-envelope models of 200
sizes (`parameter_count`), or 7 models of the catalog on 4 accelerators, training and serving, layouts given
and left open (`catalog`). No answer is cached. The service knows its callers (`IRONLAW_MODE=tenant`): each
request carries an API key, counts against its limit, and is logged and measured; the empty route is not.
"""
SETTINGS = {
    "IRONLAW_MODE": "tenant",
    "IRONLAW_PORT": "0",
    "IRONLAW_REQUESTS_PER_MINUTE": "1000000000",
    "PYTHONUNBUFFERED": "1",
}
IRONLAW = Path(sys.executable).with_name("ironlaw")


class WrkResult(NamedTuple):
    """Result of one run of wrk, and the processor time of the server per request."""

    per_second: float
    median_seconds: float
    p99_seconds: float
    cpu_seconds: float


class BenchRow(NamedTuple):
    """One line of the table."""

    name: str
    load: WrkResult
    share_of_empty: float


def seconds_of(text: str) -> float:
    """A time as wrk prints it."""
    for unit, size in (("us", 1e-6), ("ms", 1e-3), ("m", 60.0), ("s", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    raise ValueError(text)


def new_key(data_dir: str) -> str:
    """An API key of the database, which is made first where there is none."""
    environment = {**os.environ, **SETTINGS, "IRONLAW_DATA_DIR": data_dir}
    for command in (["migrate"], ["keys", "create", "--scope", "estimates:read"]):
        done = subprocess.run(
            [IRONLAW, *command], env=environment, capture_output=True, text=True, check=True
        )
    return done.stdout.strip()


class ServedProcess:
    """The served process and where it listens."""

    key = ""

    def __init__(self, process: "subprocess.Popen[str]", address: str, ready_seconds: float) -> None:
        self.process = process
        self.address = address
        self.ready_seconds = ready_seconds

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def load(
        self,
        path: str,
        bodies: list[Any] | None = None,
        *,
        seconds: int = SECONDS,
        connections: int = CONNECTIONS,
    ) -> WrkResult:
        """Load one route; every answer must be a success."""
        command = [
            TASKSET,
            "-c",
            LOAD_CORE,
            WRK,
            "-t1",
            f"-c{connections}",
            f"-d{seconds}s",
            "--latency",
            "--timeout",
            "10s",
        ]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as lines:
            if bodies is not None:
                lines.writelines(json.dumps(body) + "\n" for body in bodies)
                lines.flush()
                command += ["-s", str(ROOT / "bench" / "rotate.lua")]
            before = self.cpu_seconds()
            out = subprocess.run(
                [*command, self.address + path],
                env={**os.environ, "BODIES": lines.name, "KEY": self.key},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            used = self.cpu_seconds() - before
        if "Non-2xx" in out or "Socket errors" in out:
            raise RuntimeError(f"{path}: {out}")
        words = out.split()
        return WrkResult(
            per_second=float(words[words.index("Requests/sec:") + 1]),
            median_seconds=seconds_of(words[words.index("50%") + 1]),
            p99_seconds=seconds_of(words[words.index("99%") + 1]),
            cpu_seconds=used / int(words[words.index("requests") - 1]),
        )

    def against_empty(self, name: str, path: str, bodies: list[Any]) -> BenchRow:
        """A route between two runs of the empty one; the run of median p99 of three."""
        first = self.load("/livez", seconds=2).per_second
        # The median of three is robust to other load on the machine.
        loads = sorted((self.load(path, bodies) for _ in range(3)), key=lambda load: load.p99_seconds)
        last = self.load("/livez", seconds=2).per_second
        return BenchRow(name, loads[1], loads[1].per_second / statistics.mean((first, last)))

    def batch_rates(self, path: str, questions: list[Any], *, connections: int) -> tuple[float, float]:
        """Estimates per second in single calls and in batches."""
        single = self.load(path, questions, connections=connections)
        batch = [{"requests": questions}]
        batched = self.load(f"{path}:batch", batch, seconds=BATCH_SECONDS, connections=connections)
        return single.per_second, batched.per_second * len(questions)


@contextlib.contextmanager
def served(data_dir: str) -> Iterator[ServedProcess]:
    """The service on one core, ready."""
    environment = {**os.environ, **SETTINGS, "IRONLAW_DATA_DIR": data_dir}
    log = Path(data_dir) / "log"
    started = time.monotonic()
    with log.open("w") as lines:
        process = subprocess.Popen(
            [TASKSET, "-c", SERVER_CORE, IRONLAW, "serve"], env=environment, stderr=lines, text=True
        )
    try:
        while not (said := re.search(r"^serving on ([^,]+),", log.read_text(), re.MULTILINE)):
            time.sleep(0.005)
        address = said[1]
        with httpx.Client(base_url=address, trust_env=False) as client:
            while client.get("/readyz").status_code != httpx.codes.OK:
                time.sleep(0.005)
        yield ServedProcess(process, address, time.monotonic() - started)
    finally:
        process.terminate()
        process.wait(timeout=15)


def in_process_seconds(operation: str, questions: list[Any], catalog: CatalogView) -> tuple[float, float]:
    """Processor time of an estimate alone, and from the bytes of its question to those of its answer."""
    shape, estimator = ESTIMATES[operation]
    bodies = [json.dumps(question).encode() for question in questions]
    asked = [shape.model_validate_json(body) for body in bodies]

    def best(ask: Callable[[], object]) -> float:
        def once() -> float:
            started = time.process_time()
            ask()
            return (time.process_time() - started) / len(questions)

        return min(once() for _ in range(7))

    alone = best(lambda: [estimator(question, catalog) for question in asked])
    whole = best(lambda: [to_json(estimator(shape.model_validate_json(b), catalog)) for b in bodies])
    return alone, whole


def start_seconds(data_dir: str) -> float:
    """Median time from the command to ready, with the data directory in place."""
    times = []
    for _ in range(5):
        with served(data_dir) as service:
            times.append(service.ready_seconds)
    return statistics.median(times)


KINDS: tuple[tuple[str, Callable[[str], list[Any]]], ...] = (
    ("parameter_count", parameter_count_questions),
    ("catalog", catalog_questions),
)


def measure() -> Iterator[str]:
    """The report, line by line."""
    catalog = build_shipped_snapshot()
    with tempfile.TemporaryDirectory() as data_dir:
        with served(data_dir) as service:
            first_start, resting = service.ready_seconds, service.resident_bytes()
            service.key = new_key(data_dir)
            time.sleep(2.0)  # the server looks for new keys every second
            rows, overheads, batches = [], [], []
            for kind, questions_of in KINDS:
                for operation in ESTIMATES:
                    questions = questions_of(operation)
                    alone, whole = in_process_seconds(operation, questions, catalog)
                    path = f"/v1/estimates/{operation}"
                    row = service.against_empty(f"{operation}, {kind}", path, questions)
                    rows.append(row)
                    overheads.append((row.name, alone, whole, row.load.cpu_seconds))
                    alone_rates = service.batch_rates(path, questions, connections=1)
                    many_rates = service.batch_rates(path, questions, connections=BATCH_CONNECTIONS)
                    batches.append((row.name, *alone_rates, *many_rates))
            busy = service.resident_bytes()
            searches = frontier.http_seconds(service.address, service.key)
        again = start_seconds(data_dir)
    yield from _report(rows, overheads, batches)
    yield "## Start and memory\n"
    yield "| | target | measured |\n|---|---:|---:|"
    yield f"| first start, empty data directory: command to ready | | {first_start:.2f} s |"
    yield f"| start to ready, median of 5 | 2 s | {again:.2f} s |"
    yield f"| resident memory after start | 200 MB | {resting / 1e6:.0f} MB |"
    yield f"| resident memory after all of the load above | 200 MB | {busy / 1e6:.0f} MB |\n"
    yield from operators.report()
    yield ""
    yield from frontier.report(*searches)
    yield ""
    yield from plans.report()
    yield ""
    yield from tariff.report()


def _report(
    rows: list[BenchRow],
    overheads: list[tuple[str, float, float, float]],
    batches: list[tuple[str, float, float, float, float]],
) -> Iterator[str]:
    yield "## Rate and latency\n"
    yield "Targets: `parameter_count` at least 0.5 of the empty route; p99 under 5 times the median.\n"
    yield "| estimate, model | requests/s | of the empty route | median | p99 | p99 / median |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, load, share in rows:
        ratio = load.p99_seconds / load.median_seconds
        yield (
            f"| {name} | {load.per_second:,.0f} | {share:.2f} | {load.median_seconds * 1e3:.2f} ms "
            f"| {load.p99_seconds * 1e3:.2f} ms | {ratio:.1f} |"
        )
    yield "\n## What HTTP adds\n"
    yield (
        "Processor time in microseconds: of the estimate alone, of reading its question, estimating and\n"
        "writing the answer in one process, and of the server for the request. HTTP is to add at most 150.\n"
    )
    yield "| estimate, model | estimate | JSON to JSON | request | over JSON to JSON | over the estimate |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, *seconds in overheads:
        alone, whole, request = (round(part * 1e6) for part in seconds)
        yield f"| {name} | {alone} | {whole} | {request} | {request - whole} | {request - alone} |"
    yield f"\n## Batches of {COUNT}\n"
    yield "Estimates per second; a batch is to give at least 4 times those of single calls.\n"
    yield f"| connections: | 1, single | batched | ratio | {BATCH_CONNECTIONS}, single | batched | ratio |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, *rates in batches:
        cells = [
            f"{single:,.0f} | {batched:,.0f} | {batched / single:.1f}"
            for single, batched in (rates[:2], rates[2:])
        ]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""


def _machine() -> str:
    model = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}"


def main() -> None:
    if not (WRK and TASKSET and sys.platform == "linux"):
        sys.exit("make bench needs Linux with wrk and taskset: apt install wrk util-linux")
    lines = ["# Benchmarks\n", HEADING, f"Measured on: {_machine()}.\n"]
    for line in measure():
        print(line, flush=True)
        lines.append(line)
    (ROOT / "docs" / "benchmarks.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
