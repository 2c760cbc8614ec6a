"""Processes are killed while fifty decide: one decision all the same, and whoever made it hears of it."""

import signal
import time
from collections import Counter

import pytest

from tests import forked
from tests.approvals.test_races import DECIDERS, Scene
from tests.faults import approval_worker
from tests.faults.harness import LONG, TIMES
from tests.faults.points import read_ledger

KINDS = ["approve", "reject"]
PROCESSES_AT_ONCE = 2
POINTS = approval_worker.POINTS


class Deciders:
    """Two processes, each with half of those who decide."""

    def __init__(self, scene, folder):
        self._scene = scene
        self._hits, self._answers = folder / "hits.jsonl", folder / "answers.jsonl"
        folder.mkdir()

    def _start(self, point):
        url = self._scene.database.url.render_as_string(hide_password=False)
        for half in range(PROCESSES_AT_ONCE):
            names = DECIDERS[half::PROCESSES_AT_ONCE]
            deciders = [(name, KINDS[place % 2]) for place, name in enumerate(names)]
            asked = {**{name: self._scene.approval[name] for name in ("id", "content_digest")}}
            options = (
                url,
                str(self._hits),
                {"point": point},
                str(self._answers),
                {**asked, "deciders": deciders},
            )
            yield forked.Process(approval_worker.run, *options)

    def decide(self, point=None):
        """How the processes end in which all of them decide."""
        codes = []
        for process in list(self._start(point)):
            process.join()
            codes.append(process.exitcode)
        return codes

    def answers(self):
        return [(line["name"], line["kind"], line["status"]) for line in read_ledger(self._answers)]

    def hits(self):
        return Counter(line["point"] for line in read_ledger(self._hits))


@pytest.mark.skipif(not LONG, reason="make faults kills them; here tests/approvals/test_model.py crashes")
def test_deciders_whose_processes_are_killed_make_one_decision(databases, tmp_path, report):
    began, hits = time.monotonic(), Counter()
    for turn in range(TIMES):
        for point in POINTS:
            scene = Scene(databases.loaded())
            deciders = Deciders(scene, tmp_path / f"{turn} {point}")
            assert -signal.SIGKILL in deciders.decide(point)
            assert deciders.decide() == [0] * PROCESSES_AT_ONCE
            hits += deciders.hits()
            check(scene, deciders)
            scene.database.dispose()
    assert {point: hits[point] for point in POINTS if hits[point] < TIMES} == {}
    report(
        "Processes killed while people decide",
        database=databases.kind,
        processes=PROCESSES_AT_ONCE,
        deciders=len(DECIDERS),
        **{f"kills, {point}": hits[point] for point in POINTS},
        second_decisions=0,
        unrecorded_changes=0,
        minutes=f"{(time.monotonic() - began) / 60:.1f}",
    )


def check(scene, deciders):
    """One decision, the one of whoever was told so, and a record of it that holds."""
    shown = scene.shown()
    (decision,) = shown["steps"][0]["decisions"]
    told = {(name, kind) for name, kind, status in deciders.answers() if status == 200}
    assert told == {(decision["decided_by"], decision["decision"])}
    refused = {status for _, _, status in deciders.answers()} - {200}
    assert refused == {"APPROVAL_ENDED"}
    assert shown["state"] == {"approve": "approved", "reject": "rejected"}[decision["decision"]]
    assert scene.faults() == set()
