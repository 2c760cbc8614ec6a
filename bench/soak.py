"""`make soak`: hours of a mixed load of several tenants, then twice the load that saturates.

Everything on loopback. Writes a line of a record for every sample (`--record`), and docs/soak.md from it;
`python -m bench.soak --render RECORD` writes the page of a record, also of one that is still being written.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TextIO

import psycopg
from sqlalchemy import make_url

from bench.servers import IRONLAW, build_environment, start_server
from bench.soak_load import Connections, SoakLoad, SoakTenant, Tally, WebhookReceiver
from bench.soak_report import write_report
from tests.postgresql import get_server

TENANTS = ("default", "research", "products", "support")
EQUAL, ONE_ASKS_HALF = [1.0, 1.0, 1.0, 1.0], [3.0, 1.0, 1.0, 1.0]
"""Shares of the tenants in the load."""
SAMPLE_SECONDS = 10.0
STEP_SECONDS = 20.0
"""Time of each rate while the one that saturates is sought."""
MOST_OVERLOAD_SECONDS = 600.0
MOST_PER_SECOND = 5000.0
PROBES = 8
PROBE_EVERY_SECONDS = 0.5
AFTER_SECONDS = 10.0
"""Time after the overload in which a quote and readiness are timed."""
SATURATED_SHARE = 0.02
MEMORY_LIMIT_BYTES = 640_000_000
SETTINGS = {
    "IRONLAW_MODE": "tenant",
    "IRONLAW_REQUESTS_PER_MINUTE": "1000000",
    "IRONLAW_WEBHOOK_NETWORKS": "127.0.0.0/8",
    "IRONLAW_MEMORY_LIMIT_BYTES": str(MEMORY_LIMIT_BYTES),
}
_METRIC = re.compile(
    r"^(ironlaw_(?:long_work_\w+|jobs_overdue_seconds|requests_in_progress|webhook_deliveries"
    r"|database_connections_in_use|memory_\w+)(?:\{[^}]*\})?) (\S+)$",
    re.MULTILINE,
)


class SoakedServer:
    """The served process and its database."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", port: int, folder: Path, database_url: str
    ) -> None:
        self.process, self.port, self._folder, self._database_url = process, port, folder, database_url

    def sample(self) -> dict[str, float]:
        """Returns memory, descriptors and threads of the process, and the size of its database."""
        own = Path(f"/proc/{self.process.pid}")
        rollup = (own / "smaps_rollup").read_text()
        status = (own / "status").read_text()
        fields = (own / "stat").read_text().rpartition(")")[2].split()
        database_bytes, wal_bytes = self._measure_database()
        return {
            "rss_bytes": _read_kilobytes(rollup, "Rss"),
            "pss_bytes": _read_kilobytes(rollup, "Pss"),
            "anonymous_bytes": _read_kilobytes(rollup, "Pss_Anon"),
            "descriptors": len(list((own / "fd").iterdir())),
            "threads": int(status.partition("Threads:")[2].split()[0]),
            "cpu_seconds": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
            "database_bytes": database_bytes,
            "wal_bytes": wal_bytes,
        }

    def _measure_database(self) -> tuple[int, int]:
        if not self._database_url:
            files = (self._folder / "ironlaw.db", self._folder / "ironlaw.db-wal")
            main, wal = (file.stat().st_size if file.exists() else 0 for file in files)
            return main, wal
        url = make_url(self._database_url).set(drivername="postgresql")
        with psycopg.connect(url.render_as_string(hide_password=False)) as connection:
            found = connection.execute(
                "SELECT pg_database_size(current_database()), (SELECT sum(size) FROM pg_ls_waldir())"
            ).fetchone()
        if found is None:
            raise RuntimeError("the size of the database is unknown")
        return int(found[0]), int(found[1])


def _read_kilobytes(text: str, name: str) -> int:
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024


@contextlib.contextmanager
def start_database(kind: str, folder: Path) -> Iterator[str]:
    """Starts PostgreSQL and yields its address; SQLite needs neither."""
    if kind == "sqlite":
        yield ""
        return
    server = get_server(folder / "postgresql", cleanup_mode="stop")
    try:
        url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        yield url.render_as_string(hide_password=False)
    finally:
        server.stop()


