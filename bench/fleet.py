"""`make fleet`: 200 simulated nodes against one process, for ten minutes on each database.

Writes docs/fleet.md; ends with 1 if anything was answered, lost or stored that should not have been.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
from sqlalchemy import func, select, text

from bench.fleet_nodes import MEANT, SimulatedNode, SimulatedOperator, SimulatedWorld
from bench.fleet_service import NO_REQUEST
from service.app.settings import Settings
from service.app.storage import migrate_database
from service.audit.service import WriteContext, Writes
from service.auth.schemas import ApiKeyRequest
from service.auth.service import ApiKeys, initialize_installation
from service.benchmarks.tables import BenchmarkResultRow, BenchmarkRunRow
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.kit.database.engine import Database
from service.kit.security.principals import ADMIN_SCOPES, LOCAL
from service.nodes.tables import LeaseGrantRow, LeaseRow, NodeRow
from tests.postgresql import get_server

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "docs" / "fleet.md"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
READY_SECONDS = 60.0
SETTINGS = {"IRONLAW_MODE": "tenant", "IRONLAW_PORT": "0", "PYTHONUNBUFFERED": "1"}


class FleetScenario(NamedTuple):
    """Size of a fleet, its duration in node time, and the acceleration of that time."""

    nodes: int = 200
    seconds: float = 600.0
    speed: float = 1.0
    run_every_seconds: float = 1.25


@dataclass
class FleetOutcome:
    """Observations of one fleet on one database."""

    kind: str
    plan: FleetScenario
    world: SimulatedWorld
    wall_seconds: float = 0.0
    enrolling_seconds: float = 0.0
    cpu_seconds: float = 0.0
    resident_bytes: list[int] = field(default_factory=list)
    load_averages: list[float] = field(default_factory=list)
    waiting: int = 0
    """Waiting claims at the time when connections were counted."""
    held: int = 0
    """Connections in use at that time."""
    connections: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    probes: list[float] = field(default_factory=list)
    stored: dict[str, Any] = field(default_factory=dict)
    log_problems: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """Deviations from the expected results."""


class ServedProcess:
    """The served process, observed from outside."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log
        self.address = self._announced()

    def _announced(self) -> str:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            if said := re.search(r"^serving on ([^,]+),", self._log.read_text(), re.MULTILINE):
                return said[1]
            time.sleep(0.02)
        raise RuntimeError(f"the service did not start: {self._log.read_text()[-2000:]}")

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def open_databases(self, path: Path) -> int:
        """Returns the connections to an embedded database, each of which holds the file open."""
        count = 0
        for name in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                count += name.readlink() == path
        return count

    def problems(self) -> list[str]:
        """Returns the log lines that are not requests."""
        lines = self._log.read_text().splitlines()
        return [line[:2000] for line in lines if '"level":"info"' not in line and not _is_start(line)]


def _is_start(line: str) -> bool:
    return line.startswith(("serving on ", "the schema is current", "created the schema"))


def new_key(data_dir: Path, url: str) -> str:
    """Returns an administrator's key to a database, after a migration of its schema."""
    keyring = Settings(data_dir=data_dir, database_url=url).keyring
    database = Database(url)
    try:
        migrate_database(database)
        writes, keys = Writes(database, keyring), ApiKeys.from_keyring(keyring)
        initialize_installation(database, keyring, writes)
        asked = ApiKeyRequest(name="the operator of the fleet", scopes=sorted(ADMIN_SCOPES))
        call = WriteContext(LOCAL, "create_api_key", "", "fleet")
        answer = writes.run(call, None, lambda session: keys.create(session, LOCAL, asked))
    finally:
        database.dispose()
    return str(json.loads(bytes(answer.body))["secret"])


def start(environment: Mapping[str, str], data_dir: Path, speed: float) -> "subprocess.Popen[bytes]":
    """Starts the service, which writes its log to `err` in a folder."""
    with (data_dir / "err").open("wb") as lines:
        command = [sys.executable, "-m", "bench.fleet_service", "--speed", str(speed)]
        return subprocess.Popen(command, env=environment, stderr=lines, cwd=ROOT)


@contextlib.contextmanager
def serving(data_dir: Path, url: str, speed: float) -> Iterator[tuple[ServedProcess, str]]:
    """The service on a database, and an administrator's key."""
    key = new_key(data_dir, url)
    own = {name: value for name, value in os.environ.items() if not name.startswith("IRONLAW_")}
    environment = {**own, **SETTINGS, "IRONLAW_DATA_DIR": str(data_dir), "IRONLAW_DATABASE_URL": url}
    environment["PYTHONPATH"] = str(ROOT)
    process = start(environment, data_dir, speed)
    try:
        yield ServedProcess(process, data_dir / "err"), key
    finally:
        process.terminate()
        process.wait(timeout=30)


