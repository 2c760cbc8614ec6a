"""The `worker` commands: enrol, run, report the status, and measure without a service."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.worker.errors import WorkerError
from service.worker.files import LOCK_FILE
from service.worker.signals import handle_stop_signals

if TYPE_CHECKING:
    from rich.console import Console

    from service.protocol.suites import BenchmarkSuite
    from service.worker.state_directory import Node, StateDirectory
    from service.worker.status import WorkerStatus

app = typer.Typer(no_args_is_help=True, help="Measure for the service, or without one.")

TOKEN_VARIABLE = "IRONLAW_ENROLMENT_TOKEN"  # noqa: S105  # its name, not its value
_MOST_TOKEN_CHARACTERS = 200
NVIDIA_CONTROL = Path("/dev/nvidiactl")


class DeviceOption(StrEnum):
    """Kind of device that a node measures."""

    AUTO = "auto"
    CUDA = "cuda"
    CPU = "cpu"


FolderOption = Annotated[
    Path,
    typer.Option(
        "--dir",
        envvar="IRONLAW_WORKER_DIR",
        help="Folder of the credential and of results that are not uploaded yet.",
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(envvar="IRONLAW_WORKER_CA_FILE", help="File of the certificates to trust instead."),
]
LockFile = Annotated[
    Path,
    typer.Option(envvar="IRONLAW_WORKER_LOCK_FILE", help="Lock file that one worker of a host holds."),
]
AcceleratorIndex = Annotated[
    int,
    typer.Option("--accelerator", min=0, envvar="IRONLAW_WORKER_ACCELERATOR", help="Accelerator to measure."),
]
FOLDER = Path("~/.ironlaw-worker")


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
        typer.Option(help="File of an API key with enrolment-tokens:write and node scopes."),
    ] = None,
    name: Annotated[str | None, typer.Option(envvar="IRONLAW_WORKER_NAME", help="Name of the node.")] = None,
    device: Annotated[
        DeviceOption,
        typer.Option(envvar="IRONLAW_WORKER_DEVICE", help="Device to measure; auto: cuda with its driver."),
    ] = DeviceOption.AUTO,
    again: Annotated[
        bool, typer.Option("--again", help="Replace the credential of an enrolled host.")
    ] = False,
    if_none: Annotated[bool, typer.Option(help="Do nothing if this host is enrolled.")] = False,
    folder: FolderOption = FOLDER,
    ca_file: CaFile = None,
) -> None:
    """Enrol this host as a node, with a single-use token. Repeat the command if the answer was lost."""
    from service.worker.enrolment import create_token, enrol_node  # noqa: PLC0415
    from service.worker.state_directory import Node, StateDirectory  # noqa: PLC0415

    if if_none and StateDirectory(folder).load_state(Node) is not None:
        typer.echo("this host is already enrolled", err=True)
        return
    if key_file:
        token = create_token(service, key_file.read(_MOST_TOKEN_CHARACTERS).strip(), ca_file=ca_file)
    else:
        token = token_file.read(_MOST_TOKEN_CHARACTERS) if token_file else os.environ.get(TOKEN_VARIABLE, "")
    if not token.strip():
        raise typer.BadParameter(f"an enrolment token is required: --token-file FILE, or {TOKEN_VARIABLE}")
    kind = device.value
    if kind == "auto":
        kind = "cuda" if NVIDIA_CONTROL.exists() else "cpu"
    node = enrol_node(
        StateDirectory(folder), service, token.strip(), device="cuda" if kind == "cuda" else "cpu", name=name,
        ca_file=ca_file, again=again,
    )  # fmt: skip
    typer.echo(f"enrolled as {node.node_id}, to measure {node.device}; start it with: ironlaw worker run")


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
            help="Space for results that are not uploaded; measuring stops once it is full.",
        ),
    ] = 2**30,
    free_bytes: Annotated[
        int,
        typer.Option(
            min=0,
            envvar="IRONLAW_WORKER_FREE_BYTES",
            help="Space to leave free on the disk; measuring stops below it.",
        ),
    ] = 2**28,
    grace_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            envvar="IRONLAW_WORKER_GRACE_SECONDS",
            help="Time for a running repeat to end after a signal to stop.",
        ),
    ] = 8.0,
    accelerator: AcceleratorIndex = 0,
    shared_host: Annotated[
        bool,
        typer.Option(
            "--shared-host",
            envvar="IRONLAW_WORKER_SHARED_HOST",
            help="Measure only while no other process uses an accelerator of this host.",
        ),
    ] = False,
    windows: Annotated[
        str | None,
        typer.Option(
            envvar="IRONLAW_WORKER_WINDOWS", help="Hours of the day to measure in, such as 22:00-06:00."
        ),
    ] = None,
    daily_seconds: Annotated[
        float | None,
        typer.Option(min=0, envvar="IRONLAW_WORKER_DAILY_SECONDS", help="Most seconds to measure in a day."),
    ] = None,
    once: Annotated[bool, typer.Option(help="Exit after one suite, once its results are uploaded.")] = False,
    lock_file: LockFile = LOCK_FILE,
) -> None:
    """Claim suites and measure them, until a signal to stop."""
    from service.worker.agent import Agent, WorkerOptions  # noqa: PLC0415
    from service.worker.availability import (  # noqa: PLC0415
        Availability,
        list_device_processes,
        parse_windows,
    )
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
    availability = None
    if shared_host or windows or daily_seconds is not None:
        availability = Availability(
            home,
            windows=parse_windows(windows or ""),
            daily_seconds=daily_seconds,
            list_processes=list_device_processes if shared_host and node.device == "cuda" else None,
        )
    options = WorkerOptions(grace_seconds, accelerator, availability, is_once=once)
    agent = Agent(shared, children, options)
    handle_stop_signals(agent.stop, lambda: agent.stop(at_once=True))
    with _report_progress(board):
        agent.run()


@app.command()
def status(*, folder: FolderOption = FOLDER, lock_file: LockFile = LOCK_FILE) -> None:
    """Show the node, its state and the results that it stores, without asking the service."""
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
    suite: Annotated[str, typer.Option(help="Shipped suite, or file of a suite.")],
    out: Annotated[Path, typer.Option(help="Folder for records and summary.")],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the input data. Defaults to a random one.")
    ] = None,
    accelerator: AcceleratorIndex = 0,
    lock_file: LockFile = LOCK_FILE,
) -> None:
    """Run a suite on this machine without a service, and write records and a summary."""
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
        handle_stop_signals(lambda: interrupt.set("STOPPED"))
        with _report_progress(board):
            measure_locally(chosen, out, children, interrupt, board, seed=seed, accelerator=accelerator)
    except Interrupted:
        raise WorkerError(f"stopped; the finished measurements are in {out}") from None
    finally:
        _build_console().print(render_view(board.view))
    typer.echo(f"records and summary are in {out}", err=True)
    raise typer.Exit(int(any(line.state == "failed" for line in board.view.lines)))


@app.command()
def anchor(
    *,
    report: Annotated[typer.FileText, typer.Option(help="Report of GuideLLM as JSON.")],
    key_file: Annotated[typer.FileText, typer.Option(help="File of an API key with evidence:write.")],
    server: Annotated[
        str | None,
        typer.Option(help="Address of the engine. Defaults to those of vLLM and of SGLang on this host."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model of the catalog. Defaults to the one that the report names.")
    ] = None,
    weight_precision: Annotated[
        str | None, typer.Option(help="Precision of the weights, such as fp8.")
    ] = None,
    weight_format: Annotated[
        str | None, typer.Option(help="Format of a quantised checkpoint, such as awq_int4_g128.")
    ] = None,
    accelerator: AcceleratorIndex = 0,
    accelerators: Annotated[
        int, typer.Option(min=1, help="Accelerators that the engine divides layers over.")
    ] = 1,
    folder: FolderOption = FOLDER,
    ca_file: CaFile = None,
) -> None:
    """Send a report of GuideLLM about an engine on this host, as evidence beside its estimates."""
    from service.worker import anchor as anchors  # noqa: PLC0415
    from service.worker.client import ServiceClient  # noqa: PLC0415
    from service.worker.inventory import collect_inventory  # noqa: PLC0415

    _, node = _load_node(folder)
    given = {"model": model, "weight_precision": weight_precision, "weight_format": weight_format}
    body = anchors.build_import(
        anchors.shorten_report(report.read()),
        anchors.find_engine(server),
        node,
        collect_inventory(node.device),
        accelerator=accelerator,
        accelerator_count=accelerators,
        stated={name: value for name, value in given.items() if value is not None},
    )
    client = ServiceClient(node.service, ca_file=ca_file)
    try:
        imported = anchors.send_anchor(client, key_file.read(_MOST_TOKEN_CHARACTERS).strip(), body)
    finally:
        client.close()
    for figure in imported.answers:
        typer.echo(f"{figure.family}: measured {figure.measured:.4g}, estimated {figure.estimated:.4g}")
    typer.echo(f"calibration {imported.calibration_id}", err=True)


def _load_node(folder: Path) -> "tuple[StateDirectory, Node]":
    from service.worker.state_directory import Node, StateDirectory  # noqa: PLC0415

    home = StateDirectory(folder)
    node = home.load_state(Node)
    if node is None:
        raise WorkerError("this host is not enrolled; run: ironlaw worker enrol")
    return home, node


def _resolve_suite(name: str) -> "BenchmarkSuite":
    """Returns a shipped suite by its id, or reads a suite from a file."""
    from service.protocol.suites import shipped_suites  # noqa: PLC0415
    from service.worker.running import read_suite  # noqa: PLC0415

    shipped = shipped_suites()
    if name in shipped:
        return shipped[name]
    if not Path(name).is_file():
        raise typer.BadParameter(f"{name} is neither a suite nor a file; suites: {', '.join(shipped)}")
    return read_suite(Path(name).read_text("utf-8"))


@contextmanager
def _report_progress(board: "WorkerStatus") -> Iterator[None]:
    """Shows the status at a terminal, and writes the log to standard error."""
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
