"""An upgrade with pending work: the old process leaves the new kind alone, the new one finishes all."""

import time

from sqlalchemy import func, select

from service.kit.jobs.tables import JobRow
from tests.faults.crew import STEPS
from tests.faults.harness import Crew, Load, Outcome, prepare, rows
from tests.waiting import until


def test_an_upgrade_strands_nothing(databases, report):
    """The older version knows walks and no echoes, with which each walk ends."""
    database = databases.empty()
    prepare(database)
    load = Load(database)
    for _ in range(40):
        load.ask()
    counted = select(JobRow.kind, JobRow.state, func.count()).group_by(JobRow.kind, JobRow.state)
    with Crew(database, "--kinds", "walk") as older:
        older.start()
        older.ready()
        until(lambda: len(rows(database, select(STEPS))) > 95)
        older.kill(older.processes[0])
    before = {(kind, state): count for kind, state, count in rows(database, counted)}
    assert before["echo", "waiting"] > 0
    assert before.get(("walk", "waiting"), 0) + before.get(("walk", "running"), 0) > 0
    assert not {("echo", "running"), ("echo", "dead"), ("echo", "done")} & before.keys()
    with Crew(database) as newer:
        newer.start()
        at = time.time()
        outcome = Outcome(database, load)
    report(
        "Upgrade with pending work",
        database=databases.kind,
        pending=sum(count for (_, state), count in before.items() if state != "done"),
        of_a_kind_the_old_version_does_not_know=before["echo", "waiting"],
        lost=outcome.lost,
        effects_twice=outcome.twice,
        all_done_after_s=f"{outcome.log[-1].at - at:.1f}",
    )
