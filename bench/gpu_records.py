"""`make gpu-records`: the records of each GPU of tests/data/gpu; writes pages such as docs/gpu-h200-sxm.md.

`python -m bench.gpu_records pack FOLDER... --out FILE` makes a file of folders of `make gpu-first-contact`
and its sisters: a JSON document a line, for each run a header and then its records. All else is computed
again: figures from samples, verdicts and constants by the code of the service, expectations by planning.
"""

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import MISSING

from bench import gpu_checks, gpu_planned, gpu_suite
from service.benchmarks.datasheets import build_datasheet, match_row
from service.benchmarks.figures import compute_measured
from service.benchmarks.service import parse_result
from service.benchmarks.tables import BenchmarkResultRow
from service.benchmarks.validation.case import ValidationCase, get_known
from service.benchmarks.validation.rules import RuleVerdict, validate_case
from service.benchmarks.validation.service import build_sibling, find_accelerator
from service.benchmarks.verdicts import ResultVerdict
from service.calibrations.devices import DeviceCatalog, MeasuredDevice, resolve_device
from service.calibrations.fitting import compute_figures
from service.calibrations.fitting.observations import FittedFigure
from service.calibrations.readings import build_observations
from service.calibrations.references import find_reference_values
from service.calibrations.sets import parse_calibration, resolve_unit, to_document
from service.catalog.shipped import list_shipped_documents
from service.evidence.service import load_reference_curves
from service.kit.security.principals import Principal, PrincipalKind
from service.planning.hardware.calibration.measured import DeviceCalibration
from service.protocol.nodes import NodeAccelerator, NodeInventory
from service.protocol.results import BenchmarkResultReport
from service.protocol.suites import Benchmark, BenchmarkSuite, shipped_suites

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT / "tests" / "data" / "gpu"
ENDING: Final = ".jsonl.gz"
DRAWN_STEPS: Final = ("figures", "power")
"""Steps of which a calibration is drawn. The others measure more briefly, or beside other programs."""
TENANT: Final = "default"
_VIRTUALIZATION: Final = "Virtualization Mode  "
"""Beginning of the line in which `nvidia-smi -q` says how a machine got its device."""


class MeasuredRun(NamedTuple):
    """One run of a step, as its file has it."""

    step: str
    inventory: NodeInventory
    records: list[BenchmarkResultReport]
    virtualization: str | None = None
    torch: Sequence[dict[str, Any]] = ()
    """Calls that were timed through PyTorch in turns with the worker's."""
    sanitizer: Mapping[str, Sequence[str]] = {}
    """Lines that each tool of compute-sanitizer printed."""

    @property
    def part(self) -> NodeAccelerator:
        """The accelerator that was measured, the only one of its machine."""
        (part,) = self.inventory.accelerators
        return part


def pack_folders(folders: Iterable[Path]) -> bytes:
    """Returns the file of some steps, the same bytes for the same folders."""
    lines = [line for folder in folders for line in pack_step(folder)]
    return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)


def pack_step(folder: Path) -> Iterator[str]:
    """Yields a header and the records of each run of a step; the last header has what other programs said."""
    runs = [folder / f"run-{number}" for number in range(1, len(list(folder.glob("run-*"))) + 1)]
    for run in runs:
        asked = (run / gpu_checks.BEFORE[0].file).read_text().splitlines()
        header = {
            "step": folder.name,
            "inventory": json.loads((run / "summary.json").read_text())["inventory"],
            "virtualization": next(
                (line.partition(":")[2].strip() for line in asked if _VIRTUALIZATION in line), None
            ),
        }
        yield _to_line(header | (_pack_beside(folder) if run == runs[-1] else {}))
        for file in sorted((run / "records").glob("*.json")):
            yield _to_line(json.loads(file.read_text()))


def _pack_beside(folder: Path) -> dict[str, Any]:
    """Returns what PyTorch and compute-sanitizer said in a step."""
    pairs = folder / "torch.json"
    reports = {tool: gpu_checks.report(folder, tool) for tool in gpu_checks.TOOLS}
    printed = {tool: file.read_text().splitlines() for tool, file in reports.items() if file.exists()}
    return ({"torch": json.loads(pairs.read_text())} if pairs.exists() else {}) | (
        {"sanitizer": printed} if printed else {}
    )


