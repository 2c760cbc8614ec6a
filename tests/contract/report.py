"""A plugin of pytest for `make hostile`: how many requests to derive, and a report of what came back."""

import os
import platform
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

REPORT = Path(__file__).resolve().parents[2] / "docs" / "hostile.md"
HEAD = """# Hostile requests

Written by `make hostile`. Every operation of the document under requests that Schemathesis {schemathesis}
derives from it, right ones and wrong ones, with every check of `tests/contract/test_schemathesis.py`; and
under the corpus of `tests/contract/corpus.py`, each of whose requests must be refused with a problem that
names the field and echoes nothing.

A violation is a test that failed: an answer that the document does not allow, a right request refused for its
shape, a wrong one accepted, a server error, or another answer to the corpus than it must get. 503 is the
answer to a catalog revision that has not come yet.

Measured on: {cpus} cores, Python {python}; {minutes:.0f} minutes.

| | requests | violations |
|---|---:|---:|
"""
TABLE = """
## {title}

| operation | database | 2xx | 304 | 4xx | 503 | other 5xx |
|---|---|---:|---:|---:|---:|---:|"""
KINDS = (2, 3, 4)


def pytest_addoption(parser):
    parser.addoption("--examples", type=int, default=0, help="requests to derive over all operations")


def _table(title, counted):
    yield TABLE.format(title=title)
    for (name, database), statuses in sorted(counted.items()):
        classes = Counter(status // 100 for status in statuses.elements())
        cells = (*(classes[kind] for kind in KINDS), statuses[503], classes[5] - statuses[503])
        yield f"| {name} | {database} | {' | '.join(f'{cell:,}' for cell in cells)} |"


class Report:
    """What every test counted."""

    def __init__(self):
        self.began = time.monotonic()
        self.counted = {"schemathesis": {}, "corpus": {}}
        self.failed = Counter()

    def pytest_runtest_logreport(self, report):
        kind = "corpus" if "test_hostile" in report.nodeid else "schemathesis"
        self.failed[kind] += report.failed
        if report.when == "call":
            database, _, name = report.nodeid.partition("[")[2].rstrip("]").partition("-")
            for key, outcomes in report.user_properties:
                statuses = self.counted[key].setdefault((name, database), Counter())
                for outcome, times in outcomes:
                    statuses[outcome[1] if key == "schemathesis" else outcome] += times

    def pytest_sessionfinish(self):
        if not self.counted["corpus"]:
            return  # of a part of it nothing is written down
        facts = {
            "schemathesis": version("schemathesis"),
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
            "minutes": (time.monotonic() - self.began) / 60,
        }
        lines = [HEAD.format(**facts).rstrip()]
        for key, counted in self.counted.items():
            requests = sum(statuses.total() for statuses in counted.values())
            lines.append(f"| {key} | {requests:,} | {self.failed[key]} |")
        lines += [*_table("Derived from the document", self.counted["schemathesis"])]
        lines += [*_table("Corpus", self.counted["corpus"])]
        REPORT.write_text("\n".join(lines) + "\n")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Report())
