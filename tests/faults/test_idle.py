"""A thousand pending deadlines cost next to nothing."""

import time
from datetime import timedelta
from pathlib import Path

from service.kit.clock import now
from service.kit.jobs.repository import enqueue_job
from tests.faults.crew import WALK, Walk
from tests.faults.harness import Crew, prepare

DEADLINES = 1000
SECONDS = 20.0


def processor_seconds(process):
    """Time on a core of every thread of a process."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def test_a_thousand_deadlines_idle(databases, report):
    database = databases.empty()
    prepare(database)
    with database.open_writer() as session:
        for number in range(DEADLINES):
            due_at = now() + timedelta(days=1, seconds=number)
            asked = Walk(name=str(number), steps=1)
            enqueue_job(session, WALK, asked, tenant_id="t", effect_key=str(number), due_at=due_at)
    with Crew(database, "--every", "3600") as crew:
        process = crew.start()
        crew.ready()
        time.sleep(2)
        before = processor_seconds(process)
        time.sleep(SECONDS)
        share = (processor_seconds(process) - before) / SECONDS
    assert share < 0.005
    report(
        "Idle",
        database=databases.kind,
        pending_deadlines=DEADLINES,
        threads=2,
        seconds=SECONDS,
        share_of_a_core=f"{share:.2%}",
    )
