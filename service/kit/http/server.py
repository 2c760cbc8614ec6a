"""The protocol of the server, with bounds on the cost of a connection.

uvicorn bounds neither the head of a request nor the time that it takes, reads on behind requests that wait
for their turn, keeps callers that never read, and loses the body of a request that offers an upgrade. It
sends the head of an answer in a packet of its own.
"""

import asyncio
import secrets
from itertools import chain
from typing import Any, cast
from urllib.parse import unquote

import httptools
from pydantic_core import to_json
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from service.kit.http.bodies import BODY_SECONDS, IS_WHOLE
from service.kit.http.context import SECURITY_HEADERS
from service.kit.http.problems import (
    CONTENT_TYPE,
    BadRequest,
    HeadersTooLarge,
    Problem,
    RequestTimeout,
    Unavailable,
    UriTooLong,
)
from service.kit.http.web import problem_document

MOST_CONNECTIONS = 800
"""Most open connections of a process. Each is an open file, of which many systems allow 1024."""
MOST_URL_BYTES = 2**14
"""Longest address; a list with two filters of 50 values each fits."""
MOST_HEADER_BYTES = 2**15
MOST_HEADERS = 100
MOST_WAITING = 16
"""Most requests of a connection that wait for the answer to an earlier one."""
HEAD_SECONDS = 10.0
"""Longest time for the address and the headers to arrive, counted from the first byte or the connection."""
SEND_SECONDS = 60.0
"""Longest time for a caller to read an answer."""

_WITHOUT_BODY = (204, 304)


class _RefusedError(Exception):
    """Stops the parser."""


