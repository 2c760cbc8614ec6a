"""Searches the dearest permitted request of every operation, measures it, and writes docs/worst-requests.md.

SECONDS=4 ONLY="estimate_memory bill_tariff" KEEP=folder python -m bench.worst_requests
"""

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.worst_cases import large, pages, seeds
from bench.worst_climb import ClimbRequest, DocumentShapes, climb
from bench.worst_server import (
    UNANSWERED,
    BenchServer,
    LatencyWatch,
    ServerAnswer,
    ServerOperation,
    operations,
    prepare,
    served,
)
from service.app.examples import EXAMPLES

ROOT = Path(__file__).resolve().parent.parent
SIDE_BY_SIDE = 8
TIMES = 3
SECONDS = "4"
SMALL = json.dumps(EXAMPLES["estimate_memory"]).encode()
JSON = {"Content-Type": "application/json"}
_SIZE = 2**20
_LONG = 0.25
"""Processor seconds from which a separate process answers, and is stopped during the answer."""
_MOST_GOING_ON = 20.0
_STOP_AFTER = 0.3
_REFUSED_BY = 0.25
"""Seconds that may pass between the time limit of an answer and the refusal at the caller."""


class RequestFigures(NamedTuple):
    """Cost of a request. The bounds have the same shape."""

    answer: float
    megabytes: float
    loop: float
    eight: float
    eight_megabytes: float
    neighbour: float
    ready: float
    goes_on: float
    end: float


BOUNDS = RequestFigures(5.0 + _REFUSED_BY, 200, 0.1, 5.0 + _REFUSED_BY, 400, 0.3, 1.0, 2.0, 10)


class BenchRow(NamedTuple):
    """A line of the table."""

    operation: ServerOperation
    dearest: ClimbRequest
    statuses: str
    figures: RequestFigures

    def over(self) -> list[str]:
        return [name for name, most in BOUNDS._asdict().items() if getattr(self.figures, name) > most]


def _measured(server: BenchServer, operation: ServerOperation, request: ClimbRequest) -> ClimbRequest:
    before = server.cpu_seconds()
    answer = server.call(operation, request.raw if operation.schema else None)
    if answer.seconds > 1:
        _wait_until_idle(server)
    cpu = server.cpu_seconds() - before
    return request._replace(status=answer.status, cpu_seconds=cpu, seconds=answer.seconds)


def _wait_until_idle(server: BenchServer) -> float:
    """Returns the seconds until no thread works."""
    began = time.monotonic()
    while server.works() and time.monotonic() - began < _MOST_GOING_ON:
        time.sleep(0.02)
    return time.monotonic() - began


def _dearest(
    server: BenchServer, operation: ServerOperation, shapes: DocumentShapes, given: list[tuple[str, bytes]]
) -> ClimbRequest:
    """Returns the results of the seeds and of the steps from them."""
    ask = partial(_measured, server, operation)
    if operation.schema is None:
        return ask(ClimbRequest("no body", b""))
    ask(ClimbRequest(*given[0]))  # the first answer of a kind loads what the others share
    found = []
    for name, raw in (*given, *large(EXAMPLES[operation.name])):
        found.append(ask(ClimbRequest(name, raw)))
        if server.process.poll() is not None:
            return found[-1]
    seconds = float(os.environ.get("SECONDS") or SECONDS)
    found = climb(shapes, operation.schema, found, ask, seconds=seconds, seed=operation.name)
    if keep := os.environ.get("KEEP"):
        told = [
            f"{each.cpu_seconds:.3f} s, {each.status}: {each.name}, {each.steps} steps on" for each in found
        ]
        (Path(keep) / f"{operation.name}.txt").write_text("\n".join(told))
    return found[0]


def _alone(
    server: BenchServer, operation: ServerOperation, raw: bytes | None
) -> tuple[ServerAnswer, float, float, float]:
    """Returns the answer, megabytes, the longest wait of the loop, and the time that a thread continued."""
    held = server.memory_bytes("VmRSS")
    server.forget_peak()
    with LatencyWatch(partial(server.ask, "GET", "/livez", None, {}), 0.01) as alive:
        answer = server.call(operation, raw)
    grown = max(0, server.memory_bytes("VmHWM") - held) / _SIZE
    return answer, grown, alive.longest, _wait_until_idle(server)


