"""PostgreSQL stopped and started under load: the same processes go on, over TCP and over a Unix socket."""

import contextlib
import tempfile
import time
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from service.kit.database.engine import Database
from tests.faults.crew import STEPS
from tests.faults.harness import LONG, Crew, Load, Outcome, Server, prepare, rows
from tests.waiting import until

OUTAGE_SECONDS = 12.0 if LONG else 1.0
OUTAGES = 2 if LONG else 1


@pytest.fixture
def server(tcp, postgresql):
    del postgresql  # starting it gave the package its directory
    with tempfile.TemporaryDirectory(prefix="ironlaw-") as directory:
        server = Server(Path(directory) / "data", tcp=tcp)
        server.start()
        yield server
        server.stop()


@pytest.mark.enable_socket
@pytest.mark.parametrize("tcp", [True, False], ids=["TCP", "Unix socket"])
def test_an_outage_stops_no_process_and_loses_no_job(server, tcp, report):
    database = Database(server.url)
    prepare(database)
    load = Load(database)
    waits = []
    with Crew(database) as crew:
        for _ in range(2):
            crew.start()
        crew.ready()
        for _ in range(OUTAGES):
            for _ in range(30):
                load.ask()
            begun = len(rows(database, select(STEPS)))
            until(lambda begun=begun: len(rows(database, select(STEPS))) > begun + 10)
            server.stop()
            time.sleep(OUTAGE_SECONDS)
            with contextlib.suppress(SQLAlchemyError):
                load.ask()
            back = time.time()
            server.start()
            until(lambda back=back: rows(database, select(STEPS).where(STEPS.c.at > back)))
            ((first,),) = rows(database, select(func.min(STEPS.c.at)).where(STEPS.c.at > back))
            waits.append(first - back)
        outcome = Outcome(database, load)
        assert all(process.poll() is None for process in crew.processes)
        assert {entry.process for entry in outcome.log if entry.at > back} == {
            process.pid for process in crew.processes
        }
    report(
        "PostgreSQL stopped and started under load, two processes",
        over="TCP" if tcp else "a Unix socket",
        outages=OUTAGES,
        seconds_away=OUTAGE_SECONDS,
        jobs=outcome.jobs,
        lost=outcome.lost,
        effects_twice=outcome.twice,
        steps_repeated=outcome.repeated,
        server_start_to_first_step_s=" and ".join(f"{wait:.2f}" for wait in waits),
    )
    database.dispose()
