"""Commands of measured rows: how sure the estimates are, and what the rows teach."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from service.evidence.rows import RowsFile

app = typer.Typer(no_args_is_help=True, help="Measured rows beside the estimates.")

UNREADABLE = 2
WITHOUT_ROWS = """No rows are given. Most measured rows may not ship, so none are looked for:

  make accuracy ROWS=path                 one or more CSV files of measured rows (docs/accuracy.md says of
                                          which columns), such as ROWS="training.csv inference.csv"
  make accuracy ROWS=tests/data/evidence/measured.csv
                                          the excerpt that ships: rows of torchtitan, llm-foundry and others
  JSON=path                               writes the scores of every row as well"""

Files = Annotated[list[Path] | None, typer.Argument(help="CSV files of measured rows.")]


def _read(files: list[Path] | None) -> "list[RowsFile]":
    from service.evidence.metrics import METRIC_UNITS  # noqa: PLC0415
    from service.evidence.rows import RowsError, read_rows  # noqa: PLC0415

    if not files:
        typer.echo(WITHOUT_ROWS, err=True)
        raise typer.Exit(UNREADABLE)
    try:
        return [read_rows(path, METRIC_UNITS) for path in files]
    except RowsError as error:
        typer.echo(f"ironlaw: {error}", err=True)
        raise typer.Exit(UNREADABLE) from None


@app.command()
def accuracy(
    files: Files = None,
    *,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the scores of every row.")] = None,
    why: Annotated[bool, typer.Option(help="Say of each skipped row what it lacks.")] = False,
) -> None:
    """Estimate every measured row through the questions of the API, and say how far off the estimates are."""
    from service.estimates.service import ESTIMATES  # noqa: PLC0415  # needs the extra `server`
    from service.evidence import report  # noqa: PLC0415
    from service.evidence.scoring import score  # noqa: PLC0415
    from service.snapshot.service import shipped_snapshot  # noqa: PLC0415

    read = _read(files)
    for warning in (warning for one in read for warning in one.warnings):
        typer.echo(f"ironlaw: {warning}", err=True)
    estimators = {name: estimate.estimator for name, estimate in ESTIMATES.items()}
    rows = [row for one in read for row in one.rows]
    scored = score(rows, shipped_snapshot(), estimators)
    for table in report.tables(scored):
        typer.echo(table.text())
    if why:
        typer.echo(report.details(scored).text())
    if json_file:
        json_file.write_text(json.dumps(report.document(scored), indent=1, allow_nan=False) + "\n")
    short = report.shortfalls(scored)
    for line in short:
        typer.echo(f"ironlaw: {line}", err=True)
    raise typer.Exit(1 if short else 0)
