"""`make escalation`: walks from every scope, on both databases. Writes docs/escalation.md.

Ends with 1 where somebody reached more than they were given, or an exception explains nothing any more.
"""

import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from service.app.application import create_app
from tests import conftest
from tests.applications import OPEN, quiet_logs
from tests.escalation.findings import MEANT, explanation, findings, unexplained
from tests.escalation.starts import EVERY, Worlds
from tests.escalation.walking import TRIED, Holder
from tests.forked import DIRECTORY
from tests.webhooks.receiving import receiver

REPORT = Path(__file__).resolve().parents[2] / "docs" / "escalation.md"
IDLE = {
    "approve_policy_change": "needs an approver whom the policies name and who has not proposed the change",
    "delete_approval_policy": "needs a policy of which no change waits, and an intruder changes it first",
    "close_approval": "needs an approval whose quote was not touched since, which an intruder does not leave",
    "complete_lease": "needs what a run has measured",
    "reject_approval": "needs an approver who has not approved yet, and an intruder approves first",
    "report_benchmark_result": "needs what a run has measured",
    "retry_background_job": "needs a job that was given up",
}
"""Operations that every walk may be refused, and why that shows nothing about them."""
KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
HEAD = """# What each scope reaches

Written by `make escalation`. Somebody holds one credential of one scope, or of a few of which one opens
what another needs, in a tenant with keys of every role, approvals that wait, policies, delegations,
webhooks, links and nodes, beside another tenant. They try every operation that changes a credential, a
policy, a link, a node, a webhook or what is decided, on every row of both tenants, as an intruder would; go
on with every key, token, link and node credential that they are handed, receive what webhooks tell, and
measure by trying what each of it can do; until a round has gained nothing. Then they end all that they can
end, and begin again.

*Refused* are operations of which no attempt was allowed, *allowed* those of which one was. The verdict is
**no more** where they could use no scope, decide in no name, read and change nothing that they were not
given. A letter says what they reached because that is what the scopes are for. Whoever writes a row is
answered with that row, as everywhere in the API, and has read it.

Walked on: {where}; {cpus} cores, Python {python}; {minutes:.0f} minutes; {requests:,} requests.
"""
COLUMNS = """
| begun with | operations tried | refused | allowed | handed out | verdict |
|---|---:|---:|---:|---|---|"""


class WalkResult(NamedTuple):
    """What came of one walk."""

    tried: int
    refused: int
    allowed: int
    gained: str
    verdict: str


def main():
    """Walk, write, and say whether all is well."""
    quiet_logs()
    began = time.monotonic()
    outcome = Outcome()
    with receiver() as there:
        _on_both(there, outcome)
    REPORT.write_text(outcome.report((time.monotonic() - began) / 60))
    for fault in outcome.faults():
        print(fault)
    sys.exit(bool(outcome.faults()))


class Outcome:
    """All walks."""

    def __init__(self):
        self.rows = {}
        self.escalations, self.used, self.allowed = [], set(), set()
        self.requests = 0

    def note(self, kind, granted, holder):
        """Keep what came of a walk."""
        found = findings(holder)
        more = unexplained(granted, found)
        self.escalations += [
            f"{KINDS[kind]}, {' '.join(granted)}: {each.kind}: {each.detail}" for each in more
        ]
        explained = {explanation(granted, each) for each in found} - {None}
        self.used |= explained
        self.requests += holder.requests
        allowed = {name for name, seen in holder.answers.items() if any(status < 400 for status in seen)}
        self.allowed |= allowed
        tried = {name for name, seen in holder.answers.items() if seen}
        verdict = [*(f"**{each.kind}: {each.detail}**" for each in more), *_letters(explained)]
        gained = ", ".join(f"{number} {what}" for what, number in sorted(holder.gained.items()))
        walked = WalkResult(
            len(tried), len(tried - allowed), len(allowed), gained, "; ".join(verdict) or "no more"
        )
        self.rows.setdefault(granted, {})[kind] = walked

    def faults(self):
        """What must not be."""
        stale = [f"explains nothing: {one.kind}, {one.detail}" for one in MEANT if one not in self.used]
        idle = [
            f"nobody ever succeeded with {name}" for name in TRIED if name not in self.allowed | IDLE.keys()
        ]
        return [*self.escalations, *stale, *idle]

    def report(self, minutes):
        """The document."""
        where = " and ".join(KINDS.values())
        facts = {"where": where, "cpus": os.cpu_count(), "python": platform.python_version()}
        lines = [HEAD.format(**facts, minutes=minutes, requests=self.requests).rstrip(), COLUMNS]
        lines += [line for granted in EVERY for line in _lines(granted, self.rows[granted])]
        lines += ["", "## What the scopes are for", ""]
        lines += [_reason(letter, one) for one, letter in _LETTERS.items()]
        return "\n".join(lines) + "\n"


_LETTERS = {one: chr(ord("a") + number) for number, one in enumerate(MEANT)}


def _letters(explained):
    return [letter for one, letter in _LETTERS.items() if one in explained]


def _reason(letter, one):
    detail = f", {one.detail}" if one.detail else ""
    needs = " and ".join(f"`{scope}`" for scope in one.needs)
    return f"- **{letter}** {one.kind}{detail} ({needs}). {one.reason}"


def _lines(granted, walked):
    """One line where both databases answered the same, else one each."""
    name = " ".join(f"`{scope}`" for scope in granted)
    times = Counter(walked.values())
    if len(times) == 1:
        yield f"| {name} | {' | '.join(map(str, next(iter(times))))} |"
    else:
        yield from (
            f"| {name}, {KINDS[kind]} | {' | '.join(map(str, each))} |" for kind, each in walked.items()
        )


def _on_both(there, outcome):
    app = create_app(OPEN)
    directory = Path(tempfile.mkdtemp(prefix="ironlaw-", dir=conftest._room()))
    os.environ[DIRECTORY] = str(directory)
    uri = conftest._start_server().get_uri("postgres").replace("postgresql://", "postgresql+psycopg://")
    try:
        for kind in KINDS:
            maker = conftest.Databases(kind, directory, uri if kind == "postgresql" else "", "escalation")
            _walk_all(Worlds(app, maker, there), kind, outcome)
            maker.close()
    finally:
        conftest._stop_server(directory)
        shutil.rmtree(directory, ignore_errors=True)


def _walk_all(worlds, kind, outcome):
    for granted in EVERY:
        world = worlds.another()
        outcome.note(kind, granted, Holder(world, granted).walk())
        world.close()
        worlds.clear()
        print(f"{KINDS[kind]}, {' '.join(granted)}: {outcome.rows[granted][kind].verdict}", flush=True)
    worlds.close()


if __name__ == "__main__":
    main()
