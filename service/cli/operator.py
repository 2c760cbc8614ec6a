"""Commands of the operator: keys, tenants, audit, backups, with access to the database."""

import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from service.app.operator import Operator

keys_app = typer.Typer(no_args_is_help=True, help="API keys, with access to the database.")
tenants_app = typer.Typer(no_args_is_help=True, help="Tenants, with access to the database.")
audit_app = typer.Typer(no_args_is_help=True, help="The record of every stored write.")
app = typer.Typer()
app.add_typer(keys_app, name="keys")
app.add_typer(tenants_app, name="tenants")
app.add_typer(audit_app, name="audit")


def _build_operator() -> "Operator":
    from service.app.operator import Operator  # noqa: PLC0415  # needs the extra `server`
    from service.app.settings import Settings  # noqa: PLC0415

    return Operator(Settings())


@keys_app.command("create")
def create_key(
    *,
    name: Annotated[str, typer.Option(help="Purpose of the key.")] = "created at the command line",
    tenant: Annotated[str, typer.Option(help="Tenant that the key acts for.")] = "default",
    scope: Annotated[list[str] | None, typer.Option(help="Scope, such as models:read; repeatable.")] = None,
    admin: Annotated[bool, typer.Option(help="Grant every scope, the operator's included.")] = False,
    if_none: Annotated[bool, typer.Option(help="Do nothing if a key exists already.")] = False,
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the key to a new file that only its owner can read."),
    ] = None,
) -> None:
    """Create a key and print it, or write it to a file. It is shown only once."""
    from service.app.key_file import KeyFile  # noqa: PLC0415
    from service.app.operator import KeyExists  # noqa: PLC0415

    operator, scopes = _build_operator(), scope or []
    try:
        if to is None:
            typer.echo(operator.create_key(name, tenant, scopes, admin=admin, first_only=if_none))
        else:
            operator.create_key_file(KeyFile(to), name, tenant, scopes, admin=admin, first_only=if_none)
            typer.echo(f"wrote the key to {to}")
    except KeyExists:
        typer.echo("a key exists already", err=True)


@keys_app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(help="Id of the key, which is its middle part.")],
    *,
    tenant: Annotated[str, typer.Option(help="Tenant of the key.")] = "default",
) -> None:
    """Revoke a key: it stops working within two seconds, everywhere."""
    _build_operator().revoke_key(key_id, tenant)
    typer.echo(f"revoked {key_id}")


@tenants_app.command("create")
def create_tenant(
    tenant_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tenant.")],
    *,
    name: Annotated[str, typer.Option(help="Name of the tenant.")],
) -> None:
    """Create a tenant. It is used with keys that are created for it."""
    _build_operator().create_tenant(tenant_id, name)
    typer.echo(f"created {tenant_id}")


@tenants_app.command("export")
def export_tenant(
    tenant_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tenant.")],
    file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
) -> None:
    """Write every row of a tenant to one file, as lines of JSON, that only its owner can read."""
    _build_operator().export_tenant(tenant_id, file)
    typer.echo(f"exported {tenant_id}")


@tenants_app.command("redact")
def redact_tenant(
    tenant_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the tenant.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm the deletion, which cannot be undone.")] = False,
) -> None:
    """Disable a tenant and delete all its data except its audit chain, which then names nobody."""
    if not yes:
        raise typer.BadParameter("this deletes data permanently; confirm it with --yes")
    _build_operator().redact_tenant(tenant_id)
    typer.echo(f"redacted {tenant_id}")


@audit_app.command("verify")
def verify_audit(
    *,
    expected_heads: Annotated[
        typer.FileText | None,
        typer.Option(help="File of exported heads, which the chains must contain; - is standard input."),
    ] = None,
) -> None:
    """Verify the audit chain of every tenant; fails if an event was changed, dropped or reordered.

    It also fails if a row that grants access differs from its record in the chain, if a tenant is missing
    together with its chain, and if a chain ends before an exported head.
    """
    raise typer.Exit(_report_audit(_build_operator(), expected_heads or ()))


