"""Commands in processes forked from one that has imported the service: most of a cold start is imports.

Cold starts are tested by what the README runs, by the containers and by the nodes of end-to-end tests.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FIRST = """
import gc, json, os, signal, sys
import service.app, service.cli, service.evidence.service, service.operator, service.storage
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    process = os.fork()
    if process:
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
        continue
    if asked["stays"]:
        if os.fork():
            os._exit(0)
        # Whoever asked is no parent of the command, so somebody else waits for its status.
        process = os.fork()
        if process:
            write = lambda name, number: (
                open(os.path.join(asked["files"], "new"), "w").write(str(number)),
                os.rename(os.path.join(asked["files"], "new"), os.path.join(asked["files"], name)),
            )
            write("pid", process)
            write("status", os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
            os._exit(0)
    else:
        signal.alarm(60)
    os.chdir(asked["directory"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for descriptor, name in enumerate(("in", "out", "err")):
        os.dup2(os.open(os.path.join(asked["files"], name), os.O_RDWR), descriptor)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", buffering=1), open(2, "w", buffering=1)
    sys.argv = ["ironlaw", *asked["arguments"]]
    sys.exit(service.cli.main())
"""
_LOCK = threading.Lock()


class Done(NamedTuple):
    """What a command said, and its status."""

    out: str
    errors: str
    status: int


@cache
def _first() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _FIRST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.communicate)
    return process


def ironlaw(*arguments: str, environment: dict[str, str], given: str | None) -> Done:
    """One `ironlaw` command."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "in").write_text(given or "")
        status = _ask(name, arguments, environment, stays=False)
        return Done((Path(name) / "out").read_text(), (Path(name) / "err").read_text(), status)


def _ask(folder: str, arguments: Sequence[str], environment: dict[str, str], *, stays: bool) -> int:
    for name in ("in", "out", "err"):
        (Path(folder) / name).touch()
    asked = {
        "arguments": arguments,
        "environment": environment,
        "directory": str(Path.cwd()),
        "files": folder,
        "stays": stays,
    }
    with _LOCK:
        first = _first()
        assert first.stdin is not None
        assert first.stdout is not None
        first.stdin.write(json.dumps(asked) + "\n")
        first.stdin.flush()
        return int(first.stdout.readline())


class Staying:
    """A command that runs until it is told to stop, as `subprocess.Popen` has it."""

    def __init__(self, *arguments: str, environment: dict[str, str]) -> None:
        self._files = Path(tempfile.mkdtemp())
        _ask(str(self._files), arguments, environment, stays=True)
        self.pid = int(self._until("pid", 30.0))
        self.returncode: int | None = None
        self.stdout, self.stderr = self._lines("out"), self._lines("err")

    def _until(self, name: str, seconds: float) -> str:
        deadline = time.monotonic() + seconds
        while not (self._files / name).exists():
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(name, seconds)
            time.sleep(0.005)
        return (self._files / name).read_text()

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

    def poll(self) -> int | None:
        if self.returncode is None and (self._files / "status").exists():
            self.returncode = int((self._files / "status").read_text())
        return self.returncode

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            self.returncode = int(self._until("status", timeout))
        return self.returncode

    def errors(self) -> str:
        """What it has said of errors so far."""
        return (self._files / "err").read_text()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it has said in all, once it has ended; nothing is left of it."""
        self.wait(timeout)
        said = (self._files / "out").read_text(), (self._files / "err").read_text()
        shutil.rmtree(self._files)
        return said
