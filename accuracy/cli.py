"""Commands on measured rows: the accuracy of estimates, and the fit of constants."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import service.evidence
from accuracy.folds import committed_split

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accuracy.hardware import HardwareFile
    from accuracy.links import LinkProbe
    from accuracy.local import RunPlacement
    from accuracy.report import PageProvenance, TextTable
    from accuracy.rows import MeasuredRow, MeasuredRowsFile
    from accuracy.scoring import AskedRow, ScoredRow
    from service.planning.hardware.local_evidence import RunSetting
    from service.resolve.catalog import CatalogView

app = typer.Typer(no_args_is_help=True, help="Compare estimates with measured rows.")

EVIDENCE = Path(service.evidence.__file__).parent
CURVES = EVIDENCE / "reference_curves.json"
KNOWN_ROWS = EVIDENCE / "known_rows.txt"
FOLDS_FILE = Path(__file__).with_name("folds.json")
UNREADABLE = 2
WITHOUT_ROWS = """No rows are given. Most measured rows may not ship, so none are looked for:

  make accuracy ROWS=path                 one or more CSV files of measured rows (docs/accuracy.md says of
                                          which columns), such as ROWS="training.csv inference.csv"
  make accuracy ROWS=tests/data/evidence/measured.csv
                                          the excerpt that ships: rows of torchtitan, llm-foundry and others
  JSON=path                               writes the scores of every row as well"""

Files = Annotated[list[Path] | None, typer.Argument(help="CSV files of measured rows.")]


def _parted(files: list[Path] | None) -> tuple[list[Path], list[Path] | None]:
    """Returns the files of rates of devices and links, and the files of runs."""
    from accuracy.hardware import is_hardware  # noqa: PLC0415

    hardware = [path for path in files or [] if is_hardware(path)]
    return hardware, [path for path in files if path not in hardware] if files else files


def _read(files: list[Path] | None) -> "list[MeasuredRowsFile]":
    from accuracy.lines import RowsError  # noqa: PLC0415
    from accuracy.metrics import METRIC_UNITS  # noqa: PLC0415
    from accuracy.rows import read_rows  # noqa: PLC0415

    if not files:
        typer.echo(WITHOUT_ROWS, err=True)
        raise typer.Exit(UNREADABLE)
    try:
        return [read_rows(path, METRIC_UNITS) for path in files]
    except RowsError as error:
        typer.echo(f"ironlaw: {error}", err=True)
        raise typer.Exit(UNREADABLE) from None


def _catalog() -> "CatalogView":
    from service.evidence.snapshot import build_shipped_snapshot  # noqa: PLC0415

    return build_shipped_snapshot()


def _calibrated(catalog: "CatalogView", records: Path | None) -> "CatalogView":
    """Returns the catalog with the calibration that is drawn of the records of a GPU, if any are given."""
    if records is None:
        return catalog
    from bench.gpu_records import draw_calibration  # noqa: PLC0415

    return replace(catalog, calibrations=(draw_calibration(records),))


def _catalogs_by_fold(catalog: "CatalogView") -> "list[CatalogView]":
    """Returns the catalog under the constants that were fitted without each fold."""
    from accuracy.fitting import held_out  # noqa: PLC0415
    from accuracy.folds import FOLDS  # noqa: PLC0415
    from accuracy.power import power_held_out  # noqa: PLC0415
    from service.evidence.service import load_shipped_document, parse_curves  # noqa: PLC0415

    document = load_shipped_document()
    return [
        replace(catalog, curves=parse_curves(power_held_out(held_out(document, fold), fold)))
        for fold in range(FOLDS)
    ]


def _without_software(catalog: "CatalogView") -> "CatalogView":
    """Returns the catalog without step constants of single frameworks."""
    curves = catalog.curves
    steps = curves.calibration.steps.drop_software()
    return replace(catalog, curves=replace(curves, calibration=replace(curves.calibration, steps=steps)))


def _estimators() -> Any:  # noqa: ANN401
    from service.estimates.service import ESTIMATES  # noqa: PLC0415  # needs the extra `server`

    return {name: estimate.estimator for name, estimate in ESTIMATES.items()}


def _scored(rows: "Sequence[MeasuredRow]", catalogs: "Sequence[CatalogView]") -> "list[ScoredRow]":
    """Scores rows under one catalog, or each under that of the fold without its group."""
    from accuracy.scoring import score, score_held_out  # noqa: PLC0415

    if len(catalogs) > 1:
        return score_held_out(rows, catalogs, committed_split(), _estimators())
    return score(rows, catalogs[0], _estimators())


def _tables_beside(
    rows: "Sequence[MeasuredRow]", scored: "Sequence[ScoredRow]", catalogs: "Sequence[CatalogView]"
) -> "list[TextTable]":
    """Returns tables of training without constants of frameworks, and of serving by a roofline."""
    from accuracy.report import step_table  # noqa: PLC0415

    training = [row for row in rows if row.kind == "training"]
    table = step_table(scored, _scored(training, [_without_software(one) for one in catalogs]))
    held_out = len(catalogs) > 1
    tables = ([table] if table else []) + _serving_tables(rows, scored, held_out=held_out)
    return tables + (_local_tables(rows, scored) if held_out else [])


def _placed() -> "RunPlacement":
    """Returns a function that gives the run setting of a question. Rows of one run share it."""
    from service.resolve.own_runs import resolve_memory_setting, resolve_run_setting  # noqa: PLC0415
    from service.schemas.estimates import ThroughputEstimateRequest  # noqa: PLC0415

    catalog, known = _catalog(), {}

    def placed(shape: Any) -> "RunSetting | None":  # noqa: ANN401
        if id(shape) not in known:
            setting = (
                resolve_run_setting
                if isinstance(shape, ThroughputEstimateRequest)
                else resolve_memory_setting
            )
            known[id(shape)] = setting(shape, catalog)
        return known[id(shape)]

    return placed


def _asked_and_scored(
    rows: "Sequence[MeasuredRow]", scored: "Sequence[ScoredRow]"
) -> "list[tuple[AskedRow, ScoredRow]]":
    """Returns the rows with an estimate, with their questions."""
    from accuracy.scoring import ask, likeliest_first  # noqa: PLC0415

    catalog, estimators = _catalog(), _estimators()
    return [
        (likeliest_first(asked, catalog, estimators), one)
        for asked, one in zip(ask(rows, catalog), scored, strict=True)
        if one.figure is not None
    ]


def _local_tables(rows: "Sequence[MeasuredRow]", scored: "Sequence[ScoredRow]") -> "list[TextTable]":
    """Returns the tables of estimates that are corrected with runs of the same source."""
    from accuracy.local import local_table, points  # noqa: PLC0415
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    found = points(_asked_and_scored(rows, scored), _placed())
    table = local_table(found, load_shipped_document().get("deviations", {}))
    return [table] if table.lines else []


def _serving_tables(
    rows: "Sequence[MeasuredRow]", scored: "Sequence[ScoredRow]", *, held_out: bool
) -> "list[TextTable]":
    """Returns the tables of serving: targets, a plain roofline, and hold-outs."""
    from accuracy.holdouts import again, is_serving, serving_problem  # noqa: PLC0415
    from accuracy.scoring import ask, score_row  # noqa: PLC0415
    from accuracy.serving_report import (  # noqa: PLC0415
        as_roofline,
        hold_out_table,
        roofline_table,
        target_table,
    )
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    catalog = _catalog()
    asked = [one for one in ask([row for row in rows if row.kind == "inference"], catalog) if is_serving(one)]
    if not asked:
        return []
    roofline = [score_row(one, catalog, _estimators()) for one in as_roofline(asked)]
    tables = [target_table(scored), roofline_table(scored, roofline)]
    if held_out:
        problem = serving_problem(
            load_shipped_document(), asked, _estimators(), lambda curves: replace(catalog, curves=curves)
        )
        tried = again(problem, committed_split())
        tables += [hold_out_table(tried), hold_out_table(tried, "serving_throughput")] if tried else []
    return tables


def _provenance(
    read: "list[MeasuredRowsFile]", calibrations: Path | None, *, held_out: bool
) -> "PageProvenance":
    from accuracy.report import PageProvenance  # noqa: PLC0415

    names = " ".join(one.path.name for one in read)
    calibrated = f" CALIBRATIONS={calibrations.name}" if calibrations else ""
    return PageProvenance(
        command=f'make accuracy ROWS="{names}"{calibrated}{" HELD_OUT=1" if held_out else ""}',
        files=tuple((one.path.name, one.sha256, len(one.rows)) for one in read),
        held_out=held_out,
    )


def _beside(anchors: Path, catalog: "CatalogView") -> "TextTable":
    from accuracy.anchors import beside_anchors  # noqa: PLC0415
    from accuracy.lines import RowsError  # noqa: PLC0415

    try:
        return beside_anchors(anchors, catalog, _estimators())
    except RowsError as error:
        typer.echo(f"ironlaw: {error}", err=True)
        raise typer.Exit(UNREADABLE) from None


@app.command()
def score(
    files: Files = None,
    *,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the scores of every row.")] = None,
    doc: Annotated[
        Path | None, typer.Option(help="Write the page with the accuracy of the estimates.")
    ] = None,
    anchors: Annotated[Path | None, typer.Option(help="Answers of other tools, for comparison.")] = None,
    held_out: Annotated[bool, typer.Option(help="Take constants fitted without the row's group.")] = False,
    why: Annotated[bool, typer.Option(help="Report the missing facts of each skipped row.")] = False,
    calibrations: Annotated[
        Path | None, typer.Option(help="Records of a GPU; its calibration is drawn and used.")
    ] = None,
) -> None:
    """Estimate every measured row through the questions of the API, and report the errors."""
    from accuracy import report  # noqa: PLC0415

    files = _score_hardware(files)
    if files == []:
        return
    read = _read(files)
    for warning in (warning for one in read for warning in one.warnings):
        typer.echo(f"ironlaw: {warning}", err=True)
    rows = [row for one in read for row in one.rows]
    catalog = _calibrated(_catalog(), calibrations)
    catalogs = _catalogs_by_fold(catalog) if held_out else [catalog]
    scored = _scored(rows, catalogs)
    for table in report.tables(scored):
        typer.echo(table.text())
    if why:
        typer.echo(report.details(scored).text())
    if json_file:
        json_file.write_text(json.dumps(report.document(scored), indent=1, allow_nan=False) + "\n")
    beside = _tables_beside(rows, scored, catalogs)
    if anchors:
        beside.append(_beside(anchors, catalog))
    for table in beside:
        typer.echo(table.text())
    if doc:
        doc.write_text(report.page(scored, _provenance(read, calibrations, held_out=held_out), beside))
    short = report.shortfalls(scored)
    for line in short:
        typer.echo(f"ironlaw: {line}", err=True)
    raise typer.Exit(1 if short else 0)


@app.command()
def fit(
    files: Files = None,
    *,
    out: Annotated[Path, typer.Option(help="File for the reference set.")] = CURVES,
    split: Annotated[Path, typer.Option(help="The split into folds, read and completed.")] = FOLDS_FILE,
) -> None:
    """Fit the named constants of the reference set to measured rows, validated on held-out groups."""
    from accuracy import report  # noqa: PLC0415
    from accuracy.fitting import (  # noqa: PLC0415
        cross_validate,
        fitted_document,
        problem_of,
    )
    from accuracy.folds import deal  # noqa: PLC0415
    from accuracy.holdouts import is_serving  # noqa: PLC0415
    from accuracy.scoring import ask, is_targeted  # noqa: PLC0415
    from accuracy.spreads import residuals  # noqa: PLC0415
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    hardware, files = _parted(files)
    if hardware:
        devices(hardware, out=out)
        links(hardware, out=out)
        if not files:
            return
    read = _read(files)
    catalog = _catalog()
    rows = [row for one in read for row in one.rows if is_targeted(row)]
    known = json.loads(split.read_text()) if split.exists() else {}
    dealt = deal(rows, known)
    asked = ask(rows, catalog)
    provenance = {
        "command": f"make fit ROWS={' '.join(one.path.name for one in read)!r}",
        "rows_sha256": {one.path.name: one.sha256 for one in read},
    }
    served = _fit_serving([one for one in asked if is_serving(one)], dealt, provenance, out)
    problem = problem_of(
        json.loads(out.read_text()) if served else load_shipped_document(),
        [one for one in asked if not is_serving(one)],
        _estimators(),
        lambda curves: replace(catalog, curves=curves),
    )
    if not problem.constants or not problem.asked:
        if served:
            split.write_text(json.dumps(dealt, indent=1) + "\n")
            return
        typer.echo("ironlaw: no constant states a range, or no row has a metric that one serves", err=True)
        raise typer.Exit(UNREADABLE)
    tried = cross_validate(problem, dealt)
    fitted = tried.whole
    spread = residuals(tried.scored)
    typer.echo(report.fit_table(problem, fitted, tried.folds).text())
    typer.echo(report.residual_table(spread).text())
    for table in report.tables(tried.scored):
        typer.echo(table.text())
    out.write_text(fitted_document(problem, fitted, tried, provenance))
    split.write_text(json.dumps(dealt, indent=1) + "\n")


def _fit_serving(
    asked: "Sequence[AskedRow]", split: "Mapping[str, int]", provenance: "Mapping[str, Any]", out: Path
) -> bool:
    """Fits the constants of serving. Returns true if there were rows and constants for it."""
    from accuracy import report  # noqa: PLC0415
    from accuracy.holdouts import (  # noqa: PLC0415
        served_document,
        serving_problem,
        spreads,
        validate,
    )
    from accuracy.serving_report import hold_out_table, target_table  # noqa: PLC0415
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    catalog = _catalog()
    problem = serving_problem(
        load_shipped_document(), asked, _estimators(), lambda curves: replace(catalog, curves=curves)
    )
    if not problem.constants or not problem.asked:
        return False
    found = validate(problem, split)
    folds = [one.fitted for one in found.folds]
    typer.echo(report.fit_table(problem, found.fitted, folds).text())
    typer.echo(report.residual_table(spreads(found.tried)).text())
    for table in (*report.tables(found.scored()), target_table(found.scored()), hold_out_table(found.tried)):
        typer.echo(table.text())
    out.write_text(served_document(problem, found, provenance))
    return True


@app.command("local")
def fit_local(
    files: Files = None,
    *,
    out: Annotated[Path, typer.Option(help="File for the reference set.")] = CURVES,
    known: Annotated[Path, typer.Option(help="File for the fingerprints of the rows.")] = KNOWN_ROWS,
) -> None:
    """Fit deviations that runs of one tenant share, to rows under constants fitted without their group."""
    from accuracy.local import fingerprints, local_document, local_table, points  # noqa: PLC0415

    rows = [row for one in _read(files) for row in one.rows]
    pairs, placed = _asked_and_scored(rows, _scored(rows, _catalogs_by_fold(_catalog()))), _placed()
    found = points(pairs, placed)
    fitted = local_document(found)
    typer.echo(local_table(found, fitted).text())
    document = {**json.loads(out.read_text()), "deviations": fitted}
    out.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    known.write_text("\n".join(fingerprints(pairs, placed)) + "\n")


@app.command()
def devices(
    files: Annotated[list[Path], typer.Argument(help="CSV files of measured rates of devices.")],
    *,
    out: Annotated[Path | None, typer.Option(help="File for the reference set.")] = None,
) -> None:
    """Fit the constants of operators to measured devices, and report the errors of each held-out group."""
    from accuracy.devices import fit_devices, lines, probes  # noqa: PLC0415
    from accuracy.hardware import read_hardware  # noqa: PLC0415
    from accuracy.lines import RowsError  # noqa: PLC0415
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    try:
        read = [read_hardware(path) for path in files]
    except RowsError as error:
        typer.echo(f"ironlaw: {error}", err=True)
        raise typer.Exit(UNREADABLE) from None
    for warning in (warning for one in read for warning in one.warnings):
        typer.echo(f"ironlaw: {warning}", err=True)
    rows = [row for one in read for row in one.rows]
    document = load_shipped_document()
    accelerators = {name: known.accelerator for name, known in _catalog().accelerators.items()}
    fitted = fit_devices(document["calibration"]["operators"], probes(rows, accelerators))
    for line in lines(fitted.tried):
        typer.echo(
            f"{line.kind:10} {line.group:52} {line.rows:4} rows: median error {line.fitted:5.1f}% fitted, "
            f"{line.held_out:5.1f}% held out, at most {line.worst:5.1f}%"
        )
    if out:
        document["calibration"]["operators"] = fitted.document
        out.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@app.command()
def power(
    files: Annotated[list[Path], typer.Argument(help="CSV files of measured runs.")],
    *,
    out: Annotated[Path | None, typer.Option(help="File for the reference set.")] = None,
) -> None:
    """Fit the constants of power to the mean draw of served models, and report the held-out errors."""
    from accuracy.power import by_fold, drawn, fit_power, lines, spreads  # noqa: PLC0415
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    read, document = _read(files), load_shipped_document()
    found = list(drawn([row for one in read for row in one.rows], _catalog()))
    fitted = fit_power(document["calibration"]["power"], found)
    for line in lines(found, fitted):
        typer.echo(line.text())
    if out:
        provenance = {
            "command": f"python -m accuracy power {' '.join(one.path.name for one in read)}",
            "rows_sha256": {one.path.name: one.sha256 for one in read},
            "rows": len(found),
            "folds": by_fold(fitted.document, found, committed_split()),
        }
        document["calibration"]["power"] = {**fitted.document, "fitted": provenance}
        document |= spreads(document, fitted)
        out.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@app.command()
def links(
    files: Annotated[list[Path], typer.Argument(help="CSV files of measured rates of links.")],
    *,
    out: Annotated[Path | None, typer.Option(help="File for the reference set.")] = None,
) -> None:
    """Fit the constants of links to measured collectives, and report the errors of each held-out group."""
    from accuracy.links import fit_all_links, link_lines  # noqa: PLC0415
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    read = _read_hardware(files)
    found, document = _link_probes(read), load_shipped_document()
    fitted = fit_all_links(document["links"], found)
    for line in link_lines(fitted.tried):
        typer.echo(line.text(held_out=True))
    if out:
        names = " ".join(one.path.name for one in read)
        provenance = {
            "command": f"python -m accuracy links {names}",
            "rows_sha256": {one.path.name: one.sha256 for one in read},
            "rows": len(found),
        }
        document["links"] = {**fitted.document, "fitted": provenance}
        out.write_text(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _read_hardware(files: list[Path]) -> "list[HardwareFile]":
    from accuracy.hardware import read_hardware  # noqa: PLC0415
    from accuracy.lines import RowsError  # noqa: PLC0415

    try:
        return [read_hardware(path) for path in files]
    except RowsError as error:
        typer.echo(f"ironlaw: {error}", err=True)
        raise typer.Exit(UNREADABLE) from None


def _link_probes(read: "list[HardwareFile]") -> "list[LinkProbe]":
    from accuracy.links import link_probes  # noqa: PLC0415
    from service.resolve.hardware import find_catalog_cluster  # noqa: PLC0415
    from service.resolve.host import find_host_link  # noqa: PLC0415

    catalog = _catalog()
    return link_probes(
        (row for one in read for row in one.rows),
        lambda name, count, per_node: find_catalog_cluster(catalog, name, count, per_node),
        lambda name: find_host_link(catalog, name),
    )


def _score_hardware(files: list[Path] | None) -> list[Path] | None:
    """Scores rates of links under the shipped constants. Returns the files without such rates."""
    from accuracy.links import link_lines, score_links  # noqa: PLC0415
    from service.evidence.service import load_shipped_document  # noqa: PLC0415

    hardware, others = _parted(files)
    found = _link_probes(_read_hardware(hardware)) if hardware else []
    for line in link_lines(score_links(load_shipped_document()["links"], found)) if found else ():
        typer.echo(line.text(held_out=False))
    return others


@app.command()
def bills(
    folder: Annotated[Path, typer.Argument(help="A folder with bills.csv and the tariffs that it names.")],
    *,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every row beside its figure.")
    ] = None,
) -> None:
    """Compute worked electricity bills from their tariff files and loads, and compare each exact row."""
    from accuracy import bills as worked  # noqa: PLC0415
    from accuracy.lines import RowsError  # noqa: PLC0415

    try:
        checked = worked.check_folder(folder)
    except RowsError as error:
        typer.echo(f"ironlaw: {error}", err=True)
        raise typer.Exit(UNREADABLE) from None
    for tariff in worked.import_folder(folder):
        if tariff.problem:
            typer.echo(f"ironlaw: {tariff.stem}.json: {tariff.problem}", err=True)
    for table in worked.tables(checked):
        typer.echo(table.text())
    if json_file:
        json_file.write_text(json.dumps(worked.document(checked), indent=1, allow_nan=False) + "\n")
    raise typer.Exit(0 if worked.all_exact_pass(checked) else 1)
