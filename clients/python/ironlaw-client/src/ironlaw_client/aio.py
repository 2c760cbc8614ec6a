"""What resources of the asynchronous client share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

import httpx

from .core import Call, Core, Done, Exchange, Sending, advance, next_call

T = TypeVar("T")
PageT = TypeVar("PageT")
ItemT = TypeVar("ItemT")


class AsyncTransport:
    """Sends what exchanges yield."""

    def __init__(self, core: Core, http: httpx.AsyncClient) -> None:
        self.core = core
        self.http = http

    async def run(self, exchange: Exchange[T]) -> T:
        """Returns the result of an exchange."""
        step = advance(exchange, None)
        while not isinstance(step, Done):
            step = advance(exchange, await self._perform(step))
        answer: T = step.answer
        return answer

    async def _perform(self, step: Sending | float) -> httpx.Response | httpx.TransportError | None:
        if not isinstance(step, Sending):
            await asyncio.sleep(step)
            return None
        try:
            return await self.http.request(**step._asdict())
        except httpx.TransportError as error:
            return error


class AsyncResource:
    """Operations of one noun."""

    def __init__(self, client: AsyncTransport) -> None:
        self._client = client

    async def _ask(self, call: Call[T]) -> T:
        return await self._client.run(self._client.core.ask(call))

    async def _wait(self, call: Call[T], states: tuple[str, ...], timeout_seconds: float) -> T:
        return await self._client.run(self._client.core.wait(call, states, timeout_seconds))

    def _pages(self, call: Call[PageT]) -> AsyncPages[PageT, Any]:
        return AsyncPages(self._client, call)


class AsyncPages(Generic[PageT, ItemT]):
    """The rows of a list, which are fetched page by page."""

    def __init__(self, client: AsyncTransport, call: Call[PageT]) -> None:
        self._client = client
        self._call = call

    async def __aiter__(self) -> AsyncIterator[ItemT]:
        async for page in self.pages():
            for item in page["items"]:  # type: ignore[index]  # a page, by construction
                yield item

    async def pages(self) -> AsyncIterator[PageT]:
        """Yields each page as it was answered."""
        call: Call[PageT] | None = self._call
        while call is not None:
            page = await self._client.run(self._client.core.ask(call))
            yield page
            call = next_call(call, page)