class ServiceMonitor:
    """Observer of the service from outside while the fleet runs."""

    def __init__(self, service: ServedProcess, database: Database, outcome: FleetOutcome) -> None:
        self._service = service
        self._database = database
        self._outcome = outcome
        self.http = httpx.AsyncClient(base_url=service.address, trust_env=False, timeout=30.0)

    async def probe(self) -> None:
        """Returns the time of the empty route, which shows delays of the event loop."""
        while True:
            began = time.monotonic()
            await self.http.get("/livez")
            self._outcome.probes.append(time.monotonic() - began)
            await asyncio.sleep(0.5)

    async def sample(self) -> None:
        while True:
            self._outcome.resident_bytes.append(self._service.resident_bytes())
            self._outcome.load_averages.append(os.getloadavg()[0])
            await asyncio.sleep(5.0)

    async def counts(self) -> dict[str, Any]:
        counts: dict[str, Any] = (await self.http.get("/counts")).json()
        return counts

    async def connections(self) -> dict[str, int]:
        """Returns open connections to the database by state."""
        if self._database.is_sqlite:
            return {"open": self._service.open_databases(Path(self._database.url.database or ""))}
        return await asyncio.to_thread(self._activity)

    def _activity(self) -> dict[str, int]:
        # The connection of this query is left out.
        states = text(
            "SELECT state, count(*) AS number FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() GROUP BY state"
        )
        with self._database.open_reader() as session:
            return {row.state: row.number for row in session.execute(states)}


async def simulate(service: ServedProcess, key: str, database: Database, outcome: FleetOutcome) -> None:
    """Runs a fleet: all nodes enrol, all wait, then work becomes available."""
    plan, world = outcome.plan, outcome.world
    operator = SimulatedOperator(world, key)
    watch = ServiceMonitor(service, database, outcome)
    nodes = [SimulatedNode(world, number) for number in range(plan.nodes)]
    began, cpu = time.monotonic(), service.cpu_seconds()
    watching = [asyncio.create_task(watch.probe()), asyncio.create_task(watch.sample())]
    tokens = [await operator.token() for _ in nodes]
    enrolling_at = time.monotonic()
    await asyncio.gather(*[node.enrol(token) for node, token in zip(nodes, tokens, strict=True)])
    outcome.enrolling_seconds = time.monotonic() - enrolling_at
    end = world.now() + plan.seconds
    living = [asyncio.create_task(node.live(end)) for node in nodes]
    await _until_all_wait(watch, outcome)
    left = end - world.now()
    busy = [
        asyncio.create_task(operator.ask_for_runs(nodes, plan.run_every_seconds)),
        asyncio.create_task(operator.look(10.0)),
        asyncio.create_task(operator.replace_credentials(nodes, over_seconds=0.6 * left)),
    ]
    for task in asyncio.as_completed([*living, _outlasting(busy, living)]):
        await task
    outcome.counts = await watch.counts()
    outcome.wall_seconds = time.monotonic() - began
    outcome.cpu_seconds = service.cpu_seconds() - cpu
    for task in (*busy, *watching):
        task.cancel()
    await asyncio.gather(*busy, *watching, return_exceptions=True)
    outcome.stored = stored(database, operator, world)
    clients = [operator.http, watch.http, *(node.http for node in nodes)]
    await asyncio.gather(*[client.aclose() for client in clients])


