"""Claims that wait: woken by work, by the end of the process, by their caller's end, and cheap till then."""

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest
from sqlalchemy import event, update

from service.kit.jobs import leases as mechanism
from service.nodes import waiting
from service.nodes.router import claim_lease
from service.nodes.tables import LeaseRow
from service.protocol.leases import LeaseClaimRequest
from tests.applications import attach
from tests.nodes.fleet import INVENTORY, add_node, add_run, claim, complete, request_id, stored

LONG = 30.0


@pytest.fixture
def claims(app, database):
    attach(app, database)
    return app.state.waiting


@pytest.fixture
def statements(database):
    """Statements as they are executed."""
    seen = []

    def note(*executed):
        seen.append(executed[2])

    event.listen(database.engine, "before_cursor_execute", note)
    yield seen
    event.remove(database.engine, "before_cursor_execute", note)


class Connections:
    """How many connections are in use, by the pool's own events: on SQLite a pool does not count."""

    def __init__(self, database):
        self.held = 0
        self._lock = threading.Lock()
        event.listen(database.engine, "checkout", lambda *_: self._add(1))
        event.listen(database.engine, "checkin", lambda *_: self._add(-1))

    def _add(self, number):
        with self._lock:
            self.held += number


async def never():
    await asyncio.sleep(3600)


def ask(claims, node, seconds=LONG, receive=never):
    body = LeaseClaimRequest(request_id=request_id(), wait_seconds=seconds, inventory_sha256=INVENTORY)
    return asyncio.create_task(claim_lease(SimpleNamespace(receive=receive), claims, node, body))


async def settled(claims, count):
    """Until so many claims wait."""
    async with asyncio.timeout(2 * LONG):
        while len(claims) < count:  # noqa: ASYNC110  # claims announce themselves to nobody
            await asyncio.sleep(0.01)


async def ended(task, seconds):
    began = time.monotonic()
    answer = await asyncio.wait_for(task, LONG)
    assert time.monotonic() - began < seconds
    return answer.status_code


def test_a_run_that_is_asked_for_is_granted_at_once(claims, database, monkeypatch):
    monkeypatch.setattr(waiting, "LOOK_SECONDS", LONG)
    node = add_node(database, "node-1")

    async def scenario():
        task = ask(claims, node)
        await settled(claims, 1)
        await asyncio.sleep(0.2)  # past the first look
        await asyncio.to_thread(add_run, database, "run-1")
        assert await ended(task, LONG / 3) == 200

    asyncio.run(scenario())
    assert stored(database)["run-1"].node_id == "node-1"


def test_what_another_process_asks_for_is_seen_at_the_next_look(claims, database, monkeypatch):
    node = add_node(database, "node-1")
    monkeypatch.setattr("service.nodes.leases.notify_after_commit", lambda _: None)

    async def scenario():
        task = ask(claims, node)
        await settled(claims, 1)
        await asyncio.to_thread(add_run, database, "run-1")
        assert await ended(task, LONG / 3) == 200

    asyncio.run(scenario())


def test_a_run_that_was_given_back_wakes_those_who_wait(claims, database):
    first, second = add_node(database, "node-1"), add_node(database, "node-2")
    add_run(database, "run-1")
    lease = claim(database, first)

    async def scenario():
        task = ask(claims, second)
        await settled(claims, 1)
        await asyncio.to_thread(complete, database, first, lease, "released")
        with database.open_writer() as session:
            session.execute(update(LeaseRow).values(due_at=mechanism.get_database_time()))
        assert await ended(task, LONG / 3) == 200

    asyncio.run(scenario())
    assert stored(database)["run-1"].node_id == "node-2"


