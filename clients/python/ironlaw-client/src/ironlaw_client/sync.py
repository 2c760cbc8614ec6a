"""What resources of the synchronous client share."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import httpx

from .core import Call, Core, Done, Exchange, Sending, advance, next_call

T = TypeVar("T")
PageT = TypeVar("PageT")
ItemT = TypeVar("ItemT")


class Transport:
    """Sends what exchanges yield."""

    def __init__(self, core: Core, http: httpx.Client) -> None:
        self.core = core
        self.http = http

    def run(self, exchange: Exchange[T]) -> T:
        """Returns the result of an exchange."""
        step = advance(exchange, None)
        while not isinstance(step, Done):
            step = advance(exchange, self._perform(step))
        answer: T = step.answer
        return answer

    def _perform(self, step: Sending | float) -> httpx.Response | httpx.TransportError | None:
        if not isinstance(step, Sending):
            time.sleep(step)
            return None
        try:
            return self.http.request(**step._asdict())
        except httpx.TransportError as error:
            return error


class Resource:
    """Operations of one noun."""

    def __init__(self, client: Transport) -> None:
        self._client = client

    def _ask(self, call: Call[T]) -> T:
        return self._client.run(self._client.core.ask(call))

    def _wait(self, call: Call[T], states: tuple[str, ...], timeout_seconds: float) -> T:
        return self._client.run(self._client.core.wait(call, states, timeout_seconds))

    def _pages(self, call: Call[PageT]) -> Pages[PageT, Any]:
        return Pages(self._client, call)


class Pages(Generic[PageT, ItemT]):
    """The rows of a list, which are fetched page by page."""

    def __init__(self, client: Transport, call: Call[PageT]) -> None:
        self._client = client
        self._call = call

    def __iter__(self) -> Iterator[ItemT]:
        for page in self.pages():
            yield from page["items"]  # type: ignore[index]  # a page, by construction

    def pages(self) -> Iterator[PageT]:
        """Yields each page as it was answered."""
        call: Call[PageT] | None = self._call
        while call is not None:
            page = self._client.run(self._client.core.ask(call))
            yield page
            call = next_call(call, page)
