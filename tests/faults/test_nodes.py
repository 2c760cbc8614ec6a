"""Workers, network and service fail at every step: what was on a disk is stored once, and every run ends.

The mutations show that the harness sees what it is there for: without a fsync, without the fencing token or
without a unique index, the same case has to fail. More of both are in ``test_node_cases.py``.
"""

import json
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from service.benchmarks.tables import BenchmarkResultRow
from service.kit.jobs.leases import RUNNING
from tests.faults import node_service, node_worker
from tests.faults.field import PATIENCE_SECONDS, SEED, Field, Violation, until
from tests.faults.harness import LONG, TIMES
from tests.faults.points import read_ledger
from tests.faults.proxy import OPERATIONS, TROUBLES
from tests.faults.storm import SLOW_SECONDS, Storm

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

WORKER_POINTS = (*node_worker.KILLS, *node_worker.FULL, *node_worker.OTHERS)
HOSTS = 3 if LONG else 2
EVERY = {"sqlite": slice(0, None, 16), "postgresql": slice(8, None, 16)}
"""Which points are tried where time is short."""
OFTEN = ("claim", "renew", "upload", "complete", "heartbeat")
"""Operations that are asked for so often that every planned trouble meets one."""


def test_a_storm_loses_no_result_and_stores_none_twice(databases, tmp_path, report):
    chosen = slice(None) if LONG else EVERY[databases.kind]
    worker_points, service_points = WORKER_POINTS[chosen], node_service.KILLS[chosen]
    began = time.monotonic()
    with Field(databases.loaded(), tmp_path, hosts=HOSTS) as field:
        for host in field.hosts:
            host.proxy.plan(TIMES)
        storm = Storm(field, tmp_path)
        storm.run(worker_points * TIMES, service_points * TIMES)
        stored = field.check()
        hits, troubles = storm.hits(), storm.troubles()
    assert {point: hits[point] for point in (*worker_points, *service_points) if hits[point] < TIMES} == {}
    if LONG:
        assert all(troubles[operation, trouble] >= TIMES for operation in OFTEN for trouble in TROUBLES)
    report(
        "Nodes, the network and the service in a storm",
        database=databases.kind,
        seed=SEED,
        hosts=HOSTS,
        points=len(worker_points) + len(service_points),
        hits=sum(hits.values()),
        troubles=sum(troubles.values()),
        runs=len(stored.leases),
        attempts=len(stored.grants),
        **stored.counts(),
        minutes=f"{(time.monotonic() - began) / 60:.1f}",
    )
    if LONG:
        for point in (*worker_points, *service_points):
            who = "service" if point in service_points else "worker"
            report(f"Points of that storm, {databases.kind}", process=who, point=point, hits=hits[point])
        for operation in OPERATIONS:
            counts = {trouble.replace(" ", "_"): troubles[operation, trouble] for trouble in TROUBLES}
            report(f"Troubles of its network, {databases.kind}", operation=operation, **counts)


def on(kind):
    """On both databases, or on one where time is short."""
    return pytest.mark.parametrize("kind", ["sqlite", "postgresql"] if LONG else [kind])


def go_off_with_a_result(field):
    """The power of a host goes when a result is on its disk and nowhere else."""
    (host,) = field.hosts
    for _ in range(3):
        field.ask_run()
        host.start(point="upload: before")
        host.until_dead("the worker is killed before it uploads")
        if any(line["what"] == "kept" for line in read_ledger(host.ledger)):
            break
        # The upload began between the end of the spooling and its note.
        field.settle()
    host.lose_power(kept=0.0)
    field.settle()
    field.check()


@on("postgresql")
def test_a_result_on_the_disk_outlives_a_loss_of_power(one_host, kind):
    go_off_with_a_result(one_host(kind))


@pytest.mark.parametrize("mutation", node_worker.MUTATIONS)
def test_without_fsync_the_harness_fails(one_host, mutation):
    field = one_host("sqlite", worker_mutation=mutation)
    with pytest.raises(Violation, match="that was on the disk is stored"):
        go_off_with_a_result(field)