async def _outlasting(busy: "list[asyncio.Task[None]]", living: "list[asyncio.Task[None]]") -> None:
    """Waits until every node has ended. A failure fails the whole run."""
    while not all(task.done() for task in living):
        done, _ = await asyncio.wait([*busy, *living], timeout=0.5, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()


async def _until_all_wait(watch: ServiceMonitor, outcome: FleetOutcome) -> None:
    """Waits until every claim waits, or for half of the time. Returns connections open and in use."""
    plan = outcome.plan
    deadline = time.monotonic() + min(READY_SECONDS, plan.seconds / plan.speed / 2)
    while outcome.waiting < plan.nodes and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
        counts = await watch.counts()
        if counts["claims_waiting"] > outcome.waiting:
            outcome.waiting, outcome.held = counts["claims_waiting"], counts["held"]
            outcome.connections = await watch.connections()


def stored(database: Database, operator: SimulatedOperator, world: SimulatedWorld) -> dict[str, Any]:
    """Compares the contents of the database with the acknowledged requests."""
    found: dict[str, Any] = {}
    with database.open_reader() as session:
        place = ("run_id", "fencing_token", "benchmark", "repeat")
        columns = ("id", "content_sha256", "content", "conflicts_with", "lease", *place)
        rows = session.execute(select(*(getattr(BenchmarkResultRow, name) for name in columns))).all()
        found["results"] = len(rows)
        found["by lease"] = dict(Counter(row.lease for row in rows))
        digests = {row.id: row.content_sha256 for row in rows}
        places = Counter(tuple(getattr(row, name) for name in place) for row in rows)
        found["acknowledged"] = len(world.acknowledged)
        found["acknowledged, not stored"] = sum(
            digests.get(result_id) != digest for result_id, digest in world.acknowledged.items()
        )
        found["stored twice"] = (
            len(rows)
            - len(digests)
            + sum(count - 1 for count in places.values())
            + sum(row.conflicts_with is not None for row in rows)
        )
        found["stored, never sent"] = len(digests.keys() - world.sent.keys())
        found["stored with another digest"] = sum(
            sha256(row.content.encode()).hexdigest() != row.content_sha256 for row in rows
        )
        found["verdicts"] = dict(Counter(session.scalars(select(BenchmarkValidationRow.verdict))))
        runs = set(session.scalars(select(BenchmarkRunRow.id)))
        found["runs to measure suspects again"] = len(runs - operator.asked)
        states = {row.id: row.state for row in session.execute(select(LeaseRow.id, LeaseRow.state))}
        found["runs asked for"] = len(operator.asked)
        found["runs lost"] = len(operator.asked - (runs & states.keys()))
        found["runs by state"] = dict(Counter(states.values()))
        ends = select(LeaseGrantRow.lease_id).where(LeaseGrantRow.state_after == "completed")
        completions = Counter(session.scalars(ends))
        completed = {run_id for run_id, state in states.items() if state == "completed"}
        found["runs completed, not by exactly one grant"] = len(completed ^ completions.keys()) + sum(
            count > 1 for count in completions.values()
        )
        found["grants"] = session.scalar(select(func.count()).select_from(LeaseGrantRow))
        found["nodes by state"] = dict(Counter(session.scalars(select(NodeRow.state))))
        waits = session.execute(
            select(LeaseRow.created_at, LeaseGrantRow.granted_at).where(
                LeaseGrantRow.lease_id == LeaseRow.id,
                LeaseGrantRow.attempt == 1,
                LeaseRow.target_node_id.is_(None),
                LeaseRow.device == "cpu",
            )
        )
        found["seconds to grant"] = sorted((granted - asked).total_seconds() for asked, granted in waits)
    return found


NOTHING = (
    "acknowledged, not stored",
    "stored twice",
    "stored, never sent",
    "stored with another digest",
    "runs lost",
    "runs completed, not by exactly one grant",
)


def judge(outcome: FleetOutcome) -> None:
    """Records deviations from the expected results."""
    faults, tally = outcome.faults, outcome.world.tally
    faults += [f"{operation}: {status}, {count} times" for (operation, status), count in tally.errors.items()]
    faults += tally.wrong
    faults += [f"{name}: {outcome.stored[name]}" for name in NOTHING if outcome.stored[name]]
    if outcome.stored["nodes by state"] != {"active": outcome.plan.nodes}:
        faults.append(f"nodes: {outcome.stored['nodes by state']}")
    if set(outcome.stored["runs by state"]) - {
        "waiting",
        "running",
        "completed",
        "cancelled",
        "failed",
        "dead",
    }:
        faults.append(f"runs: {outcome.stored['runs by state']}")
    if writes_without_news(outcome) > 0.1:  # noqa: PLR2004
        faults.append(f"{writes_without_news(outcome):.3f} row writes a heartbeat")
    faults += [f"logged: {line}" for line in outcome.log_problems[:20]]


class HeartbeatCounts(NamedTuple):
    """Heartbeats, and the rows that were written for them."""

    number: int
    news: int
    """Rows written immediately: the first of a node, or of a boot of its host."""
    later: int
    """Rows written together with those of other nodes."""

    @classmethod
    def of(cls, outcome: FleetOutcome) -> "HeartbeatCounts":
        rows = outcome.counts["heard_rows"]
        number = outcome.counts["requests"]["heartbeat_node"]
        return cls(number, rows.get("heartbeat_node", 0), rows.get(NO_REQUEST, 0))


def writes_without_news(outcome: FleetOutcome) -> float:
    """Rows written per heartbeat without news."""
    beats = HeartbeatCounts.of(outcome)
    return beats.later / (beats.number - beats.news)


def run(kind: str, url: str, data_dir: Path, plan: FleetScenario) -> FleetOutcome:
    """Runs one fleet on one database, after a migration of its schema."""
    with serving(data_dir, url, plan.speed) as (service, key):
        world = SimulatedWorld(service.address, speed=plan.speed, seconds=plan.seconds)
        outcome = FleetOutcome(kind, plan, world)
        database = Database(url)
        try:
            asyncio.run(simulate(service, key, database, outcome))
        finally:
            database.dispose()
        outcome.log_problems = service.problems()
    judge(outcome)
    return outcome


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}"


