"""The outermost middleware: request ids, security headers, logs, metrics and checks of every request."""

import asyncio
import logging
import os
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.kit.database.waiting import limit_waits
from service.kit.http.long_work import MEMORY_RETRY
from service.kit.http.problems import (
    HostNotAllowed,
    MemoryPressure,
    OriginNotAllowed,
    PayloadTooLarge,
    Problem,
    Stopping,
)
from service.kit.http.request_span import describe_answer, note_trace, open_request_span
from service.kit.http.web import LARGE_BODY_BYTES, problem_response
from service.kit.logs import log_request, request_ids
from service.kit.memory import MemoryWatch
from service.kit.metrics import MEMORY_REFUSED, REQUESTS_IN_PROGRESS, count_refusal, count_request

log = logging.getLogger(__name__)

ANY_HOST = "*"
PROBES = ("/livez", "/readyz")
"""Paths that health checks request by address; they are neither logged nor bound to a host."""

SECURITY_HEADERS = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
_SECURITY_FIELDS = tuple(SECURITY_HEADERS.items())
_TLS_ONLY = (b"strict-transport-security", b"max-age=31536000")
"""Makes browsers use TLS for this host for a year. Other hosts of its domain are not ours to speak for."""
BYTES_OF_A_BODY_BYTE = 3
"""Memory for a byte of a large body, which stands there in pieces, whole and as text at once."""
_RESERVED = "reserved_bytes"
"""Key in the state of a request: the memory that is reserved for its large body."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({b"same-origin", b"none"})
"""Values of ``Sec-Fetch-Site`` for a request of our own pages, and for one that no page has sent."""
_PORT = re.compile(rb":[0-9]{1,5}$")


class _ResponseSender:
    """Sends an answer with the common headers and remembers its status, which is 0 before it begins."""

    def __init__(self, send: Send, state: Mapping[str, Any], fields: Iterable[tuple[bytes, bytes]]) -> None:
        self._send = send
        self._state = state
        self._fields = fields
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"]
            own = [name for name, _ in headers if name in SECURITY_HEADERS]
            headers.append((b"request-id", self._state["request_id"].encode()))
            headers.extend(self._state.get("headers", ()))
            headers.extend(self._fields if not own else [f for f in self._fields if f[0] not in own])
        await self._send(message)


class RequestContext:
    """Gives every request an id, a log line and a count, and refuses wrong hosts and large bodies.

    Answers HEAD as GET; the server leaves the body out. Pure ASGI: a base class that wraps streams in tasks
    costs two thirds of the throughput.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        max_body_bytes: int,
        hosts: Iterable[str],
        memory: MemoryWatch,
        tls_only: bool = False,
    ) -> None:
        self._app, self._memory = app, memory
        self._fields = (*_SECURITY_FIELDS, _TLS_ONLY) if tls_only else _SECURITY_FIELDS
        self._max_body_bytes = max_body_bytes
        names = {host.lower() for host in hosts}
        self._hosts = None if ANY_HOST in names else {name.encode() for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["request_id"] = os.urandom(8).hex()
        request_ids.set(state)
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        answer = _ResponseSender(send, state, self._fields)
        if scope["path"] in PROBES:
            await self._app(scope, receive, answer)
            return
        limit_waits()
        began = time.perf_counter()
        REQUESTS_IN_PROGRESS.inc()
        with open_request_span(scope) as span:
            if span is not None:
                note_trace(span, scope)
            try:
                await self._serve_request(scope, receive, answer)
            finally:
                REQUESTS_IN_PROGRESS.dec()
                _record_answer(scope, answer.status, time.perf_counter() - began)
                if span is not None:
                    describe_answer(span, scope, answer.status)
                _forget_error(scope)

    async def _serve_request(self, scope: Scope, receive: Receive, answer: _ResponseSender) -> None:
        try:
            await self._serve_reserved(scope, receive, answer)
        finally:
            self._memory.give_back(scope["state"].get(_RESERVED, 0))

    async def _serve_reserved(self, scope: Scope, receive: Receive, answer: _ResponseSender) -> None:
        """Answers a request whose body has memory reserved, and leaves that to be given back."""
        given = dict(scope["headers"])
        problem = self._find_refusal(scope, given)
        if problem is None:
            if not given.get(b"content-length", b"").isdigit():
                receive = self._limit_body(scope, receive)
            try:
                await self._app(scope, receive, answer)
            except ClientDisconnect:
                return
            except asyncio.CancelledError:  # the server stops, and the time of its requests is over
                if answer.status:
                    raise
                problem = Stopping(headers={"Retry-After": "1"})
            except Exception:
                log.exception("unhandled error in request %s", scope["state"]["request_id"])
                problem = None if answer.status else Problem()
        if problem is not None:
            await problem_response(problem, scope)(scope, receive, answer)

    def _find_refusal(self, scope: Scope, given: Mapping[bytes, bytes]) -> Problem | None:
        if self._hosts is not None and not self._is_own_host(scope["headers"]):
            return HostNotAllowed()
        if scope["method"] not in _SAFE and not _is_same_origin(given):
            return OriginNotAllowed()
        length = given.get(b"content-length", b"")
        return self._find_body_refusal(scope, int(length)) if length.isdigit() else None

    def _find_body_refusal(self, scope: Scope, body_bytes: int) -> Problem | None:
        """Returns the refusal of a body by its length, or reserves memory for it if it is large."""
        if body_bytes > self._max_body_bytes:
            return PayloadTooLarge()
        if body_bytes <= LARGE_BODY_BYTES:
            return None
        reserved, needed = scope["state"].get(_RESERVED, 0), BYTES_OF_A_BODY_BYTE * body_bytes
        if not self._memory.reserve(needed - reserved):
            MEMORY_REFUSED.labels("body").inc()
            return MemoryPressure(headers=MEMORY_RETRY)
        scope["state"][_RESERVED] = needed
        return None

    def _is_own_host(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        named = [_PORT.sub(b"", value).lower() for name, value in headers if name == b"host"]
        return len(named) == 1 and named[0] in (self._hosts or ())

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            refusal = self._find_body_refusal(scope, received)
            if refusal is not None:
                raise refusal
            return message

        return receive_limited


def _is_same_origin(given: Mapping[bytes, bytes]) -> bool:
    """Returns true unless a page of another site sends the request. In open mode writes need no credentials.

    Browsers send the origin of the page and its relation to this host. The same host under `http:` is another
    site.
    """
    origin = given.get(b"origin")
    if origin is not None and origin.partition(b"://")[2] != given.get(b"host"):
        return False
    return given.get(b"sec-fetch-site", b"none") in _OWN_SITES


def _forget_error(scope: Scope) -> None:
    """Removes what leads from a request to its error.

    The traceback of the error leads back to the request, so that a refused body would stay until garbage is
    collected.
    """
    scope["state"].pop("problem", None)
    scope.pop("starlette.exception_handlers", None)


def _record_answer(scope: Scope, status: int, seconds: float) -> None:
    """Counts and logs an answer by its operation: paths contain ids, and query strings contain questions."""
    operation = getattr(scope.get("route"), "name", "none")
    problem: Problem | None = scope["state"].get("problem")
    count_request(operation, status, seconds)
    if problem is not None:
        count_refusal(problem.status, problem.code)
    log_request(
        scope["state"],
        operation=operation,
        method=scope["method"],
        status=status,
        seconds=round(seconds, 6),
        **({} if problem is None else {"code": problem.code}),
    )
