"""The clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import httpx

from .aio import AsyncTransport
from .async_resources import AsyncResources
from .core import Call, Core
from .resources import Resources
from .sync import Transport

TIMEOUT_SECONDS = 60.0


class Ironlaw(Resources):
    """A client of the service, whose resources are its members: `Ironlaw(url).estimates.memory({...})`.

    The address and the key default to `IRONLAW_URL` and `IRONLAW_API_KEY`. A client of httpx brings proxies,
    certificates and a timeout of its own.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retries: int = 4,
        longest_pause_seconds: float = 60.0,
        http_client: httpx.Client | None = None,
    ) -> None:
        core = Core(url, api_key, retries, longest_pause_seconds)
        super().__init__(Transport(core, http_client or httpx.Client(timeout=timeout_seconds)))

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Returns the response to any request of the service; it is repeated where it is safe."""
        call: Call[Any] = Call(method, path, query=query or {}, body=body, headers=headers or {})
        return self._client.run(self._client.core.send(call))

    def close(self) -> None:
        """Closes connections."""
        self._client.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncIronlaw(AsyncResources):
    """:class:`Ironlaw`, whose calls are awaited."""

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        retries: int = 4,
        longest_pause_seconds: float = 60.0,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        core = Core(url, api_key, retries, longest_pause_seconds)
        super().__init__(AsyncTransport(core, http_client or httpx.AsyncClient(timeout=timeout_seconds)))

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Returns the response to any request of the service; it is repeated where it is safe."""
        call: Call[Any] = Call(method, path, query=query or {}, body=body, headers=headers or {})
        return await self._client.run(self._client.core.send(call))

    async def close(self) -> None:
        """Closes connections."""
        await self._client.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