def _p99(values: list[float]) -> float:
    return sorted(values)[-(-len(values) * 99 // 100) - 1]


def _operations(outcome: FleetOutcome) -> Iterator[str]:
    tally, counts = outcome.world.tally, outcome.counts
    yield "| operation | answers | sent again after a lost answer | median ms | p99 ms | longest ms |"
    yield "|---|---|---:|---:|---:|---:|"
    for operation in sorted({operation for operation, _ in tally.answers}):
        answers = {status: n for (name, status), n in tally.answers.items() if name == operation}
        said = ", ".join(f"{status}: {count:,}" for status, count in sorted(answers.items()))
        yield f"| `{operation}` | {said} | {tally.lost[operation]} {_latency(tally.seconds.get(operation))} |"
        waited = [name for name in tally.seconds if name.startswith(f"{operation}, ")]
        for name in waited:
            yield f"| {name.removeprefix(operation).lstrip(', ')} | | {_latency(tally.seconds[name])} |"
    granted = outcome.stored["seconds to grant"]
    yield f"| a run for any CPU node: asked for to granted | {len(granted):,} | {_latency(granted)} |"
    yield f"| `/livez` beside all this | 204: {len(outcome.probes):,} | {_latency(outcome.probes)} |"
    yield ""
    yield "| operation | requests | statements a request | row writes a request |"
    yield "|---|---:|---:|---:|"
    for operation, count in sorted(counts["requests"].items()):
        if operation in counts["statements"]:
            statements = counts["statements"][operation] / count
            written = counts["rows"].get(operation, 0) / count
            yield f"| `{operation}` | {count:,} | {statements:.2f} | {written:.2f} |"


def _latency(seconds: list[float] | None) -> str:
    if not seconds:
        return "| | | "
    return "| " + " | ".join(_milliseconds(one) for one in (median(seconds), _p99(seconds), max(seconds)))


def section(outcome: FleetOutcome) -> Iterator[str]:
    """The report of one fleet."""
    plan, tally, held = outcome.plan, outcome.world.tally, outcome.stored
    answered = sum(tally.answers.values())
    refused = {key: count for key, count in tally.answers.items() if key in MEANT}
    beats = HeartbeatCounts.of(outcome)
    pace = "real time" if plan.speed == 1 else f"every interval {plan.speed:g} times as short"
    yield f"## {'SQLite' if outcome.kind == 'sqlite' else 'PostgreSQL'}\n"
    yield (
        f"{plan.nodes} nodes for {plan.seconds:g} s of node time ({pace}), after all had enrolled at once in"
        f" {outcome.enrolling_seconds:.1f} s. {answered:,} requests, {answered / outcome.wall_seconds:.0f} a"
        f" second. Errors: {len(outcome.faults)}.\n"
    )
    yield from (f"- **{fault}**" for fault in outcome.faults)
    yield ""
    yield "| | |"
    yield "|---|---|"
    restarts = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.restarts.items()))
    yield f"| restarts of workers | {restarts} |"
    yield f"| credentials rotated | {tally.rotations} |"
    yield f"| answers lost, requests sent again | {tally.lost.total()} |"
    yield f"| connections of claims broken while they waited | {tally.cut} |"
    yield f"| runs asked for, lost | {held['runs asked for']}, {held['runs lost']} |"
    yield f"| runs at the end | {_listed(held['runs by state'])}; {held['grants']} grants |"
    yield f"| results acknowledged | {held['acknowledged']:,} |"
    lost, twice = held["acknowledged, not stored"], held["stored twice"]
    yield f"| of those not stored, stored twice | {lost}, {twice} |"
    yield f"| results stored | {held['results']:,}: {_listed(held['by lease'])} |"
    again = held["runs to measure suspects again"]
    yield f"| verdicts; runs that measure suspects again | {_listed(held['verdicts'])}; {again} |"
    written = (beats.news + beats.later) / beats.number
    others = writes_without_news(outcome)
    yield f"| row writes a heartbeat | {written:.3f}; for one that says nothing new {others:.3f} |"
    yield (
        f"| of {beats.number:,} heartbeats | {beats.news} rows at once for news (a first heartbeat, a boot),"
        f" {beats.later} with others later |"
    )
    yield f"| statements a heartbeat | {outcome.counts['statements']['heartbeat_node'] / beats.number:.2f} |"
    open_ones = f"{_listed(outcome.connections)}; in use {outcome.held}"
    yield f"| database connections while {outcome.waiting} claims waited | {open_ones} |"
    yield f"| most connections in use at once | {outcome.counts['most_held']} |"
    share = outcome.cpu_seconds / outcome.wall_seconds
    yield f"| processor time of the service | {outcome.cpu_seconds:.0f} s, {share:.0%} of a core |"
    memory = (
        f"{max(outcome.resident_bytes) / 1e6:.0f} MB, {outcome.resident_bytes[-1] / 1e6:.0f} MB at the end"
    )
    yield f"| most resident memory | {memory} |"
    loads = outcome.load_averages
    yield f"| load of the machine (one minute) | median {median(loads):.1f}, highest {max(loads):.1f} |\n"
    if refused:
        yield "Refusals that were meant:\n"
        for (operation, status), count in sorted(refused.items()):
            yield f"- `{operation}` {status}, {count} times: {MEANT[operation, status]}"
        yield ""
    yield from _operations(outcome)
    yield ""


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))