class _RequestCycle(RequestResponseCycle):
    """A request and its answer, whose head is sent together with the beginning of its body."""

    _head = b""

    async def send(self, message: ASGISendEvent) -> None:
        """Sends a message of the application."""
        if message["type"] == "http.response.start":
            if self.response_started:
                raise RuntimeError("The answer has already started")
            self._head = self._begin_answer(
                message["status"], [*self.default_headers, *message.get("headers", ())]
            )
            return
        if message["type"] != "http.response.body" or not self.response_started or self.response_complete:
            raise RuntimeError(f"{message['type']} is not expected here")
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if not self.disconnected:
            self._send_body(message.get("body", b""), is_last=not message.get("more_body", False))

    def _begin_answer(self, status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
        """Starts an answer and returns its head."""
        self.response_started, self.waiting_for_100_continue = True, False
        if HEADER_RE.search(b"".join([name for name, _ in headers])):
            raise RuntimeError("The name of a header is invalid")
        if HEADER_VALUE_RE.search(b"".join([value for _, value in headers])):
            raise RuntimeError("The value of a header is invalid")
        lines = [b"%b: %b\r\n" % header for header in headers]
        given = dict(headers)
        if b"close" in given.get(b"connection", b"").lower():
            self.keep_alive = False
        elif not self.keep_alive:
            lines.append(b"connection: close\r\n")
        self.expected_content_length = int(given.get(b"content-length", b"0"))
        has_body = self.scope["method"] != "HEAD" and status not in _WITHOUT_BODY
        self.chunked_encoding = has_body and b"content-length" not in given
        if self.chunked_encoding:
            lines.append(b"transfer-encoding: chunked\r\n")
        return b"".join([STATUS_LINE[status], *lines, b"\r\n"])

    def _send_body(self, body: bytes, *, is_last: bool) -> None:
        """Sends a part of the body, together with the head if that is still held back."""
        if self.scope["method"] == "HEAD":
            body, self.expected_content_length = b"", 0
        elif self.chunked_encoding:
            body = b"%b%b" % (
                b"%x\r\n%b\r\n" % (len(body), body) if body else b"",
                b"0\r\n\r\n" if is_last else b"",
            )
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0 or (is_last and self.expected_content_length):
                raise RuntimeError("The body does not match its Content-Length")
        self.transport.write(self._head + body)
        self._head = b""
        if is_last:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()


class BoundedProtocol(HttpToolsProtocol):
    """HTTP/1.1 with bounds on addresses, headers, waiting requests and slow callers."""

    _in_message = False
    _in_head = True
    _received_bytes = 0
    _body_bytes = 0
    _refusal: Problem = BadRequest()
    _arriving: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Opens a connection unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse_request(Unavailable(headers={"Retry-After": "1"}))
        else:
            self._arriving = self.loop.call_later(HEAD_SECONDS, self._handle_late_request)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancels the timers of a connection."""
        super().connection_lost(exc)
        for timer in (self._arriving, self._sending):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Parses received bytes. A message that is incomplete is bounded in size and time."""
        self._unset_keepalive_if_required()
        self._received_bytes += len(data)
        try:
            self.parser.feed_data(data)
            if self._in_message:
                self._check_size()
                if self._arriving is None:
                    self._arriving = self.loop.call_later(HEAD_SECONDS, self._handle_late_request)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade(data[upgrade.args[0] :])
        except (httptools.HttpParserError, _RefusedError):
            self._refuse_request(self._refusal)

    def _check_size(self) -> None:
        """Refuses an address, headers, trailers or chunk extensions that are too long."""
        beside_body = max(
            # Chunks of a few bytes have more overhead than content.
            self._received_bytes - 2 * self._body_bytes,
            sum(map(len, chain.from_iterable(self.headers))),
        )
        if len(self.url) > MOST_URL_BYTES:
            self._refusal = UriTooLong()
        elif beside_body > MOST_HEADER_BYTES or len(self.headers) > MOST_HEADERS:
            self._refusal = HeadersTooLarge()
        elif len(self.pipeline) < MOST_WAITING:
            return
        raise _RefusedError

    def on_message_begin(self) -> None:
        """Handles the parser's event that a request begins."""
        super().on_message_begin()
        self._in_message = self._in_head = True
        self._received_bytes = self._body_bytes = 0

    def on_headers_complete(self) -> None:
        """Handles the parser's event that the head of a request is complete."""
        self._check_size()
        method, version = self.parser.get_method(), self.parser.get_http_version()
        if method == b"CONNECT":
            raise _RefusedError
        self.scope["method"] = method.decode()
        self.scope["http_version"] = version
        if not self.parser.should_upgrade():
            self._begin_request(keep_alive=version != "1.0" and self.parser.should_keep_alive())
        self._in_head = False
        # Trailers must not be merged into the headers (RFC 9110, 6.5.1).
        self.headers = []

    def _begin_request(self, *, keep_alive: bool) -> None:
        """Passes a request to the application, behind earlier ones of this connection."""
        url = httptools.parse_url(self.url)
        self.scope["path"] = unquote(url.path.decode())
        self.scope["raw_path"] = url.path
        self.scope["query_string"] = url.query or b""
        earlier = cast(_RequestCycle | None, self.cycle)
        self.cycle = _RequestCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def on_body(self, body: bytes) -> None:
        """Handles the parser's event for a part of the body."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Handles the parser's event that the request is complete."""
        self._in_message = False
        self.scope["state"][IS_WHOLE] = True
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None
        super().on_message_complete()

    def _handle_late_request(self) -> None:
        if not self._in_message:
            self._close_connection()
        elif self._in_head:
            self._refuse_request(RequestTimeout())
        else:
            # A reader of the body has its own limit and answers; here the body may have no reader.
            self._arriving = self.loop.call_later(BODY_SECONDS, self.transport.abort)

    def _should_upgrade(self) -> bool:
        """Returns true, so that a request that offers an upgrade is handled by :meth:`data_received`."""
        return True

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Reads a request that offers an upgrade, as Java's client does, as if it did not (RFC 9110, 7.8).

        The parser takes the bytes after the head for another protocol, so it is given a head without the
        offer.
        """
        version = self.parser.get_http_version().encode()
        head = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
        head += [b"%b: %b" % header for header in self.scope["headers"] if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.data_received(b"\r\n".join([*head, b"", rest]))

    def _refuse_request(self, problem: Problem) -> None:
        """Answers with a problem and closes, behind the answers to earlier requests."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        if cycle is None or cycle.response_complete:
            if self._in_head:
                self.transport.write(_build_response(problem))
        elif not cycle.more_body:
            cycle.keep_alive = False
            return
        elif not cycle.response_started and not self.pipeline:
            self.transport.write(_build_response(problem))
            cycle.disconnected = True
            cycle.message_event.set()
        self._close_connection()

    def _close_connection(self) -> None:
        self.transport.close()
        self._limit_sending()

    def on_response_complete(self) -> None:
        """Handles the end of an answer: it is written, though perhaps not sent."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._limit_sending()

    def timeout_keep_alive_handler(self) -> None:
        """Closes a connection on which no request followed an answer."""
        self._close_connection()

    def pause_writing(self) -> None:
        """Limits the time to send once the caller reads more slowly than it is answered."""
        super().pause_writing()
        self._limit_sending()

    def resume_writing(self) -> None:
        """Cancels the limit once the caller has caught up."""
        super().resume_writing()
        if self._sending is not None and not self.transport.is_closing():
            self._sending.cancel()
            self._sending = None

    def _limit_sending(self) -> None:
        if self._sending is None:
            self._sending = self.loop.call_later(SEND_SECONDS, self.transport.abort)


def _build_response(problem: Problem) -> bytes:
    """Serializes a problem for a request that has no path yet."""
    request_id = secrets.token_hex(8)
    content = to_json(problem_document(problem, instance="", request_id=request_id))
    headers: dict[str, Any] = {
        "Content-Type": CONTENT_TYPE,
        "Content-Length": len(content),
        "Connection": "close",
        "Request-Id": request_id,
        **{name.decode(): value.decode() for name, value in SECURITY_HEADERS.items()},
        **problem.headers,
    }
    lines = [f"{name}: {value}\r\n".encode() for name, value in headers.items()]
    return b"".join([STATUS_LINE[problem.status], *lines, b"\r\n", content])
