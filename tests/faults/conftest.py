"""Fault tests: some seconds of them in every run; `make faults` runs all and writes docs/faults.md."""

import contextlib
import os
import platform
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from tests.faults.field import Field
from tests.faults.harness import LONG
from tests.stretches import keep_stretch, list_stretches

STRETCHES = Path(__file__).with_name("stretches.json")
"""What each stretch of kills has counted, so that they add up."""
REPORT = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
HEAD = """# Faults

What was done to the service and what became of its work. Written by `make faults`.

A process has two threads, and a lease of the jobs below lasts one second: so long the work of a process
that is killed waits. A repeated step had begun when its process or the database went; its effect had not
been committed.

Kills of served processes come in stretches, whose counts add up: `make kills DATABASE=sqlite PROCESSES=1
KILLS=200` adds one. Checks are the effects that are looked for in the end: versions of rows, keys, events of
the audit and kept answers. Callers send an Idempotency-Key with every write and send it to any of them again
until it is answered. A write is lost if it was acknowledged and its row, its event or its answer is not
stored; it happened twice if any of these is stored once more. "Stored before the retry" are writes whose
process was killed between commit and answer, so that the retry got the answer that was kept.

Calls of the operating system: a library before the C library lets the n-th call of a write on the files of
an embedded database fail, for every n in turn, once or from there on, with an error, with half a write, or
with a kill. After each the process goes on or is started again, its row is there whole or not at all, and
the write is sent again until it is acknowledged. "With a checkpoint" is a commit that brings the log into the
database.

Histories: people vote on an approval, approve and cancel against a budget, price a quote again, and nodes ask
for one run, all at once and of any process, while processes are killed and paused (SIGSTOP) and PostgreSQL is
cut off, with its connections or without. Every answer, and that there was none, is written down with its
time, and a checker (`tests/faults/histories.py`) looks for calls one at a time that explain all of it.

Two versions: processes of an older version serve PostgreSQL; this version migrates it while callers write and
read, and takes the place of one process after the other.

Nodes: every named point is reached in a real worker or service, whose functions are wrapped where it is
started, and the process is killed there. A worker's host loses its power with it: what had not been brought
to the disk by fsync, contents and names, is gone, torn or there, by the seed. A lease lasts two seconds. A
result is lost if its worker had brought it to its disk, or had a receipt for it, and it is not stored byte
for byte; it is late if its lease had ended when it came, and counts for nothing then. `IRONLAW_FAULTS_SEED`
chooses another storm.

Sets are drawn of what nodes have measured while the service is killed before and after it commits one, a
withdrawal or an import; the last two are sent again with their Idempotency-Key. In the end what counts of a
node is what its accepted results make without the withdrawn ones, no set was drawn twice, every import is
there once, and each change has moved the catalog's revision once.

Two processes search for a plan. One of them is killed at each named point and the other with it wherever it
is then; after that one at a time is killed at random moments. In the end the plan has the answer that one
process gives which searches all by itself, and every piece of the search counts once.

Ten approvers agree at once to a change of a policy that needs three of them, and ten times somebody uses the
same link. One process is killed at each named point, and then all try again with their Idempotency-Keys. The
change takes effect once, the link decides once, and the audit holds every row.

Messages of webhooks go to a receiver on loopback that takes them all. The process that publishes and
delivers is killed at each named point; a lease lasts one second. A message that was sent by a process that
did not live to record it is sent again, with the same id and to the byte the same body.

The clock of a served process is set an hour and 400 days ahead and back, and right again, while a node holds
a lease, people are signed in, a link waits and schedules run. What must hold then is in the page of
failures (`docs/operations/failures.md`).
"""

_LONG_ALONE = [
    "test_calibrating.py",
    "test_clocks.py",
    "test_disk_errors.py",
    "test_idle.py",
    "test_node_cases.py",
    "test_order.py",
    "test_rolling.py",
    "test_schedule.py",
    "test_upgrade.py",
]
collect_ignore = [] if LONG else _LONG_ALONE

_rows = defaultdict(list)


@pytest.fixture
def report():
    """Adds a row to a table of the report."""

    def add(title, **measured):
        _rows[title].append(measured)
        print(title, measured)

    return add


class Stretches:
    """Stretches of kills of served processes, of this run and of those before."""

    title = "Served processes killed under writes, all stretches together"

    def __init__(self):
        self.done = list_stretches(STRETCHES)

    @property
    def count(self):
        return len(self.done)

    def __call__(self, **counted):
        print(self.title, counted)
        if LONG:
            self.done = keep_stretch(STRETCHES, counted)
            _rows[self.title] = [self._add_up(*key) for key in sorted({_key(one) for one in self.done})]

    def _add_up(self, database, processes):
        own = [one for one in self.done if _key(one) == (database, processes)]
        waits = [seconds for one in own for seconds in one["seconds_to_answer"]]
        summed = [
            name for name in own[0] if name not in ("database", "processes", "seconds_to_answer", "minutes")
        ]
        return {
            "database": database,
            "processes": processes,
            "stretches": len(own),
            **{name: sum(one[name] for one in own) for name in summed},
            "start_to_first_answer_median_s": f"{statistics.median(waits):.2f}",
            "longest_s": f"{max(waits):.2f}",
            "minutes": f"{sum(one['minutes'] for one in own):.1f}",
        }


def _key(one):
    return one["database"], one["processes"]


@pytest.fixture
def stretch():
    """Adds a stretch of kills to those before."""
    return Stretches()


@pytest.fixture
def one_host(databases_of, tmp_path):
    """Starts a service on a database of a kind, and one host that is a node of it."""
    with contextlib.ExitStack() as ending:

        def start(kind, *, spoil=lambda _: None, **mutations):
            maker = databases_of(kind)
            ending.callback(maker.dispose)
            database = maker.loaded()
            spoil(database)
            field = ending.enter_context(Field(database, tmp_path, **mutations))
            field.hosts[0].until_enrolled()
            return field

        yield start


def pytest_sessionfinish(exitstatus):
    """Write the tables of this run; those that it left out stay as they were measured."""
    if not (LONG and exitstatus == 0 and _rows):
        return
    conditions = f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} cores."
    _, *old = REPORT.read_text().split("\n## ")
    parts = dict(part.split("\n", 1) for part in old)
    parts |= {title: f"\n{_table(rows)}\n" for title, rows in _rows.items()}
    sections = [f"## {title}\n{body.rstrip()}\n" for title, body in parts.items()]
    REPORT.write_text("\n".join([HEAD, f"{conditions}\n", *sections]))


def _table(rows):
    names = list(rows[0])
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|---" * len(names) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows])
