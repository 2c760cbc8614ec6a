"""Crews of processes, a PostgreSQL server that stops and starts, and what is checked after every fault."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from sqlalchemy import func, select

from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.tables import DONE, JobRow
from tests.faults.crew import EFFECTS, METADATA, ORDERS, STEPS, WALK, Walk
from tests.postgresql import get_server
from tests.waiting import until_done

LONG = bool(os.environ.get("IRONLAW_FAULTS"))
"""Whether `make faults` asks for all of it."""
TIMES = int(os.environ.get("IRONLAW_FAULTS_TIMES", "10")) if LONG else 1
"""How often each named point of a storm is hit."""
ROOT = Path(__file__).resolve().parents[2]


def prepare(database):
    """The tables that the crew writes to."""
    JobRow.__table__.create(database.engine)
    METADATA.create_all(database.engine)


def rows(database, statement):
    with database.open_reader() as session:
        return session.execute(statement).all()


class Crew:
    """Processes that work on one database."""

    def __init__(self, database, *options):
        self._command = [
            sys.executable, "-m", "tests.faults.crew", database.url.render_as_string(hide_password=False)
        ]  # fmt: skip
        self._options = options
        self.processes = []
        self.killed = []

    def start(self):
        process = subprocess.Popen(
            [*self._command, *self._options],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.processes.append(process)
        return process

    def ready(self):
        for process in self.processes:
            assert process.stdout.readline() == "working\n"

    def kill(self, process, number=signal.SIGKILL):
        process.send_signal(number)
        self.killed.append((process.pid, time.time()))
        process.wait(timeout=60)
        process.stdout.close()
        self.processes.remove(process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in tuple(self.processes):
            self.kill(process)


class Load:
    """Walks asked for, each with an order in the same transaction."""

    def __init__(self, database):
        self._database = database
        self.asked = []

    def ask(self, steps=3):
        name = f"walk-{len(self.asked):05}"
        with self._database.open_writer() as session:
            session.execute(ORDERS.insert().values(key=name))
            enqueue_job(session, WALK, Walk(name=name, steps=steps), tenant_id="t", effect_key=name)
        self.asked.append((name, steps))

    def ask_in_vain(self):
        with contextlib.suppress(RuntimeError), self._database.open_writer() as session:
            enqueue_job(session, WALK, Walk(name="in vain", steps=1), tenant_id="t", effect_key="in vain")
            raise RuntimeError

    @property
    def expected(self):
        """The key of every effect that there should be."""
        steps = [f"{name}/{step}" for name, count in self.asked for step in range(count)]
        return sorted(steps + [f"{name}/echo" for name, _ in self.asked])


class Outcome:
    """What became of a load once everything had ended."""

    def __init__(self, database, load):
        expected = len(load.asked) * 2
        done = select(func.count()).where(JobRow.state == DONE)
        until_done(lambda: expected - rows(database, done)[0][0])
        effects = [key for (key,) in rows(database, select(EFFECTS.c.key))]
        self.log = rows(database, select(STEPS).order_by(STEPS.c.at))
        starts = Counter(entry.key for entry in self.log)
        self.jobs = len(rows(database, select(JobRow.id)))
        self.steps = len(effects)
        self.lost = len(set(load.expected) - set(effects))
        self.twice = len(effects) - len(set(effects))
        self.repeated = starts.total() - len(starts)
        assert self.jobs == expected
        assert sorted(effects) == load.expected

    def recoveries(self, killed):
        """Seconds from each kill to the start of the first step that repeats one of the killed process."""
        found = []
        for process, at in killed:
            begun = {entry.key for entry in self.log if entry.process == process}
            again = [e.at - at for e in self.log if e.at > at and e.key in begun and e.process != process]
            found += again[:1]
        return sorted(found)


class Server:
    """A PostgreSQL server of its own, reached over TCP or a Unix socket."""

    def __init__(self, directory, *, tcp):
        self._installed = get_server(directory, cleanup_mode=None)
        self._directory = directory
        self.stop()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._address = f"-h '{'127.0.0.1' if tcp else ''}' -p {port} -k {directory}"
        host = "127.0.0.1" if tcp else directory
        self.url = f"postgresql+psycopg://postgres@/postgres?host={host}&port={port}"

    def _control(self, *arguments):
        installed = self._installed
        subprocess.run(
            [installed.bin_path / "pg_ctl", "-D", str(self._directory), "-w", *arguments],
            check=True,
            user=installed.system_user,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )

    def start(self):
        self._control("-l", str(self._directory / "log"), "-o", self._address, "start")

    def stop(self):
        self._control("-m", "fast", "stop")