def end_a_lease_late(field):
    """The completion of an attempt that was given back arrives while the next attempt runs."""
    (host,) = field.hosts
    run = field.ask_run()
    host.proxy.held = "complete"
    host.start(point="complete: sent")
    host.until_dead("the worker is killed when it has sent its completion")
    (host.home / "finishedrun.json").unlink()  # with it the next process would complete the run
    host.start(child_seconds=SLOW_SECONDS)
    until(lambda: field.lease(run).state == RUNNING and field.lease(run).attempt > 1, "the next attempt runs")
    host.proxy.let_go()
    until(lambda: host.proxy.arrived_late, "the completion arrives")
    field.settle()
    field.check()
    return host.proxy.arrived_late, field.lease(run)


@on("postgresql")
def test_a_completion_of_an_earlier_attempt_is_refused(one_host, kind):
    arrived, lease = end_a_lease_late(one_host(kind))
    assert arrived == [("complete", 409)]
    assert lease.state == "completed"


@on("sqlite")
def test_without_the_fencing_token_the_harness_fails(one_host, kind):
    field = one_host(kind, service_mutation="no fencing")
    with pytest.raises(Violation, match=r"every grant of run .* has ended"):
        end_a_lease_late(field)


def go_back_in_time(field):
    """A host is restored from a copy made before it claimed: it measures again under the same lease."""
    (host,) = field.hosts
    claim = host.home / "claimrequest.json"
    claim.write_text(json.dumps({"request_id": "5" * 32}))
    claim.chmod(0o600)
    copy = host.folder / "copy"
    shutil.copytree(host.home, copy)
    field.ask_run()
    host.start(point="receipt: settled", child_seconds=SLOW_SECONDS)
    host.until_dead("the worker is killed after its first result is acknowledged")
    shutil.rmtree(host.home)
    shutil.copytree(copy, host.home)
    host.start()
    field.settle()
    field.check()
    return [row.conflicts_with is not None for row, _ in field.results()]


@on("sqlite")
def test_of_two_results_for_one_repeat_the_first_counts(one_host, kind):
    assert sorted(go_back_in_time(one_host(kind))) == [*[False] * len(node_service.REPEATS), True]


def without_places(database):
    with database.engine.begin() as connection:
        connection.execute(text(f"DROP INDEX uq_{BenchmarkResultRow.__tablename__}_place"))


@on("postgresql")
def test_without_one_place_for_each_repeat_the_harness_fails(one_host, kind):
    field = one_host(kind, spoil=without_places)
    with pytest.raises(Violation, match="one result counts for each repeat"):
        go_back_in_time(field)


@on("sqlite")
@pytest.mark.parametrize("step", ["before commit", "committed, not answered"][: 2 if LONG else 1])
def test_what_a_killed_service_was_judging_drawing_or_storing_is_done_by_the_next(one_host, kind, step):
    """More of drawing, withdrawing and importing is in ``test_calibrating.py``."""
    field = one_host(kind)
    (host,) = field.hosts
    field.service.kill()
    field.service.start(point=f"validate: {step}")
    field.service.until_ready()
    field.ask_run()
    host.start()
    field.service.process.join(PATIENCE_SECONDS)
    assert field.service.process.exitcode == -signal.SIGKILL
    assert (field.unjudged() > 0) == (step == "before commit")
    others = (
        ("draw: committed, not answered", lambda: None),
        ("withdraw: committed, not answered", field.withdraw),
        ("import: before commit", field.import_evidence),
    )
    with ThreadPoolExecutor(1) as pool:
        for point, do in others:
            field.service.start(point=point)
            asked = pool.submit(do)
            field.service.process.join(PATIENCE_SECONDS)
            assert field.service.process.exitcode == -signal.SIGKILL
        field.service.start()
        asked.result(PATIENCE_SECONDS)
    field.service.until_ready()
    field.settle()
    field.check()
