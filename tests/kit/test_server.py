"""What a connection may cost: raw bytes against a server in this process, with its patience cut short."""

import asyncio
import contextlib
import json
import re
import socket
import threading
import time

import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from service.kit.http import bodies, server
from service.kit.http.admission import Admission
from service.kit.http.context import RequestContext
from service.kit.http.request_queues import RequestQueues
from service.kit.http.web import DirectRoutes, RenderedJson, add_routes, api_router, install_problem_handlers
from service.kit.memory import MemoryWatch

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]

router = api_router("/things", tag="things")
SEEN = []


@router.post("")
async def echo(body: dict[str, int], request: Request) -> dict[str, int]:
    SEEN.append(request.headers.get("x-late"))
    return body


@router.post("/large")
async def large(body: dict[str, int], request: Request) -> dict[str, int]:
    assert request
    return RenderedJson(b" " * body["size"])


@router.get("")
async def things() -> dict[str, int]:
    await asyncio.sleep(0.01)
    return {}


@router.get("/parts")
async def parts() -> StreamingResponse:
    return StreamingResponse(iter(["one", "", "two"]))


@router.get("/split")
async def split() -> Response:
    return Response(headers={"X": "a\r\nEvil: b"})


@pytest.fixture(scope="module")
def port():
    app = FastAPI()
    app.add_middleware(DirectRoutes, routes=app.routes, handlers=app.exception_handlers)
    app.add_middleware(RequestContext, max_body_bytes=2**20, hosts=["*"], memory=MemoryWatch(None))
    app.state.admission = Admission(None, requests_per_minute=0)
    app.state.request_queues = RequestQueues()
    install_problem_handlers(app)
    add_routes(app, router)
    config = uvicorn.Config(
        app, loop="uvloop", http=server.BoundedProtocol, ws="none", log_level="warning", access_log=False
    )
    running = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    running.should_exit = True
    thread.join()


@pytest.fixture
def patience(monkeypatch):
    """Every limit of time at a tenth of a second."""
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(server, "SEND_SECONDS", 0.1)
    monkeypatch.setattr(server, "BODY_SECONDS", 0.1)
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.1)


