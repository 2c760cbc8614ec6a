"""Commands of offers: price lists and folders of dated prices, with access to the database."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="Dated prices, with access to the database.")

_EXPECTED = ("SUPERSEDED", "REPEATS_ANOTHER_ROW", "OLDER_THAN_CATALOG")
"""Reasons for which a row is counted and not shown: the catalog has a newer or the same price."""


@app.command("import")
def import_offers(
    file: Annotated[typer.FileText, typer.Argument(help="Price list; - is standard input.")],
    *,
    list_format: Annotated[
        str,
        typer.Option(
            "--format",
            help="skypilot, gpuhunt, gpuhunt_tpu, ec2instances, opencost_csv, opencost_json or dated_csv.",
        ),
    ],
    as_of: Annotated[str, typer.Option(help="Date of the prices, such as 2026-11-20.")],
    citation: Annotated[str, typer.Option(help="Source of the list.")],
    provider: Annotated[str | None, typer.Option(help="Provider of the prices, such as aws.")] = None,
    accelerator: Annotated[
        str | None, typer.Option(help="Accelerator of the prices in an OpenCost document.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="Tenant that the offers belong to.")] = "default",
) -> None:
    """Import a price list in its publisher's format: create or version all its offers, or none."""
    from service.app.operator import Operator  # noqa: PLC0415  # needs the extra `server`
    from service.app.settings import Settings  # noqa: PLC0415
    from service.catalog.offers.schemas import PriceList  # noqa: PLC0415

    given = {
        "format": list_format,
        "as_of": as_of,
        "source": {"citation": citation},
        "provider": provider,
        "accelerator_id": accelerator,
    }
    asked = {name: value for name, value in given.items() if value is not None}
    body = PriceList.model_validate_json(json.dumps(asked))
    told = Operator(Settings()).import_offers(body, file.read(), tenant)
    for refused in told["refused"]:
        typer.echo(f"{refused['pointer']}: {refused['detail']} ({refused['code']})", err=True)
    counts = ", ".join(f"{len(told[name])} {name}" for name in ("created", "changed", "unchanged"))
    refused_count = sum(reason["row_count"] for reason in told["refused_reasons"])
    typer.echo(f"{told['row_count']} rows: {counts}, {refused_count} refused")


@app.command("refresh")
def refresh(
    folder: Annotated[
        Path, typer.Argument(help="Folder with gpu-offers.csv, token-prices.csv or both.", file_okay=False)
    ],
    *,
    tenant: Annotated[str, typer.Option(help="Tenant that the prices belong to.")] = "default",
    dry_run: Annotated[bool, typer.Option(help="Report what would be stored, without storing it.")] = False,
) -> None:
    """Bring a tenant's prices up to date with a folder of dated prices, all of it in one transaction.

    A changed price is a new version of its row; a row that the folder lacks stays with its date. Lines that
    are no price are shown with their file, line and column.
    """
    from service.app.operator import Operator  # noqa: PLC0415  # needs the extra `server`
    from service.app.price_folder import list_unread  # noqa: PLC0415
    from service.app.settings import Settings  # noqa: PLC0415

    told = Operator(Settings()).refresh_prices(folder, tenant, validate_only=dry_run)
    for name, outcome in told.items():
        _report_file(name, outcome)
    for name in list_unread(folder):
        typer.echo(f"{name}: not read; gpu-offers.csv and token-prices.csv are")
    if dry_run:
        typer.echo("nothing was stored")


def _report_file(name: str, outcome: Mapping[str, Any]) -> None:
    for refused in outcome["refused"]:
        if refused["code"] not in _EXPECTED:
            line, _, column = refused["pointer"].strip("/").partition("/")
            place = f"{name}:{line}" + (f", {column}" if column else "")
            typer.echo(f"{place}: {refused['detail']} ({refused['code']})", err=True)
    counts = {reason["code"]: reason["row_count"] for reason in outcome["refused_reasons"]}
    older = sum(count for code, count in counts.items() if code in _EXPECTED)
    refused_count = sum(counts.values()) - older
    typer.echo(
        f"{name}: {outcome['row_count']} rows: {len(outcome['created'])} new, {len(outcome['changed'])} "
        f"changed, {len(outcome['unchanged'])} the same, {older} behind a newer or equal row, "
        f"{refused_count} refused; {len(outcome['left'])} of the tenant are not in it and stay"
    )