def _together(
    server: BenchServer, operation: ServerOperation, raw: bytes | None
) -> tuple[list[ServerAnswer], RequestFigures]:
    """Runs eight of them concurrently."""
    held = server.memory_bytes("VmRSS")
    server.forget_peak()
    small = partial(server.ask, "POST", "/v1/estimates/memory", SMALL, JSON)
    ready = partial(server.ask, "GET", "/readyz", None, {})
    answers: list[ServerAnswer] = []
    threads = [
        threading.Thread(target=lambda: answers.append(server.call(operation, raw)))
        for _ in range(SIDE_BY_SIDE)
    ]
    with LatencyWatch(small, 0.02) as neighbour, LatencyWatch(ready, 0.05) as asked:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    grown = max(0, server.memory_bytes("VmHWM") - held) / _SIZE
    slowest = max(answer.seconds for answer in answers)
    goes_on = _wait_until_idle(server)
    return answers, RequestFigures(0, 0, 0, slowest, grown, neighbour.longest, asked.longest, goes_on, 0)


def _end_seconds(server: BenchServer, operation: ServerOperation, raw: bytes | None) -> float:
    """Returns the seconds from the stop signal to the end of the process, with eight requests pending."""
    for _ in range(SIDE_BY_SIDE):
        threading.Thread(target=server.call, args=(operation, raw), daemon=True).start()
    time.sleep(_STOP_AFTER)
    began = time.monotonic()
    server.process.terminate()
    server.process.wait(timeout=60)
    return time.monotonic() - began


def _row(server: BenchServer, operation: ServerOperation, dearest: ClimbRequest) -> BenchRow:
    """Returns the least of each figure, repeated while one is above its bound on a shared machine."""
    raw = dearest.raw if operation.schema else None
    best, statuses = RequestFigures._make([float("inf")] * (len(BOUNDS) - 1) + [0.0]), set[int]()
    for _ in range(TIMES):
        answer, grown, hold, goes_on = _alone(server, operation, raw)
        answers, together = _together(server, operation, raw)
        statuses |= {each.status for each in (answer, *answers)}
        now = together._replace(
            answer=answer.seconds, megabytes=grown, loop=hold, goes_on=max(goes_on, together.goes_on)
        )
        best = RequestFigures._make(map(min, best, now))
        if all(figure <= most for figure, most in zip(best, BOUNDS, strict=True)):
            break
    end = _end_seconds(server, operation, raw) if dearest.cpu_seconds > _LONG else 0.0
    best = best._replace(end=end)
    shown = ", ".join(str(status) if status != UNANSWERED else "none" for status in sorted(statuses))
    return BenchRow(operation, dearest, shown, best)


class DatabaseBench:
    """Processes on copies of one database. One is kept until it was stopped, or has served one noun."""

    def __init__(self, directory: Path, document: dict[str, Any]) -> None:
        self.listed = operations(document)
        self._shapes, self._given = DocumentShapes(document), seeds()
        self._data, self._ids = directory / "data", dict[str, str]()
        self._open = contextlib.ExitStack()
        self._server: BenchServer | None = None
        self._data.mkdir()
        for operation in self.listed:
            for _, raw in self._given.get(operation.name, ()) if operation.schema else ():
                self._shapes.learn(operation.schema or {}, json.loads(raw))
        with served(self._data, self._ids) as server:
            prepare(server, self.listed)
            server.process.terminate()
            server.process.wait(timeout=60)
        self._data = (directory / "serving").rename(directory / "prepared")

    def close(self) -> None:
        self._open.close()
        self._server = None

    def _running(self) -> BenchServer:
        if self._server is None or self._server.process.poll() is not None:
            self.close()
            self._server = self._open.enter_context(served(self._data, self._ids))
        return self._server

    def row(self, operation: ServerOperation) -> BenchRow:
        """Searches, and measures in a process that has answered this kind of request before."""
        dearest = _dearest(self._running(), operation, self._shapes, self._given.get(operation.name, []))
        if keep := os.environ.get("KEEP"):
            (Path(keep) / f"{operation.name}.json").write_bytes(dearest.raw)
        if dearest.cpu_seconds > _LONG:
            self.close()
        server = self._running()
        if operation.schema:
            server.call(operation, json.dumps(EXAMPLES[operation.name]).encode())
        server.ask("POST", "/v1/estimates/memory", SMALL, JSON)
        row = _row(server, operation, dearest)
        if operation.schema is None:
            self.close()  # it may have ended what others ask about
        return row

    def page_row(self, page: str, addresses: list[tuple[str, str]]) -> BenchRow:
        """Measures the dearest of the addresses of a page, without a search beside them."""
        asked = {name: ServerOperation(page, "GET", address, None) for name, address in addresses}
        server = self._running()
        server.call(asked[addresses[0][0]], None)  # the first answer loads what the others share
        found = [
            _measured(server, operation, ClimbRequest(name, operation.path.encode()))
            for name, operation in asked.items()
        ]
        dearest = max(found, key=lambda each: each.cpu_seconds)
        return _row(server, asked[dearest.name], dearest)


