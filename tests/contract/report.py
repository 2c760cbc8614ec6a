"""A plugin of pytest for `make hostile`: how many requests to send, and a page of what came back so far."""

import hashlib
import os
import platform
import time
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from service import __version__
from tests.stretches import keep_stretch, list_stretches

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOCUMENT, PAGE = DOCS / "openapi.json", DOCS / "hostile.md"
STRETCHES = Path(__file__).with_name("stretches.json")
KINDS = ("derived", "corpus", "pairs")
CLASSES = ("2xx", "304", "4xx", "503", "5xx")
HEAD = """# Hostile requests

Written by `make hostile`, whose stretches add up. Three kinds of requests are sent to every operation:

- **derived** from the document by Schemathesis, right ones and wrong ones, with every check of
  `tests/contract/test_schemathesis.py`. 503 is the answer to a catalog revision that has not come yet.
- **corpus**: the bytes of `tests/contract/corpus.py`, each of which must be refused with a problem that names
  the field and echoes nothing.
- **pairs**: every constraint that the document puts on a request (`tests/contract/constraints.py`) broken
  alone, and every two of different members together, in body, query, path and headers, by callers of every
  role and of two tenants in turn (`tests/contract/pairs.py`). The order is fixed: `make hostile PAIRS=200000`
  sends the next 200,000 of it, and begins again when the document has changed. A request is refused with a
  problem; a 422 names one of the members that are broken. No answer echoes what was sent or shows a row of
  the other tenant, and no stretch has written a row.

A stretch is kept when all of its answers were right; what another one finds is mended first.

"""
TOTAL = "| | requests | server errors | answers that were wrong |\n|---|---:|---:|---:|"
RUNS = """
## Stretches

A document is named by the beginning of the SHA-256 of its `docs/openapi.json`.

| on | version | document | derived | corpus | pairs | first of the order | minutes | measured on |
|---|---|---|---:|---:|---:|---:|---:|---|"""
CALLERS = """
## Constraints broken alone and in pairs, by caller

The tenants are `default` and `elsewhere`. 401 and 403 go before what is broken.

| caller | database | {statuses} |
|---|---|{lines}|"""
OPERATIONS = """
## {title}, by operation

| operation | database | 2xx | 304 | other 4xx | 503 | other 5xx |
|---|---|---:|---:|---:|---:|---:|"""


def pytest_addoption(parser):
    parser.addoption("--examples", type=int, default=0, help="requests to derive over all operations")
    parser.addoption("--pairs", type=int, default=0, help="requests to send that break a constraint or two")


def identify_document():
    """What names the present document."""
    return hashlib.sha256(DOCUMENT.read_bytes()).hexdigest()[:12]


def find_first():
    """Where in their order the next pairs are."""
    document = identify_document()
    ends = [
        one["first"] + count_requests([one], "pairs")
        for one in list_stretches(STRETCHES)
        if one["document"] == document and "pairs" in one["answers"]
    ]
    return max(ends, default=0)


def add_up(stretches, kind):
    """Answers of all stretches, by database and operation or caller, each by status."""
    summed = {}
    for one in stretches:
        for database, rows in one["answers"].get(kind, {}).items():
            for name, answers in rows.items():
                summed.setdefault((name, database), Counter()).update(answers)
    return summed


def count_requests(stretches, kind):
    """How many requests of a kind were sent."""
    return sum(answers.total() for answers in add_up(stretches, kind).values())


def render(stretches):
    """The page."""
    lines = [HEAD + TOTAL]
    errors = 0
    for kind in KINDS:
        answers = sum(add_up(stretches, kind).values(), Counter())
        wrong = sum(count for status, count in answers.items() if status[0] == "5" and status != "503")
        errors += wrong
        lines.append(f"| {kind} | {answers.total():,} | {wrong} | 0 |")
    requests = sum(count_requests(stretches, kind) for kind in KINDS)
    lines += [f"| all | **{requests:,}** | **{errors}** | **0** |", RUNS]
    for one in stretches:
        counts = " | ".join(f"{count_requests([one], kind):,}" for kind in KINDS)
        first = f"{one['first']:,}" if "first" in one else ""
        lines.append(
            f"| {one['on']} | {one['version']} | `{one['document']}` | {counts} | {first} | {one['minutes']} "
            f"| {one['machine']} |"
        )
    lines += _table_callers(add_up(stretches, "pairs"))
    lines += _table_operations("Derived from the document", add_up(stretches, "derived"))
    lines += _table_operations("Corpus", add_up(stretches, "corpus"))
    return "\n".join(lines) + "\n"


def _table_callers(summed):
    statuses = sorted(sum(summed.values(), Counter()))
    yield CALLERS.format(statuses=" | ".join(statuses), lines="|".join(["---:"] * len(statuses)))
    for (name, database), answers in sorted(summed.items()):
        yield f"| {name} | {database} | {' | '.join(f'{answers[status]:,}' for status in statuses)} |"


def _table_operations(title, summed):
    yield OPERATIONS.format(title=title)
    for (name, database), answers in sorted(summed.items()):
        yield f"| {name} | {database} | {' | '.join(f'{answers[each]:,}' for each in CLASSES)} |"


def classify(status):
    """The class of a status, as the tables of operations have it."""
    return str(status) if status in (304, 503) else f"{status // 100}xx"


class Report:
    """What every test counted."""

    def __init__(self, first):
        self.began = time.monotonic()
        self.first = first
        self.answers = {}

    def pytest_runtest_logreport(self, report):
        if report.when != "call":
            return
        database, _, operation = report.nodeid.partition("[")[2].rstrip("]").partition("-")
        for kind, counted in report.user_properties:
            for name, status, times in counted:
                rows = self.answers.setdefault(kind, {}).setdefault(database, {})
                answers = rows.setdefault(name or operation, Counter())
                answers[str(status) if kind == "pairs" else classify(status)] += times

    def pytest_sessionfinish(self, exitstatus):
        if exitstatus or not self.answers:
            return
        stretch = {
            "on": datetime.now(UTC).date().isoformat(),
            "version": __version__,
            "document": identify_document(),
            "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, "
            f"Schemathesis {version('schemathesis')}",
            "minutes": round((time.monotonic() - self.began) / 60),
            **({"first": self.first} if "pairs" in self.answers else {}),
            "answers": self.answers,
        }
        PAGE.write_text(render(keep_stretch(STRETCHES, stretch)))


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Report(find_first()))
