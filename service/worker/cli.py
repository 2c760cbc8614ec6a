"""The commands of a worker: join, run, say how it is, measure without a service."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.worker.errors import WorkerError

if TYPE_CHECKING:
    from rich.console import Console

    from service.protocol.suites import BenchmarkSuite
    from service.worker.state_directory import Node, StateDirectory
    from service.worker.status import WorkerStatus

app = typer.Typer(no_args_is_help=True, help="Work for the service, or measure without one.")

TOKEN_VARIABLE = "IRONLAW_ENROLMENT_TOKEN"  # noqa: S105  # its name, not its value
_MOST_TOKEN_CHARACTERS = 200
NVIDIA_CONTROL = Path("/dev/nvidiactl")


class DeviceOption(StrEnum):
    """What a node measures."""

    AUTO = "auto"
    CUDA = "cuda"
    CPU = "cpu"


FolderOption = Annotated[
    Path,
    typer.Option(
        "--dir",
        envvar="IRONLAW_WORKER_DIR",
        help="Folder of the credential and of results that the service does not have yet.",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(envvar="IRONLAW_WORKER_CA_FILE", help="Certificates to trust instead of the public ones."),
]
LockFile = Annotated[
    Path,
    typer.Option(envvar="IRONLAW_WORKER_LOCK_FILE", help="The lock that one worker of a host holds."),
]
AcceleratorIndex = Annotated[
    int,
    typer.Option(
        "--accelerator", min=0, envvar="IRONLAW_WORKER_ACCELERATOR", help="Which of several is measured."
    ),
]
FOLDER = Path("~/.ironlaw-worker")
LOCK_FILE = Path("/tmp/ironlaw-worker.lock")  # noqa: S108  # opened so that no link and no other file is followed


@app.command()
def enrol(
    *,
    service: Annotated[
        str, typer.Option(envvar="IRONLAW_WORKER_SERVICE", help="Address of the service, https://HOST.")
    ],
    token_file: Annotated[
        typer.FileText | None,
        typer.Option(help=f"File of the enrolment token, - for standard input; else {TOKEN_VARIABLE}."),
    ] = None,
    key_file: Annotated[
        typer.FileText | None,
        typer.Option(
            help="File of an API key that may make a token: enrolment-tokens:write, and what nodes may."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(envvar="IRONLAW_WORKER_NAME", help="What the node should be called.")
    ] = None,
    device: Annotated[
        DeviceOption,
        typer.Option(envvar="IRONLAW_WORKER_DEVICE", help="What it measures; auto: cuda with its driver."),
    ] = DeviceOption.AUTO,
    again: Annotated[
        bool, typer.Option("--again", help="Though this host is enrolled: for a new credential.")
    ] = False,
    if_none: Annotated[bool, typer.Option(help="Do nothing where this host is enrolled already.")] = False,
    folder: FolderOption = FOLDER,
    ca_file: CaFile = None,
) -> None:
    """Make this host a node of a service, with a single-use token; repeat it if the answer was lost."""
    from service.worker.enrolment import create_token, enrol_node  # noqa: PLC0415
    from service.worker.state_directory import Node, StateDirectory  # noqa: PLC0415

    if if_none and StateDirectory(folder).load_state(Node) is not None:
        typer.echo("this host is enrolled already", err=True)
        return
    if key_file:
        token = create_token(service, key_file.read(_MOST_TOKEN_CHARACTERS).strip(), ca_file=ca_file)
    else:
        token = token_file.read(_MOST_TOKEN_CHARACTERS) if token_file else os.environ.get(TOKEN_VARIABLE, "")
    if not token.strip():
        raise typer.BadParameter(f"there is no enrolment token: --token-file FILE, or {TOKEN_VARIABLE}")
    kind = device.value
    if kind == "auto":
        kind = "cuda" if NVIDIA_CONTROL.exists() else "cpu"
    node = enrol_node(
        StateDirectory(folder), service, token.strip(), device="cuda" if kind == "cuda" else "cpu", name=name,
        ca_file=ca_file, again=again,
    )  # fmt: skip
    typer.echo(f"enrolled as {node.node_id}, to measure {node.device}; go on with: ironlaw worker run")


@app.command()
def run(
    *,
    folder: FolderOption = FOLDER,
    ca_file: CaFile = None,
    spool_bytes: Annotated[
        int,
        typer.Option(
            min=2**20,
            envvar="IRONLAW_WORKER_SPOOL_BYTES",
            help="Room for results that the service does not have; nothing is measured once it is taken.",
        ),
    ] = 2**30,
    free_bytes: Annotated[
        int,
        typer.Option(
            min=0,
            envvar="IRONLAW_WORKER_FREE_BYTES",
            help="What must stay free on the disk; nothing is measured below.",
        ),
    ] = 2**28,
    grace_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            envvar="IRONLAW_WORKER_GRACE_SECONDS",
            help="For what runs to end, once the worker is asked to stop.",
        ),
    ] = 8.0,
    accelerator: AcceleratorIndex = 0,
    once: Annotated[
        bool, typer.Option(help="End after one suite, once the service has its results.")
    ] = False,
    lock_file: LockFile = LOCK_FILE,
) -> None:
    """Claim suites and measure them, until asked to stop."""
    from service.worker.agent import Agent, WorkerOptions  # noqa: PLC0415
    from service.worker.client import ServiceClient  # noqa: PLC0415
    from service.worker.credential import WorkerCredentials  # noqa: PLC0415
    from service.worker.gate import RequestGate  # noqa: PLC0415
    from service.worker.process import ChildProcesses  # noqa: PLC0415
    from service.worker.shared import WorkerParts  # noqa: PLC0415
    from service.worker.spool import ResultSpool  # noqa: PLC0415
    from service.worker.state_directory import lock_home, lock_host  # noqa: PLC0415
    from service.worker.status import WorkerStatus  # noqa: PLC0415

    home, node = _load_node(folder)
    children = ChildProcesses(kept_open=[lock_host(lock_file.expanduser()), lock_home(home)])
    credentials, board = WorkerCredentials(home.credential), WorkerStatus()
    shared = WorkerParts(
        node=node,
        home=home,
        client=ServiceClient(node.service, ca_file=ca_file, credentials=credentials),
        credentials=credentials,
        spool=ResultSpool(home.spool, most_bytes=spool_bytes, least_free_bytes=free_bytes),
        board=board,
        gate=RequestGate(board),
    )
    agent = Agent(shared, children, WorkerOptions(grace_seconds, accelerator, is_once=once))
    with _report_progress(board), _handle_stop_signals(agent.stop, lambda: agent.stop(at_once=True)):
        agent.run()


@app.command()
def status(*, folder: FolderOption = FOLDER, lock_file: LockFile = LOCK_FILE) -> None:
    """Say what this host is, whether it works, and which results it holds; asks nobody."""
    from service.worker.spool import ResultSpool  # noqa: PLC0415
    from service.worker.state_directory import HeldLease, is_locked  # noqa: PLC0415

    home, node = _load_node(folder)
    held = home.load_state(HeldLease)
    state = ResultSpool(home.spool, most_bytes=sys.maxsize, least_free_bytes=0).compute_state()
    typer.echo(f"node      {node.node_id} of {node.service}, measures {node.device}")
    typer.echo(f"worker    {'runs' if is_locked(lock_file.expanduser()) else 'does not run'}")
    typer.echo(f"lease     {held.id if held else 'none'}")
    typer.echo(f"results   {state.waiting_count} waiting ({state.waiting_bytes:,} bytes)")
    typer.echo(f"          {state.rejected_count} rejected, see {home.spool / 'rejected'}")


@app.command()
def measure(
    *,
    suite: Annotated[str, typer.Option(help="A suite that ships, or a file of one.")],
    out: Annotated[Path, typer.Option(help="Folder for records and summary.")],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Input data come from it; random by default.")
    ] = None,
    accelerator: AcceleratorIndex = 0,
    lock_file: LockFile = LOCK_FILE,
) -> None:
    """Run a suite on this machine, without a service; writes records and a summary."""
    from service.worker.interrupt import Interrupted, InterruptSignal  # noqa: PLC0415
    from service.worker.local import measure_locally  # noqa: PLC0415
    from service.worker.process import ChildProcesses  # noqa: PLC0415
    from service.worker.state_directory import lock_host  # noqa: PLC0415
    from service.worker.status import WorkerStatus  # noqa: PLC0415
    from service.worker.table import render_view  # noqa: PLC0415

    board, interrupt = WorkerStatus(), InterruptSignal()
    chosen = _resolve_suite(suite)
    children = ChildProcesses(kept_open=[lock_host(lock_file.expanduser())])
    try:
        with _report_progress(board), _handle_stop_signals(lambda: interrupt.set("STOPPED")):
            measure_locally(chosen, out, children, interrupt, board, seed=seed, accelerator=accelerator)
    except Interrupted:
        raise WorkerError(f"stopped; what was measured is in {out}") from None
    finally:
        _build_console().print(render_view(board.view))
    typer.echo(f"records and summary are in {out}", err=True)
    raise typer.Exit(int(any(line.state == "failed" for line in board.view.lines)))


def _load_node(folder: Path) -> "tuple[StateDirectory, Node]":
    from service.worker.state_directory import Node, StateDirectory  # noqa: PLC0415

    home = StateDirectory(folder)
    node = home.load_state(Node)
    if node is None:
        raise WorkerError("this host is not enrolled: ironlaw worker enrol")
    return home, node


def _resolve_suite(name: str) -> "BenchmarkSuite":
    """A suite that ships, by its id, or one of a file."""
    from service.protocol.suites import shipped_suites  # noqa: PLC0415
    from service.worker.running import read_suite  # noqa: PLC0415

    shipped = shipped_suites()
    if name in shipped:
        return shipped[name]
    if not Path(name).is_file():
        raise typer.BadParameter(f"there is no suite and no file {name}; suites: {', '.join(shipped)}")
    return read_suite(Path(name).read_text("utf-8"))


@contextmanager
def _handle_stop_signals(
    first: Callable[[], None], second: Callable[[], None] | None = None
) -> Iterator[None]:
    """Call ``first`` when asked to stop, and ``second`` when asked again.

    A signal handler may run while its thread holds any lock, so it only writes to a pipe.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)

    def handle_signals() -> None:
        for act in (first, second or first):
            os.read(read_end, 1)
            act()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(write_end, b"."))
    threading.Thread(target=handle_signals, name="signals", daemon=True).start()
    yield


@contextmanager
def _report_progress(board: "WorkerStatus") -> Iterator[None]:
    """Show the board at a terminal, and write the log to standard error."""
    from service.worker.table import TableLogHandler, show_progress  # noqa: PLC0415

    console = _build_console()
    logger = logging.getLogger("service.worker")
    logger.setLevel(logging.INFO)
    logger.addHandler(TableLogHandler(console))
    with show_progress(board, console):
        yield


def _build_console() -> "Console":
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=True, highlight=False)
