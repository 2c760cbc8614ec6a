"""Commands and functions in processes forked from one that has imported them: a cold start is mostly imports.

Cold starts are tested by `make run`, by the worker and node of the guides and by the containers.
"""

import atexit
import contextlib
import fcntl
import os
import pickle
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NamedTuple

from tests import forking

_ROOT = Path(__file__).parents[1]
_COMMAND_SECONDS = 60
DIRECTORY = "IRONLAW_TEST_DATABASES"
"""The variable that names the folder of a run."""


class Done(NamedTuple):
    """What a command said, and its status."""

    out: str
    errors: str
    status: int


@cache
def _listener() -> str:
    """Where the process listens that forks for every worker of the run; it lives as long as one of them."""
    folder = Path(os.environ.get(DIRECTORY) or tempfile.mkdtemp())
    path = str(folder / "forking")
    with (folder / "forking.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            staying = _connected(path)
        except (OSError, EOFError):
            command = [sys.executable, "-m", "tests.forking", path]
            starting = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
            with starting.stdout:
                assert starting.stdout.readline() == b"listening\n"
            starting.returncode = 0  # it outlives this process if others need it
            staying = _connected(path)
    atexit.register(staying.close)
    return path


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
        _line(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _line(connection: socket.socket) -> str:
    said = b""
    while not said.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise EOFError
        said += byte
    return said.decode()


class _Called:
    """A call in a process of its own, which is asked as one of multiprocessing or subprocess."""

    def __init__(self, listener: str, call: forking.Call) -> None:
        self._connection = _connected(listener)
        self._connection.sendall(pickle.dumps(tuple(call)))
        self.pid = int(_line(self._connection))
        self.returncode: int | None = None
        self._turn = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        with self._turn:
            if self.returncode is None:
                if not wait([self._connection], timeout):
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
                self.returncode = int(_line(self._connection))
                self._connection.close()
            return self.returncode

    def join(self, timeout: float | None = None) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(timeout)

    def poll(self) -> int | None:
        self.join(0)
        return self.returncode

    @property
    def exitcode(self) -> int | None:
        return self.poll()

    def is_alive(self) -> bool:
        return self.poll() is None

    def send_signal(self, number: int) -> None:
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Process(_Called):
    """A function that is called in a process of its own."""

    def __init__(
        self,
        target: Callable[..., Any],
        *arguments: Any,
        environment: Mapping[str, str] = os.environ,
        folder: Path | None = None,
        seconds: int = 0,
        umask: int = -1,
    ) -> None:
        streams = tuple(str(folder / name) for name in ("in", "out", "err")) if folder else ()
        for stream in streams:
            Path(stream).touch()
        call = forking.Call(target, arguments, str(Path.cwd()), dict(environment), streams, seconds, umask)
        super().__init__(_listener(), call)


def ironlaw(*arguments: str, environment: dict[str, str], given: str | None, umask: int = -1) -> Done:
    """One `ironlaw` command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").write_text(given or "")
        status = Process(
            forking.ironlaw,
            *arguments,
            environment=environment,
            folder=folder,
            seconds=_COMMAND_SECONDS,
            umask=umask,
        ).wait()
        return Done((folder / "out").read_text(), (folder / "err").read_text(), status)


def stand_in(path: Path) -> None:
    """Write a program that is the `ironlaw` command in a forked process; no signal reaches that."""
    program = (
        f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from tests import forked; "
        f"sys.exit(forked.run_as({_listener()!r}, sys.argv[1:]))"
    )
    # A path in the first line of a script could hold no space.
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(program)} "$@"\n')
    path.chmod(0o700)


def run_as(listener: str, arguments: list[str]) -> int:
    """The status of a command for which a stand-in stands: it has the streams of this process."""
    streams = tuple(f"/proc/{os.getpid()}/fd/{number}" for number in range(3))
    directory, environment = str(Path.cwd()), dict(os.environ)
    call = forking.Call(forking.ironlaw, tuple(arguments), directory, environment, streams)
    return _Called(listener, call).wait()


class Staying(Process):
    """A command that runs until it is told to stop, as `subprocess.Popen` has it."""

    def __init__(self, *arguments: str, environment: dict[str, str], umask: int = -1) -> None:
        self._files = Path(tempfile.mkdtemp())
        super().__init__(
            forking.ironlaw, *arguments, environment=environment, folder=self._files, umask=umask
        )
        self.stdout, self.stderr = self._lines("out"), self._lines("err")

    def _lines(self, name: str) -> Iterator[str]:
        """Each line as it is written, until the command has ended."""
        with (self._files / name).open() as file:
            said = ""
            while True:
                has_ended = self.poll() is not None
                said += file.readline()
                if said.endswith("\n"):
                    yield said
                    said = ""
                elif has_ended:
                    return
                else:
                    time.sleep(0.005)

    def errors(self) -> str:
        """What it has said of errors so far."""
        return (self._files / "err").read_text()

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it has said in all, once it has ended; nothing is left of it."""
        self.wait(timeout)
        said = (self._files / "out").read_text(), (self._files / "err").read_text()
        shutil.rmtree(self._files)
        return said
