"""Small requests wait in queues where tenants take turns, so that one who asks too much waits for itself.

Those that one tenant sends beyond what the process can answer are refused before they are worked on. Long
work has queues of its own.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, NamedTuple

from fastapi import Request, Response
from starlette.types import Scope

from service.kit.database.failures import WriteTurnError
from service.kit.database.waiting import get_wait_budget
from service.kit.http.fair_queue import FairQueue, QueueFullError
from service.kit.http.problems import BUSY_RETRY, OutOfTime, TooBusy
from service.kit.metrics import REQUESTS_WAITING

MOST_READS_AT_ONCE: Final = 8
"""Most threads that read. Python runs one at a time, and the event loop waits for its turn behind them."""
MOST_WRITES_AT_ONCE: Final = 16
"""Most threads that write or wait for the database: less than half of those that the framework has."""
SHARE_OF_A_TENANT: Final = 0.75
"""Share of the threads that one tenant may have, so that its slow requests leave some to the others."""
MOST_WAITING: Final = 256
"""Most requests of all tenants that wait in one queue."""
MOST_OF_A_TENANT: Final = 128
"""Most requests of one tenant that wait in one queue."""
MOST_SECONDS: Final = 2.0
"""Longest time that a request waits for the event loop, or to read."""
SLICE_SECONDS: Final = 0.005
"""Time of requests in one turn of the event loop after which others wait in the queue."""
BEGUN_AT_ONCE: Final = 16
"""Requests from the queue that one turn of the event loop begins."""

RouteHandler = Callable[[Request], Awaitable[Response]]


class _Place(NamedTuple):
    tenant_id: str
    given: "asyncio.Future[None]"


class ConcurrencyLimit:
    """Lets a number of requests do something at once. Its methods belong to the event loop."""

    def __init__(self, name: str, most_at_once: int) -> None:
        self._free = most_at_once
        self._most_of_a_tenant = max(1, int(SHARE_OF_A_TENANT * most_at_once))
        self._running: Counter[str] = Counter()
        self._queue: FairQueue[_Place] = FairQueue(MOST_WAITING, MOST_OF_A_TENANT)
        self._waiting = REQUESTS_WAITING.labels(name)
        self._waiting.set(0)

    async def acquire(self, tenant_id: str, seconds: float) -> None:
        """Takes a place, which :meth:`release` gives back.

        Raises :class:`QueueFullError` if too many wait, and :class:`TimeoutError` if none is free in time.
        """
        if self._free and self._has_room(tenant_id):
            self._free -= 1
            self._running[tenant_id] += 1
        else:
            await self._wait_for_place(tenant_id, seconds)

    def release(self, tenant_id: str) -> None:
        """Gives the place of a tenant to the next request that waits."""
        self._free += 1
        self._running[tenant_id] -= 1
        self._running += Counter()  # forgets tenants of which nothing runs
        while self._free and (place := self._queue.take_next(self._has_room)) is not None:
            if not place.given.done():
                place.given.set_result(None)
                self._free -= 1
                self._running[place.tenant_id] += 1

    def _has_room(self, tenant_id: str) -> bool:
        return self._running[tenant_id] < self._most_of_a_tenant

    async def _wait_for_place(self, tenant_id: str, seconds: float) -> None:
        place = _Place(tenant_id, asyncio.get_running_loop().create_future())
        displaced = self._queue.add(tenant_id, place)
        if displaced is not None and not displaced.given.done():
            displaced.given.set_exception(QueueFullError)
        self._waiting.set(len(self._queue))
        given = place.given
        try:
            async with asyncio.timeout(seconds):
                await given
        except BaseException:
            if given.done() and not given.cancelled() and given.exception() is None:
                self.release(tenant_id)  # it was given in the moment in which the wait ended
            self._queue.discard(tenant_id, place)
            raise
        finally:
            self._waiting.set(len(self._queue))


class LoopSchedule:
    """Order in which small requests use the event loop: as they come, and by tenant once it falls behind.

    Its methods belong to the event loop.
    """

    def __init__(self) -> None:
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue(MOST_WAITING, MOST_OF_A_TENANT)
        self._slice_ends: float | None = None
        self._waiting = REQUESTS_WAITING.labels("event_loop")
        self._waiting.set(0)

    async def wait_for_turn(self, tenant_id: str, seconds: float) -> None:
        """Waits until a request may begin.

        Raises :class:`QueueFullError` if too many wait, and :class:`TimeoutError` if its turn does not come.
        """
        if not self._queue and self._has_time_left():
            return
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        if not self._queue:
            loop.call_soon(self._begin_next)
        displaced = self._queue.add(tenant_id, turn)
        if displaced is not None and not displaced.done():
            displaced.set_exception(QueueFullError)
        self._waiting.set(len(self._queue))
        try:
            async with asyncio.timeout(seconds):
                await turn
        finally:
            self._queue.discard(tenant_id, turn)

    def _has_time_left(self) -> bool:
        """Returns true unless the requests of this turn of the loop have taken their time."""
        now = time.monotonic()
        if self._slice_ends is None:
            self._slice_ends = now + SLICE_SECONDS
            asyncio.get_running_loop().call_soon(self._end_slice)
        return now < self._slice_ends

    def _end_slice(self) -> None:
        self._slice_ends = None

    def _begin_next(self) -> None:
        """Begins some requests, and more in the next turn of the loop, after new ones have been read."""
        for _ in range(BEGUN_AT_ONCE):
            turn = self._queue.take_next()
            if turn is not None and not turn.done():
                turn.set_result(None)
        self._waiting.set(len(self._queue))
        if self._queue:
            asyncio.get_running_loop().call_soon(self._begin_next)


class RequestQueues:
    """Queues of the small requests of one process."""

    def __init__(self) -> None:
        self.loop = LoopSchedule()
        self.reads = ConcurrencyLimit("reads", MOST_READS_AT_ONCE)
        self.writes = ConcurrencyLimit("writes", MOST_WRITES_AT_ONCE)


def _get_tenant_id(scope: Scope) -> str:
    subject = scope.get("state", {}).get("subject")
    return subject.tenant_id if subject is not None else ""


@contextlib.contextmanager
def _raise_problems() -> Iterator[None]:
    """Turns the errors of a queue into the problems of a small request."""
    try:
        yield
    except QueueFullError:
        raise TooBusy(headers=BUSY_RETRY) from None
    except TimeoutError:
        raise OutOfTime(headers=BUSY_RETRY) from None


async def wait_for_turn(scope: Scope) -> None:
    """Waits until a request, whose body has arrived, may use the event loop."""
    queues: RequestQueues = scope["app"].state.request_queues
    with _raise_problems():
        await queues.loop.wait_for_turn(_get_tenant_id(scope), MOST_SECONDS)


def queue_read(handle: RouteHandler) -> RouteHandler:
    """Returns a handler that waits for one of the threads that read."""

    async def wait_and_handle(request: Request) -> Response:
        reads: ConcurrencyLimit = request.app.state.request_queues.reads
        tenant_id = _get_tenant_id(request.scope)
        with _raise_problems():
            await reads.acquire(tenant_id, MOST_SECONDS)
        try:
            return await handle(request)
        finally:
            reads.release(tenant_id)

    return wait_and_handle


def queue_write(handle: RouteHandler) -> RouteHandler:
    """Returns a handler that waits for one of the threads that write, so that reads find a free one."""

    async def wait_and_handle(request: Request) -> Response:
        writes: ConcurrencyLimit = request.app.state.request_queues.writes
        tenant_id = _get_tenant_id(request.scope)
        try:
            with get_wait_budget().spend() as seconds:
                await writes.acquire(tenant_id, seconds)
        except QueueFullError:
            raise WriteTurnError("too many writers wait for the database") from None
        except TimeoutError:
            raise WriteTurnError("writers wait for the database for too long") from None
        try:
            return await handle(request)
        finally:
            writes.release(tenant_id)

    return wait_and_handle
