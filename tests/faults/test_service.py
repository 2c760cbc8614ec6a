"""kill -9 of served processes under load: what was acknowledged is there, and every write happened once."""

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest
from sqlalchemy import func, select, update

from service.app.background.service import list_schedules
from service.auth.tables import ApiKeyRow
from service.catalog import repository
from service.kit.jobs import leases
from service.kit.jobs.leases import RUNNING
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.schedules import NoArguments
from service.kit.jobs.tables import DONE, JobRow
from service.kit.security.principals import SYSTEM_TENANT
from tests.applications import MEANS, bearing
from tests.faults.harness import LONG, rows
from tests.faults.served import Fleet, Load, events, is_in_use, revisions, site
from tests.waiting import until, until_done

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

CALLERS = 4
JOBS_A_KILL = 3
POLLED_SECONDS = 3.0
REFUSED_SECONDS = 2.0 if LONG else 6.0
"""Within how long a revoked key works no more; all tests at once make a machine slower."""
"""By then a process knows of the keys that others have changed: it asks every second."""
EXPIRY = list_schedules((), MEANS)[0].job
"""The one kind of job that servers work on so far."""
LONG_STORMS = [("sqlite", 1, 200), ("postgresql", 1, 100), ("postgresql", 2, 100)]
STRETCH = os.environ.get("IRONLAW_FAULTS_STRETCH", "").split()
"""One more stretch of a storm: the database, the processes and the kills; see `make kills`."""
STORMS = LONG_STORMS if LONG else [("sqlite", 1, 3), ("postgresql", 2, 3)]
if STRETCH:
    STORMS = [(STRETCH[0], int(STRETCH[1]), int(STRETCH[2]))]


@pytest.fixture
def fleet_of(databases_of, tmp_path):
    """Starts processes on a database of a kind."""
    makers = []

    def start(kind, processes):
        makers.append(databases_of(kind))
        return Fleet(makers[-1].loaded(), tmp_path, processes)

    yield start
    for maker in makers:
        maker.dispose()


def ask_for_jobs(database, kill):
    with database.open_writer() as session:
        for number in range(JOBS_A_KILL):
            key = f"kill {kill}, job {number}"
            enqueue_job(session, EXPIRY, NoArguments(), tenant_id=SYSTEM_TENANT, effect_key=key)


def storm(fleet, kills, chance):
    """Kill a process at a time, two in five while they start, in the end all; how many were starting."""
    while_starting = 0
    last = fleet.places[0]
    for kill in range(kills - len(fleet.places)):
        ask_for_jobs(fleet.database, kill)
        if kill % 5 in (1, 3):
            time.sleep(chance.uniform(0.0, 1.0))
        else:
            fleet.until_ready()
            time.sleep(chance.uniform(0.0, 0.6))
            last = chance.choice(fleet.places)
        while_starting += last.is_starting
        last.kill()
        last.start()
    ask_for_jobs(fleet.database, kills)
    fleet.until_ready()
    for place in fleet.places:
        place.kill()
    return while_starting


def end_leases(database):
    """Half a minute passes for the jobs of killed processes."""
    with database.open_writer() as session:
        session.execute(
            update(JobRow).where(JobRow.state == RUNNING).values(due_at=leases.get_database_time())
        )


def count_open_jobs(database):
    """How many jobs are not done. They run one at a time, and most of them wait until the kills are over."""
    count = select(func.count()).where(JobRow.kind == EXPIRY.name, JobRow.state != DONE)
    return rows(database, count)[0][0]


def check_revisions(database):
    """Every change has a revision of its own, without a gap; those of the shipped rows come before."""
    revision, changes = revisions(database)
    assert changes == list(range(changes[0], changes[0] + len(changes)))
    assert revision == len(changes)


def check_keys(fleet, callers):
    """The newest secret opens until its key is revoked."""
    path = f"{fleet.places[0].address}/v1/api-keys?page_size=1"
    time.sleep(POLLED_SECONDS)
    with httpx.Client(trust_env=False) as client:
        for caller in callers:
            for secret in filter(None, caller.secrets.values()):
                assert client.get(path, headers=bearing(secret)).status_code == 200
            for secret in filter(None, caller.revoked):
                assert client.get(path, headers=bearing(secret)).status_code == 401


