"""A server and its client as two programs of this host, which end by themselves or are killed.

Both stay in the group of the process that measures, which the worker kills as a whole. Their output goes to
files: a pipe that a killed program leaves to its own children would be waited for.
"""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from service.worker.redaction import extract_last_lines

ADDRESS = "127.0.0.1"
ATTEMPTS = 3
"""Ports that are tried: one that was free may be taken before the server listens."""
STARTING_SECONDS = 20.0
"""Time for a server to listen."""
ENDING_SECONDS = 10.0
"""Time for a server to end after its client."""
POLL_SECONDS = 0.01
MOST_OUTPUT_BYTES = 2**20
MOST_ERROR_CHARACTERS = 1000
SOCKETS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"
"""State of a socket that listens (TCP_LISTEN of the kernel's tcp_states.h)."""


class PairOutcome(NamedTuple):
    """Result of a server and its client."""

    printed: str
    """Output of the client."""
    failure: str | None
    """Reason why the output is no result; None if both ended with status 0."""
    complaints: tuple[str, ...]
    """Last lines of the output and error output of the server, and of the client if it was started."""


class _LoggedProcess(NamedTuple):
    process: "subprocess.Popen[bytes]"
    output: IO[bytes]
    errors: IO[bytes]

    def read_output(self) -> bytes:
        self.output.seek(0)
        return self.output.read(MOST_OUTPUT_BYTES + 1)

    def read_complaints(self) -> str:
        size = self.errors.seek(0, os.SEEK_END)
        self.errors.seek(max(0, size - 4 * MOST_ERROR_CHARACTERS))
        said = self.read_output()[-MOST_ERROR_CHARACTERS:] + b"\n" + self.errors.read()
        return extract_last_lines(said, MOST_ERROR_CHARACTERS)


def run_pair(
    build: Callable[[int], tuple[Sequence[str], Sequence[str]]],
    environment: Mapping[str, str],
    *,
    seconds: float,
) -> PairOutcome:
    """Runs a server and, once it listens, its client; both are killed after ``seconds``.

    Args:
        build: Returns the command lines of server and client for a port of TCP.
        environment: Variables of both in addition to those of this process.
        seconds: Time for the client.
    """
    for attempt in range(ATTEMPTS):
        port = _find_free_port()
        with ExitStack() as stack:
            server, client = (tuple(command) for command in build(port))
            serving = stack.enter_context(_start(server, environment))
            if not _wait_listening(serving.process, port):
                ended = serving.process.poll()
                if ended is not None and attempt + 1 < ATTEMPTS:
                    continue
                said = "did not listen in time" if ended is None else f"ended with status {ended}"
                return PairOutcome("", f"the server {said}", (serving.read_complaints(),))
            asking = stack.enter_context(_start(client, environment))
            return _await_both(serving, asking, seconds)
    raise RuntimeError("no server was started")


def _await_both(serving: _LoggedProcess, asking: _LoggedProcess, seconds: float) -> PairOutcome:
    failure = _await_end(asking.process, "client", seconds) or _await_end(
        serving.process, "server", ENDING_SECONDS
    )
    printed = asking.read_output()
    if failure is None and len(printed) > MOST_OUTPUT_BYTES:
        failure = f"more than {MOST_OUTPUT_BYTES} bytes were printed"
    complaints = (serving.read_complaints(), asking.read_complaints())
    return PairOutcome(printed[:MOST_OUTPUT_BYTES].decode(errors="replace"), failure, complaints)


def _await_end(process: "subprocess.Popen[bytes]", name: str, seconds: float) -> str | None:
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"the {name} did not end within {seconds:g} s"
    return f"the {name} ended with status {status}" if status else None


@contextmanager
def _start(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[_LoggedProcess]:
    with TemporaryFile() as output, TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603  # a fixed list of arguments
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, **environment},
        )
        with process:
            try:
                yield _LoggedProcess(process, output, errors)
            finally:
                process.kill()


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def _wait_listening(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Returns true once the port is listened on. A connection to find out would be taken for the client."""
    until = time.monotonic() + STARTING_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            return False
        if _is_listened_on(port):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _is_listened_on(port: int) -> bool:
    for file in SOCKETS:
        try:
            lines = file.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            cells = line.split()
            if cells[3] == _LISTENING and int(cells[1].rpartition(":")[2], 16) == port:
                return True
    return False


def ask_program(command: Sequence[str], *, seconds: float = 10.0) -> str:
    """Returns what a program prints about itself, whatever its status; nothing if it does not end in time."""
    with ExitStack() as stack:
        asked = stack.enter_context(_start(tuple(command), {}))
        if _await_end(asked.process, "program", seconds) is None or asked.process.returncode is not None:
            return asked.read_output().decode(errors="replace")
    return ""
