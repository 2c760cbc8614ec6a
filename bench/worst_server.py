"""A served process whose requests are measured, with the names of its rows."""

import base64
import contextlib
import hashlib
import http.client
import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self

from bench.servers import build_environment, start_server
from service.app.examples import EXAMPLE_IDS, EXAMPLES

SETTINGS = {
    "IRONLAW_REQUESTS_PER_MINUTE": "1000000000",
    "IRONLAW_NODE_RESULTS_PER_DAY": "1000000000",
    "IRONLAW_NODE_INVENTORIES_PER_DAY": "1000000000",
    "IRONLAW_BACKGROUND_THREADS": "0",
}
PATIENCE = 60.0
OK, CREATED, UNANSWERED = 200, 201, 0
_LONG_WORK = re.compile(rb"^ironlaw_long_work_(running|waiting)\{[^}]*\} [1-9]", re.MULTILINE)
_OWN_ID = re.compile(rb'"id": ?"[a-z0-9._-]+"')
_OF_NODES = ("/v1/nodes/{id}/inventory", "/v1/nodes/{id}:heartbeat", "/v1/nodes/{id}:rotate", "/v1/leases")
_numbers = count()


class ServerOperation(NamedTuple):
    """Operations that change or compute something, as in the document."""

    name: str
    method: str
    path: str
    schema: dict[str, Any] | None

    @property
    def noun(self) -> str:
        """Noun of an address of the API; empty for a page."""
        _, root, *rest = self.path.split("/")
        return rest[0].partition(":")[0] if root == "v1" else ""


def operations(document: dict[str, Any]) -> list[ServerOperation]:
    """Operations with a body, required or optional."""
    return [
        ServerOperation(said["operationId"], method.upper(), path, _schema(said))
        for path, methods in document["paths"].items()
        for method, said in methods.items()
        if method in ("post", "put", "patch")
    ]


def _schema(said: dict[str, Any]) -> dict[str, Any] | None:
    content = said.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("schema")  # type: ignore[no-any-return]


class ServerAnswer(NamedTuple):
    """Answer to a request, and its time."""

    status: int
    seconds: float
    content: bytes


class BenchServer:
    """The process, its address, a node's credential, and rows in its database."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, rows: dict[str, str]) -> None:
        self.process, self._port, self.rows = process, port, rows
        self._clock = (~process.pid << 3) | 2  # of another process: its processor time, in nanoseconds

    def cpu_seconds(self) -> float:
        """Returns the processor time of all its threads."""
        return time.clock_gettime(self._clock)

    def ask(self, method: str, path: str, raw: bytes | None, headers: dict[str, str]) -> ServerAnswer:
        """Sends one request on a separate connection."""
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            connection.request(method, path, raw, headers)
            answered = connection.getresponse()
            status, content = answered.status, answered.read()
        except (OSError, http.client.HTTPException):
            status, content = UNANSWERED, b""
        finally:
            connection.close()
        return ServerAnswer(status, time.monotonic() - began, content)

    def call(self, operation: ServerOperation, raw: bytes | None, *, renamed: bool = True) -> ServerAnswer:
        """Sends one request of an operation; a created row gets a unique name."""
        noun = operation.noun
        path = operation.path.replace("{id}", self.rows.get(noun, EXAMPLE_IDS.get(noun, "none")))
        headers = {"If-Match": "*"} if operation.method == "PATCH" else {}
        if raw is not None:
            headers["Content-Type"] = "application/json"
            if renamed and _makes_a_row(operation):
                raw = _OWN_ID.sub(b'"id": "worst-%d"' % next(_numbers), raw, count=1)
        if operation.name == "report_benchmark_result":
            digest = base64.b64encode(hashlib.sha256(raw or b"").digest()).decode()
            headers["Content-Digest"] = f"sha-256=:{digest}:"
        if operation.path.startswith(_OF_NODES) or operation.name == "report_benchmark_result":
            headers["Authorization"] = f"Bearer {self.rows.get('credential', '')}"
        return self.ask(operation.method, path, raw, headers)

    def memory_bytes(self, name: str) -> int:
        """Returns a figure of the kernel: VmRSS is the current memory, VmHWM the largest."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition(f"{name}:")[2].split()[0]) * 1024

    def forget_peak(self) -> None:
        """Resets the largest memory."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def works(self) -> bool:
        """Returns true if a thread of long work runs or waits."""
        said = self.ask("GET", "/metrics", None, {}).content
        return bool(_LONG_WORK.search(said))


@contextlib.contextmanager
def served(data: Path, rows: dict[str, str]) -> Iterator[BenchServer]:
    """The service on a copy of a data directory, ready."""
    own = data.with_name("serving")
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(data, own)
    environment = build_environment({**SETTINGS, "IRONLAW_DATA_DIR": str(own)})
    with start_server(environment, own / "log") as (process, port):
        server = BenchServer(process, port, rows)
        while server.ask("GET", "/readyz", None, {}).status != OK:
            time.sleep(0.01)
        yield server


def _makes_a_row(operation: ServerOperation) -> bool:
    """Returns true if the body of an operation names its row."""
    makes = operation.name.startswith(("create_", "import_", "copy_"))
    return makes and "id" in EXAMPLES[operation.name]


def prepare(server: BenchServer, listed: list[ServerOperation]) -> None:
    """Makes the rows of the examples, and records their names and a node's credential."""
    named = {operation.name: operation for operation in listed}
    server.rows["policy-changes"] = server.rows["background-jobs"] = "none"
    for _ in range(2):  # some refer to others
        for operation in listed:
            noun = operation.noun
            if operation.name.startswith(("create_", "import_")) and noun not in server.rows:
                body = json.dumps(EXAMPLES[operation.name]).encode()
                if (made := server.call(operation, body, renamed=False)).status == CREATED:
                    server.rows[noun] = json.loads(made.content).get("id", "")
    _submit(server, named)
    _enrol(server, named)


def _told(server: BenchServer, operation: ServerOperation, **members: object) -> dict[str, Any]:
    answer = server.call(operation, json.dumps({**EXAMPLES[operation.name], **members}).encode())
    told: dict[str, Any] = json.loads(answer.content)
    if answer.status >= 300:  # noqa: PLR2004
        print(f"{operation.name}: {told}", file=sys.stderr)
    return told


def _submit(server: BenchServer, named: dict[str, ServerOperation]) -> None:
    """Makes a quote with a pending approval."""
    quote = json.loads(server.ask("GET", f"/v1/quotes/{server.rows['quotes']}", None, {}).content)
    _told(server, named["submit_quote"], content_digest=quote["content_digest"])
    waiting = json.loads(server.ask("GET", "/v1/approvals", None, {}).content)["items"]
    server.rows["approvals"] = waiting[0]["id"] if waiting else "none"


def _enrol(server: BenchServer, named: dict[str, ServerOperation]) -> None:
    """Makes a node that sends its inventory and claims the run."""
    token = _told(server, named["create_enrolment_token"])["token"]
    enrolled = _told(server, named["enrol_node"], token=token)
    server.rows["credential"], server.rows["nodes"] = enrolled["credential"], enrolled["node_id"]
    _told(server, named["put_node_inventory"])
    _told(server, named["claim_lease"], wait_seconds=0)


class LatencyWatch:
    """Sends further requests repeatedly, and records the longest wait."""

    def __init__(self, ask: Callable[[], ServerAnswer], every_seconds: float) -> None:
        self.longest, self.refused = 0.0, 0
        self._ask, self._every = ask, every_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            answer = self._ask()
            self.longest = max(self.longest, answer.seconds)
            self.refused += answer.status not in (OK, 204)