HEAD = """\
# A fleet

Written by `make fleet`: simulated nodes against one process of the service, each database in turn, on the
machine that simulates them. A node enrols with a single-use token, beats, claims with a long poll, renews,
reports a record for every repeat of a suite and completes, at the intervals that the service tells; it
measures nothing. A share of the answers gets lost and their requests are sent again, connections of waiting
claims break, workers are restarted, credentials replaced, and an operator asks for runs all the time and
cancels some. In the end all nodes stop as if they were killed. A run that two nodes have lost is dead, as it
should be. Latencies are those that nodes see; most of the slowest heartbeats are the first of all nodes, at
one moment.
"""


def report(outcomes: list[FleetOutcome]) -> str:
    """The whole report."""
    model = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    python = platform.python_version()
    about = f"{model}, {os.cpu_count()} cores; Python {python}; {datetime.now(UTC):%Y-%m-%d}.\n"
    return "\n".join([HEAD, about, *(line for outcome in outcomes for line in section(outcome))])


@contextlib.contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Returns the address of a PostgreSQL server that is stopped at the end."""
    # The package looks for a private runtime directory when it is imported and warns without one.
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    server = get_server(folder / "server", cleanup_mode=None)
    try:
        yield server.get_uri("postgres").replace("postgresql://", "postgresql+psycopg://")
    finally:
        server.stop()


def main() -> int:
    plan = FleetScenario()
    parser = argparse.ArgumentParser(prog="fleet", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=plan.nodes)
    parser.add_argument("--seconds", type=float, default=plan.seconds, help="of node time")
    parser.add_argument("--speed", type=float, default=plan.speed, help="of node time against the clock")
    parser.add_argument(
        "--every", type=float, default=plan.run_every_seconds, help="seconds between two runs"
    )
    parser.add_argument("--databases", nargs="*", default=["sqlite", "postgresql"])
    parser.add_argument("--out", type=Path, default=REPORT)
    given = parser.parse_args()
    plan = FleetScenario(given.nodes, given.seconds, given.speed, given.every)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="ironlaw-fleet-") as name, contextlib.ExitStack() as stack:
        for kind in given.databases:
            folder = Path(name) / kind
            folder.mkdir()
            folder.parent.chmod(0o755)
            url = f"sqlite:///{folder / 'ironlaw.db'}"
            if kind == "postgresql":
                url = stack.enter_context(postgresql(Path(name)))
            outcomes.append(run(kind, url, folder, plan))
            print("\n".join(section(outcomes[-1])), flush=True)
            given.out.write_text(report(outcomes))
    return int(any(outcome.faults for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
