"""Small requests in queues: by tenant, bounded in number and time, without a place that is lost."""

import asyncio
from collections import Counter

import httpx
import pytest
from fastapi import FastAPI

from service.app.application import create_app
from service.kit.http import request_queues
from service.kit.http.fair_queue import MOST_IN_ORDER, FairQueue, QueueFullError
from service.kit.http.request_queues import ConcurrencyLimit, LoopSchedule, RequestQueues
from service.kit.http.web import PublicRoute, add_routes, api_router, install_problem_handlers
from tests.applications import OPEN

PATIENCE = 60


def fill(queue, tenant, count):
    for number in range(count):
        assert queue.add(tenant, f"{tenant}{number}") is None


def take_all(queue):
    return [queue.take_next() for _ in range(len(queue))]


def test_tenants_take_turns_and_each_is_served_in_order():
    queue = FairQueue(10, 10)
    for tenant, count in (("a", 3), ("b", 1), ("c", 2)):
        fill(queue, tenant, count)
    assert take_all(queue) == ["a0", "b0", "c0", "a1", "c1", "a2"]
    assert queue.take_next() is None


def test_a_long_queue_serves_its_newest_until_it_is_short():
    queue = FairQueue(100, 100)
    fill(queue, "a", MOST_IN_ORDER + 2)
    assert take_all(queue)[:4] == [f"a{MOST_IN_ORDER + 1}", f"a{MOST_IN_ORDER}", "a0", "a1"]


def test_the_tenant_with_the_most_gives_way():
    queue = FairQueue(4, 4)
    fill(queue, "a", 4)
    assert [queue.add("b", "b0"), queue.add("c", "c0")] == ["a3", "a2"]
    with pytest.raises(QueueFullError):
        queue.add("b", "b1")
    assert (len(queue), take_all(queue)) == (4, ["a0", "b0", "c0", "a1"])


def test_an_item_that_is_discarded_is_not_served():
    queue = FairQueue(4, 2)
    fill(queue, "a", 2)
    with pytest.raises(QueueFullError):
        queue.add("a", "a2")
    for item in ("a0", "a0", "none"):
        queue.discard("a", item)
    assert (len(queue), take_all(queue)) == (1, ["a1"])


def test_a_tenant_that_floods_the_event_loop_waits_for_itself(monkeypatch):
    monkeypatch.setattr(request_queues, "SLICE_SECONDS", 0.0)
    served = []

    async def ask(schedule, tenant):
        await schedule.wait_for_turn(tenant, PATIENCE)
        served.append(tenant)

    async def check():
        schedule = LoopSchedule()
        await asyncio.gather(*(ask(schedule, tenant) for tenant in "a" * 60 + "b" * 5))

    asyncio.run(check())
    assert Counter(served) == {"a": 60, "b": 5}
    assert set(served[:12]) == {"a", "b"}
    assert "b" not in served[12:]


def test_a_request_begins_at_once_while_the_event_loop_has_time(monkeypatch):
    monkeypatch.setattr(request_queues, "SLICE_SECONDS", PATIENCE)

    async def check():
        schedule = LoopSchedule()
        for _ in range(3):
            with pytest.raises(StopIteration):
                schedule.wait_for_turn("a", PATIENCE).send(None)

    asyncio.run(check())


def test_a_request_that_stops_waiting_keeps_no_place():
    async def check():
        limit = ConcurrencyLimit("reads", 1)
        await limit.acquire("a", PATIENCE)
        with pytest.raises(TimeoutError):
            await limit.acquire("a", 0.001)
        given = asyncio.create_task(limit.acquire("a", PATIENCE))
        await asyncio.sleep(0)
        limit.release("a")  # gives the place to the task that is cancelled in the same turn of the loop
        given.cancel()
        await asyncio.gather(given, return_exceptions=True)
        await limit.acquire("b", PATIENCE)
        later = asyncio.create_task(limit.acquire("c", PATIENCE))
        await asyncio.sleep(0)
        assert not later.done(), "there is still one place"
        limit.release("b")
        await later

    asyncio.run(asyncio.wait_for(check(), PATIENCE))


def test_slow_requests_of_a_tenant_leave_places_to_others():
    async def check():
        limit = ConcurrencyLimit("reads", 8)
        greedy = [asyncio.create_task(limit.acquire("a", PATIENCE)) for _ in range(8)]
        await asyncio.sleep(0)
        assert [task.done() for task in greedy] == [True] * 6 + [False] * 2
        for _ in range(2):
            with pytest.raises(StopIteration):
                limit.acquire("b", PATIENCE).send(None)
        limit.release("b")
        await asyncio.sleep(0)
        assert not greedy[6].done(), "the place is for the others"
        limit.release("a")
        await asyncio.wait_for(greedy[6], PATIENCE)
        greedy[7].cancel()

    asyncio.run(check())


@pytest.fixture
def reading(monkeypatch):
    """An application with one place to read, which stays taken, and an operation that reads nothing."""
    monkeypatch.setattr(request_queues, "MOST_READS_AT_ONCE", 1)
    monkeypatch.setattr(request_queues, "MOST_SECONDS", 0.05)
    router = api_router("/v1/things", tag="sites", route_class=PublicRoute)

    @router.get("/read")
    def read_thing() -> str:
        return "read"

    @router.get("/compute")
    async def compute_thing() -> str:
        return "computed"

    app = FastAPI()
    app.state.request_queues = RequestQueues()
    install_problem_handlers(app)
    add_routes(app, router)
    return app


def test_a_read_is_refused_in_time_and_others_go_on(reading):
    async def check():
        transport = httpx.ASGITransport(reading)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            reads = reading.state.request_queues.reads
            await reads.acquire("", PATIENCE)
            refused, computed = await asyncio.gather(
                client.get("/v1/things/read"), client.get("/v1/things/compute")
            )
            assert (refused.status_code, refused.json()["code"]) == (503, "OUT_OF_TIME")
            assert refused.headers["Retry-After"] == "1"
            assert computed.json() == "computed"
            reads.release("")
            for _ in range(3):
                assert (await client.get("/v1/things/read")).json() == "read"

    asyncio.run(check())


def test_no_more_wait_than_may(reading, monkeypatch):
    monkeypatch.setattr(request_queues, "MOST_OF_A_TENANT", 2)
    reading.state.request_queues = RequestQueues()

    async def check():
        transport = httpx.ASGITransport(reading)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await reading.state.request_queues.reads.acquire("", PATIENCE)
            answers = await asyncio.gather(*(client.get("/v1/things/read") for _ in range(5)))
            return Counter(answer.json()["code"] for answer in answers)

    assert asyncio.run(check()) == {"OUT_OF_TIME": 2, "BUSY": 3}


def test_every_process_has_the_queues():
    assert isinstance(create_app(OPEN).state.request_queues, RequestQueues)
