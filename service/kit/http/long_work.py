"""Long work: in threads of its own, a bounded number at a time, for a bounded time.

There are three queues, so that short work does not wait behind long work: questions, of a second at most;
searches, of seconds; and verifications of audit chains. Python runs one thread at a time and gives each a few
milliseconds: many threads that compute leave the event loop none. They are bounded in length and time,
and work ends once its caller has gone.
"""

import asyncio
import contextlib
import contextvars
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope

from service.kit.http.cancellation import unwanted
from service.kit.http.fair_queue import FairQueue, QueueFullError
from service.kit.http.problems import BUSY_RETRY, MemoryPressure, OutOfTime, TooBusy
from service.kit.memory import MemoryWatch
from service.kit.metrics import LONG_WORK_REFUSED, LONG_WORK_RUNNING, LONG_WORK_WAITING, MEMORY_REFUSED

QUESTIONS, SEARCHES, VERIFICATIONS = "questions", "searches", "verifications"
VERIFICATION_SECONDS: Final = 30.0
"""Longest time of a verification, which reads in one transaction: SQLite gives one as long."""
MOST_AT_ONCE: Final = 2
MOST_AT_ONCE_OF_A_TENANT: Final = 1
"""Limit per tenant, so that a tenant with many questions leaves a thread to the others."""
MOST_OF_A_TENANT: Final = 32
"""Most pieces of work that run and wait for one tenant."""
MOST_WAITING: Final = 128
"""Most pieces of work that wait for all tenants in one queue."""
MEMORY_RETRY: Final = {"Retry-After": "10"}
"""Headers of a refusal for want of memory, which takes longer to come free than a thread."""
_ANSWER_BY = "answer_by"
"""Key in the state of a request: its deadline on the monotonic clock."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeferredAnswer:
    """An answer that an endpoint leaves to be computed and serialized by :class:`LongWork`."""

    work_out: Callable[[], Any]
    is_search: bool = False
    """True if it may take over a second."""


class WorkOffloader(Protocol):
    """Runs long work for one caller: :meth:`LongWork.run` bound to its request."""

    async def __call__(self, do: Callable[[], T], /) -> T:
        """Runs ``do`` and returns its result."""
        ...


@dataclass(eq=False, slots=True)
class _QueuedWork:
    tenant_id: str
    do: Callable[[], Any]
    context: contextvars.Context
    answered: "asyncio.Future[Any]"
    unwanted: threading.Event = field(default_factory=threading.Event)


class LongWork:
    """Runs one queue of the long work of a process. Its methods belong to the event loop.

    A thread starts with each piece of work and ends with it, which costs little beside work of 20 ms, and no
    thread keeps the process from ending.
    """

    def __init__(
        self, name: str, seconds: float, threads: int = MOST_AT_ONCE, memory: MemoryWatch | None = None
    ) -> None:
        self._name, self._seconds, self._threads, self._memory = name, seconds, threads, memory
        self._running: Counter[str] = Counter()
        self._begun: set[_QueuedWork] = set()
        self._waiting: FairQueue[_QueuedWork] = FairQueue(MOST_WAITING, MOST_OF_A_TENANT)
        self._begin_next()
        for reason in ("busy", "out_of_time"):
            LONG_WORK_REFUSED.labels(name, reason)

    @property
    def seconds(self) -> float:
        """Time that a caller waits for an answer."""
        return self._seconds

    async def run(self, scope: Scope, receive: Receive, do: Callable[[], T], *, share: float = 1.0) -> T:
        """Runs ``do`` and returns its result; refuses it if too much waits or if it takes too long.

        Work that runs when its time is over ends at its next :func:`check_cancelled` and counts until then.
        """
        state = scope["state"]
        answer_by = state.setdefault(_ANSWER_BY, time.monotonic() + self._seconds)
        tenant_id = state["subject"].tenant_id if "subject" in state else ""
        answered = asyncio.get_running_loop().create_future()
        work = _QueuedWork(tenant_id, do, contextvars.copy_context(), answered)
        self._queue_work(work)
        try:
            left = min(answer_by - time.monotonic(), share * self._seconds)
            await _wait_for_answer(answered, receive, left)
            if not answered.done():
                if share == 1.0:  # otherwise the search goes on in the background
                    LONG_WORK_REFUSED.labels(self._name, "out_of_time").inc()
                raise OutOfTime(headers=BUSY_RETRY)
            result: T = answered.result()
            return result
        finally:
            if not answered.done():
                self._drop_work(work)
            del answered, work  # an error holds this frame, whose objects would wait for the collector

    def shed(self) -> None:
        """Refuses the work that waits, and ends what runs if memory is all but used up."""
        if self._memory is None or not self._memory.is_short:
            return
        for work in (*self._waiting.clear(), *(self._begun if self._memory.is_critical else ())):
            if not work.answered.done():
                work.answered.set_exception(_build_memory_problem())
                work.unwanted.set()
        self._begin_next()

    def _queue_work(self, work: _QueuedWork) -> None:
        """Starts the work, or queues it behind earlier work."""
        if self._memory is not None and self._memory.is_short:
            raise _build_memory_problem()
        try:
            displaced = self._waiting.add(work.tenant_id, work, running=self._running[work.tenant_id])
        except QueueFullError:
            raise self._refuse() from None
        if displaced is not None:
            displaced.answered.set_exception(self._refuse())
        self._begin_next()

    def _refuse(self) -> TooBusy:
        LONG_WORK_REFUSED.labels(self._name, "busy").inc()
        return TooBusy(headers=BUSY_RETRY)

    def _begin_next(self) -> None:
        """Starts as much work as may run, tenants in turn."""
        while self._running.total() < self._threads:
            work = self._waiting.take_next(self._has_room)
            if work is None:
                break
            self._begin_work(work)
        LONG_WORK_RUNNING.labels(self._name).set(self._running.total())
        LONG_WORK_WAITING.labels(self._name).set(len(self._waiting))

    def _has_room(self, tenant_id: str) -> bool:
        return self._running[tenant_id] < MOST_AT_ONCE_OF_A_TENANT

    def _begin_work(self, work: _QueuedWork) -> None:
        work.context.run(unwanted.set, work.unwanted)
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._run_work, args=(work, loop), name=self._name, daemon=True)
        self._running[work.tenant_id] += 1
        self._begun.add(work)
        try:
            thread.start()
        except RuntimeError:  # the system cannot start another thread
            self._running[work.tenant_id] -= 1
            self._begun.discard(work)
            work.answered.set_exception(self._refuse())

    def _run_work(self, work: _QueuedWork, loop: asyncio.AbstractEventLoop) -> None:
        """Runs the work in its thread and reports the result to the loop."""
        try:
            self._report_result(loop, work, work.context.run(work.do), None)
        except BaseException as error:  # noqa: BLE001  # reported to the caller
            self._report_result(loop, work, None, error)
        finally:
            del work  # an error holds this frame, whose objects would wait for the collector

    def _report_result(
        self, loop: asyncio.AbstractEventLoop, work: _QueuedWork, result: object, error: BaseException | None
    ) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and everybody who waited
            loop.call_soon_threadsafe(self._end_work, work, result, error)

    def _end_work(self, work: _QueuedWork, result: object, error: BaseException | None) -> None:
        self._begun.discard(work)
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
        """Cancels work whose caller no longer waits."""
        work.answered.cancel()
        work.unwanted.set()
        self._waiting.discard(work.tenant_id, work)
        self._begin_next()


def build_queues(seconds: float, memory: MemoryWatch | None = None) -> dict[str, LongWork]:
    """Builds every queue of a process. ``seconds`` is the time that a caller may wait for an answer.

    Questions take little memory and go on while it is short.
    """
    return {
        QUESTIONS: LongWork(QUESTIONS, seconds),
        SEARCHES: LongWork(SEARCHES, seconds, memory=memory),
        VERIFICATIONS: LongWork(VERIFICATIONS, VERIFICATION_SECONDS, threads=1, memory=memory),
    }


def _build_memory_problem() -> MemoryPressure:
    MEMORY_REFUSED.labels("long_work").inc()
    return MemoryPressure(headers=MEMORY_RETRY)


async def _wait_for_answer(answered: "asyncio.Future[Any]", receive: Receive, seconds: float) -> None:
    """Waits for an answer until the time is over; raises if the caller disconnects first."""
    gone = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({answered, gone}, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if gone.done() and not answered.done():
        raise ClientDisconnect


async def _wait_for_disconnect(receive: Receive) -> Message:
    """Returns the message that the caller has disconnected. Its request has been read before."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return message
