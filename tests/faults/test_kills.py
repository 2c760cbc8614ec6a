"""kill -9 at any moment: every job is finished by another process, and no effect happens twice."""

import random
import statistics
import time

import pytest

from tests.faults.harness import LONG, Crew, Load, Outcome, prepare

KILLS = 30 if LONG else 3


@pytest.mark.parametrize("processes", [1, 3] if LONG else [3])
def test_killed_processes_lose_nothing_and_repeat_no_effect(databases, processes, report):
    chance = random.Random(processes)  # noqa: S311
    database = databases.empty()
    prepare(database)
    load = Load(database)
    with Crew(database) as crew:
        for _ in range(processes):
            crew.start()
        crew.ready()
        for _ in range(KILLS):
            for _ in range(2 * processes):
                load.ask()
            load.ask_in_vain()
            time.sleep(chance.uniform(0.02, 0.25))
            crew.kill(chance.choice(crew.processes))
            process = crew.start()
            assert process.stdout.readline() == "working\n"
            time.sleep(chance.uniform(0.0, 0.3))
        outcome = Outcome(database, load)
        recoveries = outcome.recoveries(crew.killed)
    report(
        "Killed with `kill -9`",
        database=databases.kind,
        processes=processes,
        kills=KILLS,
        jobs=outcome.jobs,
        lost=outcome.lost,
        effects=outcome.steps,
        effects_twice=outcome.twice,
        steps_repeated=outcome.repeated,
        kill_to_repetition_median_s=f"{statistics.median(recoveries or [0.0]):.2f}",
        longest_s=f"{max(recoveries, default=0.0):.2f}",
    )