def _report_audit(operator: "Operator", exported: Iterable[str] = ()) -> int:
    """Prints for each tenant if its audit chain is valid, and returns the exit status."""
    from service.audit.verification import parse_exported_heads  # noqa: PLC0415

    try:
        expected = parse_exported_heads(exported)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    found = operator.verify_audit(expected)
    for each in found:
        verdict = each.verdict
        state = "valid" if verdict.fault is None else f"BROKEN at event {verdict.fault.sequence}"
        why = "" if verdict.fault is None else f": {verdict.fault.code}, {verdict.fault.detail}"
        typer.echo(f"{verdict.tenant_id}: {verdict.events} events, {state}{why}, head {verdict.head_hash}")
    for each in found:
        for resource, code in each.changed:
            typer.echo(f"{each.verdict.tenant_id}: {resource} differs from its audit record: {code}")
        for gap in each.count_gaps():
            told = f"{gap['resource_count']} of {gap['collection']} cannot be verified: {gap['detail']}"
            typer.echo(f"{each.verdict.tenant_id}: {told}")
    return 0 if all(each.is_valid for each in found) else 1


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")]) -> None:
    """Write a consistent copy of the database to one file, while the service runs."""
    from service.app.backup import write_backup  # noqa: PLC0415
    from service.app.settings import Settings  # noqa: PLC0415
    from service.kit.database.engine import Database  # noqa: PLC0415

    _list_contents(write_backup(Database(Settings().database), file))


@app.command()
def backups(
    folder: Annotated[Path, typer.Argument(help="Folder of the backups; it must exist.")],
    *,
    every_hours: Annotated[float, typer.Option(min=0.01, help="Hours between two backups.")] = 24.0,
    keep: Annotated[int, typer.Option(min=1, help="Number of backups to keep.")] = 14,
    once: Annotated[bool, typer.Option("--once", help="Take one backup if it is due, and exit.")] = False,
) -> None:
    """Back up on a schedule while the service runs. Each file is verified by a trial restore."""
    from datetime import timedelta  # noqa: PLC0415

    from service.app.backups import Backups  # noqa: PLC0415
    from service.app.settings import Settings  # noqa: PLC0415
    from service.kit.database.engine import Database  # noqa: PLC0415

    # The first process of a container ignores the signal unless it has a handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    database, kept, every = Database(Settings().database), Backups(folder), timedelta(hours=every_hours)
    with kept.lock_folder():
        while not once or not kept.compute_wait(every):
            time.sleep(kept.compute_wait(every).total_seconds())
            typer.echo(f"wrote and tried {kept.take_backup(database, keep)}, {len(kept.list_backups())} kept")


@app.command()
def restore(file: Annotated[Path, typer.Argument(help="File of `ironlaw backup`, from any engine.")]) -> None:
    """Restore a backup into an empty database, and migrate it."""
    from service.app.backup import restore_backup  # noqa: PLC0415
    from service.app.settings import Settings  # noqa: PLC0415
    from service.app.storage import migrate_database  # noqa: PLC0415
    from service.kit.database.engine import Database  # noqa: PLC0415

    database = Database(Settings().database)
    _list_contents(restore_backup(database, file))
    typer.echo(migrate_database(database))
    raise typer.Exit(_report_audit(_build_operator()))


def _list_contents(contents: Iterable[Any]) -> None:
    for content in contents:
        typer.echo(f"{content.row_count:>12,}  {content.table_name}")


def describe_operator_error(error: Exception) -> str | None:
    """Returns a one-line message for an error that the operator can correct, or None for a defect."""
    from pydantic import ValidationError  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError, OperationalError  # noqa: PLC0415

    from service.app.backup import BackupRefused  # noqa: PLC0415
    from service.app.key_file import KeyFileRefused  # noqa: PLC0415
    from service.app.price_folder import PriceFolderRefused  # noqa: PLC0415
    from service.app.settings import Settings  # noqa: PLC0415
    from service.app.storage import SchemaMismatch  # noqa: PLC0415
    from service.auth.errors import SecretMismatch  # noqa: PLC0415
    from service.kit.database.failures import describe_failure  # noqa: PLC0415
    from service.kit.http.problems import Problem  # noqa: PLC0415

    if isinstance(error, Problem):
        return "; ".join([error.detail, *(field.detail for field in error.errors)])
    if isinstance(error, ValidationError) and error.title in (
        Settings.__name__,
        "ApiKeyRequest",
        "TenantRequest",
        "PriceList",
        "EvidenceImportRequest",
    ):
        variable = "IRONLAW_" if error.title == Settings.__name__ else ""
        return "; ".join(_describe_fault(variable, item) for item in error.errors())
    if isinstance(error, OperationalError) or describe_failure(error):
        return f"the database does not answer: {str(getattr(error, 'orig', error)).splitlines()[0]}"
    if isinstance(error, ArgumentError):
        return "IRONLAW_DATABASE_URL is not the address of a database"
    if isinstance(
        error, SchemaMismatch | SecretMismatch | BackupRefused | KeyFileRefused | PriceFolderRefused
    ):
        return str(error)
    return None


def _describe_fault(variable: str, item: Any) -> str:  # noqa: ANN401
    """Describes one invalid setting or argument, without its value."""
    place = ".".join(str(part) for part in item["loc"])
    if variable and place:
        place = f"{variable}{place.upper()}"
    return f"{place}: {item['msg']}" if place else str(item["msg"])
