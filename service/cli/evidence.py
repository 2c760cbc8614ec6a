"""Commands of evidence: a tenant's own measurements."""

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="A tenant's own measurements.")


@app.callback()
def evidence() -> None:
    """Keeps ``import`` a subcommand although it is the only one."""


@app.command("import")
def import_evidence(
    file: Annotated[typer.FileText, typer.Argument(help="File of measurements; - is standard input.")],
    *,
    file_format: Annotated[
        str, typer.Option("--format", help="Program that wrote the file, such as vllm_bench, or own_csv.")
    ],
    context: Annotated[
        Path | None,
        typer.Option(help="JSON of what the file lacks: model, cluster, parallelism, workload."),
    ] = None,
    note: Annotated[str | None, typer.Option(help="Source of the file.")] = None,
    tenant: Annotated[str, typer.Option(help="Tenant that the evidence belongs to.")] = "default",
    dry_run: Annotated[bool, typer.Option(help="Report what would be imported, without storing it.")] = False,
) -> None:
    """Import the measurements of a file as evidence of a tenant."""
    from service.app.operator import Operator  # noqa: PLC0415
    from service.app.settings import Settings  # noqa: PLC0415
    from service.evidence.imports.schemas import EvidenceImportRequest  # noqa: PLC0415

    stated = json.loads(context.read_text()) if context else {}
    given = {"format": file_format, "content": file.read(), "note": note}
    sent = stated | {name: value for name, value in given.items() if value is not None}
    body = EvidenceImportRequest.model_validate_json(json.dumps(sent))
    told = Operator(Settings()).import_evidence(body, tenant, validate_only=dry_run)
    for refused in told["refused"]:
        typer.echo(f"{refused['pointer']}: {refused['detail']} ({refused['code']})", err=True)
    for one in told["answers"]:
        ratio = one["measured"] / one["estimated"]
        typer.echo(f"{one['pointer']}: {one['family']} {one['measured']:.4g}, {ratio:.2f} of its estimate")
    for name in told["figures"]:
        typer.echo(f"figure of the device: {name}")
    verb = "would count" if dry_run else f"count as {told['id']}"
    typer.echo(f"{told['reading_count']} figures read, {len(told['answers'])} answers {verb}")
