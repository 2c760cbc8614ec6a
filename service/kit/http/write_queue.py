"""Writes wait for a thread in a queue of their own, so that reads always find a free one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import Request, Response

from service.kit.database.failures import WriteTurnError
from service.kit.database.waiting import get_wait_budget

MOST_AT_ONCE: Final = 16
"""Most threads that write or wait for the database: less than half of those that the framework has."""
MOST_WAITING: Final = 240

RouteHandler = Callable[[Request], Awaitable[Response]]


class WriteQueue:
    """Queue of the writes of one process. Its methods belong to the event loop."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._waiting = 0

    async def run(self, handle: RouteHandler, request: Request) -> Response:
        """Answers a request once it has a place; refuses it if too many wait or its time is over."""
        await self._wait_for_place()
        try:
            return await handle(request)
        finally:
            self._places.release()

    async def _wait_for_place(self) -> None:
        if self._waiting >= MOST_WAITING:
            raise WriteTurnError("too many writers wait for the database")
        self._waiting += 1
        try:
            with get_wait_budget().spend() as seconds:
                await asyncio.wait_for(self._places.acquire(), seconds)
        except TimeoutError:
            raise WriteTurnError("writers wait for the database for too long") from None
        finally:
            self._waiting -= 1


def queue_write(handle: RouteHandler) -> RouteHandler:
    """Returns a handler that waits for its place in the queue of the application."""

    async def wait_and_handle(request: Request) -> Response:
        queue: WriteQueue = request.app.state.write_queue
        return await queue.run(handle, request)

    return wait_and_handle
