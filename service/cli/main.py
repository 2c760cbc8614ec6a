"""The command line."""

import errno
import gc
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from enum import StrEnum
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli import ask as ask_cli
from service.cli import diff as diff_cli
from service.cli import doctor as doctor_cli
from service.cli import evidence, offers
from service.cli import operator as operator_cli
from service.cli import plan as plan_cli
from service.worker.cli import app as worker
from service.worker.errors import WorkerError

if TYPE_CHECKING:
    from service.app.settings import Settings

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

app.add_typer(operator_cli.app)
app.add_typer(evidence.app, name="evidence")
app.add_typer(offers.app, name="offers")
app.add_typer(worker, name="worker")
app.command()(plan_cli.plan)
app.command()(diff_cli.diff)
app.command()(doctor_cli.doctor)
app.command()(ask_cli.fit)
app.command()(ask_cli.speed)
app.command()(ask_cli.cost)
app.command()(ask_cli.gpus)
app.add_typer(ask_cli.models, name="models")

START_SECONDS = 30.0
ACCEPTS_PER_TURN = 16
SWITCH_SECONDS = 0.0005
"""Time for which a thread keeps the interpreter while others wait, a tenth of Python's default.

The event loop waits behind each thread that computes at every socket that is ready.
"""
GRACEFUL_SECONDS = 6
"""Seconds for open requests after the signal to stop; supervisors usually kill after ten seconds."""
STOP_SECONDS = 9.0
"""Seconds after that signal in which the process ends, whatever its threads wait for."""


NEEDS_SERVER = "this command needs the server extra, which is not installed: pip install 'ironlaw[server]'"


class EstimateOperation(StrEnum):
    """The four estimates."""

    MEMORY = "memory"
    THROUGHPUT = "throughput"
    COST = "cost"
    UTILITY_BILL = "utility-bill"


def _print_version(*, asked: bool) -> None:
    if asked:
        from service.planning import METHOD_VERSION  # noqa: PLC0415

        typer.echo(f"ironlaw {version('ironlaw')}, method {METHOD_VERSION}")
        raise typer.Exit


@app.callback()
def root(
    *,
    _asked: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda asked: _print_version(asked=asked),
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Capacity planning for machine learning."""
    # Modules, routes and answers are trees without cycles: collecting often is a sixth of a start; walking
    # the catalog at every collection took a third of the time of a batch.
    gc.set_threshold(20_000, 20, 20)


def _load_settings() -> "Settings":
    from service.app.settings import Settings  # noqa: PLC0415  # needs the extra `server`

    return Settings()


@app.command()
def serve(
    *,
    ask: Annotated[bool, typer.Option(help="Answer the reference question once ready.")] = False,
) -> None:
    """Serve the API, after creating, migrating and loading the embedded database."""
    gc.disable()
    import uvicorn  # noqa: PLC0415  # the other commands start faster without it

    from service.app.application import attach_database, create_app  # noqa: PLC0415
    from service.app.storage import prepare_database  # noqa: PLC0415
    from service.app.telemetry import check_telemetry  # noqa: PLC0415
    from service.kit.database.engine import Database  # noqa: PLC0415
    from service.kit.http.server import BoundedProtocol  # noqa: PLC0415
    from service.kit.logs import configure_logs  # noqa: PLC0415
    from service.kit.memory import bound_heap  # noqa: PLC0415

    # What is imported stays, and looking for garbage among it takes a tenth of a start.
    gc.freeze()
    gc.enable()
    bound_heap()
    sys.setswitchinterval(SWITCH_SECONDS)
    settings = _load_settings()
    check_telemetry()
    is_v6 = ":" in settings.host
    family = socket.AF_INET6 if is_v6 else socket.AF_INET
    # A port that is in use is reported before the database is touched.
    try:
        listening = socket.create_server((settings.host, settings.port), family=family)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        taken = f"port {settings.port} of {settings.host} is in use: set IRONLAW_PORT to another port"
        raise OSError(taken) from error
    host = f"[{settings.host}]" if is_v6 else settings.host
    address = f"http://{host}:{listening.getsockname()[1]}"
    keyring = settings.keyring
    configure_logs(as_json=settings.log_format == "json", stream=sys.stderr)
    database = Database(settings.database)
    typer.echo(prepare_database(database), err=True)
    application = create_app(settings)
    attach_database(application, database, settings, keyring)
    application.state.snapshots.refresh()
    _configure_collection()
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http=BoundedProtocol,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_SECONDS,
    )
    typer.echo(f"serving on {address}, documentation at {address}/docs", err=True)
    if ask and settings.mode == "open":  # elsewhere it would need a key
        threading.Thread(target=_ask_reference, args=(address,), daemon=True).start()
    # libuv accepts one connection of a socket per turn of its loop; behind busy connections the last of 32
    # new ones waited a fifth of a second. Every handle on the same socket accepts one more.
    handles = [listening, *(listening.dup() for _ in range(ACCEPTS_PER_TURN - 1))]
    _build_server(config, application.state).run(sockets=handles)


def _build_server(config: Any, state: Any) -> Any:  # noqa: ANN401
    """Builds a server that reports itself not ready from the moment in which it is told to stop."""
    import uvicorn  # noqa: PLC0415

    class Draining(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ANN401
            if not state.draining:
                _limit_stop()
            state.draining = True
            state.waiting.close()
            super().handle_exit(sig, frame)

        async def shutdown(self, sockets: Any = None) -> None:  # noqa: ANN401
            # Stop the jobs now, not after the requests have ended: their chunks take time too.
            if state.working is not None:
                state.working.ask_to_stop()
            await super().shutdown(sockets)

    return Draining(config)


def _limit_stop() -> None:
    """Ends the process in time. What it has acknowledged is committed, and what it has not is rolled back."""
    timer = threading.Timer(STOP_SECONDS, os._exit, args=[0])
    timer.daemon = True
    timer.start()


def _configure_collection() -> None:
    """Excludes objects that live as long as the process from garbage collection; collects the others often.

    Few objects of a request outlive it. With the thresholds of the start, the oldest generation is first
    collected after hours.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 5, 2)


