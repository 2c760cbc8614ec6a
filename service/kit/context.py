"""The one middleware: what every request gets, whatever it asks."""

import logging
import os
import re
import time
from collections.abc import Iterable

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.kit.logs import request_ids
from service.kit.metrics import REQUESTS_IN_PROGRESS, count_request
from service.kit.problems import HostNotAllowed, OriginNotAllowed, PayloadTooLarge, Problem
from service.kit.web import problem_response

log = logging.getLogger(__name__)
request_log = structlog.get_logger()

ANY_HOST = "*"
PROBES = ("/livez", "/readyz")
"""Asked by address by those who watch the process; neither logged nor bound to a host."""

SECURITY_HEADERS = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
}
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_PORT = re.compile(rb":[0-9]{1,5}$")


class _Answer:
    """Sends an answer and remembers its status; 0 before it begins."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


class RequestContext:
    """Gives every request an id, a log line and a count, refuses wrong hosts and large bodies.

    Answers HEAD as GET; the server leaves the body out. Pure ASGI: a base class that wraps streams in
    tasks costs two thirds of the throughput.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, hosts: Iterable[str]) -> None:
        self._app = app
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
        if scope["path"] in PROBES:
            await self._app(scope, receive, _dressed(send, state))
            return
        answer = _Answer(_dressed(send, state))
        began = time.perf_counter()
        REQUESTS_IN_PROGRESS.inc()
        try:
            await self._serve(scope, receive, answer)
        finally:
            REQUESTS_IN_PROGRESS.dec()
            _note(scope, answer.status, time.perf_counter() - began)

    async def _serve(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        problem = self._refusal(scope)
        if problem is None:
            if _length(scope) is None:
                receive = self._capped(receive)
            try:
                await self._app(scope, receive, answer)
            except ClientDisconnect:
                return
            except Exception:
                log.exception("unhandled error in request %s", scope["state"]["request_id"])
                problem = None if answer.status else Problem()
        if problem is not None:
            await problem_response(problem, scope)(scope, receive, answer)

    def _refusal(self, scope: Scope) -> Problem | None:
        if self._hosts is not None and not self._answers_for(scope):
            return HostNotAllowed()
        if scope["method"] not in _SAFE and _is_foreign(scope["headers"]):
            return OriginNotAllowed()
        length = _length(scope)
        if length is not None and length > self._max_body_bytes:
            return PayloadTooLarge()
        return None

    def _answers_for(self, scope: Scope) -> bool:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        return len(hosts) == 1 and _PORT.sub(b"", hosts[0]).lower() in (self._hosts or ())

    def _capped(self, receive: Receive) -> Receive:
        received = 0

        async def capped() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_body_bytes:
                raise PayloadTooLarge
            return message

        return capped


def _is_foreign(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a browser sends a request for a page of another site; in open mode it needs no credentials."""
    given = dict(headers)
    origin = given.get(b"origin")
    return origin is not None and origin.partition(b"://")[2] != given.get(b"host")


def _length(scope: Scope) -> int | None:
    """The length that the request declares."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), None)
    return int(length) if length is not None and length.isdigit() else None


def _dressed(send: Send, state: dict[str, object]) -> Send:
    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = message["headers"]
            given = {name for name, _ in headers}
            headers.append((b"request-id", str(state["request_id"]).encode()))
            headers.extend(state.get("headers", ()))
            headers.extend(field for field in SECURITY_HEADERS.items() if field[0] not in given)
        await send(message)

    return dressed


def _note(scope: Scope, status: int, seconds: float) -> None:
    """Count and log an answer, by operation: paths hold ids, query strings what was asked."""
    operation = getattr(scope.get("route"), "name", "none")
    count_request(operation, status, seconds)
    request_log.info(
        "request", operation=operation, method=scope["method"], status=status, seconds=round(seconds, 6)
    )
