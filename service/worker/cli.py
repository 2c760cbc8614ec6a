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

    from service.protocol.suites import Suite
    from service.worker.board import Board
    from service.worker.home import Home, Node

app = typer.Typer(no_args_is_help=True, help="Work for the service, or measure without one.")

TOKEN_VARIABLE = "IRONLAW_ENROLMENT_TOKEN"  # noqa: S105  # its name, not its value
_MOST_TOKEN_CHARACTERS = 200
NVIDIA_CONTROL = Path("/dev/nvidiactl")


class Device(StrEnum):
    """What a node measures."""

    AUTO = "auto"
    CUDA = "cuda"
    CPU = "cpu"


Folder = Annotated[
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
        Device,
        typer.Option(envvar="IRONLAW_WORKER_DEVICE", help="What it measures; auto: cuda with its driver."),
    ] = Device.AUTO,
    again: Annotated[
        bool, typer.Option("--again", help="Though this host is enrolled: for a new credential.")
    ] = False,
    if_none: Annotated[bool, typer.Option(help="Do nothing where this host is enrolled already.")] = False,
    folder: Folder = FOLDER,
    ca_file: CaFile = None,
) -> None:
    """Make this host a node of a service, with a single-use token; repeat it if the answer was lost."""
    from service.worker.enrolment import enrol, token_by_key  # noqa: PLC0415
    from service.worker.home import Home, Node  # noqa: PLC0415

    if if_none and Home(folder).load(Node) is not None:
        typer.echo("this host is enrolled already", err=True)
        return
    if key_file:
        token = token_by_key(service, key_file.read(_MOST_TOKEN_CHARACTERS).strip(), ca_file=ca_file)
    else:
        token = token_file.read(_MOST_TOKEN_CHARACTERS) if token_file else os.environ.get(TOKEN_VARIABLE, "")
    if not token.strip():
        raise typer.BadParameter(f"there is no enrolment token: --token-file FILE, or {TOKEN_VARIABLE}")
    kind = device.value
    if kind == "auto":
        kind = "cuda" if NVIDIA_CONTROL.exists() else "cpu"
    node = enrol(
        Home(folder), service, token.strip(), device="cuda" if kind == "cuda" else "cpu", name=name,
        ca_file=ca_file, again=again,
    )  # fmt: skip
    typer.echo(f"enrolled as {node.node_id}, to measure {node.device}; go on with: ironlaw worker run")


@app.command()
def run(
    *,
    folder: Folder = FOLDER,
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
    from service.worker.agent import Agent, Options  # noqa: PLC0415
    from service.worker.board import Board  # noqa: PLC0415
    from service.worker.client import Client  # noqa: PLC0415
    from service.worker.credential import Credentials  # noqa: PLC0415
    from service.worker.gate import Gate  # noqa: PLC0415
    from service.worker.home import lock_home, lock_host  # noqa: PLC0415
    from service.worker.process import Children  # noqa: PLC0415
    from service.worker.shared import Shared  # noqa: PLC0415
    from service.worker.spool import Spool  # noqa: PLC0415

    home, node = _enrolled(folder)
    children = Children(kept_open=[lock_host(lock_file.expanduser()), lock_home(home)])
    credentials, board = Credentials(home.credential), Board()
    shared = Shared(
        node=node,
        home=home,
        client=Client(node.service, ca_file=ca_file, credentials=credentials),
        credentials=credentials,
        spool=Spool(home.spool, most_bytes=spool_bytes, least_free_bytes=free_bytes),
        board=board,
        gate=Gate(board),
    )
    agent = Agent(shared, children, Options(grace_seconds, accelerator, is_once=once))
    with _watched(board), _told_to_stop(agent.stop, lambda: agent.stop(at_once=True)):
        agent.run()


@app.command()
def status(*, folder: Folder = FOLDER, lock_file: LockFile = LOCK_FILE) -> None:
    """Say what this host is, whether it works, and which results it holds; asks nobody."""
    from service.worker.home import HeldLease, is_locked  # noqa: PLC0415
    from service.worker.spool import Spool  # noqa: PLC0415

    home, node = _enrolled(folder)
    held = home.load(HeldLease)
    state = Spool(home.spool, most_bytes=sys.maxsize, least_free_bytes=0).state()
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
    from service.worker.board import Board  # noqa: PLC0415
    from service.worker.home import lock_host  # noqa: PLC0415
    from service.worker.interrupt import Interrupt, Interrupted  # noqa: PLC0415
    from service.worker.local import measure_here  # noqa: PLC0415
    from service.worker.process import Children  # noqa: PLC0415
    from service.worker.table import render  # noqa: PLC0415

    board, interrupt = Board(), Interrupt()
    chosen = _suite(suite)
    children = Children(kept_open=[lock_host(lock_file.expanduser())])
    try:
        with _watched(board), _told_to_stop(lambda: interrupt.set("STOPPED")):
            measure_here(chosen, out, children, interrupt, board, seed=seed, accelerator=accelerator)
    except Interrupted:
        raise WorkerError(f"stopped; what was measured is in {out}") from None
    finally:
        _console().print(render(board.view))
    typer.echo(f"records and summary are in {out}", err=True)
    raise typer.Exit(int(any(line.state == "failed" for line in board.view.lines)))


def _enrolled(folder: Path) -> "tuple[Home, Node]":
    from service.worker.home import Home, Node  # noqa: PLC0415

    home = Home(folder)
    node = home.load(Node)
    if node is None:
        raise WorkerError("this host is not enrolled: ironlaw worker enrol")
    return home, node


def _suite(name: str) -> "Suite":
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
def _told_to_stop(first: Callable[[], None], second: Callable[[], None] | None = None) -> Iterator[None]:
    """Call ``first`` when asked to stop, and ``second`` when asked again.

    A signal handler may run while its thread holds any lock, so it only writes to a pipe.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)

    def listen() -> None:
        for act in (first, second or first):
            os.read(read_end, 1)
            act()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.write(write_end, b"."))
    threading.Thread(target=listen, name="signals", daemon=True).start()
    yield


@contextmanager
def _watched(board: "Board") -> Iterator[None]:
    """Show the board at a terminal, and write the log to standard error."""
    from service.worker.table import Log, shown  # noqa: PLC0415

    console = _console()
    logger = logging.getLogger("service.worker")
    logger.setLevel(logging.INFO)
    logger.addHandler(Log(console))
    with shown(board, console):
        yield


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415

    return Console(stderr=True, highlight=False)