def rows(document: dict[str, Any]) -> Iterator[BenchRow]:
    """Runs every operation, or the named ones."""
    only = os.environ.get("ONLY", "").split()
    with tempfile.TemporaryDirectory() as directory:
        bench = DatabaseBench(Path(directory), document)
        noun = ""
        for operation in bench.listed:
            if only and operation.name not in only:
                continue
            if (now := operation.noun) != noun:
                bench.close()
                noun = now
            yield bench.row(operation)
        for page, addresses in pages().items():
            if not only or page in only:
                yield bench.page_row(page, addresses)
        bench.close()


_HEADING = """\
# The dearest requests

Written by `make worst-requests`: for every operation that takes a body, or changes something, and for the
pages that answer the question of their address, the dearest request that was found. The search begins with
requests that were dear once and with the examples of the API document, and climbs for {seconds} s an
operation within the shapes of the document: lists grow, numbers go to their bounds, members come and go, and
a step is kept where the processor time of the answer grows. Its steps are the same each time; how many it
takes depends on the machine. Of a page, the dearest of six questions is taken.

Then a process with the settings of `make run` and SQLite answers it, on {cores} cores. Other programs used
them as well: the load was {load} at the end. Where a figure is above its bound, it is the least of three. A
caller beside asks `/livez` every 10 ms, a small memory estimate every 20 ms and `/readyz` every 50 ms. All
come from one tenant, whose long questions wait for each other: of eight that take long together some are
refused when their five seconds are over (503). Where the dearest takes less than a quarter of a second of a
core, nothing is under way when the process is told to stop, and `end` is left out.

| figure | bound | what it is |
|---|---|---|
| answer | 5 s | until it is answered or refused; a quarter of a second is for the refusal itself |
| MB | 200 | most memory of the process above what it held before |
| loop | 0.1 s | longest answer of `/livez` beside it |
| eight | 5 s | slowest answer or refusal of eight side by side; MB of all eight: 400 |
| small | 0.3 s | slowest small estimate beside the eight |
| ready | 1 s | slowest `/readyz` beside the eight |
| goes on | 2 s | how long a thread still works when all have been answered or refused |
| end | 10 s | from SIGTERM, eight under way, until the process has ended |

A figure in bold is above its bound.
"""


def _cell(row: BenchRow, name: str, digits: int = 2) -> str:
    text = f"{getattr(row.figures, name):.{digits}f}"
    return f"**{text}**" if name in row.over() else text


def _line(row: BenchRow) -> str:
    steps = f", {row.dearest.steps} steps on" if row.dearest.steps else ""
    cells = (
        f"`{row.operation.name}`",
        f"{row.dearest.name.replace('|', '/')}{steps}",
        f"{len(row.dearest.raw) / 1000:,.1f}",
        row.statuses,
        _cell(row, "answer"),
        _cell(row, "megabytes", 0),
        _cell(row, "loop"),
        _cell(row, "eight"),
        _cell(row, "eight_megabytes", 0),
        _cell(row, "neighbour"),
        _cell(row, "ready"),
        _cell(row, "goes_on"),
        _cell(row, "end", 1) if row.figures.end else "",
    )
    return "| " + " | ".join(cells) + " |"


_COLUMNS: tuple[str, ...] = (
    *("operation", "dearest request found", "kB", "status", "answer s", "MB", "loop s", "eight s"),
    *("MB", "small s", "ready s", "goes on s", "end s"),
)


def _kept(lines: list[str]) -> dict[str, str]:
    """Returns the lines of the table by operation."""
    return {line.split("`")[1]: line for line in lines if line.startswith("| `")}


def _report(document: dict[str, Any], lines: dict[str, str]) -> str:
    load = " to ".join(f"{each:.1f}" for each in sorted(os.getloadavg())[::2])
    seconds, cores = (os.environ.get("SECONDS") or SECONDS), len(os.sched_getaffinity(0))
    names = (*(each.name for each in operations(document)), *pages())
    told = [lines[name] for name in names if name in lines]
    over = sum("**" in line for line in told)
    head = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    counted = f"{len(told) - over} of {len(told)} operations and pages keep every bound."
    return "\n".join(
        [_HEADING.format(seconds=seconds, cores=cores, load=load), counted, "", *head, *told, ""]
    )


def main() -> None:
    """Searches and measures. Replaces the lines of measured operations."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends the served process too
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    page = ROOT / "docs" / "worst-requests.md"
    lines = _kept(page.read_text().splitlines()) if os.environ.get("ONLY") and page.exists() else {}
    over = 0
    for row in rows(document):
        lines[row.operation.name] = _line(row)
        over += bool(row.over())
        print(_line(row), flush=True)
        page.write_text(_report(document, lines))
    raise SystemExit(over > 0)


if __name__ == "__main__":
    main()