def _ask_reference(address: str) -> None:
    """Asks the service the reference question over HTTP, and prints the answer."""
    import httpx  # noqa: PLC0415

    from service.app.reference_question import REFERENCE_QUESTION  # noqa: PLC0415
    from service.cli.terminal import print_answer  # noqa: PLC0415

    with httpx.Client(base_url=address, timeout=5.0, trust_env=False) as client:
        deadline = time.monotonic() + START_SECONDS
        while not _is_ready(client):
            if time.monotonic() > deadline:
                typer.echo("the service did not become ready", err=True)
                return
            time.sleep(0.02)
        response = client.post("/v1/estimates/utility-bill", json=REFERENCE_QUESTION)
        response.raise_for_status()
    typer.echo("70e9 parameters on 2e12 tokens with 1,000 H100 at half their peak: rent or buy?\n")
    print_answer(response.json())
    typer.echo(
        f"\nDocumentation: {address}/docs\nAsk the next one:\n"
        f"  curl -s {address}/v1/estimates/utility-bill -H 'content-type: application/json' \\\n"
        f"    -d '{json.dumps(REFERENCE_QUESTION)}'"
    )


def _is_ready(client: Any) -> bool:  # noqa: ANN401
    import httpx  # noqa: PLC0415

    try:
        return bool(client.get("/readyz").status_code == httpx.codes.OK)
    except httpx.TransportError:
        return False


@app.command()
def migrate() -> None:
    """Bring the schema and the shipped catalog of the database up to date."""
    from service.app.storage import migrate_database  # noqa: PLC0415
    from service.kit.database.engine import Database  # noqa: PLC0415

    typer.echo(migrate_database(Database(_load_settings().database)))


@worker.command()
def background() -> None:
    """Run background jobs, in addition to or instead of the threads of the servers."""
    from service.app.background.service import JobDependencies, work_until_stopped  # noqa: PLC0415
    from service.app.storage import prepare_database  # noqa: PLC0415
    from service.app.telemetry import start_telemetry  # noqa: PLC0415
    from service.audit.service import Writes  # noqa: PLC0415
    from service.kit.database.engine import Database  # noqa: PLC0415
    from service.kit.http.outbound import OutboundClient  # noqa: PLC0415
    from service.kit.logs import configure_logs  # noqa: PLC0415
    from service.kit.memory import MemoryWatch, bound_heap, find_budget  # noqa: PLC0415
    from service.webhooks.service import Webhooks  # noqa: PLC0415

    bound_heap()
    settings = _load_settings()
    if not settings.background_threads:
        raise typer.BadParameter("IRONLAW_BACKGROUND_THREADS must be at least 1 for this command")
    configure_logs(as_json=settings.log_format == "json", stream=sys.stderr)
    database = Database(settings.database)
    typer.echo(prepare_database(database), err=True)
    keyring = settings.keyring
    webhooks = Webhooks.from_keyring(keyring, OutboundClient(settings.networks), settings.public_url)
    means = JobDependencies(
        writes=Writes(database, keyring),
        webhooks=webhooks,
        exports=settings.audit_exports,
        memory=MemoryWatch(find_budget(settings.memory_limit_bytes)),
    )
    telemetry = start_telemetry()
    _configure_collection()
    work_until_stopped(database, means, settings.background_threads)
    telemetry.stop()


