"""The command line."""

import gc
import json
import socket
import sys
import threading
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from service.settings import Settings

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

START_SECONDS = 30.0
ACCEPTS_PER_TURN = 16


class Operation(StrEnum):
    """The four questions."""

    MEMORY = "memory"
    THROUGHPUT = "throughput"
    COST = "cost"
    UTILITY_BILL = "utility-bill"


@app.callback()
def root() -> None:
    """Capacity planning for machine learning."""


@app.command()
def serve(
    *,
    ask: Annotated[bool, typer.Option(help="Ask the reference question once the service is up.")] = False,
) -> None:
    """Serve the API; the embedded database is created, migrated and loaded first."""
    import uvicorn  # noqa: PLC0415  # the other commands start faster without it

    from service.app import attach, create_app  # noqa: PLC0415
    from service.kit.database import Database  # noqa: PLC0415
    from service.storage import prepare  # noqa: PLC0415

    settings = Settings()
    is_v6 = ":" in settings.host
    family = socket.AF_INET6 if is_v6 else socket.AF_INET
    # A port that is taken is told before the database is touched.
    listening = socket.create_server((settings.host, settings.port), family=family)
    host = f"[{settings.host}]" if is_v6 else settings.host
    address = f"http://{host}:{listening.getsockname()[1]}"
    database = Database(settings.database)
    typer.echo(prepare(database), err=True)
    application = create_app(settings)
    attach(application, database)
    application.state.snapshots.refresh()
    _spare_collector()
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    typer.echo(f"serving on {address}, documentation at {address}/docs", err=True)
    if ask:
        threading.Thread(target=_ask_reference, args=(address,), daemon=True).start()
    # libuv accepts one connection of a socket per turn of its loop; behind busy connections the last of 32
    # new ones waited a fifth of a second. Every handle on the same socket accepts one more.
    handles = [listening, *(listening.dup() for _ in range(ACCEPTS_PER_TURN - 1))]
    uvicorn.Server(config).run(sockets=handles)


def _spare_collector() -> None:
    """Keep what lives as long as the process out of garbage collection, and collect less often.

    Answers are trees without cycles. Walking the catalog at every collection took a third of the time
    of a batch.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _ask_reference(address: str) -> None:
    """Ask the service the reference question, as any client would, and print the answer."""
    import httpx  # noqa: PLC0415

    from service.examples import REFERENCE_QUESTION  # noqa: PLC0415
    from service.terminal import show  # noqa: PLC0415

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
    show(response.json())
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
    from service.kit.database import Database  # noqa: PLC0415
    from service.storage import migrate  # noqa: PLC0415

    typer.echo(migrate(Database(Settings().database)))


@app.command()
def estimate(
    file: Annotated[typer.FileBinaryRead, typer.Argument(help="A question as JSON; - is standard input.")],
    operation: Annotated[
        Operation | None,
        typer.Option(help="Which question; by default the one that the members of the file fit."),
    ] = None,
) -> None:
    """Answer a question at the terminal, from the catalog of the data directory if there is one."""
    raise typer.Exit(_estimate(file.read(), operation))


def _estimate(text: bytes, operation: Operation | None) -> int:
    """Print the answer to a question, or what is wrong with it; the exit status."""
    from pydantic import ValidationError  # noqa: PLC0415

    from service.estimates.service import ESTIMATES, answer  # noqa: PLC0415
    from service.kit.problems import Problem  # noqa: PLC0415
    from service.kit.web import body_errors  # noqa: PLC0415
    from service.terminal import show  # noqa: PLC0415

    try:
        asked, estimator = ESTIMATES[operation or _operation_of(text)]
        try:
            question = asked.model_validate_json(text)
        except ValidationError as error:
            raise body_errors(error, text) from error
        answered: Mapping[str, Any] = answer(estimator, question, _catalog())
    except Problem as problem:
        typer.echo(f"ironlaw: {problem.detail}", err=True)
        for field in problem.errors:
            typer.echo(f"  {field.pointer or 'the question'}: {field.detail} ({field.code})", err=True)
        return 1
    show(answered)
    return 0


_TELLING_MEMBERS: tuple[tuple[str, Operation], ...] = (
    ("site", Operation.UTILITY_BILL),
    ("purchase", Operation.UTILITY_BILL),
    ("rental", Operation.COST),
    ("efficiency", Operation.THROUGHPUT),
)


def _operation_of(text: bytes) -> Operation:
    """The operation that a question's members belong to."""
    try:
        members = json.loads(text)
    except ValueError:
        return Operation.MEMORY
    for name, operation in _TELLING_MEMBERS:
        if isinstance(members, dict) and name in members:
            return operation
    return Operation.MEMORY


def _catalog() -> Any:  # noqa: ANN401
    """The catalog of the configured database, or the shipped one where there is none yet."""
    from service.kit.database import Database  # noqa: PLC0415
    from service.snapshot.service import SnapshotStore, shipped_snapshot  # noqa: PLC0415
    from service.storage import check  # noqa: PLC0415

    settings = Settings()
    if not settings.database_url and not (settings.data_dir / "ironlaw.db").exists():
        return shipped_snapshot()
    database = Database(settings.database)
    check(database)
    store = SnapshotStore(database)
    store.refresh()
    return store.current


@app.command()
def openapi() -> None:
    """Print the OpenAPI document."""
    from service.app import create_app  # noqa: PLC0415

    document = create_app(Settings()).openapi()
    typer.echo(json.dumps(document, indent=2))


def _what_to_mend(error: Exception) -> str | None:
    """What an operator can mend, in one line; None for a defect of ours."""
    from pydantic import ValidationError  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError, OperationalError  # noqa: PLC0415

    from service.storage import SchemaMismatch  # noqa: PLC0415

    if isinstance(error, SchemaMismatch):
        return str(error)
    if isinstance(error, ValidationError) and error.title == Settings.__name__:
        faults = (f"IRONLAW_{str(item['loc'][0]).upper()}: {item['msg']}" for item in error.errors())
        return "; ".join(faults)
    if isinstance(error, OperationalError):
        return f"the database does not answer: {str(error.orig).splitlines()[0]}"
    if isinstance(error, ArgumentError):
        return "IRONLAW_DATABASE_URL is not the address of a database"
    if isinstance(error, OSError):
        return str(error)
    return None


def main() -> None:
    """Entry point of the ``ironlaw`` command."""
    try:
        app()
    except Exception as error:
        message = _what_to_mend(error)
        if message is None:
            raise
        typer.echo(f"ironlaw: {message}", err=True)
        sys.exit(1)