def _to_line(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


def read_runs(file: Path) -> list[MeasuredRun]:
    """Returns the runs of a file, each benchmark with the windows that are published for it today."""
    windows = {
        one.name: one.windows
        for suite in shipped_suites().values()
        if suite.device == "cuda"
        for one in suite.benchmarks
    }
    runs: list[MeasuredRun] = []
    for line in gzip.decompress(file.read_bytes()).splitlines():
        document = json.loads(line)
        if "step" in document:
            inventory = NodeInventory.model_validate_json(_to_line(document["inventory"]))
            runs.append(MeasuredRun(**{**document, "inventory": inventory, "records": []}))
        else:
            record = BenchmarkResultReport.model_validate_json(line)
            asked = record.benchmark
            asked = asked.model_copy(update={"windows": windows.get(asked.name, asked.windows)})
            runs[-1].records.append(record.model_copy(update={"benchmark": asked}))
    return runs


class JudgedResult(NamedTuple):
    """A result as the service stores it, and what the rules find of it."""

    record: BenchmarkResultReport
    row: BenchmarkResultRow
    validation: RuleVerdict

    @property
    def is_accepted(self) -> bool:
        """True if a calibration may rest on the result."""
        return self.validation.verdict is ResultVerdict.ACCEPTED


def judge_run(run: MeasuredRun) -> list[JudgedResult]:
    """Applies the rules of the service to each result of a run that has a figure, beside the others."""
    shipped = list_shipped_documents()
    datasheet = build_datasheet(run.part, shipped["accelerators"], shipped["links"])
    counted = [(one, row) for one in run.records if (row := build_row(one)).is_counted]
    judged = []
    for record, row in counted:
        read, measurement = compute_measured(record), get_known(record.measurement)
        if read is None or measurement is None:
            raise ValueError(f"{row.benchmark} has no measurement")
        case = ValidationCase(
            result=record,
            measurement=measurement,
            figure=read.figure,
            summary=read.summary,
            lease=row.lease,
            received_at=row.received_at,
            accelerator=find_accelerator(run.inventory, record),
            datasheet=datasheet,
            siblings=[build_sibling(other, its.benchmark.work) for its, other in counted if other is not row],
        )
        judged.append(JudgedResult(record, row, validate_case(case)))
    return judged


def build_row(record: BenchmarkResultReport) -> BenchmarkResultRow:
    """Returns the row of a result that its node sent at once, under the lease of its run."""
    node = Principal(PrincipalKind.NODE, record.node_id, TENANT, frozenset())
    values = parse_result(node, record, record.model_dump_json().encode())
    return BenchmarkResultRow(**values, lease="current", received_at=record.finished_at)


class DrawnCalibration(NamedTuple):
    """The figures of a device, and the device itself."""

    measured: MeasuredDevice
    figures: tuple[FittedFigure, ...]


def draw_figures(runs: Sequence[MeasuredRun]) -> DrawnCalibration:
    """Computes the figures of a device from the accepted results of some runs."""
    judged = [one for run in runs if run.step in DRAWN_STEPS for one in judge_run(run)]
    rows = sorted((one.row for one in judged if one.is_accepted), key=lambda row: (row.received_at, row.id))
    suites = {run.records[0].run_id: build_suite(run) for run in runs}
    shipped = list_shipped_documents()
    links = {name: link for link in shipped["links"] for name in (link["id"], *link["aliases"])}
    last = runs[-1]
    measured = resolve_device(
        rows[-1].node_id,
        last.inventory,
        last.part,
        DeviceCatalog(shipped["accelerators"], links),
        load_reference_curves().calibration,
    )
    return DrawnCalibration(
        measured, compute_figures(list(build_observations(rows, suites)), measured.device).figures
    )


def build_suite(run: MeasuredRun) -> BenchmarkSuite:
    """Returns the benchmarks of a run as a suite."""
    benchmarks = {one.benchmark.name: one.benchmark for one in run.records}
    return BenchmarkSuite(
        id=f"gpu-{run.step}", version=1, title=run.step, device="cuda", benchmarks=list(benchmarks.values())
    )


def draw_calibration(file: Path) -> DeviceCalibration:
    """Returns the calibration that the service would draw from the records of a file."""
    drawn = draw_figures(read_runs(file))
    entries = [to_document(*figure) for figure in drawn.figures]
    return parse_calibration(file.name.removesuffix(ENDING), drawn.measured.scope, entries)


_SCALES: Final = {
    "flops_per_second": (1e12, "TFLOP/s"),
    "bytes_per_second": (1e9, "GB/s"),
    "seconds": (1e-6, "us"),
    "bytes": (2.0**20, "MiB"),
    "watts": (1.0, "W"),
    "joules_per_byte": (1e-12, "pJ/byte"),
    "share": (1.0, ""),
    "tokens": (1.0, "tokens"),
    "elements": (1.0, "elements"),
}
_FOUR_DIGITS: Final = 1000.0
_INTRODUCTION: Final = """# {name}, measured

`make gpu-records` writes this page from `tests/data/gpu/{file}`, the records of
{steps}.
`tests/worker/cuda/test_gpu_records.py` holds it. [Benchmarks](gpu-benchmarks.md) says what is measured, and
how.

## Conditions

| | |
|---|---|"""
_STEPS: Final = """
## Results

The rules of the service judge each result beside the others of its run, and against the windows that are
published today. A calibration rests on accepted results alone. A rule that is named beside an accepted result
is a remark that belongs to the figure, such as a lower clock at the power limit.

| step | began | accepted | not accepted | unsupported |
|---|---|---:|---:|---:|"""
_COLUMNS: Final = """
**Bound** is the share of what bounds the benchmark: another benchmark of the same run, or the data sheet.
**Expected** is what planning expects of this device without its calibration, where it has a formula.
**Ratio** is measured over expected."""
_CALIBRATION: Final = """
## Calibration

The calibration that the service draws from the accepted results of the steps {steps}. A rate is a
share of the data sheet, a draw a share of the power limit. **Reference** is the value that planning has for
this device without it.

| constant | measured | reference | ratio | benchmarks |
|---|---:|---:|---:|---|"""
_TORCH: Final = """
## Beside PyTorch

The same operands, in turns with the worker's call.

| benchmark | worker | PyTorch | ratio | call | demanded |
|---|---:|---:|---:|---|---|"""
_SANITIZER: Final = """
## Kernels under compute-sanitizer

Each work of the own kernels runs once, small, and its result is checked. A tool that was stopped has seen the
works before that, and no others.

| tool | works that ran | reported | ended |
|---|---:|---|---|"""


def write_page(file: Path) -> str:
    """Returns the page of a file."""
    runs = read_runs(file)
    drawn = draw_figures(runs)
    steps = dict.fromkeys(run.step for run in runs)
    lines = [
        _INTRODUCTION.format(
            name=runs[0].part.name, file=file.name, steps=", ".join(f"`make gpu-{step}`" for step in steps)
        )
    ]
    lines += [f"| {name} | {text} |" for name, text in describe_conditions(runs)]
    judged = [judge_run(run) for run in runs]
    lines.append(_STEPS)
    lines += [describe_step(run, results) for run, results in zip(runs, judged, strict=True)]
    lines.append(_COLUMNS)
    for run, results in zip(runs, judged, strict=True):
        lines += write_results(run, results, drawn.measured.scope.accelerator_id)
    lines.append(_CALIBRATION.format(steps=" and ".join(f"`{step}`" for step in DRAWN_STEPS)))
    lines += write_calibration(drawn)
    if pairs := gpu_suite.verdicts([pair for run in runs for pair in run.torch]):
        lines += [_TORCH, *map(describe_pair, pairs)]
    if printed := {tool: each for run in runs for tool, each in run.sanitizer.items()}:
        lines += [_SANITIZER, *(describe_tool(tool, each) for tool, each in printed.items())]
    return "\n".join([*lines, ""])


def describe_conditions(runs: Sequence[MeasuredRun]) -> Iterator[tuple[str, str]]:
    """Yields the conditions of all runs."""
    part, host = runs[-1].part, runs[-1].inventory.host
    records = [record for run in runs for record in run.records]
    software = {each.name: each.version for run in runs for each in run.inventory.software}
    # A record names what its benchmark used, and some versions less exactly than the inventory.
    used = {each.name: each.version for one in records for each in get_known(one.software) or ()}
    yield "date", ", ".join(sorted({f"{record.started_at:%Y-%m-%d}" for record in records}))
    memory, multiprocessors = get_known(part.memory_bytes), get_known(part.multiprocessor_count)
    size = f"{multiprocessors} multiprocessors, {(memory or 0) / 1e9:,.1f} GB"
    yield "device", f"{part.name}, compute capability {get_known(part.compute_capability)}, {size}"
    yield "driver", software.pop("driver")
    default, enforced = get_known(part.power_limit_default_watts), get_known(part.power_limit_watts)
    yield "power limit", f"{enforced:g} W, by default {default:g} W"
    yield "clocks", describe_clocks(part, records)
    yield (
        "virtual machine",
        f"{runs[-1].virtualization} by `nvidia-smi`, {get_known(host.virtualization)} by the worker",
    )
    yield (
        "host",
        f"{host.cpu_count} processors, {get_known(host.cpu_model)}, {host.operating_system}",
    )
    yield (
        "libraries",
        ", ".join(f"{name} {version}" for name, version in sorted({**used, **software}.items())),
    )


def describe_clocks(part: NodeAccelerator, records: Iterable[BenchmarkResultReport]) -> str:
    """Returns the highest clocks of a device, and the lowest one that its power limit led to."""
    telemetry = [get_known(one.measurement.telemetry) for one in records if one.measurement is not MISSING]
    capped = [each for each in telemetry if each and get_known(each.throttle_seconds.sw_power_cap)]
    medians = [clock.median for each in capped if (clock := get_known(each.sm_clock_hz))]
    most, memory = get_known(part.sm_clock_maximum_hz), get_known(part.memory_clock_maximum_hz)
    lowered = f", down to {min(medians) / 1e6:,.0f} MHz at the power limit" if medians else ""
    return (
        f"multiprocessors at most {(most or 0) / 1e6:,.0f} MHz{lowered}; "
        f"memory at most {(memory or 0) / 1e6:,.0f} MHz"
    )


def describe_step(run: MeasuredRun, results: Sequence[JudgedResult]) -> str:
    """Returns the line of a run: how many of its results are of use."""
    accepted = sum(one.is_accepted for one in results)
    unsupported = Counter(record.status for record in run.records)["unsupported"]
    began = min(record.started_at for record in run.records)
    return f"| {run.step} | {began:%H:%M} | {accepted} | {len(results) - accepted} | {unsupported} |"


def write_results(
    run: MeasuredRun, results: Sequence[JudgedResult], accelerator_id: str | None
) -> Iterator[str]:
    """Yields the section of a run."""
    yield f"\n### {run.step}\n"
    yield "| benchmark | figure | bound | expected | ratio | verdict | rules |"
    yield "|---|---:|---|---:|---:|---|---|"
    row = match_row(run.part, list_shipped_documents()["accelerators"])
    found = {one.row.benchmark: [one.record] for one in results}
    bounds = {each["name"]: each for each in gpu_suite.ceilings(found, dict(row) if row else None)}
    planned = gpu_planned.Planned(gpu_planned.device(accelerator_id)) if accelerator_id else None
    for one in results:
        benchmark, figure = one.record.benchmark, one.row.counted_figure
        bound, expected = bounds.get(benchmark.name), planned and expect_figure(planned, benchmark)
        cells = (
            f"`{benchmark.name}`",
            format_figure(figure, benchmark.metric),
            f"{bound['share']:.1%} of {bound['of']}" if bound else "-",
            format_figure(expected, benchmark.metric) if expected else "-",
            f"{figure / expected:.2f}" if expected else "-",
            one.validation.verdict,
            ", ".join(f"`{each.rule}`" for each in one.validation.findings) or "-",
        )
        yield f"| {' | '.join(cells)} |"
    failed = [record for record in run.records if record.failure is not MISSING]
    if failed:
        yield ""
    for record in failed:
        failure = get_known(record.failure)
        yield f"- `{record.benchmark.name}`: {record.status}, {failure and failure.detail}"


def expect_figure(planned: gpu_planned.Planned, benchmark: Benchmark) -> float | None:
    """Returns the figure that planning expects of a benchmark, or None if it has no formula."""
    work = benchmark.work
    # Of other loads, `Planned` gives the draw of an idle device, and of other work a second.
    if work.kind == "power":
        has_formula = work.load != "decode" and work.duty == 1.0
    else:
        has_formula = benchmark.metric != "bytes" and planned.seconds(work) != 1.0
    return planned.figure(work, benchmark.metric) if has_formula else None


def format_figure(figure: float, unit: str) -> str:
    """Returns a figure with four digits and its unit."""
    scale, symbol = _SCALES[unit]
    scaled = figure / scale
    return f"{scaled:{',.0f' if scaled >= _FOUR_DIGITS else '.4g'}} {symbol}".strip()


def write_calibration(drawn: DrawnCalibration) -> Iterator[str]:
    """Yields a line for each constant of a calibration."""
    documents = [to_document(figure.name, figure.figure) for figure in drawn.figures]
    scope, reference = drawn.measured.scope, drawn.measured.device.reference
    known = find_reference_values(documents, scope.generation, reference)
    for figure, document in zip(drawn.figures, documents, strict=True):
        unit, limit = resolve_unit(figure.name), document.get("limit")
        values = [document["value"], known.get(figure.name)]
        cells = (
            f"`{figure.name}`",
            *(describe_value(value, unit, limit) for value in values),
            f"{values[0] / values[1]:.3f}" if values[1] else "-",
            ", ".join(f"`{name}`" for name in figure.rests_on.benchmarks),
        )
        yield f"| {' | '.join(cells)} |"


def describe_value(value: float | None, unit: str, limit: float | None) -> str:
    """Returns a constant as a share of its limit, or in its unit."""
    if value is None:
        return "-"
    return f"{value / limit:.1%}" if limit else format_figure(value, unit)


def describe_pair(pair: Mapping[str, Any]) -> str:
    """Returns the line of a call that PyTorch made too."""
    own, other = (format_figure(pair[name], pair["metric"]) for name in ("figure", "torch_figure"))
    verdict = pair["demand"] if pair["passed"] else f"{pair['demand']}: missed"
    return f"| `{pair['name']}` | {own} | {other} | {pair['ratio']:.3f} | `{pair['call']}` | {verdict} |"


def describe_tool(tool: str, printed: Sequence[str]) -> str:
    """Returns the line of a tool: the works that ran, what it reported of them, and how it ended."""
    works = [line for line in printed if line.endswith(": ok")]
    reported = [line.lstrip("= ") for line in printed[1:-1] if line not in works]
    return f"| {tool} | {len(works)} | {'; '.join(reported) or 'nothing'} | {printed[-1]} |"


def list_files() -> list[Path]:
    """Returns the files of measured devices, each named after the id of its accelerator."""
    return sorted(DATA.glob(f"*{ENDING}"))


def find_page(file: Path) -> Path:
    """Returns the page of a file."""
    return ROOT / "docs" / f"gpu-{file.name.removesuffix(ENDING)}.md"


def main() -> None:
    """Packs folders into a file, or writes the page of every file."""
    parser = argparse.ArgumentParser(prog="gpu-records", description=(__doc__ or "").splitlines()[0])
    pack = parser.add_subparsers(dest="command").add_parser("pack", help="make a file of folders of steps")
    pack.add_argument("folders", nargs="+", type=Path, help="folders of steps, such as gpu-plan/figures")
    pack.add_argument("--out", type=Path, required=True, help=f"file, such as {DATA.name}/h200-sxm{ENDING}")
    options = parser.parse_args()
    if options.command == "pack":
        options.out.write_bytes(pack_folders(options.folders))
        return
    for file in list_files():
        page = find_page(file)
        page.write_text(write_page(file), encoding="utf-8")
        sys.stdout.write(f"wrote {page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