def test_only_those_wake_who_can_run_it(claims, database):
    nodes = [
        add_node(database, "cpu-1"),
        add_node(database, "cuda-1", device="cuda"),
        add_node(database, "theirs", tenant="other"),
        add_node(database, "target"),
    ]

    async def scenario():
        tasks = [ask(claims, node) for node in nodes]
        await settled(claims, 4)
        await asyncio.to_thread(add_run, database, "run-1", target="target")
        assert await ended(tasks[3], LONG / 3) == 200
        await asyncio.to_thread(add_run, database, "run-2", device="cuda")
        assert await ended(tasks[1], LONG / 3) == 200
        assert [task.done() for task in tasks] == [False, True, False, True]
        claims.close()
        assert [await ended(task, LONG / 3) for task in (tasks[0], tasks[2])] == [204, 204]

    asyncio.run(scenario())


def test_two_hundred_who_wait_hold_no_connection_and_cost_one_look_a_turn(
    claims, database, statements, monkeypatch
):
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.25)
    nodes = [add_node(database, f"node-{number}") for number in range(200)]
    connections = Connections(database)
    held = []

    async def scenario():
        tasks = []
        for first in range(0, 200, 20):  # not all at once, which few could write in time
            tasks += [ask(claims, node) for node in nodes[first : first + 20]]
            await settled(claims, len(tasks))
        began = time.monotonic()
        statements.clear()
        while time.monotonic() < began + 1.0:
            await asyncio.sleep(0.05)
            held.append(connections.held)
        taken = time.monotonic() - began
        claims.close()
        assert {(await task).status_code for task in tasks} == {204}
        return taken

    turns = asyncio.run(scenario()) / waiting.LOOK_SECONDS
    # A look takes a connection; those who wait hold none.
    assert max(held) <= 1
    looks = [statement for statement in statements if "FROM leases" in statement]
    assert 1 <= len(looks) <= turns + 2
    asked = [one for one in statements if one.startswith("SELECT") and "set_config" not in one]
    assert len(looks) == len(asked)


def test_a_run_wakes_one_and_each_of_many_gets_its_own(claims, database):
    nodes = [add_node(database, f"node-{number}") for number in range(10)]

    async def scenario():
        tasks = [ask(claims, node) for node in nodes]
        await settled(claims, 10)
        for number in range(4):
            await asyncio.to_thread(add_run, database, f"run-{number}")
        until = time.monotonic() + 60
        while sum(task.done() for task in tasks) < 4:
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        claims.close()
        assert sorted([(await task).status_code for task in tasks]) == [200] * 4 + [204] * 6

    asyncio.run(scenario())
    assert len({row.node_id for row in stored(database).values()}) == 4


def test_nothing_comes_of_a_wait_that_ends(claims, database):
    node = add_node(database, "node-1")

    async def scenario():
        began = time.monotonic()
        assert await ended(ask(claims, node, seconds=0.3), 5) == 204
        assert time.monotonic() - began >= 0.3
        assert len(claims) == 0

    asyncio.run(scenario())


def test_a_caller_that_hangs_up_waits_no_longer(claims, database):
    node = add_node(database, "node-1")

    async def scenario():
        gone = asyncio.Event()

        async def receive():
            await gone.wait()
            return {"type": "http.disconnect"}

        task = ask(claims, node, receive=receive)
        await settled(claims, 1)
        gone.set()
        await ended(task, LONG / 3)
        assert len(claims) == 0

    asyncio.run(scenario())
    add_run(database, "run-1")
    assert claim(database, node).attempt == 1


def test_a_process_that_drains_answers_at_once(claims, database):
    node = add_node(database, "node-1")

    async def scenario():
        task = ask(claims, node)
        await settled(claims, 1)
        claims.close()
        assert await ended(task, LONG / 3) == 204
        assert await ended(ask(claims, node), LONG / 3) == 204

    asyncio.run(scenario())


def test_a_database_that_fails_for_a_while_is_waited_for(claims, database, monkeypatch):
    node = add_node(database, "node-1")
    offers, failures = claims._look, [RuntimeError, RuntimeError]

    def failing():
        if failures:
            raise failures.pop()
        return offers()

    monkeypatch.setattr(claims, "_look", failing)

    async def scenario():
        task = ask(claims, node)
        await settled(claims, 1)
        await asyncio.to_thread(add_run, database, "run-1")
        assert await ended(task, 10) == 200

    asyncio.run(scenario())
    assert failures == []
