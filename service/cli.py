"""The command line."""

import gc
import json
import socket
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.settings import Settings

if TYPE_CHECKING:
    from service.operator import Operator

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)

worker = typer.Typer(no_args_is_help=True)
app.add_typer(worker, name="worker", help="Work for the service.")

START_SECONDS = 30.0
ACCEPTS_PER_TURN = 16
GRACEFUL_SECONDS = 10
"""What requests under way get to finish once the service is told to stop."""


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
    from service.kit.logs import configure_logs  # noqa: PLC0415
    from service.kit.server import BoundedProtocol  # noqa: PLC0415
    from service.storage import prepare  # noqa: PLC0415

    settings = Settings()
    is_v6 = ":" in settings.host
    family = socket.AF_INET6 if is_v6 else socket.AF_INET
    # A port that is taken is told before the database is touched.
    listening = socket.create_server((settings.host, settings.port), family=family)
    host = f"[{settings.host}]" if is_v6 else settings.host
    address = f"http://{host}:{listening.getsockname()[1]}"
    keyring = settings.keyring
    configure_logs(as_json=settings.log_format == "json", stream=sys.stderr)
    database = Database(settings.database)
    typer.echo(prepare(database), err=True)
    application = create_app(settings)
    attach(application, database, settings, keyring)
    application.state.snapshots.refresh()
    _spare_collector()
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
    _server(config, application.state).run(sockets=handles)


def _server(config: Any, state: Any) -> Any:  # noqa: ANN401
    """A server that is no longer ready from the moment in which it is told to stop."""
    import uvicorn  # noqa: PLC0415

    class Draining(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ANN401
            state.draining = True
            state.nodes.waiting.close()
            super().handle_exit(sig, frame)

    return Draining(config)


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


keys_app = typer.Typer(no_args_is_help=True, help="API keys, with access to the database.")
tenants_app = typer.Typer(no_args_is_help=True, help="Tenants, with access to the database.")
audit_app = typer.Typer(no_args_is_help=True, help="The record of every stored write.")
app.add_typer(keys_app, name="keys")
app.add_typer(tenants_app, name="tenants")
app.add_typer(audit_app, name="audit")


@keys_app.command("create")
def create_key(
    *,
    name: Annotated[str, typer.Option(help="What the key is for.")] = "created at the command line",
    tenant: Annotated[str, typer.Option(help="Tenant that the key acts for.")] = "default",
    scope: Annotated[list[str] | None, typer.Option(help="Scope, such as models:read; repeatable.")] = None,
    admin: Annotated[bool, typer.Option(help="Every scope, those of the operator included.")] = False,
    if_none: Annotated[bool, typer.Option(help="Do nothing where there is a key already.")] = False,
) -> None:
    """Create a key and print it; it is shown this once."""
    from service.operator import Operator  # noqa: PLC0415

    operator = Operator(Settings())
    if if_none and operator.has_keys():
        typer.echo("there is a key already", err=True)
        return
    typer.echo(operator.create_key(name, tenant, scope or [], admin=admin))


@keys_app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(help="Id of the key: the middle part of it.")],
    *,
    tenant: Annotated[str, typer.Option(help="Tenant of the key.")] = "default",
) -> None:
    """Revoke a key: it stops working within two seconds, everywhere."""
    from service.operator import Operator  # noqa: PLC0415

    Operator(Settings()).revoke_key(key_id, tenant)
    typer.echo(f"revoked {key_id}")


@tenants_app.command("create")
def create_tenant(
    tenant_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tenant.")],
    *,
    name: Annotated[str, typer.Option(help="Name of the tenant.")],
) -> None:
    """Create a tenant; a key made for it is the way in."""
    from service.operator import Operator  # noqa: PLC0415

    Operator(Settings()).create_tenant(tenant_id, name)
    typer.echo(f"created {tenant_id}")


@tenants_app.command("export")
def export_tenant(
    tenant_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tenant.")],
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist yet.")],
) -> None:
    """Write every row of a tenant to one file, a line of JSON each, for its owner alone."""
    from service.operator import Operator  # noqa: PLC0415

    Operator(Settings()).export_tenant(tenant_id, file)
    typer.echo(f"exported {tenant_id}")


@tenants_app.command("redact")
def redact_tenant(
    tenant_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tenant.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; there is no way back.")] = False,
) -> None:
    """Disable a tenant and delete everything of it but its audit chain, which then names nobody."""
    from service.operator import Operator  # noqa: PLC0415

    if not yes:
        raise typer.BadParameter("this deletes for good; say so with --yes")
    Operator(Settings()).redact_tenant(tenant_id)
    typer.echo(f"redacted {tenant_id}")


