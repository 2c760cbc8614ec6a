"""A proxy on loopback between one node and the service: it cuts, delays, repeats and loses, by a seed.

What is to go wrong is planned: for each operation a number of each trouble, in an order that the seed says.
A troubled request is followed by some that pass, so that work goes on.
"""

import contextlib
import json
import random
import select
import socket
import threading
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TROUBLES = ("cut before", "cut in the middle", "answer lost", "delayed", "sent twice")
OPERATIONS = ("claim", "renew", "upload", "complete", "heartbeat", "inventory", "rotate", "enrol")
AT_ONCE = frozenset({"claim", "renew", "upload", "complete"})
"""Sent twice, these arrive at the same moment; of the others the second follows and its answer counts."""
LONGEST_DELAY_SECONDS = 0.5


def operation_of(path):
    if "/benchmark-results/" in path:
        return "upload"
    return "inventory" if path.endswith("/inventory") else path.rpartition(":")[2]


class Proxy:
    """Stands at an address of its own for the service at ``port``."""

    def __init__(self, port, seed):
        self._port = port
        self._random = random.Random(seed)  # noqa: S311
        self._lock = threading.Lock()
        self._plans = {}
        self._share = 0.0
        self.held = None
        """Operation of which the next request is held back until it is let go."""
        self._let_go = threading.Event()
        self.arrived_late = []
        """Operation and status of what was held back and arrived."""
        self.done = Counter()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.proxy = self
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def plan(self, times, operations=OPERATIONS, share=0.4):
        """Have every trouble of every operation happen so many times, to a share of its requests."""
        self._share = share
        for operation in operations:
            troubles = list(TROUBLES) * times
            self._random.shuffle(troubles)
            self._plans[operation] = deque(troubles)

    @property
    def is_calm(self):
        return not any(self._plans.values())

    def calm(self):
        self._plans = {}

    def let_go(self):
        """Let what was held back arrive."""
        self._let_go.set()

    def close(self):
        self._let_go.set()
        self._server.shutdown()
        self._server.server_close()

    def next_trouble(self, operation):
        with self._lock:
            plan = self._plans.get(operation)
            if not plan or self._random.random() > self._share:
                return "none"
            trouble = plan.popleft()
            self.done[operation, trouble] += 1
            return trouble

    def pass_on(self, operation, request, caller):
        """The answer to a request, or None where the caller gets none."""
        with self._lock:
            is_held = self.held == operation
            self.held = None if is_held else self.held
        if is_held:
            self._let_go.wait(30)
            answer = self._send(request)
            self.arrived_late.append((operation, status_of(answer)))
            return None
        match self.next_trouble(operation):
            case "cut before":
                return None
            case "cut in the middle":
                self._send(request[: len(request) * 2 // 3], is_whole=False)
                return None
            case "answer lost":
                self._send(request)
                return None
            case "delayed":
                time.sleep(self._random.uniform(0.0, LONGEST_DELAY_SECONDS))
            case "sent twice":
                return self._send_twice(operation, request, caller)
        return self._send(request, caller)

    def _send_twice(self, operation, request, caller):
        if operation not in AT_ONCE:
            self._send(request, caller)
            return self._send(request, caller)
        with ThreadPoolExecutor(2) as pool:
            first, second = [pool.submit(self._send, request, caller) for _ in range(2)]
            return first.result() or second.result()

    def _send(self, request, caller=None, *, is_whole=True):
        """The service's answer to these bytes; None if it gives none, or the caller hangs up."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 5) as upstream:
            upstream.settimeout(40)
            upstream.sendall(request)
            if not is_whole:
                return None
            answer = b""
            while _is_waited_for(upstream, caller) and (piece := upstream.recv(65_536)):
                answer += piece
            return answer if b"\r\n\r\n" in answer else None
        return None


def _is_waited_for(upstream, caller):
    """Wait for more of an answer; whether the caller is still there by then."""
    readable, _, _ = select.select([upstream, *([caller] if caller else [])], [], [], 40)
    return upstream in readable


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer else 0


def code_of(answer):
    """The code of a problem."""
    return json.loads(answer.partition(b"\r\n\r\n")[2]).get("code")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A worker that was killed leaves its connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = "".join(f"{k}: {v}\r\n" for k, v in self.headers.items() if k.lower() != "connection")
        head = f"{self.command} {self.path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
        answer = self.server.proxy.pass_on(operation_of(self.path), head.encode() + body, self.connection)
        self.close_connection = True
        if answer is not None:
            self.wfile.write(answer)

    do_POST = do_PUT = do_GET = _pass_on  # noqa: N815  # as the standard library names them

    def log_message(self, *_):
        """Nothing is said."""