@app.command()
def estimate(
    file: Annotated[typer.FileBinaryRead, typer.Argument(help="Question as JSON; - is standard input.")],
    operation: Annotated[
        EstimateOperation | None,
        typer.Option(help="Estimate to make. Defaults to the one that its members fit."),
    ] = None,
) -> None:
    """Answer a question, from the catalog of the data directory if there is one.

    The exit status is 3 if the answer says that the memory of a device is too small.
    """
    raise typer.Exit(_print_estimate(file.read(), operation))


def _print_estimate(text: bytes, operation: EstimateOperation | None) -> int:
    """Prints the answer to a question, or its errors, and returns the exit status."""
    from pydantic import ValidationError  # noqa: PLC0415

    from service.cli.terminal import print_answer  # noqa: PLC0415
    from service.estimates.service import ESTIMATES, answer_question  # noqa: PLC0415
    from service.kit.http.problems import Problem  # noqa: PLC0415
    from service.kit.http.shapes import load_shape  # noqa: PLC0415
    from service.kit.http.validation import build_body_problem  # noqa: PLC0415

    try:
        asked, estimator = ESTIMATES[operation or _detect_operation(text)]
        try:
            question = asked.model_validate_json(text)
        except ValidationError as error:
            raise build_body_problem(error, text, load_shape(asked)) from error
        answered: Mapping[str, Any] = answer_question(estimator, question, plan_cli.load_local_catalog())
    except Problem as problem:
        typer.echo(f"ironlaw: {problem.detail}", err=True)
        for field in problem.errors:
            typer.echo(f"  {field.pointer or 'the question'}: {field.detail} ({field.code})", err=True)
        return 1
    print_answer(answered)
    return 0 if _fits(answered) else ask_cli.DOES_NOT_FIT


def _fits(answered: Mapping[str, Any]) -> bool:
    """Returns false if an answer says that the memory of a device is too small."""
    warned = any(warning["code"] == "DOES_NOT_FIT" for warning in answered["warnings"])
    return answered.get("fits") is not False and not warned


_TELLING_MEMBERS: tuple[tuple[str, EstimateOperation], ...] = (
    ("site", EstimateOperation.UTILITY_BILL),
    ("purchase", EstimateOperation.UTILITY_BILL),
    ("rental", EstimateOperation.COST),
    ("efficiency", EstimateOperation.THROUGHPUT),
)


def _detect_operation(text: bytes) -> EstimateOperation:
    """Returns the operation that the members of a question belong to."""
    try:
        members = json.loads(text)
    except ValueError:
        return EstimateOperation.MEMORY
    for name, operation in _TELLING_MEMBERS:
        if isinstance(members, dict) and name in members:
            return operation
    return EstimateOperation.MEMORY


@app.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    from service.app.application import create_app  # noqa: PLC0415

    document = create_app(_load_settings()).openapi()
    typer.echo(json.dumps(document, indent=2))


def _describe_error(error: Exception) -> str | None:
    """Returns a one-line message for an error that the user can correct, or None for a defect."""
    if isinstance(error, WorkerError | OSError):
        return str(error)
    return operator_cli.describe_operator_error(error) if find_spec("sqlalchemy") else None


def main() -> None:
    """Runs the ``ironlaw`` command."""
    try:
        app()
    except ModuleNotFoundError as error:
        if (error.name or "service").partition(".")[0] == "service":
            raise
        typer.echo(f"ironlaw: {NEEDS_SERVER}", err=True)
        sys.exit(2)
    except Exception as error:
        message = _describe_error(error)
        if message is None:
            raise
        typer.echo(f"ironlaw: {message}", err=True)
        sys.exit(1)