@audit_app.command("verify")
def verify_audit() -> None:
    """Read the chain of every tenant; fails where an event was changed, dropped or reordered."""
    from service.operator import Operator  # noqa: PLC0415

    raise typer.Exit(_report_audit(Operator(Settings())))


def _report_audit(operator: "Operator") -> int:
    """Say for each tenant whether its chain holds; the exit status."""
    faults = 0
    for verdict in operator.verify_audit():
        state = "holds" if verdict.fault is None else f"BREAKS at event {verdict.fault.sequence}"
        why = "" if verdict.fault is None else f": {verdict.fault.code}, {verdict.fault.detail}"
        typer.echo(f"{verdict.tenant_id}: {verdict.events} events, {state}{why}, head {verdict.head_hash}")
        faults += verdict.fault is not None
    return min(faults, 1)


@app.command()
def migrate() -> None:
    """Bring the schema and the shipped catalog of the database up to date."""
    from service.kit.database import Database  # noqa: PLC0415
    from service.storage import migrate  # noqa: PLC0415

    typer.echo(migrate(Database(Settings().database)))


@worker.command()
def background() -> None:
    """Work on background jobs, beside or instead of the threads of the servers."""
    from service.background.service import work  # noqa: PLC0415
    from service.kit.database import Database  # noqa: PLC0415
    from service.storage import prepare  # noqa: PLC0415

    settings = Settings()
    if not settings.background_threads:
        raise typer.BadParameter("IRONLAW_BACKGROUND_THREADS is 0: there is nothing to work with")
    database = Database(settings.database)
    typer.echo(prepare(database), err=True)
    work(database, settings.background_threads)


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="The file to write; it must not exist yet.")]) -> None:
    """Write a consistent copy of the database to one file, while the service runs."""
    from service.backup import back_up  # noqa: PLC0415
    from service.kit.database import Database  # noqa: PLC0415

    _list_contents(back_up(Database(Settings().database), file))


@app.command()
def restore(file: Annotated[Path, typer.Argument(help="A file of `ironlaw backup`, of any engine.")]) -> None:
    """Fill an empty database from a backup, and bring it up to date."""
    from service.backup import restore, restored  # noqa: PLC0415
    from service.kit.database import Database  # noqa: PLC0415
    from service.operator import Operator  # noqa: PLC0415

    settings = Settings()
    database = Database(settings.database)
    _list_contents(restore(database, file))
    typer.echo(restored(database))
    raise typer.Exit(_report_audit(Operator(settings)))


def _list_contents(contents: Iterable[Any]) -> None:
    for content in contents:
        typer.echo(f"{content.row_count:>12,}  {content.table_name}")


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
    from service.kit.subjects import DEFAULT_TENANT  # noqa: PLC0415
    from service.snapshot.service import SnapshotStore, shipped_snapshot  # noqa: PLC0415
    from service.storage import check  # noqa: PLC0415

    settings = Settings()
    if not settings.database_url and not (settings.data_dir / "ironlaw.db").exists():
        return shipped_snapshot()
    database = Database(settings.database)
    check(database)
    store = SnapshotStore(database)
    store.refresh()
    return store.current(DEFAULT_TENANT)


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

    from service.auth.errors import SecretMismatch  # noqa: PLC0415
    from service.backup import BackupRefused  # noqa: PLC0415
    from service.kit.problems import Problem  # noqa: PLC0415
    from service.storage import SchemaMismatch  # noqa: PLC0415

    if isinstance(error, Problem):
        return "; ".join([error.detail, *(field.detail for field in error.errors)])
    if isinstance(error, ValidationError) and error.title in (
        Settings.__name__,
        "ApiKeyInput",
        "TenantInput",
    ):
        return "; ".join(_fault(error.title, item) for item in error.errors())
    if isinstance(error, OperationalError):
        return f"the database does not answer: {str(error.orig).splitlines()[0]}"
    if isinstance(error, ArgumentError):
        return "IRONLAW_DATABASE_URL is not the address of a database"
    if isinstance(error, SchemaMismatch | SecretMismatch | BackupRefused | OSError):
        return str(error)
    return None


def _fault(shape: str, item: Any) -> str:  # noqa: ANN401
    """One thing that is wrong with a setting or an argument, without its value."""
    place = ".".join(str(part) for part in item["loc"])
    if shape == Settings.__name__ and place:
        place = f"IRONLAW_{place.upper()}"
    return f"{place}: {item['msg']}" if place else str(item["msg"])


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
