"""The worker's side of a child process: starts it, limits its time and output, kills its whole group."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, AnyStr

from service.worker.interrupt import InterruptSignal
from service.worker.redaction import extract_last_lines

MOST_ERROR_CHARACTERS = 4000
_PIECE_BYTES = 65_536
_ENDING_SECONDS = 10.0
"""Seconds for a process to end once it was killed or has closed its output; a driver may block it."""
_ROOT = str(Path(__file__).absolute().parents[2])
_START = """
import runpy, sys
root, module = sys.argv[1:3]
del sys.argv[1:3]
if root not in sys.path:
    sys.path.insert(0, root)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""Runs a module, imported from where this package lies too, but not from the current folder."""
_OWN_VARIABLES = ("IRONLAW_ENROLMENT_TOKEN",)
"""Environment variables that are hidden from a child."""


@dataclass(frozen=True, slots=True)
class EndedProcess:
    """Outcome of a child process."""

    output: bytes
    error_output: str
    """Last part of its error output, at most 4,000 characters, without credentials."""
    exit_code: int | None
    """Exit status, negative for a signal; None if it could not even be killed."""
    is_timeout: bool = False
    is_too_long: bool = False


class ChildProcesses:
    """Starts child processes from threads that wait for their end: the kernel ties each to its thread."""

    def __init__(self, *, kept_open: Sequence[int] = (), module: str = "service.worker.child") -> None:
        """Children run ``module`` and keep the descriptors ``kept_open`` open, such as that of a lock."""
        self._module = module
        self._kept_open = tuple(kept_open)
        self._stuck: list[subprocess.Popen[bytes]] = []
        self._running: set[int] = set()

    @property
    def is_stuck(self) -> bool:
        """Returns true if a killed process is still there, and may hold the device."""
        return any(process.poll() is None for process in self._stuck)

    @property
    def running_ids(self) -> frozenset[int]:
        """Ids of the processes that run now."""
        return frozenset(self._running)

    def run(
        self,
        words: Sequence[str],
        given: bytes,
        interrupt: InterruptSignal,
        *,
        seconds: float,
        most_bytes: int,
        kept_open: Sequence[int] = (),
    ) -> EndedProcess:
        """Runs one process on ``given``.

        Args:
            words: Command line; the id of this process is inserted after the first word.
            given: Standard input.
            interrupt: Kills the process once it is set.
            seconds: Time after which it is killed.
            most_bytes: Size of its output beyond which it is killed.
            kept_open: Descriptors that this process keeps open too.

        Raises:
            Interrupted: It was killed because of an interruption.
        """
        command = [*build_module_command(self._module), words[0], str(os.getpid()), *words[1:]]
        process = subprocess.Popen(  # noqa: S603  # fixed words; what is measured comes as data
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES},
            start_new_session=True,
            pass_fds=(*self._kept_open, *kept_open),
        )
        output = _PipeReader(get_pipe(process.stdout), most_bytes, interrupt)
        errors = _PipeReader(get_pipe(process.stderr), None, interrupt)
        writer = threading.Thread(target=_write_input, args=(get_pipe(process.stdin), given), daemon=True)
        for thread in (output, errors, writer):
            thread.start()
        is_ended = False
        self._running.add(process.pid)
        try:
            is_ended = interrupt.wait(seconds, lambda: output.is_ended)
            # A process that has answered may take a moment to end.
            exit_code = self._kill_process(process, after_seconds=_ENDING_SECONDS if is_ended else 0.0)
        except BaseException:
            self._kill_process(process, after_seconds=0.0)
            raise
        finally:
            self._running.discard(process.pid)
        errors.join(_ENDING_SECONDS)
        return EndedProcess(
            output=bytes(output.content),
            error_output=extract_last_lines(bytes(errors.content), MOST_ERROR_CHARACTERS),
            exit_code=exit_code,
            is_timeout=not is_ended,
            is_too_long=output.is_too_long,
        )

    def _kill_process(self, process: subprocess.Popen[bytes], *, after_seconds: float) -> int | None:
        """Kills a process and all that it started; returns its exit status, None while it is alive."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            if after_seconds:
                process.wait(after_seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            return process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._stuck.append(process)
            return None


def build_module_command(module: str) -> list[str]:
    """Returns the command that runs a module by this interpreter, from a checkout or installed."""
    return [sys.executable, "-P", "-c", _START, _ROOT, module]


def find_group(process_id: int) -> int | None:
    """Returns the group of a process, which is the id of the child that started it; None if it is gone."""
    with contextlib.suppress(OSError):
        return os.getpgid(process_id)
    return None


def get_pipe(pipe: IO[AnyStr] | None) -> IO[AnyStr]:
    """Returns the pipe of a process that was started with one."""
    if pipe is None:
        raise RuntimeError("the process was started without a pipe")
    return pipe


class _PipeReader(threading.Thread):
    """Reads a pipe to its end, keeping all of it up to a limit, or the last part."""

    def __init__(self, pipe: IO[bytes], most_bytes: int | None, interrupt: InterruptSignal) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._most_bytes = most_bytes
        self._interrupt = interrupt
        self.content = bytearray()
        self.is_ended = False
        self.is_too_long = False

    def run(self) -> None:
        with self._pipe as pipe:
            while piece := os.read(pipe.fileno(), _PIECE_BYTES):
                self.content += piece
                if self._most_bytes is None:
                    del self.content[: -4 * MOST_ERROR_CHARACTERS]
                elif len(self.content) > self._most_bytes:
                    self.is_too_long = True
                    break
        self.is_ended = True
        self._interrupt.wake()


def _write_input(pipe: IO[bytes], given: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), pipe:
        pipe.write(given)


def kill_process(process: "subprocess.Popen[str]") -> None:
    """Kills a process, ignoring its output and any input that it has not read."""
    process.kill()
    with contextlib.suppress(BrokenPipeError), process:
        pass
