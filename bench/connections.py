"""Sets uvicorn's own protocols beside that of the service, by the cost that a caller can cause.

`python -m bench.connections` runs each server in a process of its own, with the widest public settings that
bound a connection, and prints the table of docs/decisions/0077-the-server-bounds-a-connection.md. The run
takes about five minutes and stays on loopback.
"""

import multiprocessing
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import uvicorn

from service.kit.http import server

PATIENCE_SECONDS = 15.0
"""Wait for a server to give up a caller. The service waits for a head 10 s."""
HEAD_BYTES = 2**26
REQUESTS = 20_000
PROTOCOLS: dict[str, dict[str, Any]] = {
    "service": {"http": server.BoundedProtocol},
    "uvicorn, httptools": {"http": "httptools"},
    "uvicorn, h11": {"http": "h11", "h11_max_incomplete_event_size": 2**15},
}


async def _answer(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """An application that reads the body and answers its length."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    size = 2**26 if scope["path"] == "/large" else 2
    headers = [(b"content-length", b"%d" % size), (b"x-received", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b" " * size})


def _serve(name: str, listening: socket.socket) -> None:
    config = uvicorn.Config(
        _answer,
        loop="uvloop",
        lifespan="off",
        ws="none",
        log_level="critical",
        access_log=False,
        timeout_keep_alive=5,
        limit_concurrency=800,
        **PROTOCOLS[name],
    )
    uvicorn.Server(config).run(sockets=[listening])


def _measure_close_seconds(port: int, sent: bytes) -> str:
    """Seconds until the server closes a connection that sent this and then nothing."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(sent)
        line.settimeout(PATIENCE_SECONDS)
        began = time.monotonic()
        try:
            while line.recv(2**16):
                pass
        except TimeoutError:
            return f"over {PATIENCE_SECONDS:.0f} s"
        return f"{time.monotonic() - began:.0f} s"


def measure_silence(port: int) -> str:
    """Time that a caller may hold a connection without a byte."""
    return _measure_close_seconds(port, b"")


def measure_slow_head(port: int) -> str:
    """Time that a caller may hold a connection with half a head."""
    return _measure_close_seconds(port, b"GET / HTTP/1.1\r\nHost: a\r\nX: ")


def measure_head_bytes(port: int) -> str:
    """Bytes of a head that the server reads before it refuses."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.settimeout(PATIENCE_SECONDS)
        line.sendall(b"GET / HTTP/1.1\r\n")
        sent = 0
        with suppress(OSError):
            while sent < HEAD_BYTES:
                line.sendall(b"X-%d: " % sent + b"a" * 2**15 + b"\r\n")
                sent += 2**15
        return f"over {HEAD_BYTES // 2**20} MiB" if sent >= HEAD_BYTES else f"under {sent / 2**20:.1f} MiB"


def measure_upgrade(port: int) -> str:
    """Bytes that the application receives of a body of five, sent as Java's client does."""
    offer = (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"
    )
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.settimeout(5)
        line.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n" + offer + b"\r\nabcde")
        received = b""
        with suppress(TimeoutError):
            while b"\r\n\r\n" not in received and (part := line.recv(2**16)):
                received += part
    _, found, count = received.partition(b"x-received: ")
    return f"{int(count.split()[0])} bytes" if found else "no answer"


def measure_unread(port: int) -> str:
    """Time that a caller may leave an answer of 64 MiB unread (the service allows 60 s)."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(server.SEND_SECONDS + 5)
        line.settimeout(5)
        received = 0
        with suppress(OSError):
            while part := line.recv(2**20):
                received += len(part)
        return "kept" if received >= 2**26 else f"dropped after {server.SEND_SECONDS:.0f} s"


def measure_rate(port: int) -> str:
    """Short answers a second on one connection."""
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter()
        for _ in range(REQUESTS):
            line.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            received = line.recv(2**16)
            while not received.endswith(b"\r\n\r\n  "):
                received += line.recv(2**16)
        return f"{REQUESTS / (time.perf_counter() - began):,.0f}"


MEASURES: dict[str, Callable[[int], str]] = {
    "a caller that sends nothing is closed after": measure_silence,
    "a caller that sends half a head is closed after": measure_slow_head,
    "bytes of a head that are read": measure_head_bytes,
    "body of 5 bytes behind an offer to upgrade": measure_upgrade,
    "an answer of 64 MiB that nobody reads": measure_unread,
    "short answers a second on one connection": measure_rate,
}


def main() -> None:
    """Measure every server and print the table."""
    context = multiprocessing.get_context("fork")
    columns: list[list[str]] = []
    for name in PROTOCOLS:
        listening = socket.create_server(("127.0.0.1", 0))
        process = context.Process(target=_serve, args=(name, listening), daemon=True)
        process.start()
        time.sleep(1.0)
        columns.append([measure(listening.getsockname()[1]) for measure in MEASURES.values()])
        process.terminate()
        process.join()
        listening.close()
    print("| | " + " | ".join(PROTOCOLS) + " |\n|---|" + "---:|" * len(PROTOCOLS))
    for row, label in enumerate(MEASURES):
        print(f"| {label} | " + " | ".join(column[row] for column in columns) + " |")


if __name__ == "__main__":
    main()