class Line:
    """One connection."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.settimeout(5)

    def send(self, sent):
        with contextlib.suppress(OSError):  # closed while it is sent
            self._socket.sendall(sent)

    def rest(self):
        """Everything until the server closes the connection."""
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while data := self._socket.recv(2**16):
                got += data
        return got

    def until(self, mark):
        got = b""
        while mark not in got:
            data = self._socket.recv(2**16)
            assert data, got
            got += data
        return got

    def close(self):
        self._socket.close()


@pytest.fixture
def line(port):
    made = Line(port)
    yield made
    made.close()


def head(*lines):
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1")


def post(*headers, path="/things", version="1.1"):
    return head(f"POST {path} HTTP/{version}", "Host: x", "Content-Type: application/json", *headers)


BODY = b'{"size": 1}'
SIZED = post(f"Content-Length: {len(BODY)}")
CHUNKED = post("Transfer-Encoding: chunked")
CLOSE = head("GET /things HTTP/1.1", "Host: x", "Connection: close")


def statuses(got):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", got)]


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


REFUSED = {
    "lengths that differ": (post("Content-Length: 2", "Content-Length: 3") + b"{}1", 400),
    "two equal lengths": (post("Content-Length: 2", "Content-Length: 2") + b"{}", 400),
    "a list of lengths": (post("Content-Length: 2, 2") + b"{}", 400),
    "a negative length": (post("Content-Length: -2") + b"{}", 400),
    "a signed length": (post("Content-Length: +2") + b"{}", 400),
    "a length beyond integers": (post("Content-Length: 99999999999999999999999"), 400),
    "a length and chunks": (
        post("Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + CLOSE,
        400,
    ),
    "a coding but chunks": (post("Transfer-Encoding: gzip") + b"{}", 400),
    "chunks but not last": (post("Transfer-Encoding: chunked, identity") + chunk(BODY), 400),
    "two codings": (post("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + chunk(BODY), 400),
    "a space behind a name": (post("Transfer-Encoding : chunked") + chunk(BODY), 400),
    "a chunk of negative length": (CHUNKED + b"-1\r\n", 400),
    "a chunk beyond integers": (CHUNKED + b"fffffffffffffffffffff\r\n", 400),
    "a long chunk extension": (CHUNKED + b"5;" + b"x" * 600_000, 431),
    "many trailers": (CHUNKED + chunk(BODY) + b"0\r\n" + b"X: 1\r\n" * 60_000, 431),
    "chunks of one byte": (CHUNKED + chunk(b" ") * 200_000, 431),
    "bare line feeds": (SIZED.replace(b"\r\n", b"\n") + BODY, 400),
    "bare carriage returns": (SIZED.replace(b"\r\n", b"\r") + BODY, 400),
    "a folded header": (head("GET /things HTTP/1.1", "Host: x", "X: a", " b"), 400),
    "NUL in a header": (head("GET /things HTTP/1.1", "Host: x", "X: a\0b"), 400),
    "a header without a colon": (head("GET /things HTTP/1.1", "Host"), 400),
    "NUL in an address": (head("GET /things/a\0b HTTP/1.1", "Host: x"), 400),
    "bytes beyond ASCII in an address": (head("GET /things/\xfc HTTP/1.1", "Host: x"), 400),
    "an address of a host only": (head("GET http://evil HTTP/1.1", "Host: x"), 400),
    "a tunnel": (head("CONNECT example.com:443 HTTP/1.1", "Host: example.com:443"), 400),
    "a tunnel to a path": (head("CONNECT / HTTP/1.1", "Host: x") + CLOSE, 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), 400),
    "an unknown method": (head("BREW /things HTTP/1.1", "Host: x"), 400),
    "a long address": (head("GET /" + "a" * 2**14 + " HTTP/1.1", "Host: x"), 414),
    "an address without end": (b"GET /" + b"a" * 2**20, 414),
    "a long header": (head("GET /things HTTP/1.1", "X: " + "a" * 2**15), 431),
    "a header without end": (b"GET /things HTTP/1.1\r\nX: " + b"a" * 2**20, 431),
    "a name without end": (b"GET /things HTTP/1.1\r\n" + b"a" * 2**20, 431),
    "many headers": (head("GET /things HTTP/1.1", *("X: 1" for _ in range(101))), 431),
    "headers without end": (b"GET /things HTTP/1.1\r\n" + b"X: 1\r\n" * 200_000, 431),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_http_is_refused_and_the_connection_ends(line, name):
    sent, status = REFUSED[name]
    line.send(sent)
    got = line.rest()
    assert statuses(got) == [status], got
    top, _, content = got.partition(b"\r\n\r\n")
    assert b"application/problem+json" in top
    document = json.loads(content)
    assert document["status"] == status
    assert document["request_id"].encode() in top


class TestRightRequests:
    @pytest.mark.parametrize(
        "sent",
        [
            SIZED + BODY,
            CHUNKED + chunk(BODY[:4]) + chunk(BODY[4:]) + b"0\r\n\r\n",
            b"\r\n" + SIZED + BODY,
            SIZED.replace(b"/things", b"http://other/things") + BODY,
            post(f"Content-Length: {len(BODY)}", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c")
            + BODY,
            post("Transfer-Encoding: chunked", "Connection: upgrade", "Upgrade: websocket")
            + chunk(BODY)
            + b"0\r\n\r\n",
        ],
    )
    def test_are_answered_and_the_connection_stays(self, line, sent):
        line.send(sent)
        assert BODY.replace(b" ", b"") in line.until(b"}")
        line.send(sent + CLOSE)
        assert statuses(line.rest()) == [200, 200]

    def test_a_body_behind_an_upgrade_may_come_later(self, line):
        line.send(post(f"Content-Length: {len(BODY)}", "Connection: Upgrade", "Upgrade: h2c"))
        time.sleep(0.02)
        line.send(BODY + CLOSE)
        assert statuses(line.rest()) == [200, 200]

    def test_http_1_0_is_answered_and_closed(self, line):
        line.send(post(f"Content-Length: {len(BODY)}", version="1.0") + BODY)
        assert statuses(line.rest()) == [200]

    def test_what_follows_the_body_is_no_header(self, line):
        SEEN.clear()
        line.send(CHUNKED + chunk(BODY) + b"0\r\nX-Late: 1\r\n\r\n" + CLOSE)
        assert statuses(line.rest()) == [200, 200]
        assert SEEN == [None]

    def test_some_wait_for_their_turn(self, line):
        line.send(head("GET /things HTTP/1.1", "Host: x") * 10 + CLOSE)
        assert statuses(line.rest()) == [200] * 11

    def test_too_many_are_answered_as_far_as_they_were_read(self, line):
        line.send(head("GET /things HTTP/1.1", "Host: x") * 5000)
        assert statuses(line.rest()) == [200] * (server.MOST_WAITING + 1)

    def test_rubbish_behind_one_does_not_take_its_answer(self, line):
        line.send(head("GET /things HTTP/1.1", "Host: x") + b"\x00\x01\r\n\r\n")
        assert statuses(line.rest()) == [200]


@pytest.mark.usefixtures("patience")
class TestSlowCallers:
    @pytest.mark.parametrize("sent", [b"", SIZED[:20]])
    def test_a_head_that_does_not_come(self, line, sent):
        line.send(sent)
        assert statuses(line.rest()) == [408][: len(sent)]

    def test_a_head_byte_by_byte(self, line):
        for byte in SIZED:
            line.send(bytes([byte]))
            time.sleep(0.005)
        assert statuses(line.rest()) == [408]

    def test_the_second_head_as_the_first(self, line):
        line.send(SIZED + BODY)
        line.until(b"}")
        line.send(SIZED[:20])
        assert statuses(line.rest()) == [408]

    @pytest.mark.parametrize("sent", [b"", BODY[:3]])
    def test_a_body_that_does_not_come(self, line, sent):
        line.send(SIZED + sent)
        got = line.rest()
        assert statuses(got) == [408]
        assert b"REQUEST_TIMEOUT" in got

    def test_a_body_byte_by_byte(self, line):
        line.send(post("Content-Length: 100"))
        for _ in range(40):
            line.send(b" ")
            time.sleep(0.005)
        assert statuses(line.rest()) == [408]

    def test_a_body_that_nobody_reads(self, line):
        line.send(head("GET /things HTTP/1.1", "Host: x", "Content-Length: 100"))
        assert statuses(line.rest()) == [200]

    @pytest.mark.parametrize("ending", ["", "Connection: close"])
    def test_an_answer_that_is_not_read(self, port, ending):
        body = b'{"size": 16000000}'
        waiting = socket.socket()
        waiting.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**14)
        waiting.connect(("127.0.0.1", port))
        waiting.settimeout(5)
        headers = [f"Content-Length: {len(body)}", *([ending] if ending else [])]
        waiting.sendall(post(*headers, path="/things/large") + body)
        time.sleep(0.4)
        got = 0
        with contextlib.suppress(ConnectionResetError):
            while data := waiting.recv(2**20):
                got += len(data)
        waiting.close()
        assert 0 < got < 16_000_000


class TestAnswers:
    def test_a_small_one_comes_in_one_piece(self, port):
        got = []

        async def ask():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(SIZED + BODY)
            got.append(await reader.read(2**16))
            writer.close()

        asyncio.run(ask())
        assert got[0].endswith(b"\r\n\r\n" + BODY.replace(b" ", b""))

    def test_one_in_parts_comes_in_chunks(self, line):
        line.send(CLOSE.replace(b"/things", b"/things/parts"))
        answer_head, _, body = line.rest().partition(b"\r\n\r\n")
        assert b"\r\ntransfer-encoding: chunked" in answer_head
        assert body == chunk(b"one") + chunk(b"two") + b"0\r\n\r\n"

    @pytest.mark.parametrize("path", [b"/things", b"/things/parts"])
    def test_that_to_head_has_no_body(self, line, path):
        line.send(CLOSE.replace(b"/things", path).replace(b"GET", b"HEAD"))
        got = line.rest()
        assert statuses(got) == [200]
        assert got.endswith(b"\r\n\r\n")

    def test_no_header_brings_another(self, line):
        line.send(CLOSE.replace(b"/things", b"/things/split"))
        assert b"Evil" not in line.rest()


def test_a_body_that_ends_early_is_no_defect(line, caplog):
    line.send(SIZED + BODY[:3])
    line._socket.shutdown(socket.SHUT_WR)
    assert line.rest() == b""
    assert not caplog.records


def test_too_many_connections_are_told(port, monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    lines = [Line(port) for _ in range(3)]
    got = lines[2].rest()
    assert statuses(got) == [503]
    assert b"Retry-After: 1" in got
    lines[0].send(CLOSE)
    assert statuses(lines[0].rest()) == [200]
    for opened in lines:
        opened.close()