def create_keys(environment: dict[str, str]) -> dict[str, list[str]]:
    """Creates the tenants, and two keys of everything for each."""

    def run(*command: str) -> str:
        done = subprocess.run(
            [IRONLAW, *command], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    run("migrate")
    for name in TENANTS[1:]:
        run("tenants", "create", name, "--name", name.title())
    return {name: [run("keys", "create", "--admin", "--tenant", name) for _ in range(2)] for name in TENANTS}


class SoakRecord:
    """Lines of JSON: what was measured, as it was measured."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._began = file, time.monotonic()

    def write(self, kind: str, **told: Any) -> None:  # noqa: ANN401
        line = {"line": kind, "at_seconds": round(time.monotonic() - self._began, 2), **told}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


class Soak:
    """One run: tenants, load, samples and record."""

    def __init__(
        self, server: SoakedServer, keys: dict[str, list[str]], record: SoakRecord, connections: Connections
    ) -> None:
        self._server, self._record = server, record
        self._tally, self._unrecorded = Tally(), Tally()
        self._tenants = [
            SoakTenant(name, own, connections, self._tally, seed)
            for seed, (name, own) in enumerate(keys.items())
        ]
        self._prober = SoakTenant("probe", keys[TENANTS[1]], connections, self._unrecorded, 0)
        self._reader = SoakTenant("probe", keys[TENANTS[0]], connections, self._unrecorded, 0)

    async def fill(self, receiver_port: int) -> None:
        await asyncio.gather(*(tenant.fill(receiver_port) for tenant in self._tenants))
        self._tally.take()

    async def hold(self, phase: str, per_second: float, seconds: float, shares: list[float]) -> None:
        """Keeps up a rate, and records a sample every few seconds."""
        load = SoakLoad(self._tenants, shares)
        async with self._sample_beside(phase, per_second):
            await load.run(per_second, seconds)
        stopped = time.perf_counter()
        if phase == "overload":
            await self._time_recovery(stopped)
        await load.finish()
        self._record.write("end", phase=phase, unsent=load.unsent, **self._tally.take())

    @contextlib.asynccontextmanager
    async def _sample_beside(self, phase: str, per_second: float) -> AsyncIterator[None]:
        async def sample_again() -> None:
            while True:
                await asyncio.sleep(SAMPLE_SECONDS)
                await self._sample(phase, per_second)

        async with asyncio.TaskGroup() as group:  # a sample that fails ends the run
            sampling = group.create_task(sample_again())
            try:
                yield
            finally:
                sampling.cancel()

    async def _sample(self, phase: str, per_second: float) -> None:
        if self._server.process.poll() is not None:
            raise RuntimeError(f"the service ended with {self._server.process.returncode}")
        measured = await asyncio.to_thread(self._server.sample)
        told = await self._reader.ask("metrics", "GET", "/metrics")
        metrics = {name: float(value) for name, value in _METRIC.findall(told.body.decode())}
        loads = os.getloadavg()[0]
        taken = self._tally.take()
        self._record.write(
            "sample", phase=phase, per_second=per_second, load=loads, metrics=metrics, **measured, **taken
        )

    async def find_saturation(self, per_second: float, limit: float) -> float:
        """Doubles the rate until a part of the answers is shed or late, and returns that rate."""
        while per_second < limit:
            per_second *= 2
            load = SoakLoad(self._tenants, EQUAL)
            await load.run(per_second, STEP_SECONDS)
            await load.finish()
            taken = self._tally.take()
            counted = {name: sum(each.values()) for name, each in taken["labels"].items()}
            shed = sum(
                number
                for each in taken["labels"].values()
                for label, number in each.items()
                if label[:3] in ("no ", "429", "503")
            )
            share = shed / max(1, sum(counted.values()))
            is_saturated = share > SATURATED_SHARE or load.unsent > 0
            self._record.write("step", per_second=per_second, shed_share=share, unsent=load.unsent, **taken)
            if is_saturated:
                break
        return per_second

    async def time_probes(self) -> None:
        """Times readiness and a quote while nothing else is asked."""
        probes = [await self._probe() for _ in range(PROBES)]
        self._record.write("before", probes=probes)

    async def _time_recovery(self, stopped: float) -> None:
        """Times readiness and quotes that are asked for after the moment at which the load has stopped."""

        async def probe() -> dict[str, float]:
            return {"began_seconds": round(time.perf_counter() - stopped, 2), **await self._probe()}

        probing = []
        while time.perf_counter() - stopped < AFTER_SECONDS:
            probing.append(asyncio.create_task(probe()))
            await asyncio.sleep(PROBE_EVERY_SECONDS)
        self._record.write("recovery", probes=await asyncio.gather(*probing))

    async def _probe(self) -> dict[str, float]:
        asked = (("readyz", "GET", "/readyz", None), ("quote", "POST", "/v1/quotes", _QUOTE))
        took = await asyncio.gather(*(self._time(*each) for each in asked))
        return {name: value for each in took for name, value in each.items()}

    async def _time(self, name: str, method: str, path: str, body: object) -> dict[str, float]:
        began = time.perf_counter()
        answer = await self._prober.ask(name, method, path, body)
        return {name: round(time.perf_counter() - began, 4), f"{name}_status": answer.status}


_QUOTE = {
    "operation": "cost",
    "name": "Probe",
    "request": {
        "model": {"source": "parameter_count", "parameter_count": 8_000_000_000},
        "workload": {"kind": "training", "sequence_length": 8192, "total_tokens": 10_000_000_000},
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64},
        "efficiency": {"source": "assumed", "utilization": 0.45},
        "rental": {"price_per_device_hour": {"amount": "2.49", "currency_code": "USD"}},
    },
}


async def run_phases(
    soak: Soak, record: SoakRecord, server: SoakedServer, seconds: float, per_second: float
) -> None:
    receiver = WebhookReceiver()
    await soak.fill(await receiver.start())
    record.write("filled", **server.sample())
    await soak.hold("soak", per_second, seconds, EQUAL)
    await asyncio.sleep(2 * SAMPLE_SECONDS / 10)
    await soak.time_probes()
    saturating = await soak.find_saturation(per_second, MOST_PER_SECOND)
    await asyncio.sleep(SAMPLE_SECONDS / 2)
    overload_seconds = min(seconds / 8, MOST_OVERLOAD_SECONDS)
    record.write("overload", saturating_per_second=saturating, seconds=overload_seconds)
    await soak.hold("overload", 2 * saturating, overload_seconds, ONE_ASKS_HALF)
    record.write("done", webhooks_received=receiver.received, **server.sample())


def soak_service(kind: str, seconds: float, per_second: float, file: TextIO) -> None:
    record = SoakRecord(file)
    folder = Path(tempfile.mkdtemp(prefix="ironlaw-soak-"))
    data = folder / "data"  # the service closes it to other accounts, such as that of PostgreSQL
    try:
        with start_database(kind, folder) as database_url:
            database = {"IRONLAW_DATABASE_URL": database_url} if database_url else {}
            environment = build_environment({**SETTINGS, "IRONLAW_DATA_DIR": str(data), **database})
            keys = create_keys(environment)
            with start_server(environment, folder / "log") as (process, port):
                server, connections = SoakedServer(process, port, data, database_url), Connections(port)
                conditions = f"CPython {platform.python_version()}, {os.cpu_count()} cores"
                record.write(
                    "begin",
                    database=kind,
                    seconds=seconds,
                    per_second=per_second,
                    conditions=conditions,
                    memory_limit_bytes=MEMORY_LIMIT_BYTES,
                )
                soak = Soak(server, keys, record, connections)
                asyncio.run(run_phases(soak, record, server, seconds, per_second))
            _record_log(record, folder / "log")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _record_log(record: SoakRecord, log: Path) -> None:
    """Records the lines of the log that are no requests, with how often they came."""
    said: dict[str, int] = {}
    for line in log.read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            told = json.loads(line)
            if told.get("level", "").lower() in ("warning", "error", "critical"):
                text = str(told.get("event", ""))[:200]
                said[text] = said.get(text, 0) + 1
    record.write("log", warnings=said)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__.splitlines()[0])
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--rate", type=float, default=20.0, help="Scenes a second of all tenants together.")
    parser.add_argument("--record", type=Path, help="File for the lines that are measured.")
    parser.add_argument("--render", type=Path, nargs="+", help="Only write the page of these records.")
    asked = parser.parse_args()
    if asked.render:
        write_report(asked.render)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the service too
    record = asked.record or Path(tempfile.gettempdir()) / f"ironlaw-soak-{asked.database}.jsonl"
    with record.open("w") as file:
        soak_service(asked.database, asked.seconds, asked.rate, file)
    write_report([record])


if __name__ == "__main__":
    main()
