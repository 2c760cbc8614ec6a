"""Work that takes long: in threads of its own, a bounded number at a time, for a bounded time.

Python runs one thread at a time and gives each a few milliseconds: many threads that compute leave the event
loop none. What waits here is bounded in number and time, and nobody works for a caller who has gone.
"""

import asyncio
import contextlib
import contextvars
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from service.kit.http.cancellation import unwanted
from service.kit.http.problems import Unavailable
from service.kit.metrics import LONG_WORK_REFUSED, LONG_WORK_RUNNING, LONG_WORK_WAITING

MOST_AT_ONCE: Final = 2
MOST_AT_ONCE_OF_A_TENANT: Final = 1
"""A tenant that asks much leaves a thread to the others."""
MOST_OF_A_TENANT: Final = 32
"""Most that runs and waits for one tenant."""
MOST_WAITING: Final = 128
"""Most that waits for all tenants."""
_RETRY: Final = {"Retry-After": "1"}
_ANSWER_BY = "answer_by"
"""In the state of a request: when its time is over."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeferredAnswer:
    """An answer that an endpoint leaves to be worked out, and written, by :class:`LongWork`."""

    work_out: Callable[[], Any]


class WorkOffloader(Protocol):
    """Does long work for one caller: :meth:`LongWork.run` for its request."""

    async def __call__(self, do: Callable[[], T], /) -> T:
        """What ``do`` returns."""
        ...


class TooBusy(Unavailable):
    """Too many long questions wait for their answers, of this tenant or of all. Ask again later."""

    code, title = "BUSY", "Too many long questions wait for an answer"


class OutOfTime(Unavailable):
    """The answer took longer than the service works on one. Ask again when less is asked, or ask for less."""

    code, title = "OUT_OF_TIME", "The answer was not ready in time"


@dataclass(eq=False, slots=True)
class _QueuedWork:
    tenant_id: str
    do: Callable[[], Any]
    context: contextvars.Context
    answered: "asyncio.Future[Any]"
    unwanted: threading.Event = field(default_factory=threading.Event)


class LongWork:
    """Does the long work of one process. Its methods belong to the event loop.

    A thread begins with each piece of work and ends with it, which costs little beside work of 20 ms, and no
    thread keeps a process from ending.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[_QueuedWork]] = {}
        """Of each tenant; whose turn is next comes first."""

    async def run(self, scope: Scope, receive: Receive, do: Callable[[], T]) -> T:
        """What ``do`` returns; refused where too much waits, or where it takes too long.

        What runs when its time is over ends at its next :func:`check_cancelled`;
        until then it counts.
        """
        state = scope["state"]
        answer_by = state.setdefault(_ANSWER_BY, time.monotonic() + self._seconds)
        tenant_id = state["subject"].tenant_id if "subject" in state else ""
        answered = asyncio.get_running_loop().create_future()
        work = _QueuedWork(tenant_id, do, contextvars.copy_context(), answered)
        self._queue_work(work)
        try:
            await _wait_for_answer(answered, receive, answer_by - time.monotonic())
            result: T = answered.result()
            return result
        finally:
            if not answered.done():
                self._drop_work(work)
            del answered, work  # an error holds this frame: what it holds would wait for the collector

    def _queue_work(self, work: _QueuedWork) -> None:
        """Begin, or wait behind what came before."""
        mine = self._waiting.get(work.tenant_id, ())
        of_tenant = len(mine) + self._running[work.tenant_id]
        if of_tenant >= MOST_OF_A_TENANT or sum(map(len, self._waiting.values())) >= MOST_WAITING:
            LONG_WORK_REFUSED.labels("busy").inc()
            raise TooBusy(headers=_RETRY)
        self._waiting.setdefault(work.tenant_id, deque()).append(work)
        self._begin_next()

    def _begin_next(self) -> None:
        """Begin as much as may run, tenants in turn."""
        while self._running.total() < MOST_AT_ONCE:
            tenant_id = next((name for name in self._waiting if self._has_room(name)), None)
            if tenant_id is None:
                break
            line = self._waiting.pop(tenant_id)
            self._begin_work(line.popleft())
            if line:
                self._waiting[tenant_id] = line  # behind the others
        LONG_WORK_RUNNING.set(self._running.total())
        LONG_WORK_WAITING.set(sum(map(len, self._waiting.values())))

    def _has_room(self, tenant_id: str) -> bool:
        return self._running[tenant_id] < MOST_AT_ONCE_OF_A_TENANT

    def _begin_work(self, work: _QueuedWork) -> None:
        work.context.run(unwanted.set, work.unwanted)
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._run_work, args=(work, loop), name="long work", daemon=True)
        self._running[work.tenant_id] += 1
        try:
            thread.start()
        except RuntimeError:  # the system has no thread more
            self._running[work.tenant_id] -= 1
            work.answered.set_exception(TooBusy(headers=_RETRY))

    def _run_work(self, work: _QueuedWork, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: work, and tell the loop."""
        try:
            self._report_result(loop, work, work.context.run(work.do), None)
        except BaseException as error:  # noqa: BLE001  # told to whoever waits
            self._report_result(loop, work, None, error)
        finally:
            del work  # an error holds this frame: what it holds would wait for the collector

    def _report_result(
        self, loop: asyncio.AbstractEventLoop, work: _QueuedWork, result: object, error: BaseException | None
    ) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and everybody who waited
            loop.call_soon_threadsafe(self._end_work, work, result, error)

    def _end_work(self, work: _QueuedWork, result: object, error: BaseException | None) -> None:
        self._running[work.tenant_id] -= 1
        self._running += Counter()  # forgets tenants of which nothing runs
        self._begin_next()
        if work.answered.done():
            return
        if error is None:
            work.answered.set_result(result)
        else:
            work.answered.set_exception(error)

    def _drop_work(self, work: _QueuedWork) -> None:
        """Nobody waits for it any more."""
        work.answered.cancel()
        work.unwanted.set()
        line = self._waiting.get(work.tenant_id, deque())
        if work in line:
            line.remove(work)
            if not line:
                del self._waiting[work.tenant_id]
            self._begin_next()


async def _wait_for_answer(answered: "asyncio.Future[Any]", receive: Receive, seconds: float) -> None:
    """Wait for an answer; refuses where the time is over or the caller goes before."""
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({answered, gone}, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if answered.done():
        return
    if gone.done():
        raise ClientDisconnect
    LONG_WORK_REFUSED.labels("out_of_time").inc()
    raise OutOfTime(headers=_RETRY)


async def _wait_for_disconnect(receive: Receive) -> Message:
    """The word that a caller whose request has been read is no longer there."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message
