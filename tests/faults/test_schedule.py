"""Three processes and one schedule, each of them killed in turn: each tick fires once."""

import itertools
import time
from datetime import datetime

from sqlalchemy import select

from service.kit.jobs.tables import JobRow
from tests.faults.crew import EFFECTS
from tests.faults.harness import Crew, prepare, rows
from tests.waiting import until

EVERY_SECONDS = 0.5
KILLS = 8


def test_each_tick_fires_once(databases, report):
    database = databases.empty()
    prepare(database)
    with Crew(database, "--every", str(EVERY_SECONDS)) as crew:
        for _ in range(3):
            crew.start()
        crew.ready()
        for _ in range(KILLS):
            time.sleep(1.3)
            crew.kill(crew.processes[0])
            assert crew.start().stdout.readline() == "working\n"
    ticks = rows(database, select(JobRow.effect_key, JobRow.id, JobRow.state).where(JobRow.kind == "tick"))
    with Crew(database, "--kinds", "tick") as crew:
        crew.start()
        effects = select(EFFECTS.c.key)
        until(lambda: len(rows(database, effects)) >= len(ticks))
    fired = sorted(key for (key,) in rows(database, effects))
    assert fired == sorted(f"tick {row.id}" for row in ticks)
    times = sorted(datetime.fromisoformat(row.effect_key.split()[1]) for row in ticks)
    gaps = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(times)]
    # Who held the schedule was killed: its lease ends first, and the ticks missed meanwhile are one.
    assert all(gap % EVERY_SECONDS == 0 for gap in gaps)
    report(
        "One schedule, three processes",
        database=databases.kind,
        kills=KILLS,
        ticks=len(times),
        fired_twice=len(fired) - len(set(fired)),
        ticks_merged_by_a_kill=sum(round(gap / EVERY_SECONDS) - 1 for gap in gaps),
    )