@pytest.mark.parametrize(("kind", "processes", "kills"), STORMS)
def test_killed_servers_keep_what_they_acknowledged_and_do_nothing_twice(
    fleet_of, kind, processes, kills, stretch
):
    began = time.monotonic()
    chance = random.Random(f"{stretch.count} {kills} {processes}")  # noqa: S311
    with fleet_of(kind, processes) as fleet:
        database = fleet.database
        fleet.until_ready()
        with Load(fleet, CALLERS) as load:
            while_starting = storm(fleet, kills, chance)
            end_leases(database)
            for place in fleet.places:
                place.start()
            fleet.until_ready()
            load.stop()
        lost, twice = load.unmatched()
        assert not lost
        assert not twice
        check_revisions(database)
        stored = events(database)
        assert f"default: {stored} events, valid" in fleet.command("audit", "verify")
        check_keys(fleet, load.callers)
        until_done(partial(count_open_jobs, database))
        jobs = select(JobRow.effect_key).where(JobRow.kind == EXPIRY.name)
        asked = [row for row in rows(database, jobs) if row.effect_key.startswith("kill ")]
        assert len(asked) == (kills - processes + 1) * JOBS_A_KILL
        waits = [seconds for place in fleet.places for seconds in place.seconds_to_answer]
    stretch(
        database=kind,
        processes=processes,
        kills=kills,
        while_starting=while_starting,
        writes=len(load.acknowledged),
        retried=sum(write.attempts > 1 for write in load.acknowledged),
        stored_before_the_retry=sum(write.was_replayed for write in load.acknowledged),
        checks=load.count_checks(),
        lost=lost.total(),
        twice=twice.total(),
        audit_events=stored,
        jobs_done=len(asked),
        seconds_to_answer=[round(seconds, 2) for seconds in waits],
        minutes=round((time.monotonic() - began) / 60, 1),
    )


def create(client, row_id):
    """A creation under an Idempotency-Key, sent again while another process is at it."""
    while True:
        headers = {"Idempotency-Key": row_id}
        answer = client.post("/v1/sites", json=site(row_id, "at once"), headers=headers)
        if not is_in_use(answer):
            return answer
        time.sleep(0.02)


def create_at_once(clients, row_id):
    """The answers to one creation that is sent by every client at the same moment."""
    together = threading.Barrier(len(clients))

    def begin(client):
        together.wait(timeout=60)
        return create(client, row_id)

    with ThreadPoolExecutor(len(clients)) as pool:
        return list(pool.map(begin, clients))


def until_refused(client, credential):
    """Seconds until a key works no more."""
    began = time.monotonic()
    until(lambda: client.get("/v1/api-keys", headers=bearing(credential)).status_code == 401)
    return time.monotonic() - began


def test_two_processes_agree(fleet_of):
    """On one Idempotency-Key at the same moment, and on a key that was revoked in one of them."""
    with fleet_of("postgresql", 2) as fleet:
        fleet.until_ready()
        first, second = fleet.clients()
        with first, second:
            before = events(fleet.database)
            for number in range(20):
                answers = create_at_once((first, second), f"row-{number}")
                assert [answer.status_code for answer in answers] == [201, 201]
                assert answers[0].json() == answers[1].json()
                assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 1
            assert revisions(fleet.database)[0] == 20
            assert events(fleet.database) == before + 20

            made = first.post("/v1/api-keys", json={"name": "made", "scopes": ["api-keys:read"]}).json()
            until(lambda: second.get("/v1/api-keys", headers=bearing(made["secret"])).status_code == 200)
            assert first.delete(f"/v1/api-keys/{made['key']['id']}").status_code == 204
            assert first.get("/v1/api-keys", headers=bearing(made["secret"])).status_code == 401
            assert until_refused(second, made["secret"]) < REFUSED_SECONDS


def test_a_key_revoked_at_the_command_line_works_no_more(fleet_of):
    with fleet_of("sqlite", 1) as fleet:
        fleet.until_ready()
        (client,) = fleet.clients()
        with client:
            assert client.get("/v1/api-keys").status_code == 200
            fleet.command("keys", "revoke", fleet.credential.split("_")[1])
            assert until_refused(client, fleet.credential) < REFUSED_SECONDS


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_asked_to_stop_a_server_answers_what_it_has_begun(fleet_of, kind):
    with fleet_of(kind, 1) as fleet, ThreadPoolExecutor(1) as pool:
        fleet.until_ready()
        ((place,), (client,)) = fleet.places, fleet.clients()
        key_id = fleet.credential.split("_")[1]
        with client:
            assert "last_used_at" not in client.get(f"/v1/api-keys/{key_id}").json()
            with fleet.database.open_writer() as session:
                repository.lock_shipped_state(session)
                answering = pool.submit(create, client, "in-flight")
                time.sleep(0.3)
                place.process.send_signal(signal.SIGTERM)
                until(lambda: not place.is_ready())
                time.sleep(0.3)
                assert not place.is_ready()
                assert not answering.done()
                assert place.process.poll() is None
            assert answering.result(timeout=60).status_code == 201
        place.process.wait(timeout=60)
        assert place.process.returncode in (0, -signal.SIGTERM)
        assert revisions(fleet.database)[0] == 1
        last_use = select(ApiKeyRow.last_used_at).where(ApiKeyRow.id == key_id)
        assert rows(fleet.database, last_use)[0].last_used_at is not None
