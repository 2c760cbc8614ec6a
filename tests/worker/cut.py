"""A network between two processes of this host that can be cut: a TCP proxy on loopback."""

import contextlib
import socket
import threading


class Network:
    """Forwards connections to a port, until it is cut."""

    def __init__(self, port):
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = set()
        self._changing = threading.Lock()
        self._is_cut = False
        self.refused = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """End every connection, and every one that is tried from now on."""
        with self._changing:
            self._is_cut = True
            for connection in self._open:
                _end(connection)
            self._open.clear()

    def mend(self):
        with self._changing:
            self._is_cut = False

    def close(self):
        self.cut()
        _end(self._listener)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                with self._changing:
                    if self._is_cut:
                        self.refused += 1
                        _end(near)
                        continue
                    far = socket.create_connection(("127.0.0.1", self._port))
                    self._open |= {near, far}
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source, target):
    with contextlib.suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    for connection in (source, target):
        _end(connection)


def _end(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
