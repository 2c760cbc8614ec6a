"""Runs Schemathesis as it comes against a served process, and writes what it found to docs/schemathesis.md.

`make hostile` asks with checks of our own, in one process. Here a stranger's tool meets the service as a
stranger would run it: its defaults, all four phases, over HTTP.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

import httpx

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "schemathesis.md"
EXPLAINED: Final[dict[str, str]] = json.loads((ROOT / "bench" / "stock_fuzzer.json").read_text())
"""Reasons for the checks that the service does not meet."""
SERVER_ERROR: Final = "ServerError"
_SETTLE_SECONDS: Final = 60
_SAMPLE_SECONDS: Final = 1.0


class ServedProcess:
    """A served process with an empty folder, and its use of memory."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        settings = {"IRONLAW_DATA_DIR": str(folder / "data"), "IRONLAW_PORT": str(port)}
        self._log = (folder / "log").open("wb")
        command = [str(Path(sys.executable).parent / "ironlaw"), "serve"]
        self._process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **settings}, stderr=self._log)
        self.megabytes: list[float] = []
        self._watch = threading.Thread(target=self._sample, daemon=True)

    def wait(self) -> None:
        """Wait until it is ready."""
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.url}/readyz", timeout=1).is_success:
                    self._watch.start()
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        raise TimeoutError("the service did not become ready")

    @property
    def is_alive(self) -> bool:
        """Returns true if the process has not ended."""
        return self._process.poll() is None

    def stop(self) -> float:
        """Terminates it. Returns the seconds that it took."""
        began = time.monotonic()
        self._process.terminate()
        self._process.wait(timeout=_SETTLE_SECONDS)
        return time.monotonic() - began

    def _sample(self) -> None:
        while self.is_alive:
            status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
            found = re.search(r"VmRSS:\s+(\d+) kB", status)
            if found:
                self.megabytes.append(int(found[1]) / 1e3)
            time.sleep(_SAMPLE_SECONDS)


class FailureKind(NamedTuple):
    """A kind of failure that was reported: how often, of which operations."""

    type: str
    title: str
    times: int
    operations: list[str]


class FuzzerReport(NamedTuple):
    """Counts and findings of a run."""

    seconds: float
    requests: int
    phases: dict[str, str]
    found: list[FailureKind]


def run(service: ServedProcess, seconds: int, folder: Path) -> FuzzerReport:
    """Runs it for ``seconds``, and parses the report."""
    command = [
        str(Path(sys.executable).parent / "schemathesis"),
        "run",
        f"{service.url}/openapi.json",
        f"--max-time={seconds}",
        "--continue-on-failure",
        f"--report-json-path={folder / 'report.json'}",
        "--no-color",
    ]
    with (folder / "out").open("wb") as out:
        subprocess.run(command, cwd=folder, check=False, stdout=out)
    told = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return FuzzerReport(
        told["running_time"],
        told["test_cases"]["generated"],
        {name: phase["status"] for name, phase in told["phases"].items()},
        [FailureKind(one["type"], one["title"], one["count"], one["operations"]) for one in told["failures"]],
    )


def page(service: ServedProcess, report: FuzzerReport, *, was_alive: bool, ended: float) -> str:
    """Returns the page of a run."""
    quarter = max(1, len(service.megabytes) // 4)
    early, late = service.megabytes[quarter : 2 * quarter], service.megabytes[-quarter:]
    errors = sum(one.times for one in report.found if one.type == SERVER_ERROR)
    rows = [
        f"| {one.title} (`{one.type}`) | {one.times:,} | {len(one.operations)} | "
        f"{EXPLAINED.get(one.type, '**not explained**')} |"
        for one in report.found
    ]
    return f"""# A stock fuzzer

Written by `make schemathesis`: Schemathesis with its defaults (examples, coverage, fuzzing and stateful
requests) against a served process in open mode with an empty folder.

Measured on: {os.cpu_count()} cores; {report.seconds / 60:.0f} minutes, {report.requests:,} cases.
The process was {"alive" if was_alive else "**gone**"} at the end, and ended {ended:.1f} s after it was told.
Server errors: {errors:,}. Memory: {fmean(early):.0f} MB in the second quarter of the run,
{fmean(late):.0f} MB in the last, {max(service.megabytes):.0f} MB at most.
Phases: {", ".join(f"{name} ({status})" for name, status in report.phases.items())}.

| what it reports | cases | operations | why that is so |
|---|---:|---:|---|
{chr(10).join(rows)}
"""


def main() -> None:
    """Run it, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=720)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service = ServedProcess(folder)
        service.wait()
        report = run(service, given.seconds, folder)
        was_alive = service.is_alive
        ended = service.stop()
    given.out.write_text(page(service, report, was_alive=was_alive, ended=ended), encoding="utf-8")
    unexplained = sorted({one.type for one in report.found} - EXPLAINED.keys())
    if not was_alive or unexplained:
        raise SystemExit(
            f"the process {'was alive' if was_alive else 'is gone'}; not explained: {unexplained}"
        )


if __name__ == "__main__":
    main()
