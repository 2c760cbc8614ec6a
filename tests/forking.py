"""A process that has imported what tests start, and forks it for every worker of a run.

It listens on a Unix socket. A connection that asks for a call is told the id of its process, then its status;
one that asks for nothing keeps the listener alive, which ends when nobody is connected.
"""

import atexit
import contextlib
import gc
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

_FIRST_SECONDS, _LOOK_SECONDS = 60.0, 1.0


class Call(NamedTuple):
    """What a process does, and where."""

    target: Callable[..., Any]
    arguments: tuple[Any, ...]
    directory: str
    environment: dict[str, str]
    streams: tuple[str, ...] = ()
    """Paths of its input, output and errors; without them it shares those of the listener."""
    seconds: int = 0
    """After how long it is ended; 0 for never."""
    umask: int = -1
    """That of its files; without one it shares that of the listener."""

    def run(self) -> Any:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.alarm(self.seconds)
        if self.umask >= 0:
            os.umask(self.umask)
        os.chdir(self.directory)
        os.environ.clear()
        os.environ.update(self.environment)
        for descriptor, path in enumerate(self.streams):
            # A pipe whose writing end it held itself would never end.
            os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND if descriptor else os.O_RDONLY), descriptor)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
        return self.target(*self.arguments)


def ironlaw(*arguments: str) -> Any:
    """The command, in a process that has imported it."""
    sys.argv = ["ironlaw", *arguments]
    from service.cli.main import main  # noqa: PLC0415

    return main()


_COMMANDS = (
    "anyio._backends._asyncio",
    "httpcore",
    "psycopg",
    "service.auth.oidc",
    "service.app.backup",
    "service.cli.main",
    "service.kit.http.server",
    "service.app.operator",
    "service.app.storage",
    "tests.faults.approval_worker",
    "tests.faults.node_service",
    "tests.faults.node_worker",
    "tests.faults.plan_worker",
    "tests.faults.webhook_worker",
    "typer.rich_utils",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)
"""What commands import once they run, and what tests call."""


def _build_shared() -> None:
    """Builds what applications of a process share: validators, and what FastAPI keeps of the routes."""
    from service.app.application import ROUTERS  # noqa: PLC0415
    from service.kit.http.models import complete_models  # noqa: PLC0415

    complete_models()
    for router in ROUTERS:
        for route in router.routes:
            _ = route.dependant  # type: ignore[attr-defined]


def _import() -> None:
    gc.disable()
    for name in _COMMANDS:
        import_module(name)
    _build_shared()
    gc.freeze()
    gc.enable()


def _accepted(path: str) -> socket.socket | None:
    """A connection, in a process of its own; none in the listener itself when it ends."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("listening", flush=True)
        os.dup2(2, 1)
        listener.settimeout(_FIRST_SECONDS)
        while True:
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                if not os.fork():
                    connection.setblocking(True)  # noqa: FBT003
                    return connection
                connection.close()
            listener.settimeout(_LOOK_SECONDS)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                Path(path).unlink(missing_ok=True)
                return None


def _asked(connection: socket.socket) -> Call | None:
    """The call of a connection, in the process that does it; none in the one that waits for its status."""
    with connection, connection.makefile("rb") as file:
        connection.sendall(b"here\n")
        try:
            call = Call(*pickle.load(file))  # noqa: S301
        except EOFError:
            return None
        process = os.fork()
        if process == 0:
            return call
        # Whoever has asked may be gone.
        with contextlib.suppress(OSError):
            connection.sendall(f"{process}\n".encode())
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        with contextlib.suppress(OSError):
            connection.sendall(f"{status}\n".encode())
    return None


def _leave(status: object) -> None:
    """End as the interpreter does, but for taking apart all that was imported: as long as a short command."""
    if status is not None and not isinstance(status, int):
        sys.exit(str(status))
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


if __name__ == "__main__":
    _import()
    # Whoever interrupts the tests interrupts this, too, and wants no traceback of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    connection = _accepted(sys.argv[1])
    call = connection and _asked(connection)
    try:
        status = call.run() if call else None
    except SystemExit as asked:
        status = asked.code
    _leave(status)
