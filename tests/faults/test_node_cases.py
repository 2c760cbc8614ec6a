"""More cases of nodes than fit a short run: what comes late, twice or not at all, and the mutations of it."""

import time

import pytest
from sqlalchemy import select, text

from service.benchmarks.tables import BenchmarkResultRow
from service.calibrations.tables import ACTIVE
from service.nodes.service import expire_abandoned
from service.nodes.tables import CURRENT, NodeCredentialRow
from tests.faults import node_service
from tests.faults.field import Violation, until
from tests.faults.harness import rows
from tests.faults.points import read_ledger
from tests.faults.storm import LAPSED_SECONDS

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.parametrize("kind", ["sqlite", "postgresql"]),
]
ARRIVES_AFTER_SECONDS = 1.0
IN_VAIN_SECONDS = 5.0


def hand_over_late(field):
    """A result comes when its lease has lapsed."""
    (host,) = field.hosts
    field.ask_run()
    host.start(point="spool: kept")
    host.until_dead("the worker is killed with a result in its spool")
    time.sleep(LAPSED_SECONDS)
    with field.database.open_writer() as session:
        assert expire_abandoned(session)["lost"] == 1
    host.start()
    field.settle()
    field.check()
    return [row.lease for row, _ in field.results()]


def test_a_result_that_comes_after_its_lease_is_kept_and_does_not_count(one_host, kind):
    assert sorted(hand_over_late(one_host(kind))) == ["current"] * len(node_service.REPEATS) + ["late"]


def test_without_the_look_at_the_lease_the_harness_fails(one_host, kind):
    field = one_host(kind, service_mutation="no lateness")
    with pytest.raises(Violation, match="none counts that came after its lease"):
        hand_over_late(field)


def lose_receipts(field, seconds):
    """Uploads are cut, delayed, sent twice and not answered."""
    (host,) = field.hosts
    host.proxy.plan(2, ["upload"], share=1.0)
    for _ in range(4):
        field.ask_run()
    host.start()
    until(lambda: host.proxy.is_calm, "every trouble has happened")
    field.settle(seconds)
    field.check()


def test_a_result_that_is_sent_again_is_stored_once(one_host, kind):
    lose_receipts(one_host(kind), 60.0)


def without_unique_results(database):
    """The table of results as it would be had nobody said what is unique in it."""
    name = BenchmarkResultRow.__tablename__
    with database.engine.begin() as connection:
        if database.is_sqlite:
            connection.execute(text(f"CREATE TABLE bare AS SELECT * FROM {name}"))
            connection.execute(text(f"DROP TABLE {name}"))
            connection.execute(text(f"ALTER TABLE bare RENAME TO {name}"))
        else:
            connection.execute(text(f"ALTER TABLE {name} DROP CONSTRAINT pk_{name}"))
            connection.execute(text(f"DROP INDEX uq_{name}_place"))


def test_without_unique_results_the_harness_fails(one_host, kind):
    """Stored twice, or so that the service trips over it and never acknowledges it."""
    field = one_host(kind, spoil=without_unique_results)
    with pytest.raises(Violation, match=r"no result is stored twice|in vain: every run is terminal"):
        lose_receipts(field, IN_VAIN_SECONDS)


def back_up_before_results(field, path):
    """No result has come by then, and the worker goes on under its lease."""
    (host,) = field.hosts
    host.proxy.held = "upload"
    field.ask_run()
    host.start()
    until(lambda: has_kept_a_result(host), "a result is on the disk, and its upload held back")
    field.back_up(path)
    host.proxy.let_go()


def has_kept_a_result(host):
    return any(line["what"] == "kept" for line in read_ledger(host.ledger))


def back_up_between_results(field, path):
    """One result is stored by then, and its worker killed: the next measures under another lease."""
    (host,) = field.hosts
    field.ask_run()
    host.start(point="upload: before", hit=2)
    host.until_dead("the worker is killed before it uploads a second result")
    field.back_up(path)


@pytest.mark.parametrize("back_up", [back_up_before_results, back_up_between_results])
def test_what_a_restored_service_has_forgotten_is_sent_again(one_host, kind, databases_of, tmp_path, back_up):
    """A backup is of one instant: what it lacks was measured under a lease that it has open, or lacks too."""
    field = one_host(kind)
    path = tmp_path / "backup"
    back_up(field, path)
    field.settle()
    before = dict(stored_results(field))
    field.restore(path, databases_of(kind).empty())
    assert stored_results(field) < before.items()
    field.hosts[0].start()
    until(lambda: before.items() <= stored_results(field), "every result is sent again")
    field.settle()
    found = field.check()
    assert sum(row.state == ACTIVE for row in found.calibrations.sets) == 1


def stored_results(field):
    return {row.id: content for row, content in field.results()}.items()


def test_what_a_killed_worker_had_sent_is_not_taken_for_theft(one_host, kind):
    """It arrives after its successor was told to rotate the credential."""
    field = one_host(kind)
    (host,) = field.hosts
    field.ask_run()
    host.proxy.held = "upload"
    host.start(point="upload: sent")
    host.until_dead("the worker is killed when it has sent a result")
    field.service.ask("POST", f"/v1/nodes/{host.node_id}:request-rotation")
    host.start()
    time.sleep(ARRIVES_AFTER_SECONDS)
    host.proxy.let_go()
    until(lambda: host.proxy.arrived_late == [("upload", 200)], "the result arrives, and is taken")
    current = select(NodeCredentialRow.generation).where(
        NodeCredentialRow.node_id == host.node_id, NodeCredentialRow.state == CURRENT
    )
    until(lambda: rows(field.database, current) == [(2,)], "the credential is rotated after all")
    field.settle()
    field.check()
