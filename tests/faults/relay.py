"""A way to a database over TCP on which nothing passes for a while, or which is cut."""

import contextlib
import socket
import threading
import time


class Relay:
    """Stands at a port of its own for a server on loopback."""

    def __init__(self, port):
        self._to = port
        self._passes = threading.Event()
        self._passes.set()
        self._sockets = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def part(self, seconds):
        """Let nothing pass for a while; what was on its way arrives then."""
        self._passes.clear()
        time.sleep(seconds)
        self._passes.set()

    def cut(self, seconds):
        """Let nothing pass for a while, and end every connection then: what was on its way is lost."""
        self._passes.clear()
        time.sleep(seconds)
        for one in list(self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._passes.set()

    def close(self):
        self._listener.close()
        self.cut(0)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                with contextlib.suppress(OSError):
                    server = socket.create_connection(("127.0.0.1", self._to))
                    for pair in ((caller, server), (server, caller)):
                        threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source, target):
        self._sockets.add(source)
        with contextlib.suppress(OSError):
            while piece := source.recv(65_536):
                self._passes.wait()
                target.sendall(piece)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._sockets.discard(source)
        source.close()
