"""One request over HTTP/1.1 to addresses that were checked before, under the name of their host.

The connection is only opened to one of the given addresses. The name of the host is sent in ``Host`` and in
TLS, and the certificate must match it. Redirects are returned like other answers. Proxies and credentials of
the environment are ignored, and no connection or cookie is kept. One deadline covers everything until the
answer begins, another covers its body, which is truncated.
"""

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import httpcore
import httpx

Found = TypeVar("Found")
HostResolver = Callable[[str, int], Sequence[str]]
_DEFAULT_PORTS = {"https": 443, "http": 80}


class CallFailed(OSError):
    """The call got no answer. Code and detail may be shown to whoever named the address."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class CallLimits(NamedTuple):
    """Limits of time and size of a call."""

    seconds: float
    """Seconds for the name, the connection, and the status and header fields of the answer."""
    connect_seconds: float
    """Seconds for the connection to one address."""
    body_seconds: float
    body_bytes: int


class CallReply(NamedTuple):
    """The answer to a call."""

    status: int
    headers: dict[str, str]
    """Header fields by lower-case name."""
    body: bytes
    """Beginning of the body, still compressed if it was."""
    is_whole: bool
    """True if ``body`` is the complete body."""


class _PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the first address that accepts the connection, whatever the host of the request."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the library's name
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        del host
        failed: Exception = httpcore.ConnectError("the host has no address")
        for address in self._addresses:
            try:
                return await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed


async def send_request(
    method: str,
    url: httpx.URL,
    addresses: Awaitable[Sequence[str]],
    *,
    headers: Mapping[str, str],
    content: bytes = b"",
    tls: ssl.SSLContext,
    limits: CallLimits,
) -> CallReply:
    """Sends a request to one of ``addresses`` and returns the answer, or raises :class:`CallFailed`."""
    own = {
        "host": url.netloc.decode(),
        "accept": "*/*",
        "accept-encoding": "identity",
        "connection": "close",
        "content-length": str(len(content)),
        **headers,
    }
    try:
        async with contextlib.AsyncExitStack() as ending:
            async with asyncio.timeout(limits.seconds):
                backend = _PinnedBackend(await addresses)
                pool = httpcore.AsyncConnectionPool(ssl_context=tls, network_backend=backend)
                await ending.enter_async_context(pool)
                answering = pool.stream(
                    method,
                    httpcore.URL(
                        scheme=url.scheme, host=url.raw_host, port=get_port(url), target=url.raw_path
                    ),
                    headers=list(own.items()),
                    content=content,
                    extensions={"timeout": {"connect": limits.connect_seconds}},
                )
                response = await ending.enter_async_context(answering)
            fields = {name.decode().lower(): value.decode("latin-1") for name, value in response.headers}
            body, is_whole = await _read_body(response, limits)
            return CallReply(response.status, fields, body, is_whole)
    except CallFailed:
        raise
    except (TimeoutError, httpcore.TimeoutException):
        raise CallFailed("TIMEOUT", "no answer came in time") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise _to_call_failure(error) from None


def get_port(url: httpx.URL) -> int:
    """Returns the port of a URL, or the default port of its scheme."""
    return url.port or _DEFAULT_PORTS[url.scheme]


async def _read_body(response: httpcore.Response, limits: CallLimits) -> tuple[bytes, bool]:
    """Reads the beginning of a body within the limits. The flag is true if it is the complete body."""
    read = b""
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in response.aiter_stream():
                read += chunk
                if len(read) > limits.body_bytes:
                    return read[: limits.body_bytes], False
    except (TimeoutError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        return read, False
    return read, True


def _to_call_failure(error: BaseException) -> CallFailed:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return CallFailed("TLS_FAILED", "the receiver's TLS or its certificate is not valid")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpcore.ConnectError):
        return CallFailed("NOT_CONNECTED", "the receiver accepts no connection")
    return CallFailed("NO_HTTP_ANSWER", "the connection ended without an HTTP answer")


def resolve_host(host: str, port: int) -> list[str]:
    """Returns the addresses of a host from the system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def resolve_addresses(url: httpx.URL, resolve: HostResolver = resolve_host) -> Sequence[str]:
    """Returns the addresses of a host, or raises :class:`CallFailed`."""
    try:
        return await run_in_thread(lambda: resolve(url.raw_host.decode(), get_port(url)))
    except (OSError, UnicodeError):
        raise CallFailed("NAME_NOT_RESOLVED", "the host has no address") from None


async def run_in_thread(find: Callable[[], Found]) -> Found:
    """Runs a function that may hang in a daemon thread of its own, and returns its result."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Found] = loop.create_future()

    def settle_future(result: Found | Exception) -> None:
        if found.done():  # nobody waits any more
            return
        if isinstance(result, Exception):
            found.set_exception(result)
        else:
            found.set_result(result)

    def run_find() -> None:
        result: Found | Exception
        try:
            result = find()
        except Exception as error:  # noqa: BLE001  # raised where it is waited for
            result = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle_future, result)

    threading.Thread(target=run_find, name="asking outside", daemon=True).start()
    return await found
